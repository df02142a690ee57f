//! Deadline files: the sizes and deadlines of flows whose applications do not declare them.

use std::path::Path;

use weir_policy::{DeadlinePolicy, DeadlineRule};
use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration};

use super::rules::{self, FlowEnds};
use crate::ScenarioError;
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields, Section};

/// The tables and keys of a deadline file.
#[derive(Keys)]
#[keys(
    title = "the top of the file",
    doc = "A file of deadlines is a list of rules."
)]
struct File {
    /// The rules; the first one that matches a flow applies. A flow that matches none has no deadline.
    #[key(accepts = rules::RULES, read = at.all("tables `[[rules]]`", rule))]
    rules: Vec<DeadlineRule>,
}

/// The keys of a rule.
#[derive(Keys)]
#[keys(title = "[[rules]]", doc = rules::DOC)]
struct Rule {
    #[key(flatten)]
    ends: FlowEnds,
    /// The size of such a flow, without headers; if it varies, the largest usual size.
    #[key(accepts = Accepts::SIZE, absent = "`pass` must be `true`")]
    size: Option<ByteSize>,
    /// The deadline of such a flow, counted from its SYN.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "`pass` must be `true`")]
    deadline: Option<Duration>,
    /// Such flows have no deadline; instead of `size` and `deadline`.
    #[key(default = false)]
    pass: bool,
}

/// The tables of a deadline file.
pub(crate) const SECTIONS: [&Section; 2] = [File::SECTION, Rule::SECTION];

/// Parses a deadline file from text.
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
    rules::load(path, "deadline", deadlines)
}

/// Reads deadlines from text; errors contain `name`.
///
/// # Errors
/// See [`load_deadlines`].
pub fn parse_deadlines(name: &str, text: &str) -> Result<DeadlinePolicy, ScenarioError> {
    rules::parse_as(name, text, deadlines)
}

fn deadlines(at: &Cursor<'_>) -> Result<DeadlinePolicy, Reported> {
    File::read(at, ()).map(|file| DeadlinePolicy { rules: file.rules })
}

fn rule(at: &Cursor<'_>) -> Result<DeadlineRule, Reported> {
    let fields = Fields::open(at.clone(), Rule::SECTION)?;
    let rule = Rule::read_keys(&fields, ())?;
    let demand = rule.demand(&fields)?;
    Ok(DeadlineRule {
        line: rules::line_of(at),
        from: rule.ends.from,
        to: rule.ends.to,
        from_ports: rule.ends.from_port,
        to_ports: rule.ends.to_port,
        demand,
    })
}

impl Rule {
    fn demand(&self, fields: &Fields<'_>) -> Result<Option<(ByteSize, Duration)>, Reported> {
        match (self.size, self.deadline, self.pass) {
            (Some(size), Some(deadline), false) => Ok(Some((size, deadline))),
            (None, None, true) => Ok(None),
            (_, _, true) => Err(fields.error_position("pass").conflict(
                "flows cannot have a deadline and none",
                "write `size` and `deadline`, or `pass = true`",
            )),
            (None, Some(_), false) => Err(fields.error_position("deadline").conflict(
                "what a flow needs for its deadline is not known without its size",
                "write `size` too: the most that is usual, where it varies",
            )),
            (Some(_), None, false) => Err(fields
                .error_position("size")
                .conflict("a size alone asks for nothing", "write `deadline` too")),
            (None, None, false) => Err(fields.at.conflict(
                "the rule does not say what such flows demand",
                "write `size` and `deadline`, or `pass = true`",
            )),
        }
    }
}
