//! Common parts of policy files and deadline files.

use std::path::Path;
use std::sync::Arc;

use weir_policy::{PortRange, Prefix};
use weir_scenario_derive::Keys;

use super::condition;
use crate::ScenarioError;
use crate::document::{Cursor, Problems, Reported, parse, read_text};
use crate::error::Position;
use crate::schema::Accepts;

/// The maximum file size in MiB: ten thousand rules take about one megabyte.
const LARGEST_FILE: u64 = 16;

/// The accepted value of the key `rules`.
pub(super) const RULES: Accepts = Accepts::Other("tables `[[rules]]`");

/// The description of both tables of rules.
pub(super) const DOC: &str = "A rule applies to one direction of TCP connections. All its conditions must hold; of a list, one value \
     must match.";

/// The conditions on the ends of a flow.
#[derive(Keys)]
pub(super) struct FlowEnds {
    /// The sender of the data.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    pub(super) from: Vec<Prefix>,
    /// The receiver of the data.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    pub(super) to: Vec<Prefix>,
    /// The source TCP port of the data.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    pub(super) from_port: Vec<PortRange>,
    /// The destination TCP port of the data.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    pub(super) to_port: Vec<PortRange>,
}

/// Reads a file; `kind` is the expected kind of file, for errors.
pub(super) fn load<T>(
    path: &Path,
    kind: &str,
    read: impl FnOnce(&Cursor<'_>) -> Result<T, Reported>,
) -> Result<T, ScenarioError> {
    let text = read_text(path, LARGEST_FILE, kind)?;
    parse_as(&path.display().to_string(), &text, read)
}

/// Reads text; errors contain `name`.
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

/// Returns the line of the file on which a rule begins.
pub(super) fn line_of(at: &Cursor<'_>) -> u32 {
    match at.node.position {
        Position::Line(line) => line,
        Position::Setting(_) => 0,
    }
}
