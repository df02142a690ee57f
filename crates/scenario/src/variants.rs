//! `[variants]`: the same scenario under other values, by name or as a grid.

use std::collections::{HashMap, HashSet};

use crate::ScenarioError;
use crate::document::{Node, Table, Value, set};
use crate::error::{Place, ProblemKind};
use crate::loader::{Document, Setting, invalid};

/// The table whose values are lists: every combination is a variant.
const GRID: &str = "grid";

/// The most variants of one file.
const MOST: u64 = 10_000;

/// The variants of a file: name, what differs, and the file with it in place.
pub(crate) type Expanded = Vec<(String, Vec<Setting>, Document)>;

/// Values by path, in the order in which they were written.
type Changes = Vec<(String, Node)>;

/// The variants of a file, before they are checked.
pub(crate) fn expand(document: &Document) -> Result<Expanded, ScenarioError> {
    let variants = document
        .root
        .as_table()
        .and_then(|root| root.get("variants"));
    let Some(node) = variants else {
        return Ok(Vec::new());
    };
    let Some(table) = node.as_table() else {
        return Err(wrong_kind(
            document,
            node,
            "variants",
            "tables `[variants.NAME]`",
        ));
    };
    let mut expanded = Vec::new();
    for entry in &table.entries {
        let key = format!("variants.{}", entry.key);
        let Some(changes) = entry.node.as_table() else {
            return Err(wrong_kind(document, &entry.node, &key, "a table"));
        };
        if entry.key != GRID {
            expanded.push(apply(document, entry.key.clone(), &flatten(changes))?);
        }
    }
    if let Some(grid) = table.get(GRID).and_then(Node::as_table) {
        for (name, changes) in points(document, grid)? {
            expanded.push(apply(document, name, &changes)?);
        }
    }
    let mut names = HashSet::new();
    let mut twice = expanded
        .iter()
        .filter(|(name, ..)| !names.insert(name.clone()));
    match twice.next() {
        Some((name, ..)) => Err(invalid(
            document,
            node.place.clone(),
            "variants".to_owned(),
            ProblemKind::DuplicateName {
                what: "variant",
                name: name.clone(),
            },
        )),
        None => Ok(expanded),
    }
}

fn apply(
    document: &Document,
    name: String,
    changes: &Changes,
) -> Result<(String, Vec<Setting>, Document), ScenarioError> {
    let mut changed = document.clone();
    let mut settings = Vec::new();
    for (path, value) in changes {
        settings.push(Setting {
            path: path.clone(),
            value: value.to_string(),
        });
        set(&mut changed.root, path, value.clone()).map_err(|kind| {
            let key = format!("variants.{name}.{path}");
            invalid(document, value.place.clone(), key, kind)
        })?;
    }
    Ok((name, settings, changed))
}

/// Every combination of a grid's values, the last key changing fastest.
fn points(document: &Document, grid: &Table) -> Result<Vec<(String, Changes)>, ScenarioError> {
    let mut axes = Vec::new();
    let mut count = 1_u64;
    for (path, node) in flatten(grid) {
        let key = format!("variants.grid.{path}");
        match node.value {
            Value::Array(values) if !values.is_empty() => {
                count = count.saturating_mul(values.len() as u64);
                axes.push((path, values));
            }
            _ => return Err(wrong_kind(document, &node, &key, "a list of values")),
        }
        if count > MOST {
            let kind = ProblemKind::TooMany {
                what: "variants",
                count,
                limit: MOST,
                reason: "each is a scenario in memory; larger grids are sweeps",
            };
            return Err(invalid(document, node.place, key, kind));
        }
    }
    if axes.is_empty() {
        return Ok(Vec::new());
    }
    let labels = labels(axes.iter().map(|(path, _)| path.as_str()).collect());
    let mut points: Vec<(String, Changes)> = vec![(String::new(), Vec::new())];
    for ((path, values), label) in axes.iter().zip(labels) {
        let longer = |(name, changes): &(String, Changes), value: &Node| {
            let comma = if name.is_empty() { "" } else { "," };
            let mut changes = changes.clone();
            changes.push((path.clone(), value.clone()));
            (format!("{name}{comma}{label}={value}"), changes)
        };
        points = points
            .iter()
            .flat_map(|point| values.iter().map(move |value| longer(point, value)))
            .collect();
    }
    Ok(points)
}

/// What an axis is called in names: the last part of its path, unless two axes share it.
fn labels(paths: Vec<&str>) -> Vec<&str> {
    let last = |path: &'_ str| path.rsplit('.').next().map_or(0, str::len);
    let mut shared: HashMap<&str, usize> = HashMap::new();
    for path in &paths {
        *shared.entry(&path[path.len() - last(path)..]).or_default() += 1;
    }
    let label = |path: &&'_ str| {
        let start = path.len() - last(path);
        if shared.get(&path[start..]) == Some(&1) {
            start
        } else {
            0
        }
    };
    paths.iter().map(|path| &path[label(path)..]).collect()
}

/// The values in nested tables, by their paths.
fn flatten(table: &Table) -> Changes {
    let mut changes = Vec::new();
    for entry in &table.entries {
        match &entry.node.value {
            Value::Table(inner) if !inner.is_whole() => {
                let inner = flatten(inner).into_iter();
                changes.extend(inner.map(|(path, node)| (format!("{}.{path}", entry.key), node)));
            }
            _ => changes.push((entry.key.clone(), entry.node.clone())),
        }
    }
    changes
}

fn wrong_kind(document: &Document, node: &Node, key: &str, expected: &str) -> ScenarioError {
    let place: Place = node.place.clone();
    let kind = ProblemKind::WrongKind {
        expected: expected.to_owned(),
        found: node.value.describe(),
    };
    invalid(document, place, key.to_owned(), kind)
}
