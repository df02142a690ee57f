//! The text form of the units: a decimal number and a unit, `12.5Gbps`.
//!
//! Parsing is exact, in integer arithmetic: `0.1us` is 100 ns, and a value that is no whole number
//! of base units is an error instead of being rounded.

use crate::ParseError;

/// A unit: its value in base units and its spellings, of which the first is used for output.
pub(crate) struct Unit {
    scale: u64,
    spellings: &'static [&'static str],
    /// Whether values are formatted in this unit, and whether with decimals.
    written: UnitText,
}

impl Unit {
    /// A unit for output from one unit upwards, with decimals where needed.
    pub(crate) const fn decimal(scale: u64, spellings: &'static [&'static str]) -> Self {
        Self::new(scale, spellings, UnitText::Decimal)
    }

    /// A unit for output of whole multiples only.
    pub(crate) const fn whole(scale: u64, spellings: &'static [&'static str]) -> Self {
        Self::new(scale, spellings, UnitText::Whole)
    }

    /// A unit for output of whole multiples only, and only where no decimal unit is shorter.
    pub(crate) const fn whole_unless_longer(
        scale: u64,
        spellings: &'static [&'static str],
    ) -> Self {
        Self::new(scale, spellings, UnitText::WholeUnlessLonger)
    }

    const fn new(scale: u64, spellings: &'static [&'static str], written: UnitText) -> Self {
        Self {
            scale,
            spellings,
            written,
        }
    }
}

/// When a value is formatted in a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitText {
    /// From one unit upwards, with decimals where needed.
    Decimal,
    /// Only whole multiples.
    Whole,
    /// Only whole multiples, and only where no decimal unit is shorter.
    WholeUnlessLonger,
}

/// A quantity: its name and its units, from the smallest to the largest.
pub(crate) struct Quantity {
    /// With its article: `a duration`.
    pub(crate) name: &'static str,
    /// The accepted units for error messages.
    pub(crate) accepted: &'static str,
    /// From the base unit upwards.
    pub(crate) units: &'static [Unit],
}

impl Quantity {
    /// Parses `text` into base units.
    pub(crate) fn parse(&'static self, text: &str) -> Result<u64, ParseError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseError::Empty {
                expected: self.name,
                accepted: self.accepted,
            });
        }
        let split = text
            .find(|c: char| !is_number_part(c))
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let unit = unit.trim_start();
        let (whole, fraction) = self.split_number(if number.is_empty() { text } else { number })?;
        let scale = self.scale(text, unit)?;
        let too_large = || ParseError::TooLarge {
            text: text.to_owned(),
            expected: self.name,
        };
        let whole = parse_digits(whole).ok_or_else(too_large)?;
        let part = scale_fraction(fraction, scale).ok_or_else(|| ParseError::TooFine {
            text: text.to_owned(),
            expected: self.name,
            base: self.units[0].spellings[0],
        })?;
        whole
            .checked_mul(scale)
            .and_then(|base| base.checked_add(part))
            .ok_or_else(too_large)
    }

    /// Returns the digits before and after the decimal point.
    fn split_number<'t>(&self, number: &'t str) -> Result<(&'t str, &'t str), ParseError> {
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) | Some(("", _)) => return Err(self.not_a_number(number)),
            Some(parts) => parts,
            None => (number, ""),
        };
        if whole.is_empty() || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
        {
            return Err(self.not_a_number(number));
        }
        Ok((whole, fraction))
    }

    fn not_a_number(&self, number: &str) -> ParseError {
        ParseError::Number {
            number: number.to_owned(),
            expected: self.name,
            accepted: self.accepted,
        }
    }

    fn scale(&self, text: &str, unit: &str) -> Result<u64, ParseError> {
        if unit.is_empty() {
            return Err(ParseError::MissingUnit {
                text: text.to_owned(),
                expected: self.name,
                accepted: self.accepted,
            });
        }
        self.units
            .iter()
            .find(|candidate| candidate.spellings.contains(&unit))
            .map(|found| found.scale)
            .ok_or_else(|| ParseError::UnknownUnit {
                unit: unit.to_owned(),
                expected: self.name,
                accepted: self.accepted,
            })
    }

    /// Formats `value` in the largest unit that it fills and that expresses it exactly.
    pub(crate) fn format(&self, value: u64) -> String {
        let mut written = format!("{value}{}", self.units[0].spellings[0]);
        for unit in self.units.iter().skip(1).filter(|unit| value >= unit.scale) {
            let Some(number) = decimal(value, unit.scale, unit.written) else {
                continue;
            };
            let candidate = number + unit.spellings[0];
            if unit.written != UnitText::WholeUnlessLonger || candidate.len() <= written.len() {
                written = candidate;
            }
        }
        written
    }
}

/// Signs and separators count as parts of the number, so that an error can name all of it.
fn is_number_part(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_' | ',')
}

fn parse_digits(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Returns `0.fraction` times `scale` by long multiplication from the last digit; `None` where that
/// is no whole number. The carry stays below `scale`, so any number of digits is fine.
fn scale_fraction(fraction: &str, scale: u64) -> Option<u64> {
    fraction.bytes().rev().try_fold(0_u64, |carry, digit| {
        let product = u64::from(digit - b'0') * scale + carry;
        product.is_multiple_of(10).then_some(product / 10)
    })
}

/// Returns `value / scale` as a decimal number, if the unit allows one.
fn decimal(value: u64, scale: u64, written: UnitText) -> Option<String> {
    let mut number = (value / scale).to_string();
    let mut rest = value % scale;
    if rest == 0 {
        return Some(number);
    }
    if written != UnitText::Decimal {
        return None;
    }
    number.push('.');
    // Decimal units are powers of ten of the base unit: the loop ends.
    while rest != 0 {
        rest *= 10;
        number.push(char::from(b'0' + (rest / scale) as u8));
        rest %= scale;
    }
    Some(number)
}

/// Implements the text form of a newtype over `u64`: `Display`, `FromStr` and serde, as strings.
macro_rules! impl_text {
    ($type:ty, $quantity:expr) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&$quantity.format(self.0))
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::ParseError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $quantity.parse(text).map(Self)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, "{} as text, in {}", $quantity.name, $quantity.accepted)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

pub(crate) use impl_text;
