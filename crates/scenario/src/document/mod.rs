//! A scenario file as a tree of values with their positions in the file.
//!
//! Settings and variants replace values in the tree before it is read. The scenario is then checked
//! as a whole, wherever its values come from.

mod at;
mod parameters;
mod parse;
mod path;

use std::fmt;
use std::sync::Arc;

pub(crate) use at::{Cursor, Plugins, Problems, Reported};
pub(crate) use parameters::{check_used, substitute};
pub(crate) use parse::{parse, parse_value, read_text};
pub(crate) use path::{get, set};

use crate::error::Position;

/// A value of a scenario file, and its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) position: Position,
    /// The parameter that the value was taken from.
    pub(crate) parameter: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date or time as text; no key accepts one.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys and values in file order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) position: Position,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(value: Value, position: Position) -> Self {
        Self {
            value,
            position,
            parameter: None,
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl fmt::Display for Node {
    /// Formats the value as a setting: text without quotes at the top level, TOML below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) => f.write_str(text),
            other => write_toml(other, f),
        }
    }
}

fn write_toml(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::Text(text) => write!(f, "{}", toml::Value::from(text.as_str())),
        Value::Date(text) => f.write_str(text),
        Value::Integer(value) => write!(f, "{value}"),
        Value::Float(value) => write!(f, "{}", toml::Value::from(*value)),
        Value::Boolean(value) => write!(f, "{value}"),
        Value::Array(items) => {
            f.write_str("[")?;
            for (index, item) in items.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                write_toml(&item.value, f)?;
            }
            f.write_str("]")
        }
        Value::Table(table) => {
            f.write_str("{")?;
            for (index, entry) in table.entries.iter().enumerate() {
                write!(f, "{} {} = ", if index == 0 { "" } else { "," }, entry.key)?;
                write_toml(&entry.node.value, f)?;
            }
            f.write_str(" }")
        }
    }
}

impl Value {
    /// Describes the value for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("`{text}`"),
            Self::Integer(value) => format!("the number {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Boolean(value) => value.to_string(),
            Self::Date(text) => format!("the date {text}"),
            Self::Array(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.node)
    }

    /// Sets `key`, which may exist already.
    pub(crate) fn set(&mut self, key: &str, position: Position, node: Node) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.node = node,
            None => self.entries.push(Entry {
                key: key.to_owned(),
                position,
                node,
            }),
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|entry| entry.key.as_str())
    }
}
