//! Files of deadlines: what flows demand whose applications say nothing.

use std::path::Path;
use std::sync::Arc;

use weir_policy::{DeadlinePolicy, DeadlineRule};
use weir_units::{ByteSize, Duration};

use super::condition;
use super::read::{self, PORTS, PREFIXES};
use crate::ScenarioError;
use crate::document::{At, Fields, Problems, Reported};
use crate::schema::{Accepts, Key, Literal, Section};

static FILE: Section = Section {
    title: "the top of the file",
    doc: "A file of deadlines is a list of rules.",
    keys: &[Key::required(
        "rules",
        Accepts::Other("tables `[[rules]]`"),
        "the rules; the first one that fits a flow holds, and a flow that none fits has no deadline",
    )],
};

static RULE: Section = Section {
    title: "[[rules]]",
    doc: "A rule is about the data that goes one way of TCP connections. Conditions that are written must \
          all hold; of a list one value must.",
    keys: &[
        read::FROM,
        read::TO,
        read::FROM_PORT,
        read::TO_PORT,
        Key::optional(
            "size",
            Accepts::SIZE,
            "`pass` must be `true`",
            "how much such a flow carries, headers not counted; where it varies, the most that is usual",
        ),
        Key::optional(
            "deadline",
            Accepts::POSITIVE_SPAN,
            "`pass` must be `true`",
            "how long such a flow has from its SYN on",
        ),
        Key::default(
            "pass",
            Accepts::Boolean,
            Literal::Boolean(false),
            "such flows have no deadline, instead of `size` and `deadline`",
        ),
    ],
};

/// The tables of such a file.
pub(crate) static SECTIONS: [&Section; 2] = [&FILE, &RULE];

/// Reads a file of deadlines.
///
/// ```
/// use weir_scenario::parse_deadlines;
///
/// let text = r#"
/// [[rules]]
/// from_port = 11211
/// size = "20KB"
/// deadline = "10ms"
/// "#;
/// let deadlines = parse_deadlines("deadlines.toml", text)?;
/// assert!(deadlines.rules[0].demand.is_some());
///
/// let error = parse_deadlines("deadlines.toml", "[[rules]]\ndeadline = \"10ms\"").unwrap_err();
/// assert!(error.to_string().starts_with("deadlines.toml:2: rules.0.deadline: "), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The file cannot be read, or it has mistakes: the error lists those that were found, with their
/// lines and keys.
pub fn load_deadlines(path: &Path) -> Result<DeadlinePolicy, ScenarioError> {
    let text = read::text_of(path, "deadline")?;
    parse_deadlines(&path.display().to_string(), &text)
}

/// Reads deadlines from text; errors call it `name`.
///
/// # Errors
/// As [`load_deadlines`].
pub fn parse_deadlines(name: &str, text: &str) -> Result<DeadlinePolicy, ScenarioError> {
    let problems = Problems::new(&Arc::from(name), None);
    let rules = read::rules(text, &FILE, &problems, rule);
    problems.finish(rules.map(|rules| DeadlinePolicy { rules }))
}

fn rule(at: At<'_>) -> Result<DeadlineRule, Reported> {
    let line = read::line_of(&at);
    let fields = Fields::open(at, &RULE)?;
    let from = condition::read(&fields, "from", PREFIXES);
    let to = condition::read(&fields, "to", PREFIXES);
    let from_ports = condition::read(&fields, "from_port", PORTS);
    let to_ports = condition::read(&fields, "to_port", PORTS);
    let demand = demand(&fields);
    Ok(DeadlineRule {
        line,
        from: from?,
        to: to?,
        from_ports: from_ports?,
        to_ports: to_ports?,
        demand: demand?,
    })
}

fn demand(fields: &Fields<'_>) -> Result<Option<(ByteSize, Duration)>, Reported> {
    let (size, deadline) = (fields.optional("size"), fields.optional("deadline"));
    let pass: bool = fields.get("pass")?;
    match (size?, deadline?, pass) {
        (Some(size), Some(deadline), false) => Ok(Some((size, deadline))),
        (None, None, true) => Ok(None),
        (_, _, true) => Err(fields.blame("pass").conflict(
            "flows cannot have a deadline and none",
            "write `size` and `deadline`, or `pass = true`",
        )),
        (None, Some(_), false) => Err(fields.blame("deadline").conflict(
            "what a flow needs for its deadline is not known without its size",
            "write `size` too: the most that is usual, where it varies",
        )),
        (Some(_), None, false) => Err(fields
            .blame("size")
            .conflict("a size alone asks for nothing", "write `deadline` too")),
        (None, None, false) => Err(fields.at.conflict(
            "the rule does not say what such flows demand",
            "write `size` and `deadline`, or `pass = true`",
        )),
    }
}
