//! What may stand in a scenario file: every table with its keys, what they take, their defaults
//! and what they mean.
//!
//! The loader reads a file by these descriptions: it refuses keys that are not listed, checks kinds
//! and ranges, and takes defaults from here. `docs/scenario.md` is checked against them.

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
    /// How the table is written: `[queues.NAME]`, with a condition where there are several kinds.
    pub(crate) title: &'static str,
    /// What it describes, in one line.
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

/// Whether a key must be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Required,
    /// What its absence means, in words.
    Optional(&'static str),
    Default(Literal),
}

/// A default, as it would be written.
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

    /// What `kind` must be for the section to apply, if it is one of several.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match self.key("kind")?.accepts {
            Accepts::Word([word]) => Some(word),
            _ => None,
        }
    }

    /// The names of the keys, in one line.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| key.name).collect();
        names.join(", ")
    }
}

impl Key {
    /// The key that tells one section from others of the same table; `word` is what it takes there.
    pub(crate) const fn kind(word: &'static [&'static str]) -> Self {
        Self {
            name: "kind",
            accepts: Accepts::Word(word),
            presence: Presence::Required,
            doc: "What this is.",
        }
    }
}

/// How many keys the parts of a table have together.
pub(crate) const fn count(parts: &[&[Key]]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// The keys of a table's parts, one after the other: all [`count`] of them.
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
