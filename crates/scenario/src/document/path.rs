//! Sets values by their path: `groups.dctcp.flows`, `links.0.rate`.

use super::{Node, Table, Value};
use crate::error::{Position, ProblemKind, list, nearest};

/// Tables whose keys are names chosen by the user: a setting cannot add one.
const NAMED: [&str; 9] = [
    "parameters",
    "dumbbell.senders",
    "star.hosts",
    "hosts",
    "switches",
    "queues",
    "groups",
    "variants",
    "variants.grid",
];

/// Sets the value at `path`. A missing key is added; the schema decides later whether it is valid.
/// A table with a `kind` or `name` replaces the existing one; any other table is merged key by key.
pub(crate) fn set(root: &mut Node, path: &str, value: Node) -> Result<(), ProblemKind> {
    if let Value::Table(table) = &value.value
        && !table.is_whole()
    {
        let mut entries = table.entries.iter();
        return entries
            .try_for_each(|entry| set(root, &format!("{path}.{}", entry.key), entry.node.clone()));
    }
    let position = value.position.clone();
    let mut current = root;
    let mut walked = String::new();
    for segment in path.split('.') {
        current = step(current, &walked, segment, &position)?;
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(segment);
    }
    *current = value;
    Ok(())
}

/// Returns the value at `path`, if there is one.
pub(crate) fn get<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    path.split('.')
        .try_fold(root, |node, segment| match &node.value {
            Value::Table(table) => table.get(segment),
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            _ => None,
        })
}

/// Returns the value of `segment` in `node`, which is at the path `walked`.
fn step<'n>(
    node: &'n mut Node,
    walked: &str,
    segment: &str,
    position: &Position,
) -> Result<&'n mut Node, ProblemKind> {
    expand_to_table(node, walked);
    let missing = |existing: String, nearest: Option<String>| ProblemKind::NoSuchPath {
        missing: match walked {
            "" => segment.to_owned(),
            _ => format!("{walked}.{segment}"),
        },
        existing,
        nearest,
    };
    match &mut node.value {
        Value::Table(table) => {
            let fixed = NAMED.contains(&walked) || segment.is_empty();
            if fixed && table.get(segment).is_none() {
                return Err(missing(list(table.keys()), nearest(segment, table.keys())));
            }
            Ok(table.get_or_insert(segment, position))
        }
        Value::Array(items) => {
            let count = items.len();
            let item = segment.parse().ok().and_then(|at: usize| items.get_mut(at));
            item.ok_or_else(|| match count {
                0 => missing("nothing in that list".to_owned(), None),
                _ => missing(format!("0 to {}", count - 1), None),
            })
        }
        other => Err(missing(
            format!("{} at `{walked}`, which has no keys", other.describe()),
            None,
        )),
    }
}

/// Expands a value written as a name alone to a table, so that its other keys can be set.
fn expand_to_table(node: &mut Node, walked: &str) {
    let key = match walked.rsplit('.').next() {
        Some("congestion") => "name",
        Some("workload") => "kind",
        _ => return,
    };
    if matches!(&node.value, Value::Text(name) if !name.starts_with('$')) {
        let mut table = Table::default();
        table.set(key, node.position.clone(), node.clone());
        node.value = Value::Table(table);
    }
}

impl Table {
    /// Returns whether the table has a `kind`, `name` or `plugin` that decides its other keys.
    pub(crate) fn is_whole(&self) -> bool {
        ["kind", "name", "plugin"]
            .iter()
            .any(|key| self.get(key).is_some())
    }

    /// Returns the value of `segment`, and adds an empty table if there is none.
    fn get_or_insert(&mut self, segment: &str, position: &Position) -> &mut Node {
        let index = match self.entries.iter().position(|entry| entry.key == segment) {
            Some(index) => index,
            None => {
                let node = Node::new(Value::Table(Self::default()), position.clone());
                self.set(segment, position.clone(), node);
                self.entries.len() - 1
            }
        };
        &mut self.entries[index].node
    }
}
