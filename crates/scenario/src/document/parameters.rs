//! `[parameters]`: named values that the file uses as `"$name"`.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Cursor, Node, Problems, Reported, Table, Value};
use crate::error::ProblemKind;

const PARAMETERS: &str = "parameters";
const VARIANTS: &str = "variants";

/// Replaces each `"$name"` by the parameter's value.
pub(crate) fn substitute(root: &mut Node, problems: &Problems) -> Result<(), Reported> {
    let parameters = match root.as_table().and_then(|table| table.get(PARAMETERS)) {
        None => Table::default(),
        Some(node) => match &node.value {
            Value::Table(table) => table.clone(),
            _ => return Err(at(node, PARAMETERS, problems).wrong_kind("a table")),
        },
    };
    let mut result = Ok(());
    for entry in &parameters.entries {
        if reference(&entry.node).is_some() {
            let key = format!("{PARAMETERS}.{}", entry.key);
            result = Err(at(&entry.node, &key, problems)
                .conflict("a parameter cannot refer to another one", "write its value"));
        }
    }
    result?;
    let Some(table) = root.as_table_mut() else {
        return Ok(());
    };
    for entry in &mut table.entries {
        if entry.key != PARAMETERS && entry.key != VARIANTS {
            let replaced = replace(&mut entry.node, &entry.key, &parameters, problems);
            result = result.and(replaced);
        }
    }
    result
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
    for entry in table.entries.iter().filter(|entry| entry.key != PARAMETERS) {
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
