//! A table whose keys a section of the schema describes.

use super::{At, FromScalar, Node, Reported, Table, Value};
use crate::error::{ProblemKind, list, nearest};
use crate::schema::{Key, Presence, Section};

/// The fields of a table. [`Fields::open`] reports keys that the section does not have.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) at: At<'a>,
    section: &'static Section,
    table: &'a Table,
}

impl<'a> Fields<'a> {
    pub(crate) fn open(at: At<'a>, section: &'static Section) -> Result<Self, Reported> {
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
                at.problems.add(entry.place.clone(), key, kind);
            }
        }
        Ok(Self { at, section, table })
    }

    /// What `kind` is, of a table that is one of several.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        self.section.kind()
    }

    /// Whether the key was written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.get(name).is_some()
    }

    /// The value of a key, if it was written.
    pub(crate) fn at(&self, name: &str) -> Option<At<'a>> {
        debug_assert!(self.section.key(name).is_some(), "`{name}` is in no schema");
        let node = self.table.get(name)?;
        Some(self.at.child(name, node))
    }

    /// The value of a key that must be there.
    pub(crate) fn needed(&self, name: &str) -> Result<At<'a>, Reported> {
        self.at(name).ok_or_else(|| self.missing(name))
    }

    /// Where to complain about a key: its value, or the table if it was not written.
    pub(crate) fn blame(&self, name: &str) -> At<'a> {
        self.at(name).unwrap_or_else(|| self.at.clone())
    }

    /// The value of a key that must be there or has a default.
    pub(crate) fn get<T: FromScalar>(&self, name: &str) -> Result<T, Reported> {
        self.optional(name)?.ok_or_else(|| self.missing(name))
    }

    /// The value of a key that may be absent.
    pub(crate) fn optional<T: FromScalar>(&self, name: &str) -> Result<Option<T>, Reported> {
        let Some(key) = self.section.key(name) else {
            return Ok(None);
        };
        match (self.at(name), key.presence) {
            (Some(at), _) => read(&at, key).map(Some),
            (None, Presence::Default(literal)) => {
                let node = Node::new(Value::from(literal), self.at.node.place.clone());
                read(
                    &At {
                        node: &node,
                        ..self.at.child(name, self.at.node)
                    },
                    key,
                )
                .map(Some)
            }
            (None, _) => Ok(None),
        }
    }

    fn missing(&self, name: &str) -> Reported {
        let accepts = self.section.key(name).map(|key| key.accepts.to_string());
        let kind = ProblemKind::Missing {
            accepts: accepts.unwrap_or_default(),
        };
        let key = self.at.child(name, self.at.node).key;
        self.at.problems.add(self.at.node.place.clone(), key, kind)
    }
}

fn read<T: FromScalar>(at: &At<'_>, key: &Key) -> Result<T, Reported> {
    let scalar = key
        .accepts
        .check(&at.node.value)
        .map_err(|kind| at.problem(kind))?;
    T::from_scalar(scalar).ok_or_else(|| at.wrong_kind(key.accepts.to_string()))
}

/// The section among `sections`, which differ in their `kind`, that describes the table here.
pub(crate) fn section_by_kind(
    at: &At<'_>,
    sections: &[&'static Section],
) -> Result<&'static Section, Reported> {
    let kinds = || sections.iter().filter_map(|section| section.kind());
    let Some(table) = at.node.as_table() else {
        return Err(at.wrong_kind(format!("a table with `kind`, one of {}", list(kinds()))));
    };
    let Some(node) = table.get("kind") else {
        let accepts = format!("one of {}", list(kinds()));
        let key = at.child("kind", at.node).key;
        let place = at.node.place.clone();
        return Err((at.problems).add(place, key, ProblemKind::Missing { accepts }));
    };
    let kind = at.child("kind", node);
    let found = kind.text(&format!("one of {}", list(kinds())))?;
    let section = (sections.iter()).find(|section| section.kind() == Some(found));
    section.copied().ok_or_else(|| {
        kind.problem(ProblemKind::UnknownWord {
            found: found.to_owned(),
            accepted: list(kinds()),
            nearest: nearest(found, kinds()),
        })
    })
}
