//! What may stand in a scenario file: every table with its keys, what they take, their defaults
//! and what they mean.
//!
//! The loader reads a file by these descriptions: it refuses keys that are not listed, checks kinds
//! and ranges, and takes defaults from here. `docs/scenario.md` is checked against them.

mod accepts;
mod reference;
#[cfg(test)]
mod tests;

use crate::document::Value;

pub(crate) use accepts::{Accepted, Accepts, LONGEST};
pub use reference::{deadline_key_reference, key_reference, policy_key_reference};

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
        Self::required("kind", Accepts::Word(word), "what this is")
    }

    /// A key that must be there.
    pub(crate) const fn required(name: &'static str, accepts: Accepts, doc: &'static str) -> Self {
        Self {
            name,
            accepts,
            presence: Presence::Required,
            doc,
        }
    }

    /// A key that may be absent; `absent` says what that means.
    pub(crate) const fn optional(
        name: &'static str,
        accepts: Accepts,
        absent: &'static str,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            accepts,
            presence: Presence::Optional(absent),
            doc,
        }
    }

    /// A key with a default.
    pub(crate) const fn default(
        name: &'static str,
        accepts: Accepts,
        default: Literal,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            accepts,
            presence: Presence::Default(default),
            doc,
        }
    }
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
