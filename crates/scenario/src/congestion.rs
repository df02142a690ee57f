//! The key `congestion`: the name of a registered algorithm and its parameters.

use serde::Deserialize;
use weir_congestion::AlgorithmSpec;

use crate::document::{Cursor, Reported, Value};
use crate::error::{ProblemKind, list};
use crate::schema::Accepts;

pub(crate) const ACCEPTS: Accepts =
    Accepts::Other("a name such as \"dctcp\", or a table such as { name = \"dctcp\", g = 0.0625 }");

/// Reads an algorithm. Each wrong parameter is reported at its own position.
pub(crate) fn read(at: &Cursor<'_>) -> Result<AlgorithmSpec, Reported> {
    let Some(table) = at.node.as_table() else {
        at.text(&ACCEPTS.to_string())?;
        return parse(at, value(&at.node.value));
    };
    let mut whole = toml::Table::new();
    let mut refused = None;
    let name = table.get("name").map(|node| at.child("name", node));
    if let Some(name) = &name {
        name.text("the name of an algorithm")?;
        whole.insert("name".to_owned(), value(&name.node.value));
        parse(name, toml::Value::Table(whole.clone()))?;
    }
    for entry in table.entries.iter().filter(|entry| entry.key != "name") {
        let mut alone = toml::Table::new();
        if let Some(name) = whole.get("name") {
            alone.insert("name".to_owned(), name.clone());
        }
        alone.insert(entry.key.clone(), value(&entry.node.value));
        let at = at.child(&entry.key, &entry.node);
        if let Err(reported) = parse(&at, toml::Value::Table(alone)) {
            refused = Some(reported);
        }
        whole.insert(entry.key.clone(), value(&entry.node.value));
    }
    match refused {
        Some(reported) => Err(reported),
        None => parse(at, toml::Value::Table(whole)),
    }
}

/// Reads new values of parameters of an algorithm, each at its own position.
pub(crate) fn read_changes(
    at: &Cursor<'_>,
    spec: &AlgorithmSpec,
) -> Result<Vec<(&'static str, weir_congestion::Value)>, Reported> {
    let adjustable = spec.adjustable();
    let Some(table) = at.node.as_table() else {
        return Err(at.wrong_kind(format!("a table with {}", list(adjustable.iter().copied()))));
    };
    let mut values = Vec::new();
    let mut refused = None;
    for entry in &table.entries {
        let at = at.child(&entry.key, &entry.node);
        let mut alone = toml::Table::new();
        alone.insert("name".to_owned(), spec.name().into());
        let is_name = entry.key == "name";
        if !is_name {
            alone.insert(entry.key.clone(), value(&entry.node.value));
        }
        let read = if is_name {
            Err(None)
        } else {
            parse(&at, toml::Value::Table(alone)).map_err(Some)
        };
        let is_adjustable = adjustable.iter().any(|name| **name == entry.key);
        match read {
            Ok(changed) if is_adjustable => values.extend(changed.values()),
            Err(Some(reported)) => refused = Some(reported),
            _ => {
                let accepted = list(adjustable.iter().copied());
                refused = Some(at.problem(ProblemKind::Fixed { accepted }));
            }
        }
    }
    // The order of a table's keys has no meaning.
    values.sort_unstable_by_key(|(name, _)| *name);
    match refused {
        Some(reported) => Err(reported),
        None => Ok(values),
    }
}

fn parse(at: &Cursor<'_>, value: toml::Value) -> Result<AlgorithmSpec, Reported> {
    AlgorithmSpec::deserialize(value).map_err(|error| {
        at.problem(ProblemKind::Congestion {
            message: error.message().to_owned(),
        })
    })
}

/// Converts a value for serde. A value of a type that no parameter has becomes a list, which the
/// registry rejects.
fn value(value: &Value) -> toml::Value {
    match value {
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::Integer(value) => toml::Value::Integer(*value),
        Value::Float(value) => toml::Value::Float(*value),
        Value::Boolean(value) => toml::Value::Boolean(*value),
        Value::Date(_) | Value::Array(_) | Value::Table(_) => toml::Value::Array(Vec::new()),
    }
}
