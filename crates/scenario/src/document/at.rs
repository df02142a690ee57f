//! A cursor into the document tree, and the collection of its mistakes.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_congestion::Plugin;

use super::{Node, Value};
use crate::error::{Position, Problem, ProblemKind, ScenarioError, list, nearest};

/// The marker of a reported mistake: there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported;

/// Congestion controls by the names that were given to them.
pub(crate) type Plugins = BTreeMap<String, Arc<dyn Plugin>>;

/// The maximum number of mistakes shown at a time.
const MOST_SHOWN: usize = 50;

/// The mistakes found so far, up to a maximum number.
#[derive(Debug)]
pub(crate) struct Problems {
    file: Arc<str>,
    variant: Option<String>,
    /// Congestion controls by the names that were given to them; `None` where there are no plug-ins.
    plugins: Option<Plugins>,
    found: RefCell<Vec<Problem>>,
}

impl Problems {
    pub(crate) fn new(file: &Arc<str>, variant: Option<&str>) -> Self {
        Self {
            file: Arc::clone(file),
            variant: variant.map(str::to_owned),
            plugins: None,
            found: RefCell::default(),
        }
    }

    /// Allows plug-ins, and gives names to some.
    pub(crate) fn with_plugins(self, plugins: &Plugins) -> Self {
        Self {
            plugins: Some(plugins.clone()),
            ..self
        }
    }

    /// Returns the congestion control that was given a name.
    pub(crate) fn plugin(&self, name: &str) -> Option<&Arc<dyn Plugin>> {
        self.plugins.as_ref()?.get(name)
    }

    /// Whether there are plug-ins: in scenarios, not in policies.
    pub(crate) fn has_plugins(&self) -> bool {
        self.plugins.is_some()
    }

    pub(crate) fn add(&self, position: Position, key: String, kind: ProblemKind) -> Reported {
        let problem = self.describe(position, key, kind);
        let mut found = self.found.borrow_mut();
        if found.len() < MOST_SHOWN && !found.contains(&problem) {
            found.push(problem);
        }
        Reported
    }

    /// Describes a mistake without adding it.
    fn describe(&self, position: Position, key: String, kind: ProblemKind) -> Problem {
        Problem {
            file: Arc::clone(&self.file),
            position,
            variant: self.variant.clone(),
            key,
            kind,
        }
    }

    /// Returns the path of a file that the scenario file names, which is relative to the scenario file.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        let folder = Path::new(&*self.file).parent().unwrap_or(Path::new(""));
        folder.join(name)
    }

    /// Returns `value`, or the mistakes if there are any.
    pub(crate) fn finish<T>(self, value: Result<T, Reported>) -> Result<T, ScenarioError> {
        let mut problems = self.found.into_inner();
        // Settings follow lines: see the order of `Place`.
        problems.sort_by(|a, b| a.position.cmp(&b.position));
        match value {
            Ok(value) if problems.is_empty() => Ok(value),
            _ => Err(ScenarioError::Invalid { problems }),
        }
    }
}

/// A value in the tree and its key path.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) node: &'a Node,
    pub(crate) key: String,
    pub(crate) problems: &'a Problems,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the top of a file.
    pub(crate) fn top(node: &'a Node, problems: &'a Problems) -> Self {
        Self {
            node,
            key: String::new(),
            problems,
        }
    }

    /// Reports that this value is wrong.
    pub(crate) fn problem(&self, kind: ProblemKind) -> Reported {
        (self.problems).add(self.node.position.clone(), self.full_key(), kind)
    }

    /// Describes what is doubtful about this value; it is no mistake.
    pub(crate) fn describe(&self, kind: ProblemKind) -> Problem {
        (self.problems).describe(self.node.position.clone(), self.full_key(), kind)
    }

    fn full_key(&self) -> String {
        match &self.node.parameter {
            Some(parameter) => format!("{} (parameters.{parameter})", self.key),
            None => self.key.clone(),
        }
    }

    /// Reports that this value conflicts with another one.
    pub(crate) fn conflict(
        &self,
        conflict: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Reported {
        self.problem(ProblemKind::Conflict {
            conflict: conflict.into(),
            remedy: remedy.into(),
        })
    }

    /// Reports that the value has the wrong type.
    pub(crate) fn wrong_kind(&self, expected: impl Into<String>) -> Reported {
        self.problem(ProblemKind::WrongKind {
            expected: expected.into(),
            found: self.node.value.describe(),
        })
    }

    /// Reports an unknown `name`; `what` is the kind of thing and `names` are the existing ones.
    pub(crate) fn unknown_name<'n>(
        &self,
        what: &'static str,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Reported {
        self.problem(ProblemKind::UnknownName {
            what,
            name: name.to_owned(),
            existing: list(names.clone()),
            nearest: nearest(name, names),
        })
    }

    /// Returns the value of a key of this table.
    pub(crate) fn child(&self, name: &str, node: &'a Node) -> Cursor<'a> {
        let key = if self.key.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.key)
        };
        Cursor {
            node,
            key,
            problems: self.problems,
        }
    }

    /// Returns the items of a list; a single value counts as a list of one.
    pub(crate) fn items(&self) -> Vec<Cursor<'a>> {
        match &self.node.value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, node)| self.child(&index.to_string(), node))
                .collect(),
            _ => vec![self.clone()],
        }
    }

    /// Reads one text or a list of texts; each `what` may occur once, and at least one is required.
    pub(crate) fn each_once<T: Copy + Eq + Hash>(
        &self,
        what: &str,
        accepts: &str,
        find: impl Fn(&str) -> Vec<T>,
        unknown: impl Fn(&Self, &str) -> Reported,
    ) -> Result<Vec<T>, Reported> {
        let mut found = Vec::new();
        for item in self.items() {
            let name = item.text(accepts)?;
            let named = find(name);
            if named.is_empty() {
                return Err(unknown(&item, name));
            }
            found.extend(named);
        }
        let mut seen = HashSet::new();
        found.retain(|one| seen.insert(*one));
        if found.is_empty() {
            Err(self.wrong_kind(format!("at least one {what}")))
        } else {
            Ok(found)
        }
    }

    /// Returns the last part of the key path: the name in the table, if it has no dot.
    pub(crate) fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or_default()
    }

    /// Reads each item of a list, so that all mistakes are reported.
    pub(crate) fn all<T>(
        &self,
        expected: &str,
        read: impl Fn(&Cursor<'a>) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        let read: Vec<_> = self.list(expected)?.iter().map(read).collect();
        read.into_iter().collect()
    }

    /// Returns the items of a list.
    pub(crate) fn list(&self, expected: &str) -> Result<Vec<Cursor<'a>>, Reported> {
        match &self.node.value {
            Value::Array(_) => Ok(self.items()),
            _ => Err(self.wrong_kind(expected)),
        }
    }

    /// Returns the named tables in this table: `[groups.NAME]`.
    pub(crate) fn named(&self, expected: &str) -> Result<Vec<(&'a str, Cursor<'a>)>, Reported> {
        let Some(table) = self.node.as_table() else {
            return Err(self.wrong_kind(expected));
        };
        let entries = table.entries.iter();
        Ok(entries
            .map(|entry| (entry.key.as_str(), self.child(&entry.key, &entry.node)))
            .collect())
    }

    /// Returns the text of this value.
    pub(crate) fn text(&self, expected: &str) -> Result<&'a str, Reported> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong_kind(expected)),
        }
    }
}
