//! Reading a condition: one value or a list of them.

use std::fmt::Display;
use std::str::FromStr;

use crate::document::{Fields, Reported, Value};
use crate::error::ProblemKind;

/// The values of a key that takes one or several of a kind, as text or as numbers; none where it is not
/// written.
pub(super) fn read<T>(fields: &Fields<'_>, key: &str, accepts: &str) -> Result<Vec<T>, Reported>
where
    T: FromStr<Err: Display>,
{
    let Some(at) = fields.at(key) else {
        return Ok(Vec::new());
    };
    let items = at.items();
    if items.is_empty() {
        return Err(at.conflict(
            "an empty list fits no flow",
            format!("write {accepts}, or leave `{key}` out so that it fits every flow"),
        ));
    }
    // Every wrong value is reported, not only the first.
    let mut values = Vec::with_capacity(items.len());
    let mut refused = None;
    for item in &items {
        let text = match &item.node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            _ => {
                refused = Some(item.wrong_kind(accepts));
                continue;
            }
        };
        match text.parse() {
            Ok(value) => values.push(value),
            Err(error) => {
                let message = format!("{error}");
                refused = Some(item.problem(ProblemKind::Condition { message }));
            }
        }
    }
    match refused {
        Some(reported) => Err(reported),
        None => Ok(values),
    }
}
