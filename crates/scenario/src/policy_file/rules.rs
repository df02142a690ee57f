//! What files of policies and of deadlines have in common.

use std::path::Path;
use std::sync::Arc;

use weir_policy::{PortRange, Prefix};
use weir_scenario_derive::Keys;

use super::condition;
use crate::ScenarioError;
use crate::document::{Cursor, Problems, Reported, parse, read_text};
use crate::error::Place;
use crate::schema::Accepts;

/// The largest file that is read, in MiB: ten thousand rules have about one megabyte.
const LARGEST_FILE: u64 = 16;

/// What the key `rules` takes.
pub(super) const RULES: Accepts = Accepts::Other("tables `[[rules]]`");

/// What both tables of rules describe.
pub(super) const DOC: &str = "A rule is about the data that goes one way of TCP connections. Conditions that are written must all \
     hold; of a list one value must.";

/// Whom a rule is about.
#[derive(Keys)]
pub(super) struct FlowEnds {
    /// Who sends the data.
    #[key(absent = "anybody", or = Vec::new(), read = condition::read(at))]
    pub(super) from: Vec<Prefix>,
    /// Who receives the data.
    #[key(absent = "anybody", or = Vec::new(), read = condition::read(at))]
    pub(super) to: Vec<Prefix>,
    /// The TCP port that the data comes from.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    pub(super) from_port: Vec<PortRange>,
    /// The TCP port that the data goes to.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    pub(super) to_port: Vec<PortRange>,
}

/// Reads a file; `kind` tells of what kind it should be.
pub(super) fn load<T>(
    path: &Path,
    kind: &str,
    read: impl FnOnce(&Cursor<'_>) -> Result<T, Reported>,
) -> Result<T, ScenarioError> {
    let text = read_text(path, LARGEST_FILE, kind)?;
    parse_as(&path.display().to_string(), &text, read)
}

/// Reads text; errors call it `name`.
pub(super) fn parse_as<T>(
    name: &str,
    text: &str,
    read: impl FnOnce(&Cursor<'_>) -> Result<T, Reported>,
) -> Result<T, ScenarioError> {
    let problems = Problems::new(&Arc::from(name), None);
    let root = parse(text, &problems);
    let read = root.and_then(|root| read(&Cursor::top(&root, &problems)));
    problems.finish(read)
}

/// Where a rule begins in its file.
pub(super) fn line_of(at: &Cursor<'_>) -> u32 {
    match at.node.place {
        Place::Line(line) => line,
        Place::Setting(_) => 0,
    }
}
