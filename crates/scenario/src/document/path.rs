//! Setting values by their path: `groups.dctcp.flows`, `links.0.rate`.

use super::{Node, Table, Value};
use crate::error::{Place, ProblemKind, list, nearest};

/// Tables whose keys are names that people choose: a setting cannot invent one.
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

/// Sets what `path` leads to. A key that is not there is added: the schema says whether it may be.
/// A table is set key by key.
pub(crate) fn set(root: &mut Node, path: &str, value: Node) -> Result<(), ProblemKind> {
    if let Value::Table(table) = value.value {
        let entries = table.entries.into_iter();
        return entries
            .map(|entry| set(root, &format!("{path}.{}", entry.key), entry.node))
            .collect();
    }
    let place = value.place.clone();
    let mut current = root;
    let mut walked = String::new();
    for segment in path.split('.') {
        current = step(current, &walked, segment, &place)?;
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(segment);
    }
    *current = value;
    Ok(())
}

/// The value that `segment` leads to from `node`, which is at the path `walked`.
fn step<'n>(
    node: &'n mut Node,
    walked: &str,
    segment: &str,
    place: &Place,
) -> Result<&'n mut Node, ProblemKind> {
    widen(node, walked);
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
            Ok(table.get_or_insert(segment, place))
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

/// An algorithm that is written by its name alone gets a table to set its parameters in.
fn widen(node: &mut Node, walked: &str) {
    let is_name = matches!(&node.value, Value::Text(name) if !name.starts_with('$'));
    if is_name && walked.ends_with(".congestion") {
        let mut table = Table::default();
        table.set("name", node.place.clone(), node.clone());
        node.value = Value::Table(table);
    }
}

impl Table {
    /// The value of `segment`, an empty table if there was none.
    fn get_or_insert(&mut self, segment: &str, place: &Place) -> &mut Node {
        let index = match self.entries.iter().position(|entry| entry.key == segment) {
            Some(index) => index,
            None => {
                let node = Node::new(Value::Table(Self::default()), place.clone());
                self.set(segment, place.clone(), node);
                self.entries.len() - 1
            }
        };
        &mut self.entries[index].node
    }
}
