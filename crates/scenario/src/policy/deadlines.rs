//! Files of deadlines: what flows demand whose applications say nothing.

use std::path::Path;
use std::sync::Arc;

use weir_units::{ByteSize, Duration};

use super::read::{self, PORTS, PREFIXES};
use super::{PortRange, Prefix, condition};
use crate::ScenarioError;
use crate::document::{At, Fields, Problems, Reported};
use crate::error::Place;
use crate::schema::{Accepts, Key, Literal, Section};

/// Rules about what flows carry, and by when; the first rule that fits a flow holds.
///
/// ```
/// use weir_scenario::DeadlinePolicy;
///
/// let text = r#"
/// [[rules]]
/// from_port = 11211
/// size = "20KB"
/// deadline = "10ms"
/// "#;
/// let deadlines = DeadlinePolicy::parse("deadlines.toml", text)?;
/// assert!(deadlines.rules[0].demand.is_some());
///
/// let error = DeadlinePolicy::parse("deadlines.toml", "[[rules]]\ndeadline = \"10ms\"").unwrap_err();
/// assert!(error.to_string().starts_with("deadlines.toml:2: rules.0.deadline: "), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadlinePolicy {
    /// The rules, in the file's order.
    pub rules: Vec<DeadlineRule>,
}

/// A rule. An empty list of conditions fits every flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineRule {
    /// Where the rule begins in its file, counted from 1.
    pub line: u32,
    /// Who sends the data.
    pub from: Vec<Prefix>,
    /// Who receives it.
    pub to: Vec<Prefix>,
    /// The port that the data comes from.
    pub from_ports: Vec<PortRange>,
    /// The port that the data goes to.
    pub to_ports: Vec<PortRange>,
    /// How much such flows carry, and how long they have from their SYN on; `None` for no deadline.
    pub demand: Option<(ByteSize, Duration)>,
}

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

impl DeadlinePolicy {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or it has mistakes: the error lists those that were found, with their
    /// lines and keys.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = read::text_of(path, "deadline")?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads text; errors call it `name`.
    ///
    /// # Errors
    /// As [`DeadlinePolicy::load`].
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let problems = Problems::new(&Arc::from(name), None);
        let rules = read::rules(text, &FILE, &problems, DeadlineRule::read);
        problems.finish(rules.map(|rules| Self { rules }))
    }
}

impl DeadlineRule {
    fn read(at: At<'_>) -> Result<Self, Reported> {
        let line = match at.node.place {
            Place::Line(line) => line,
            Place::Setting(_) => 0,
        };
        let fields = Fields::open(at, &RULE)?;
        let from = condition::read(&fields, "from", PREFIXES);
        let to = condition::read(&fields, "to", PREFIXES);
        let from_ports = condition::read(&fields, "from_port", PORTS);
        let to_ports = condition::read(&fields, "to_port", PORTS);
        let demand = demand(&fields);
        Ok(Self {
            line,
            from: from?,
            to: to?,
            from_ports: from_ports?,
            to_ports: to_ports?,
            demand: demand?,
        })
    }
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
