//! The key whose values several runs are compared over.

use indexmap::IndexMap;

use crate::Value;

/// The number of values that make a line.
const LEAST_VALUES: usize = 2;

/// A key with numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VariedKey {
    /// The name of its column.
    pub(super) name: String,
    /// Its values, ascending.
    values: Vec<f64>,
}

impl VariedKey {
    /// Returns the key with the most numbers among the values of these runs: one called `load` or `load…` if there is
    /// one; `None` if none has two.
    pub(super) fn of(runs: &[&[(String, Value)]]) -> Option<Self> {
        let mut columns: IndexMap<&str, Vec<f64>> = IndexMap::new();
        for (name, value) in runs.iter().copied().flatten() {
            columns.entry(name).or_default().extend(number(value));
        }
        let keys = columns.into_iter().map(|(name, mut values)| {
            values.sort_by(f64::total_cmp);
            values.dedup();
            Self {
                name: name.to_owned(),
                values,
            }
        });
        let keys: Vec<Self> = keys
            .filter(|key| key.values.len() >= LEAST_VALUES)
            .collect();
        let load = keys.iter().find(|key| key.name.starts_with("load"));
        // The first of several with as many values.
        let most = keys.iter().rev().max_by_key(|key| key.values.len());
        load.or(most).cloned()
    }

    /// Returns the value of a run, and how it is written.
    pub(super) fn value(&self, values: &[(String, Value)]) -> Option<(f64, String)> {
        let (_, value) = values.iter().find(|(name, _)| *name == self.name)?;
        number(value).map(|number| (number, text(value)))
    }
}

/// Returns the values beside those of a key, in words.
pub(super) fn others(values: &[(String, Value)], key: &VariedKey) -> String {
    let others = values.iter().filter(|(name, _)| *name != key.name);
    others
        .map(|(_, value)| text(value))
        .collect::<Vec<_>>()
        .join(", ")
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Number(number) => Some(*number),
        Value::Text(_) | Value::Flag(_) => None,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Flag(flag) => flag.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(load: f64, seed: u64, name: &str) -> Vec<(String, Value)> {
        vec![
            ("seed".to_owned(), Value::Count(seed)),
            ("load".to_owned(), Value::Number(load)),
            ("congestion".to_owned(), Value::Text(name.to_owned())),
        ]
    }

    #[test]
    fn the_load_is_the_key_and_the_others_tell_lines_apart() {
        let runs = [
            run(0.3, 1, "dctcp"),
            run(0.8, 2, "dctcp"),
            run(0.3, 3, "swift"),
        ];
        let runs: Vec<&[_]> = runs.iter().map(Vec::as_slice).collect();
        let key = VariedKey::of(&runs).unwrap();
        assert_eq!(
            (key.name.as_str(), &key.values[..]),
            ("load", &[0.3, 0.8][..])
        );
        assert_eq!(key.value(runs[1]), Some((0.8, "0.8".to_owned())));
        assert_eq!(others(runs[2], &key), "3, swift");
    }

    #[test]
    fn without_a_load_the_key_has_the_most_values() {
        let runs = [run(0.3, 1, "a"), run(0.3, 2, "a"), run(0.3, 3, "a")];
        let runs: Vec<&[_]> = runs.iter().map(Vec::as_slice).collect();
        assert_eq!(VariedKey::of(&runs).unwrap().name, "seed");
        assert_eq!(VariedKey::of(&runs[..1]), None);
    }
}
