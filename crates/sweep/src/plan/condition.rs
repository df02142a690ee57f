//! Conditions on combinations of values: `parameters.red_min <= parameters.red_max`.

use std::cmp::Ordering;
use std::str::FromStr;

use weir_scenario::Quantity;

/// A comparison of two keys of the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) left: String,
    comparison: Comparison,
    pub(crate) right: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [left, comparison, right] = parts[..] else {
            return Err(format!(
                "`{text}` is no comparison: write two keys of the sweep with <, <=, ==, !=, >= or > \
                 between them, and spaces around it"
            ));
        };
        let (left, comparison, right) = match comparison {
            "<" => (left, Comparison::Less, right),
            "<=" => (left, Comparison::LessOrEqual, right),
            "==" => (left, Comparison::Equal, right),
            "!=" => (left, Comparison::NotEqual, right),
            ">=" => (right, Comparison::LessOrEqual, left),
            ">" => (right, Comparison::Less, left),
            other => return Err(format!("`{other}` is none of <, <=, ==, !=, >=, >")),
        };
        Ok(Self {
            left: left.to_owned(),
            comparison,
            right: right.to_owned(),
        })
    }
}

impl Condition {
    /// Whether it holds for these values. Amounts of different kinds are neither equal nor ordered.
    pub(crate) fn holds(&self, left: &Quantity, right: &Quantity) -> bool {
        let order = left.compare(right);
        match self.comparison {
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Equal => order.map_or(left == right, Ordering::is_eq),
            Comparison::NotEqual => order.map_or(left != right, Ordering::is_ne),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comparison_operator_is_evaluated() {
        let holds = |text: &str, a: i64, b: i64| {
            let condition: Condition = text.parse().unwrap();
            let value = |name: &str| Quantity::Integer(if name == "a" { a } else { b });
            condition.holds(&value(&condition.left), &value(&condition.right))
        };
        for (comparison, expected) in [
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
            ("==", [false, true, false]),
            ("!=", [true, false, true]),
            (">=", [false, true, true]),
            (">", [false, false, true]),
        ] {
            let text = format!("a {comparison} b");
            let found = [(1, 2), (2, 2), (2, 1)].map(|(a, b)| holds(&text, a, b));
            assert_eq!(found, expected, "{text}");
        }
        assert!("a<b".parse::<Condition>().is_err());
        assert!("a ~ b".parse::<Condition>().is_err());
    }
}
