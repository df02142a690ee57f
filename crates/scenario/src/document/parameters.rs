//! `[parameters]`: named values that the file uses as `"$name"`.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Cursor, Node, Problems, Reported, Table, Value};
use crate::error::ProblemKind;

const PARAMETERS: &str = "parameters";
const VARIANTS: &str = "variants";

/// Replaces each `"$name"` by the parameter's value, in the parameters themselves too.
pub(crate) fn substitute(root: &mut Node, problems: &Problems) -> Result<(), Reported> {
    let written = match root.as_table().and_then(|table| table.get(PARAMETERS)) {
        None => Table::default(),
        Some(node) => match &node.value {
            Value::Table(table) => table.clone(),
            _ => return Err(at(node, PARAMETERS, problems).wrong_kind("a table")),
        },
    };
    let parameters = resolve(&written, problems)?;
    let Some(table) = root.as_table_mut() else {
        return Ok(());
    };
    let mut result = Ok(());
    for entry in &mut table.entries {
        if entry.key == PARAMETERS {
            entry.node.value = Value::Table(parameters.clone());
        } else if entry.key != VARIANTS {
            let replaced = replace(&mut entry.node, &entry.key, &parameters, problems);
            result = result.and(replaced);
        }
    }
    result
}

/// Returns the parameters without references to one another.
fn resolve(written: &Table, problems: &Problems) -> Result<Table, Reported> {
    let mut resolved = Table::default();
    let mut result = Ok(());
    for entry in &written.entries {
        let done = resolve_one(
            &entry.key,
            written,
            &mut Vec::new(),
            &mut resolved,
            problems,
        );
        result = result.and(done);
    }
    result?;
    // In the order of the file.
    let position = |key: &str| written.keys().position(|found| found == key);
    resolved.entries.sort_by_key(|entry| position(&entry.key));
    Ok(resolved)
}

/// Adds the parameter `name` to `resolved`, and first those that it refers to; `path` leads to it.
fn resolve_one<'w>(
    name: &'w str,
    written: &'w Table,
    path: &mut Vec<&'w str>,
    resolved: &mut Table,
    problems: &Problems,
) -> Result<(), Reported> {
    let Some(entry) = written.entries.iter().find(|entry| entry.key == name) else {
        // Reported where it is replaced.
        return Ok(());
    };
    if resolved.get(name).is_some() {
        return Ok(());
    }
    let key = format!("{PARAMETERS}.{name}");
    if let Some(first) = path.iter().position(|found| *found == name) {
        let names = path[first..].iter().chain([&name]);
        let path: Vec<_> = names.map(|name| format!("${name}")).collect();
        return Err(
            at(&entry.node, &key, problems).problem(ProblemKind::CircularParameter {
                name: name.to_owned(),
                path: path.join(", "),
            }),
        );
    }
    path.push(name);
    let mut used = HashSet::new();
    collect(&entry.node, &mut used);
    // Mistakes are reported in the order of the file.
    let mut used: Vec<_> = used.into_iter().collect();
    used.sort_by_key(|name| written.keys().position(|key| key == *name));
    for name in used {
        resolve_one(name, written, path, resolved, problems)?;
    }
    path.pop();
    let mut node = entry.node.clone();
    replace(&mut node, &key, resolved, problems)?;
    resolved.set(name, entry.position.clone(), node);
    Ok(())
}

fn replace(
    node: &mut Node,
    key: &str,
    parameters: &Table,
    problems: &Problems,
) -> Result<(), Reported> {
    if let Some(name) = reference(node) {
        let Some(value) = parameters.get(name) else {
            let at = at(node, key, problems);
            return Err(at.unknown_name("parameter", name, parameters.keys()));
        };
        let name = Arc::from(name);
        *node = value.clone();
        node.parameter = Some(name);
        return Ok(());
    }
    let mut result = Ok(());
    match &mut node.value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let key = format!("{key}.{index}");
                result = result.and(replace(item, &key, parameters, problems));
            }
        }
        Value::Table(table) => {
            for entry in &mut table.entries {
                let key = format!("{key}.{}", entry.key);
                result = result.and(replace(&mut entry.node, &key, parameters, problems));
            }
        }
        _ => {}
    }
    result
}

/// Reports parameters that the file does not use: they would have no effect.
pub(crate) fn check_used(root: &Node, problems: &Problems) -> Result<(), Reported> {
    let Some(table) = root.as_table() else {
        return Ok(());
    };
    let Some(Value::Table(parameters)) = table.get(PARAMETERS).map(|node| &node.value) else {
        return Ok(());
    };
    let mut used = HashSet::new();
    for entry in &table.entries {
        collect(&entry.node, &mut used);
    }
    let mut result = Ok(());
    for entry in &parameters.entries {
        if !used.contains(entry.key.as_str()) {
            let key = format!("{PARAMETERS}.{}", entry.key);
            let name = entry.key.clone();
            let kind = ProblemKind::UnusedParameter { name };
            result = Err(problems.add(entry.position.clone(), key, kind));
        }
    }
    result
}

fn collect<'n>(node: &'n Node, used: &mut HashSet<&'n str>) {
    used.extend(reference(node));
    match &node.value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, used)),
        Value::Table(table) => {
            let nodes = table.entries.iter().map(|entry| &entry.node);
            nodes.for_each(|node| collect(node, used));
        }
        _ => {}
    }
}

/// Returns the parameter that a value refers to.
fn reference(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => text.strip_prefix('$'),
        _ => None,
    }
}

fn at<'a>(node: &'a Node, key: &str, problems: &'a Problems) -> Cursor<'a> {
    Cursor {
        node,
        key: key.to_owned(),
        problems,
    }
}
