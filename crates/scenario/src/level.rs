//! Queue lengths, in bytes or in packets.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use weir_units::{ByteSize, ParseError};

/// A queue length, in bytes or in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// IP bytes.
    Bytes(ByteSize),
    /// Packets of any size.
    Packets(u64),
}

/// The capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A limited capacity.
    Limited(Level),
    /// No limit.
    Unlimited,
}

/// The text for "no limit".
pub(crate) const UNLIMITED: &str = "unlimited";

const LENGTH: &str = "a queue's length";
const UNITS: &str = "B, KB, MB, GB, KiB, MiB, GiB, or packets";

impl Level {
    /// Returns whether the length is zero.
    pub const fn is_zero(self) -> bool {
        match self {
            Self::Bytes(size) => size.is_zero(),
            Self::Packets(packets) => packets == 0,
        }
    }
}

impl FromStr for Level {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = ["packets", "packet"]
            .iter()
            .find_map(|unit| text.trim().strip_suffix(unit));
        let Some(number) = number else {
            return text.parse().map(Self::Bytes).map_err(mention_packets);
        };
        let number = number.trim_end();
        number
            .parse()
            .map(Self::Packets)
            .map_err(|_| ParseError::Number {
                number: number.to_owned(),
                expected: LENGTH,
                accepted: UNITS,
            })
    }
}

/// Adds packets to the units that a parse error lists.
fn mention_packets(error: ParseError) -> ParseError {
    let (expected, accepted) = (LENGTH, UNITS);
    match error {
        ParseError::MissingUnit { text, .. } => ParseError::MissingUnit {
            text,
            expected,
            accepted,
        },
        ParseError::UnknownUnit { unit, .. } => ParseError::UnknownUnit {
            unit,
            expected,
            accepted,
        },
        other => other,
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Packets(1) => f.pad("1 packet"),
            Self::Packets(packets) => f.pad(&format!("{packets} packets")),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(level) => level.fmt(f),
            Self::Unlimited => f.pad(UNLIMITED),
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_sizes_or_packets() {
        for (text, level) in [
            ("1.8MB", Level::Bytes(ByteSize::from_bytes(1_800_000))),
            ("65 packets", Level::Packets(65)),
            ("65packets", Level::Packets(65)),
            ("1 packet", Level::Packets(1)),
        ] {
            assert_eq!(text.parse(), Ok(level));
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        for (text, part) in [
            ("packets", "is not a number"),
            ("-1 packets", "`-1` is not a number for a queue's length"),
            ("1.5 packets", "`1.5`"),
            ("65 pakets", "`pakets` is not a unit of a queue's length"),
            ("65", "GiB, or packets"),
        ] {
            let message = text.parse::<Level>().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
