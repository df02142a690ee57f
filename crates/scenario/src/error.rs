//! The errors of a scenario: position, key, and what would be accepted.

use std::fmt::{self, Write as _};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use weir_units::ParseError;

/// Why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file has mistakes: all that were found, in file order.
    #[error("{}", lines(problems))]
    Invalid {
        /// The mistakes; at least one.
        problems: Vec<Problem>,
    },
}

impl ScenarioError {
    /// Returns whether a mistake is an unknown key or a setting's path that does not exist. Other
    /// values cannot fix these.
    pub fn is_about_keys(&self) -> bool {
        let Self::Invalid { problems } = self else {
            return false;
        };
        let mut kinds = problems.iter().map(|problem| &problem.kind);
        kinds.any(|kind| {
            matches!(
                kind,
                ProblemKind::UnknownKey { .. } | ProblemKind::NoSuchPath { .. }
            )
        })
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// One mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The file, as named by the caller.
    pub file: Arc<str>,
    /// The position in the file.
    pub position: Position,
    /// The variant that has the mistake, if the file's own values do not.
    pub variant: Option<String>,
    /// The key, from the top of the file: `groups.dctcp.flows`. Empty for a syntax error.
    pub key: String,
    /// The mistake.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text)?;
        // Values of the file may have line breaks; a mistake has one line.
        for character in text.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

impl Problem {
    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        match &self.position {
            Position::Line(line) => write!(out, "{}:{line}: ", self.file)?,
            Position::Setting(setting) => write!(out, "{}: setting `{setting}`: ", self.file)?,
        }
        if let Some(variant) = &self.variant {
            write!(out, "variant `{variant}`: ")?;
        }
        if !self.key.is_empty() {
            write!(out, "{}: ", self.key)?;
        }
        write!(out, "{}", self.kind)
    }
}

/// The position of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// A line of the file, counted from 1.
    Line(u32),
    /// A setting from outside the file: `path=value`.
    Setting(Arc<str>),
}

