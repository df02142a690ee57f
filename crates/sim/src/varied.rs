//! The values of the keys that variants change, as columns of the tables.

use std::collections::HashSet;

use indexmap::IndexMap;
use weir_results::{Value, is_table_column};
use weir_scenario::{Quantity, VariedKey};

/// Returns a value for a table: sizes in bytes, rates in bits per second, times in seconds.
pub fn table_value(quantity: &Quantity) -> Value {
    match quantity {
        Quantity::Size(size) => Value::Count(size.bytes()),
        Quantity::Rate(rate) => Value::Count(rate.bits_per_second()),
        Quantity::Duration(span) => Value::Number(span.as_secs_f64()),
        Quantity::Integer(integer) => match u64::try_from(*integer) {
            Ok(count) => Value::Count(count),
            Err(_) => Value::Number(*integer as f64),
        },
        Quantity::Number(number) => Value::Number(*number),
        Quantity::Flag(flag) => Value::Flag(*flag),
        Quantity::Text(text) => Value::Text(text.clone()),
    }
}

/// Returns the cells of each run for the keys that variants change, by column name; `runs` are the runs' settings.
///
/// A column has the name of its key and its unit. Where the key's last part is the name of a column of the tables, it is
/// the whole path.
pub(crate) fn columns(
    keys: &[VariedKey],
    runs: &[&IndexMap<String, String>],
) -> Vec<Vec<(String, Value)>> {
    let mut cells = vec![Vec::new(); runs.len()];
    for key in keys {
        let value = |run: &&IndexMap<String, String>| {
            let text = run.get(&key.path).or(key.own.as_ref())?;
            Some(Quantity::of_setting(text))
        };
        let values: Vec<Option<Quantity>> = runs.iter().map(value).collect();
        let units: HashSet<_> = values.iter().flatten().map(Quantity::unit).collect();
        // Values of several kinds are text.
        let unit = match units.iter().collect::<Vec<_>>()[..] {
            [unit] => unit,
            _ => "",
        };
        let short = format!("{}{unit}", key.label);
        let name = if is_table_column(&short) {
            format!("{}{unit}", key.path)
        } else {
            short
        };
        for (cells, value) in cells.iter_mut().zip(&values) {
            let value = value.as_ref().map(|value| match units.len() {
                0 | 1 => table_value(value),
                _ => Value::Text(value.to_string()),
            });
            cells.extend(value.map(|value| (name.clone(), value)));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_columns_with_units() {
        let key = |path: &str, own: &str| VariedKey {
            path: path.to_owned(),
            label: path.rsplit('.').next().unwrap().to_owned(),
            own: (!own.is_empty()).then(|| own.to_owned()),
        };
        let keys = [
            key("parameters.threshold", "20KB"),
            key("parameters.load", "0.5"),
            key("parameters.size", "1KB"),
            key("groups.g.congestion", ""),
            key("queues.q.level", "20 packets"),
        ];
        let settings = |pairs: &[(&str, &str)]| -> IndexMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(path, value)| (path.to_string(), value.to_string()))
                .collect()
        };
        let own = settings(&[]);
        let other = settings(&[
            ("parameters.threshold", "50KB"),
            ("groups.g.congestion", "dctcp"),
            ("queues.q.level", "5KB"),
        ]);
        let cells = columns(&keys, &[&own, &other]);
        let text = |text: &str| Value::Text(text.to_owned());
        let named = |cells: &[(&str, Value)]| -> Vec<(String, Value)> {
            let cells = cells.iter();
            cells
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect()
        };
        assert_eq!(
            cells[0],
            named(&[
                ("threshold_bytes", Value::Count(20_000)),
                ("load", Value::Number(0.5)),
                ("parameters.size_bytes", Value::Count(1_000)),
                ("level", text("20 packets")),
            ])
        );
        assert_eq!(
            cells[1],
            named(&[
                ("threshold_bytes", Value::Count(50_000)),
                ("load", Value::Number(0.5)),
                ("parameters.size_bytes", Value::Count(1_000)),
                ("congestion", text("dctcp")),
                ("level", text("5KB")),
            ])
        );
    }
}
