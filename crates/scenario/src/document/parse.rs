//! The TOML parser: from text to a tree of values with line numbers.

use std::path::Path;
use std::{fs, io};

use toml::de::{DeTable, DeValue};

use super::{Entry, Node, Problems, Reported, Table, Value};
use crate::error::{Position, ProblemKind, ScenarioError};

/// Reads a file of at most `most` MiB; `kind` is the expected kind of file, for errors.
pub(crate) fn read_text(path: &Path, most: u64, kind: &str) -> Result<String, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let found = fs::metadata(path).map_err(unreadable)?;
    // A pipe might never end, or never begin.
    if !found.is_file() && !found.is_dir() {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("this is no regular file; write the {kind} to one"),
        )));
    }
    if found.len() > most << 20 {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("more than {most} MiB are no {kind} file"),
        )));
    }
    fs::read_to_string(path).map_err(unreadable)
}

/// Reads TOML. All syntax errors are reported at once.
pub(crate) fn parse(text: &str, problems: &Problems) -> Result<Node, Reported> {
    let lines = LineIndex::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut refused = None;
    for error in &errors {
        let start = error.span().map_or(text.len(), |span| span.start);
        let kind = match (
            error.message(),
            error.span().and_then(|span| text.get(span)),
        ) {
            ("duplicate key", Some(key)) => ProblemKind::DuplicateKey {
                key: key.trim().to_owned(),
            },
            (message, _) => ProblemKind::Syntax {
                message: message.to_owned(),
            },
        };
        refused = Some(problems.add(lines.position(start), String::new(), kind));
    }
    match refused {
        Some(reported) => Err(reported),
        None => Ok(Node::new(
            lines.table(table.get_ref(), Position::Line(1)),
            Position::Line(1),
        )),
    }
}

/// Parses `text` as one TOML value with the position `position`; returns `None` if it is not one.
pub(crate) fn parse_value(text: &str, position: &Position) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    let mut node = LineIndex::of("").node(value.get_ref(), Position::Line(1));
    move_to(&mut node, position);
    Some(node)
}

/// Sets the position of `node` and all its values to `position`.
fn move_to(node: &mut Node, position: &Position) {
    node.position = position.clone();
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| move_to(item, position)),
        Value::Table(table) => {
            for entry in &mut table.entries {
                entry.position = position.clone();
                move_to(&mut entry.node, position);
            }
        }
        _ => {}
    }
}

/// The start offsets of the lines of a text.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn of(text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        Position::Line(u32::try_from(line).unwrap_or(u32::MAX))
    }

    fn node(&self, value: &DeValue<'_>, position: Position) -> Node {
        let value = match value {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Value::Integer(number),
                    // The integer is out of range; a float keeps its magnitude for the error message.
                    Err(_) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
                }
            }
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Value::Float(number),
                Err(_) => Value::Text(number.as_str().to_owned()),
            },
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.node(item.get_ref(), self.position(item.span().start)))
                    .collect(),
            ),
            DeValue::Table(table) => self.table(table, position.clone()),
        };
        Node::new(value, position)
    }

    /// Converts `table`, with its keys in file order.
    fn table(&self, table: &DeTable<'_>, position: Position) -> Value {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| (key.span().start, key, value))
            .collect();
        entries.sort_by_key(|(start, ..)| *start);
        let entries = entries
            .into_iter()
            .map(|(start, key, value)| {
                // A key without its own position gets the position of its table.
                let position = if key.span().is_empty() {
                    position.clone()
                } else {
                    self.position(start)
                };
                let written = match value.get_ref() {
                    DeValue::Table(_) | DeValue::Array(_) => position.clone(),
                    _ => self.position(value.span().start),
                };
                Entry {
                    key: key.get_ref().clone().into_owned(),
                    position,
                    node: self.node(value.get_ref(), written),
                }
            })
            .collect();
        Value::Table(Table { entries })
    }
}
