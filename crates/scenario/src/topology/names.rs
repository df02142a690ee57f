//! The names in a file: hosts, sets of hosts, and switches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{HostIndex, Node, SwitchIndex};
use crate::document::{Cursor, Reported};
use crate::error::ProblemKind;
use crate::schema::Accepts;

/// The accepted forms of host names.
pub(crate) const HOSTS: Accepts =
    Accepts::Other("the name of a host or of several hosts, or a list of names");

/// The target of a name.
#[derive(Clone, Debug)]
pub(super) enum NameTarget {
    Host(HostIndex),
    /// Equal hosts under one name.
    Hosts(Vec<HostIndex>),
    Switch(SwitchIndex),
}

/// The names of hosts, sets of hosts and switches.
#[derive(Debug, Default)]
pub(crate) struct Names {
    meanings: HashMap<String, NameTarget>,
    /// In insertion order.
    order: Vec<String>,
}

impl Names {
    pub(super) fn add(
        &mut self,
        at: &Cursor<'_>,
        name: &str,
        meaning: NameTarget,
    ) -> Result<(), Reported> {
        match self.meanings.entry(name.to_owned()) {
            Entry::Vacant(vacant) => {
                vacant.insert(meaning);
                self.order.push(name.to_owned());
                Ok(())
            }
            Entry::Occupied(taken) => Err(at.problem(ProblemKind::DuplicateName {
                what: taken.get().what(),
                name: name.to_owned(),
            })),
        }
    }

    /// Returns the nodes that a name, or a pattern with `*`, refers to.
    pub(crate) fn nodes(&self, at: &Cursor<'_>) -> Result<Vec<Node>, Reported> {
        let name = at.text("the name of a host, of several hosts or of a switch")?;
        let found = self.find(name);
        if found.is_empty() {
            Err(self.unknown(at, "host or switch", name, |_| true))
        } else {
            Ok(found)
        }
    }

    /// Returns the switch with this name.
    pub(crate) fn switch(&self, at: &Cursor<'_>) -> Result<SwitchIndex, Reported> {
        let name = at.text("the name of a switch")?;
        let found = self.meanings.get(name);
        match found {
            Some(NameTarget::Switch(switch)) => Ok(*switch),
            _ => {
                let is_switch = |meaning: &NameTarget| matches!(meaning, NameTarget::Switch(_));
                Err(self.unknown(at, "switch", name, is_switch))
            }
        }
    }

    /// Returns the hosts that a name, a pattern with `*`, or a list of them refers to, each once.
    pub(crate) fn hosts(&self, at: &Cursor<'_>) -> Result<Vec<HostIndex>, Reported> {
        let accepts = "the name of a host or of several hosts, or a list of names";
        let find = |name: &str| self.find(name).into_iter().filter_map(Node::host).collect();
        let is_host = |meaning: &NameTarget| !matches!(meaning, NameTarget::Switch(_));
        let unknown = |at: &Cursor<'_>, name: &str| self.unknown(at, "host", name, is_host);
        at.each_once("host", accepts, find, unknown)
    }

    fn find(&self, name: &str) -> Vec<Node> {
        let nodes = |meaning: &NameTarget| match meaning {
            NameTarget::Host(host) => vec![Node::Host(*host)],
            NameTarget::Hosts(hosts) => hosts.iter().copied().map(Node::Host).collect(),
            NameTarget::Switch(switch) => vec![Node::Switch(*switch)],
        };
        if !name.contains('*') {
            return self.meanings.get(name).map(nodes).unwrap_or_default();
        }
        // The names of sets would repeat their hosts.
        let single = self
            .order
            .iter()
            .filter(|candidate| matches(name, candidate));
        let meanings = single.filter_map(|candidate| self.meanings.get(candidate));
        meanings
            .filter(|meaning| !matches!(meaning, NameTarget::Hosts(_)))
            .flat_map(nodes)
            .collect()
    }

    fn unknown(
        &self,
        at: &Cursor<'_>,
        what: &'static str,
        name: &str,
        wanted: fn(&NameTarget) -> bool,
    ) -> Reported {
        let names = self.order.iter().map(String::as_str);
        let names = names.filter(|name| self.meanings.get(*name).is_some_and(wanted));
        at.unknown_name(what, name, names)
    }
}

impl NameTarget {
    fn what(&self) -> &'static str {
        match self {
            Self::Host(_) => "host",
            Self::Hosts(_) => "set of hosts",
            Self::Switch(_) => "switch",
        }
    }
}

/// Returns whether `text` matches `pattern`, in which each `*` stands for any characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(found) = text.find(part) else {
            return false;
        };
        text = &text[found + part.len()..];
    }
    text.ends_with(end)
}

/// Reports a name that would be ambiguous where it is used.
pub(crate) fn check_name(at: &Cursor<'_>, name: &str) -> Result<(), Reported> {
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if begins && name.chars().all(fits) && name.len() <= 64 {
        return Ok(());
    }
    Err(at.problem(ProblemKind::BadName {
        found: name.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, text) in [
            ("a*", "a"),
            ("a*", "abc"),
            ("*", ""),
            ("*->b", "a->b"),
            ("a*b*c", "a-b-bc"),
            ("switch->h*", "switch->h12"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "b"), ("a*a", "a"), ("a*b*c", "acb"), ("a", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
