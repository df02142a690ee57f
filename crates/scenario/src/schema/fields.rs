//! A table whose keys are described by a section of the schema.

use super::{FromScalar, Presence, Section};
use crate::document::{Cursor, Node, Reported, Table, Value};
use crate::error::{ProblemKind, list, nearest};

/// The fields of a table. [`Fields::open`] reports unknown keys.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) at: Cursor<'a>,
    pub(crate) section: &'static Section,
    table: &'a Table,
}

impl<'a> Fields<'a> {
    pub(crate) fn open(at: Cursor<'a>, section: &'static Section) -> Result<Self, Reported> {
        let Some(table) = at.node.as_table() else {
            return Err(at.wrong_kind(format!("a table with {}", section.names())));
        };
        for entry in &table.entries {
            if section.key(&entry.key).is_none() {
                let names = || section.keys.iter().map(|key| key.name);
                let kind = ProblemKind::UnknownKey {
                    accepted: list(names()),
                    nearest: nearest(&entry.key, names()),
                };
                let key = at.child(&entry.key, &entry.node).key;
                at.problems.add(entry.position.clone(), key, kind);
            }
        }
        Ok(Self { at, section, table })
    }

    /// Opens a table of changes: `section` has the keys that can change of what `wholes` describe.
    pub(crate) fn open_changes(
        at: Cursor<'a>,
        section: &'static Section,
        wholes: &[&'static Section],
    ) -> Result<Self, Reported> {
        let Some(table) = at.node.as_table() else {
            return Err(at.wrong_kind(format!("a table with {}", section.names())));
        };
        let is_fixed = |key: &str| {
            let mut wholes = wholes.iter();
            section.key(key).is_none() && wholes.any(|whole| whole.key(key).is_some())
        };
        let fixed = table.entries.iter().filter(|entry| is_fixed(&entry.key));
        let reported = fixed.map(|entry| {
            let accepted = section.names();
            let at = at.child(&entry.key, &entry.node);
            at.problem(ProblemKind::Fixed { accepted })
        });
        // Each one is reported.
        match reported.reduce(|_, later| later) {
            Some(reported) => Err(reported),
            None => Self::open(at, section),
        }
    }

    /// Opens a table that is described by one of several `sections`, selected by `kind`.
    pub(crate) fn open_kind(
        at: &Cursor<'a>,
        sections: &[&'static Section],
    ) -> Result<Self, Reported> {
        let kinds = || sections.iter().filter_map(|section| section.kind());
        let Some(table) = at.node.as_table() else {
            return Err(at.wrong_kind(format!("a table with `kind`, one of {}", list(kinds()))));
        };
        let Some(node) = table.get("kind") else {
            let accepts = format!("one of {}", list(kinds()));
            let key = at.child("kind", at.node).key;
            let position = at.node.position.clone();
            return Err((at.problems).add(position, key, ProblemKind::Missing { accepts }));
        };
        let kind = at.child("kind", node);
        let found = kind.text(&format!("one of {}", list(kinds())))?;
        match (sections.iter()).find(|section| section.kind() == Some(found)) {
            Some(section) => Self::open(at.clone(), section),
            None => Err(kind.problem(ProblemKind::UnknownWord {
                found: found.to_owned(),
                accepted: list(kinds()),
                nearest: nearest(found, kinds()),
            })),
        }
    }

    /// Returns whether the key was written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.get(name).is_some()
    }

    /// Returns the value of a key, if it was written.
    pub(crate) fn at(&self, name: &str) -> Option<Cursor<'a>> {
        debug_assert!(self.section.key(name).is_some(), "`{name}` is in no schema");
        let node = self.table.get(name)?;
        Some(self.at.child(name, node))
    }

    /// Returns the value of a required key.
    pub(crate) fn needed(&self, name: &str) -> Result<Cursor<'a>, Reported> {
        self.at(name).ok_or_else(|| self.missing(name))
    }

    /// Returns the position for an error about a key: its value, or the table if it was not written.
    pub(crate) fn error_position(&self, name: &str) -> Cursor<'a> {
        self.at(name).unwrap_or_else(|| self.at.clone())
    }

    /// Returns the value of a key that is required or has a default.
    pub(crate) fn get<T: FromScalar>(&self, name: &str) -> Result<T, Reported> {
        self.optional(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns the value of an optional key.
    pub(crate) fn optional<T: FromScalar>(&self, name: &str) -> Result<Option<T>, Reported> {
        let Some(key) = self.section.key(name) else {
            return Ok(None);
        };
        match (self.at(name), key.presence) {
            (Some(at), _) => key.accepts.read(&at).map(Some),
            (None, Presence::Default(literal)) => {
                let read = |at: &Cursor<'_>| key.accepts.read(at).map(Some);
                self.as_if(name, Value::from(literal), read)
            }
            (None, _) => Ok(None),
        }
    }

    /// Reads the table under a key; an absent table has all defaults.
    pub(crate) fn table<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Cursor<'_>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        match self.at(name) {
            Some(at) => read(&at),
            None => self.as_if(name, Value::Table(Table::default()), read),
        }
    }

    /// Reads a key as if it had this value.
    pub(crate) fn as_if<T>(
        &self,
        name: &str,
        value: Value,
        read: impl FnOnce(&Cursor<'_>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let node = Node::new(value, self.at.node.position.clone());
        read(&Cursor {
            node: &node,
            ..self.at.child(name, self.at.node)
        })
    }

    fn missing(&self, name: &str) -> Reported {
        let accepts = self.section.key(name).map(|key| key.accepts.to_string());
        let kind = ProblemKind::Missing {
            accepts: accepts.unwrap_or_default(),
        };
        let key = self.at.child(name, self.at.node).key;
        self.at
            .problems
            .add(self.at.node.position.clone(), key, kind)
    }
}
