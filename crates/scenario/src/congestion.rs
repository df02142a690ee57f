//! The key `congestion`: the name of a registered algorithm, or a plug-in, and its parameters.

use std::sync::Arc;

use serde::Deserialize;
use weir_congestion::AlgorithmSpec;
use weir_plugin::WasmPlugin;

use crate::document::{Cursor, Entry, Reported, Table, Value};
use crate::error::{ProblemKind, list};
use crate::schema::Accepts;

pub(crate) const ACCEPTS: Accepts =
    Accepts::Other("a name such as \"dctcp\", or a table such as { name = \"dctcp\", g = 0.0625 }");

/// Reads an algorithm. Each wrong parameter is reported at its own position.
pub(crate) fn read(at: &Cursor<'_>) -> Result<AlgorithmSpec, Reported> {
    let Some(table) = at.node.as_table() else {
        let name = at.text(&ACCEPTS.to_string())?;
        return match at.problems.plugin(name) {
            Some(plugin) => Ok(AlgorithmSpec::of_plugin(Arc::clone(plugin))),
            None => parse(at, value(&at.node.value)),
        };
    };
    if let Some(file) = table.get("plugin") {
        return read_plugin(at, table, &at.child("plugin", file));
    }
    let mut whole = toml::Table::new();
    let name = table.get("name").map(|node| at.child("name", node));
    if let Some(name) = &name {
        let text = name.text("the name of an algorithm")?;
        if let Some(plugin) = at.problems.plugin(text) {
            let others = table.entries.iter().filter(|entry| entry.key != "name");
            return with_limits(at, others, AlgorithmSpec::of_plugin(Arc::clone(plugin)));
        }
        whole.insert("name".to_owned(), value(&name.node.value));
        parse(name, toml::Value::Table(whole.clone()))?;
    }
    let mut refused = None;
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
        // A plug-in's are those of every algorithm.
        let any = AlgorithmSpec::default();
        let named = spec.plugin().map_or(spec, |_| &any);
        alone.insert("name".to_owned(), named.name().into());
        let is_plugins_own = spec.plugin().is_some() && !adjustable.contains(&&entry.key[..]);
        let is_name = entry.key == "name" || is_plugins_own;
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

/// Reads a WebAssembly module, whose path is relative to the scenario file, with the values of its parameters.
fn read_plugin(
    at: &Cursor<'_>,
    table: &Table,
    file: &Cursor<'_>,
) -> Result<AlgorithmSpec, Reported> {
    if let Some(name) = table.get("name") {
        let remedy = "write one of them";
        return Err(at
            .child("name", name)
            .conflict("`plugin` and `name`", remedy));
    }
    if !file.problems.has_plugins() {
        let remedy = "name one of `weir algorithms`: only scenarios have plug-ins";
        return Err(file.conflict("a policy", remedy));
    }
    let path = file.text("the file of a WebAssembly module")?;
    let digest = table.get("sha256").map(|node| at.child("sha256", node));
    let digest = digest.map(|digest| digest.text("the SHA-256 digest of the file, in hexadecimal"));
    let digest = digest.transpose()?;
    let mut parameters = Vec::new();
    for entry in own_parameters(table) {
        let value = match entry.node.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
            _ => {
                let message = format!(
                    "a plug-in's parameter is a number, not {}",
                    entry.node.value.describe()
                );
                let at = at.child(&entry.key, &entry.node);
                return Err(at.problem(ProblemKind::Congestion { message }));
            }
        };
        parameters.push((entry.key.clone(), value));
    }
    let found = file.problems.path_of(path);
    let plugin = WasmPlugin::load(&found, path, parameters, digest).map_err(|error| {
        file.problem(ProblemKind::Congestion {
            message: error.to_string(),
        })
    })?;
    let limits = table
        .entries
        .iter()
        .filter(|entry| LIMITS.contains(&&entry.key[..]));
    with_limits(at, limits, AlgorithmSpec::of_plugin(Arc::new(plugin)))
}

/// Keys of a plug-in that are not its own parameters.
const PLUGIN_KEYS: [&str; 2] = ["plugin", "sha256"];
const LIMITS: [&str; 2] = ["max_window", "max_rate"];

fn own_parameters(table: &Table) -> impl Iterator<Item = &Entry> {
    let entries = table.entries.iter();
    entries
        .filter(|entry| !PLUGIN_KEYS.contains(&&entry.key[..]) && !LIMITS.contains(&&entry.key[..]))
}

/// Sets parameters that every algorithm has: `max_window` and `max_rate`.
fn with_limits<'t>(
    at: &Cursor<'_>,
    entries: impl Iterator<Item = &'t Entry>,
    mut spec: AlgorithmSpec,
) -> Result<AlgorithmSpec, Reported> {
    for entry in entries {
        let at = at.child(&entry.key, &entry.node);
        let set = spec.with_text(&entry.key, &entry.node.to_string());
        spec = set.map_err(|error| {
            at.problem(ProblemKind::Congestion {
                message: error.to_string(),
            })
        })?;
    }
    Ok(spec)
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