/// The kind of a mistake.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProblemKind {
    /// Not TOML.
    #[error("{message}")]
    Syntax {
        /// The parser's message.
        message: String,
    },
    /// An unknown key.
    #[error("there is no such key{}; accepted: {accepted}", suggestion(nearest))]
    UnknownKey {
        /// The keys that the table accepts.
        accepted: String,
        /// The most similar accepted key, if one is close.
        nearest: Option<String>,
    },
    /// A key whose value is fixed for a whole run, in a change.
    #[error("it cannot change while the scenario runs; what can: {accepted}")]
    Fixed {
        /// The keys that can.
        accepted: String,
    },
    /// A required key is missing.
    #[error("missing; it takes {accepts}")]
    Missing {
        /// The values that it accepts.
        accepts: String,
    },
    /// A value of the wrong type.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// The accepted values.
        expected: String,
        /// The value found.
        found: String,
    },
    /// Text that is not a valid quantity.
    #[error(transparent)]
    Quantity(#[from] ParseError),
    /// A value outside its range.
    #[error("{found} is outside what makes sense: expected {expected}")]
    OutOfRange {
        /// The accepted values.
        expected: String,
        /// The value found.
        found: String,
    },
    /// A word that is not one of the accepted ones.
    #[error("`{found}` is none of {accepted}{}", suggestion(nearest))]
    UnknownWord {
        /// The word found.
        found: String,
        /// The accepted words.
        accepted: String,
        /// The most similar accepted word, if one is close.
        nearest: Option<String>,
    },
    /// An invalid name.
    #[error("`{found}` is no name: use letters, digits, `-` and `_`, beginning with a letter")]
    BadName {
        /// The name found.
        found: String,
    },
    /// A reference to a name that does not exist.
    #[error(
        "there is no {what} `{name}`{}; there is {existing}",
        suggestion(nearest)
    )]
    UnknownName {
        /// The kind of thing: a host, a queue …
        what: &'static str,
        /// The name.
        name: String,
        /// The existing names.
        existing: String,
        /// The most similar existing name, if one is close.
        nearest: Option<String>,
    },
    /// Two things have the same name.
    #[error("`{name}` is the name of another {what}")]
    DuplicateName {
        /// The kind of the other thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An unknown congestion control, or an unknown parameter of it.
    #[error("{message}")]
    Congestion {
        /// The message of the registry of algorithms.
        message: String,
    },
    /// An invalid condition of a policy's rule.
    #[error("{message}")]
    Condition {
        /// The mistake and the remedy.
        message: String,
    },
    /// Values that conflict.
    #[error("{conflict}; {remedy}")]
    Conflict {
        /// The conflict.
        conflict: String,
        /// The remedy.
        remedy: String,
    },
    /// More than the simulator supports.
    #[error("{count} {what} are too many: at most {limit}, because {reason}")]
    TooMany {
        /// The kind of thing.
        what: &'static str,
        /// Their number.
        count: u64,
        /// The accepted maximum.
        limit: u64,
        /// The reason for the limit.
        reason: &'static str,
    },
    /// There is no path from a sender to its receiver, or back.
    #[error("no route leads from host `{from}` to host `{to}`; connect them by [[links]]")]
    Unreachable {
        /// The host that sends.
        from: String,
        /// The host that the packets do not reach.
        to: String,
    },
    /// Packets from a sender to its receiver, or back, return to a switch that they have passed.
    #[error(
        "packets from host `{from}` to host `{to}` go round in a loop, {switches}; change the `via` of a route in \
         [[routes]] of one of these switches"
    )]
    RoutingLoop {
        /// The host that sends.
        from: String,
        /// The host that the packets do not reach.
        to: String,
        /// The switches of the loop, the first one once more at the end.
        switches: String,
    },
    /// Two values for one key.
    #[error("the key `{key}` is written twice in one table; remove one of them")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A parameter whose value is in terms of itself.
    #[error("`${name}` stands for itself, by {path}; write the value of one of them")]
    CircularParameter {
        /// Its name.
        name: String,
        /// The parameters that refer to one another.
        path: String,
    },
    /// An unused parameter.
    #[error(
        "nothing in the file uses `${name}`: remove the parameter, or write \"${name}\" where its value belongs"
    )]
    UnusedParameter {
        /// Its name.
        name: String,
    },
    /// A file that the scenario names cannot be read.
    #[error("{}: {message}", path.display())]
    UnreadableFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A mistake in a file that the scenario names.
    #[error("{}:{line}: {message}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The line, or the row of a Parquet file, counted from 1.
        line: u64,
        /// The mistake and the remedy.
        message: String,
    },
    /// A setting's path that does not exist.
    #[error(
        "the file has no `{missing}`{}; there is {existing}",
        suggestion(nearest)
    )]
    NoSuchPath {
        /// The first part of the path that does not exist.
        missing: String,
        /// The existing keys at that point.
        existing: String,
        /// The most similar existing key, if one is close.
        nearest: Option<String>,
    },
}

fn suggestion(nearest: &Option<String>) -> String {
    match nearest {
        Some(nearest) => format!(" (did you mean `{nearest}`?)"),
        None => String::new(),
    }
}

/// Joins `names` in one line, truncated if there are too many.
pub(crate) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 24;
    let names: Vec<_> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count <= SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}

/// Returns the name among `names` with the smallest edit distance to `wrong`, if it is close enough
/// to be a typo.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let tolerance = 1 + wrong.chars().count() / 4;
    names
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, name)| name.to_owned())
}

/// Returns the Levenshtein distance: the characters to insert, remove or replace to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suggested_name_is_similar() {
        let names = ["rate", "delay", "queue", "mtu"];
        assert_eq!(
            nearest("dleay", names.into_iter()).as_deref(),
            Some("delay")
        );
        assert_eq!(nearest("que", names.into_iter()), None);
        assert_eq!(nearest("quue", names.into_iter()).as_deref(), Some("queue"));
        assert_eq!(nearest("colour", names.into_iter()), None);
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }

    #[test]
    fn long_lists_are_shortened() {
        let names: Vec<_> = (0..30).map(|n| n.to_string()).collect();
        assert!(list(names.iter().map(String::as_str)).ends_with("23 and 6 more"));
        assert_eq!(list([].into_iter()), "none");
    }
}
