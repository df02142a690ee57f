//! From a file to a checked policy.

use std::path::Path;
use std::sync::Arc;

use weir_policy::{Policy, PolicyRule};

use super::condition;
use crate::ScenarioError;
use crate::document::{At, Fields, Problems, Reported, parse};
use crate::error::Place;
use crate::schema::{Accepts, Key, Section};
use crate::topology::{BUFFER, CONGESTION, ECN, PASS, control};

/// The largest file that is read: ten thousand rules have about one megabyte.
const LARGEST_FILE: u64 = 16 << 20;

pub(super) const PREFIXES: &str =
    "a set of addresses such as \"10.0.0.0/8\", or a list of such sets";
pub(super) const PORTS: &str =
    "a port such as 443, a range such as \"8000-8999\", or a list of these";
const INTERFACES: &str = "an interface's name, a beginning of names such as \"veth*\", or a list";
const CLASSES: &str =
    "a name such as \"af41\" or \"ef\", a number from 0 to 63, or a list of these";

/// Whom a rule is about, here and in a file of deadlines.
pub(super) const FROM: Key = Key::optional(
    "from",
    Accepts::Other(PREFIXES),
    "anybody",
    "who sends the data",
);
pub(super) const TO: Key = Key::optional(
    "to",
    Accepts::Other(PREFIXES),
    "anybody",
    "who receives the data",
);
pub(super) const FROM_PORT: Key = Key::optional(
    "from_port",
    Accepts::Other(PORTS),
    "any",
    "the TCP port that the data comes from",
);
pub(super) const TO_PORT: Key = Key::optional(
    "to_port",
    Accepts::Other(PORTS),
    "any",
    "the TCP port that the data goes to",
);

static FILE: Section = Section {
    title: "the top of the file",
    doc: "A policy is a list of rules.",
    keys: &[Key::required(
        "rules",
        Accepts::Other("tables `[[rules]]`"),
        "the rules; the first one that fits a flow holds, and a flow that none fits is left alone",
    )],
};

static RULE: Section = Section {
    title: "[[rules]]",
    doc: "A rule is about the data that goes one way of TCP connections. Conditions that are written must \
          all hold; of a list one value must.",
    keys: &[
        FROM,
        TO,
        FROM_PORT,
        TO_PORT,
        Key::optional(
            "interface",
            Accepts::Other(INTERFACES),
            "any",
            "the interface that the data leaves by",
        ),
        Key::optional(
            "dscp",
            Accepts::Other(CLASSES),
            "any",
            "the class that the sender's packets of the handshake say they are of",
        ),
        CONGESTION,
        PASS,
        ECN,
        BUFFER,
    ],
};

/// The tables of a policy file.
pub(crate) static SECTIONS: [&Section; 2] = [&FILE, &RULE];

/// Reads a policy file.
///
/// # Errors
/// The file cannot be read, or it has mistakes: the error lists those that were found, with their
/// lines and keys.
pub fn load_policy(path: &Path) -> Result<Policy, ScenarioError> {
    let text = text_of(path, "policy")?;
    parse_policy(&path.display().to_string(), &text)
}

/// Reads a policy from text; errors call it `name`.
///
/// # Errors
/// As [`load_policy`].
pub fn parse_policy(name: &str, text: &str) -> Result<Policy, ScenarioError> {
    let problems = Problems::new(&Arc::from(name), None);
    let rules = rules(text, &FILE, &problems, rule);
    problems.finish(rules.map(|rules| Policy { rules }))
}

/// The text of a file; `kind` tells of what kind it should be.
pub(super) fn text_of(path: &Path, kind: &str) -> Result<String, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LARGEST_FILE {
        return Err(unreadable(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!("more than 16 MiB are no {kind} file"),
        )));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// The rules of a file: all of them are read, so that all mistakes are reported.
pub(super) fn rules<T>(
    text: &str,
    file: &'static Section,
    problems: &Problems,
    read: fn(At<'_>) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let root = parse(text, problems)?;
    let at = At {
        node: &root,
        key: String::new(),
        problems,
    };
    let fields = Fields::open(at, file)?;
    let rules = fields.needed("rules")?.list("tables `[[rules]]`")?;
    let rules: Vec<_> = rules.into_iter().map(read).collect();
    rules.into_iter().collect()
}

/// Where a rule begins in its file.
pub(super) fn line_of(at: &At<'_>) -> u32 {
    match at.node.place {
        Place::Line(line) => line,
        Place::Setting(_) => 0,
    }
}

fn rule(at: At<'_>) -> Result<PolicyRule, Reported> {
    let line = line_of(&at);
    let fields = Fields::open(at, &RULE)?;
    let from = condition::read(&fields, "from", PREFIXES);
    let to = condition::read(&fields, "to", PREFIXES);
    let from_ports = condition::read(&fields, "from_port", PORTS);
    let to_ports = condition::read(&fields, "to_port", PORTS);
    let interfaces = condition::read(&fields, "interface", INTERFACES);
    let dscp = condition::read(&fields, "dscp", CLASSES);
    let control = control(&fields);
    Ok(PolicyRule {
        line,
        from: from?,
        to: to?,
        from_ports: from_ports?,
        to_ports: to_ports?,
        interfaces: interfaces?,
        dscp: dscp?,
        control: control?,
    })
}
