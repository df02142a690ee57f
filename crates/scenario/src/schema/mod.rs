//! The schema of scenario files: every table with its keys, their accepted values, defaults and
//! meanings.
//!
//! The loader uses these descriptions: it rejects unknown keys, checks types and ranges, and fills
//! in defaults. A test compares `docs/scenario.md` with them.

mod accepts;
mod fields;
mod scalar;
#[cfg(test)]
mod tests;

use crate::document::Value;

pub(crate) use accepts::{Accepted, Accepts, LONGEST};
pub(crate) use fields::Fields;
pub(crate) use scalar::{FromScalar, Scalar};

/// A kind of table.
#[derive(Debug)]
pub(crate) struct Section {
    /// The table's heading: `[queues.NAME]`, with a condition if there are several kinds.
    pub(crate) title: &'static str,
    /// Its description, in one line.
    pub(crate) doc: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) accepts: Accepts,
    pub(crate) presence: Presence,
    pub(crate) doc: &'static str,
}

/// Whether a key is required.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Required,
    /// The key is optional; the text is the meaning of its absence.
    Optional(&'static str),
    Default(Literal),
}

/// A default value, as written in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Literal {
    Text(&'static str),
    Integer(i64),
    Boolean(bool),
}

impl Section {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns the value of `kind` for which the section applies, if there are several kinds.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match self.key("kind")?.accepts {
            Accepts::Word([word]) => Some(word),
            _ => None,
        }
    }

    /// Returns the names of the keys, in one line.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| key.name).collect();
        names.join(", ")
    }
}

impl Key {
    /// Returns the key that selects one of several sections of a table; `word` is its value.
    pub(crate) const fn kind(word: &'static [&'static str]) -> Self {
        Self {
            name: "kind",
            accepts: Accepts::Word(word),
            presence: Presence::Required,
            doc: "The type of the entry.",
        }
    }
}

/// Returns the total number of keys of a table's parts.
pub(crate) const fn count(parts: &[&[Key]]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// Concatenates the keys of a table's parts: all [`count`] of them.
pub(crate) const fn join<const COUNT: usize>(parts: &[&[Key]]) -> [Key; COUNT] {
    let mut keys = [Key::kind(&[]); COUNT];
    let (mut next, mut part) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            keys[next] = parts[part][index];
            next += 1;
            index += 1;
        }
        part += 1;
    }
    keys
}

impl From<Literal> for Value {
    fn from(literal: Literal) -> Self {
        match literal {
            Literal::Text(text) => Self::Text(text.to_owned()),
            Literal::Integer(value) => Self::Integer(value),
            Literal::Boolean(value) => Self::Boolean(value),
        }
    }
}
