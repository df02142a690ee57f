//! What can be wrong with a scenario: where, which key, and what would be accepted.

use std::fmt;
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
        /// What the system says.
        source: io::Error,
    },
    /// The file was read and has mistakes: all that were found, from top to bottom.
    #[error("{}", lines(problems))]
    Invalid {
        /// The mistakes; at least one.
        problems: Vec<Problem>,
    },
}

impl ScenarioError {
    /// Whether a key is there that means nothing, or a setting's path leads nowhere: no value could
    /// mend that.
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
    /// The file, as it was named to the loader.
    pub file: Arc<str>,
    /// Where in it.
    pub place: Place,
    /// The variant in which the mistake shows, if not in the file's own values.
    pub variant: Option<String>,
    /// The key, from the top of the file: `groups.dctcp.flows`. Empty for a syntax error.
    pub key: String,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line(line) => write!(f, "{}:{line}: ", self.file)?,
            Place::Setting(setting) => write!(f, "{}: setting `{setting}`: ", self.file)?,
        }
        if let Some(variant) = &self.variant {
            write!(f, "variant `{variant}`: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.kind.fmt(f)
    }
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On this line of the file, counted from 1.
    Line(u32),
    /// In a setting from outside the file: `path=value`.
    Setting(Arc<str>),
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProblemKind {
    /// Not TOML.
    #[error("{message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// A key that means nothing there.
    #[error("there is no such key{}; accepted: {accepted}", suggestion(nearest))]
    UnknownKey {
        /// The keys that exist there.
        accepted: String,
        /// The one that may have been meant.
        nearest: Option<String>,
    },
    /// A key that must be there is not.
    #[error("missing; it takes {accepts}")]
    Missing {
        /// What it takes.
        accepts: String,
    },
    /// A value of another kind.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// What would be accepted.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Text that is no quantity.
    #[error(transparent)]
    Quantity(#[from] ParseError),
    /// A value outside its range.
    #[error("{found} is outside what makes sense: expected {expected}")]
    OutOfRange {
        /// What would be accepted.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A word that is none of the accepted ones.
    #[error("`{found}` is none of {accepted}{}", suggestion(nearest))]
    UnknownWord {
        /// What is there.
        found: String,
        /// What would be accepted.
        accepted: String,
        /// The one that may have been meant.
        nearest: Option<String>,
    },
    /// A name that cannot be one.
    #[error("`{found}` is no name: use letters, digits, `-` and `_`, beginning with a letter")]
    BadName {
        /// What is there.
        found: String,
    },
    /// Something is called by a name that nothing has.
    #[error(
        "there is no {what} `{name}`{}; there is {existing}",
        suggestion(nearest)
    )]
    UnknownName {
        /// What was looked for: a host, a queue …
        what: &'static str,
        /// The name.
        name: String,
        /// What exists.
        existing: String,
        /// The one that may have been meant.
        nearest: Option<String>,
    },
    /// Two things have one name.
    #[error("`{name}` is the name of another {what}")]
    DuplicateName {
        /// What the other one is.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A congestion control that does not exist, or a parameter that it does not have.
    #[error("{message}")]
    Congestion {
        /// What the registry of algorithms says.
        message: String,
    },
    /// A condition of a policy's rule that makes no sense.
    #[error("{message}")]
    Condition {
        /// What is wrong with it, and what would be right.
        message: String,
    },
    /// Values that do not go together.
    #[error("{conflict}; {remedy}")]
    Conflict {
        /// What does not fit.
        conflict: String,
        /// What would.
        remedy: String,
    },
    /// More than can be simulated.
    #[error("{count} {what} are too many: at most {limit}, because {reason}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there would be.
        count: u64,
        /// How many are accepted.
        limit: u64,
        /// Why not more.
        reason: &'static str,
    },
    /// No path leads from a sender to its receiver, or back.
    #[error("no route leads from host `{from}` to host `{to}`; connect them by [[links]]")]
    Unreachable {
        /// The host that packets leave.
        from: String,
        /// The host that they do not reach.
        to: String,
    },
    /// A parameter that nothing uses.
    #[error(
        "nothing in the file uses `${name}`: remove the parameter, or write \"${name}\" where its value belongs"
    )]
    UnusedParameter {
        /// Its name.
        name: String,
    },
    /// A path that leads nowhere.
    #[error(
        "the file has no `{missing}`{}; there is {existing}",
        suggestion(nearest)
    )]
    NoSuchPath {
        /// The first part of the path that does not exist.
        missing: String,
        /// What exists at that point.
        existing: String,
        /// The one that may have been meant.
        nearest: Option<String>,
    },
}

fn suggestion(nearest: &Option<String>) -> String {
    match nearest {
        Some(nearest) => format!(" (did you mean `{nearest}`?)"),
        None => String::new(),
    }
}

/// `names` in one line, shortened where there are too many to read.
pub(crate) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 24;
    let names: Vec<_> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count <= SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}

/// The name among `names` that differs least from `wrong`, if it is close enough to be a slip.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let tolerance = 1 + wrong.chars().count() / 4;
    names
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, name)| name.to_owned())
}

/// How many characters have to be inserted, removed or replaced to make `b` of `a` (Levenshtein).
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
    fn the_nearest_name_is_one_that_could_have_been_meant() {
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
