//! The traffic class of a packet (RFC 2474).

use std::fmt;
use std::str::FromStr;

/// A differentiated services code point: six bits of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dscp(u8);

/// The code points with names: RFC 2474 section 4.2.2, RFC 2597 section 6, RFC 3246 section 2.7,
/// RFC 5865 section 3, RFC 8622 section 4.
const NAMES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("voice-admit", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// A text that is no code point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no DSCP: it is a number from 0 to 63, or one of {}",
    names()
)]
pub struct DscpError {
    text: String,
}

fn names() -> String {
    let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

impl Dscp {
    /// The code point of unclassified packets.
    pub const DEFAULT: Self = Self(0);

    /// Returns the number, from 0 to 63.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the code point in the Traffic Class or TOS byte, which also holds ECN.
    pub const fn of_traffic_class(byte: u8) -> Self {
        Self(byte >> 2)
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Self, DscpError> {
        let named = NAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = named
            .map(|(_, number)| *number)
            .or_else(|| text.parse().ok());
        match number {
            Some(number) if number < 64 => Ok(Self(number)),
            _ => Err(DscpError {
                text: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}
