//! Typed values of keys: a scenario's texts and numbers as amounts that can be compared, stepped through
//! and written to a table.

use std::cmp::Ordering;
use std::fmt;

use weir_units::{ByteSize, Duration, Rate};

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// `"400KB"`.
    Size(ByteSize),
    /// `"12.5Gbps"`.
    Rate(Rate),
    /// `"50ms"`.
    Duration(Duration),
    /// `10`.
    Integer(i64),
    /// `0.05`.
    Number(f64),
    /// `true`.
    Flag(bool),
    /// Any other text: `"dctcp"`, `"65 packets"`.
    Text(String),
}

impl Quantity {
    /// Reads a value of a file; `None` for tables and lists.
    pub fn of(value: &toml::Value) -> Option<Self> {
        match value {
            toml::Value::String(text) => Some(Self::of_text(text)),
            toml::Value::Integer(integer) => Some(Self::Integer(*integer)),
            toml::Value::Float(number) if number.is_finite() => Some(Self::Number(*number)),
            toml::Value::Boolean(flag) => Some(Self::Flag(*flag)),
            _ => None,
        }
    }

    /// Reads a value of a setting: TOML, or else text.
    pub fn of_setting(text: &str) -> Self {
        let table = format!("value = {text}").parse::<toml::Table>().ok();
        let value = table.and_then(|table| Self::of(table.get("value")?));
        value.unwrap_or_else(|| Self::of_text(text))
    }

    fn of_text(text: &str) -> Self {
        let size = text.parse().map(Self::Size);
        let rate = || text.parse().map(Self::Rate);
        let span = || text.parse().map(Self::Duration);
        let found = size.or_else(|_| rate()).or_else(|_| span());
        found.unwrap_or_else(|_| Self::Text(text.to_owned()))
    }

    /// Returns the amount in its base unit, if it is an amount.
    pub fn amount(&self) -> Option<f64> {
        match self {
            Self::Size(size) => Some(size.bytes() as f64),
            Self::Rate(rate) => Some(rate.bits_per_second() as f64),
            Self::Duration(span) => Some(span.as_nanos() as f64),
            Self::Integer(integer) => Some(*integer as f64),
            Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }

    /// Returns another amount of the same kind; integers and quantities are rounded to their base units.
    pub fn with_amount(&self, amount: f64) -> Self {
        let whole = amount.round().max(0.0) as u64;
        match self {
            Self::Size(_) => Self::Size(ByteSize::from_bytes(whole)),
            Self::Rate(_) => Self::Rate(Rate::from_bits_per_second(whole)),
            Self::Duration(_) => Self::Duration(Duration::from_nanos(whole)),
            Self::Integer(_) => Self::Integer(amount.round() as i64),
            Self::Number(_) => Self::Number(amount),
            other => other.clone(),
        }
    }

    /// Whether both are amounts of the same kind.
    pub fn is_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Size(_), Self::Size(_))
                | (Self::Rate(_), Self::Rate(_))
                | (Self::Duration(_), Self::Duration(_))
                | (
                    Self::Integer(_) | Self::Number(_),
                    Self::Integer(_) | Self::Number(_)
                )
        )
    }

    /// Compares two amounts; `None` if they are of different kinds.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if !self.is_like(other) {
            return None;
        }
        self.amount()?.partial_cmp(&other.amount()?)
    }

    /// Returns the unit's suffix for column names.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Size(_) => "_bytes",
            Self::Rate(_) => "_bps",
            Self::Duration(_) => "_s",
            Self::Integer(_) | Self::Number(_) | Self::Flag(_) | Self::Text(_) => "",
        }
    }
}

/// Formats the value as a setting of a scenario.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Duration(span) => span.fmt(f),
            Self::Integer(integer) => integer.fmt(f),
            // With a decimal point, so that it stays a floating-point number.
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        let table: toml::Table = format!("v = {text}").parse().unwrap();
        Quantity::of(&table["v"]).unwrap()
    }

    #[test]
    fn quantities_have_their_unit_and_round_trip() {
        for (text, unit, written) in [
            ("\"400KB\"", "_bytes", "400KB"),
            ("\"12.5Gbps\"", "_bps", "12.5Gbps"),
            ("\"50ms\"", "_s", "50ms"),
            ("3", "", "3"),
            ("0.25", "", "0.25"),
            ("2.0", "", "2.0"),
            ("true", "", "true"),
            ("\"65 packets\"", "", "65 packets"),
        ] {
            let value = quantity(text);
            assert_eq!((value.unit(), value.to_string().as_str()), (unit, written));
        }
    }

    #[test]
    fn quantities_of_the_same_kind_are_comparable() {
        let less = quantity("\"400KB\"").compare(&quantity("\"1MB\""));
        assert_eq!(less, Some(Ordering::Less));
        assert_eq!(
            quantity("1").compare(&quantity("0.5")),
            Some(Ordering::Greater)
        );
        assert_eq!(quantity("\"1s\"").compare(&quantity("\"1KB\"")), None);
        assert_eq!(quantity("\"a\"").compare(&quantity("\"b\"")), None);
    }
}
