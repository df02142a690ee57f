//! Patterns for interface names, with an optional `*` at the end.

use std::fmt;
use std::str::FromStr;

/// An interface's name, or a prefix of several: `eth0`, `veth*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(String);

/// A text that is no interface name pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no interface: 1 to 15 characters without `/`, `:` and spaces, with a `*` at the end \
     for all names that begin so"
)]
pub struct NamePatternError(String);

/// `IFNAMSIZ` of linux/if.h without the terminating zero byte.
const LONGEST: usize = 15;

impl NamePattern {
    /// Returns whether the pattern matches this interface.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.0,
        }
    }
}

impl FromStr for NamePattern {
    type Err = NamePatternError;

    fn from_str(text: &str) -> Result<Self, NamePatternError> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let forbidden = |byte: u8| b"/:*".contains(&byte) || !byte.is_ascii_graphic();
        if text.is_empty() || name.len() > LONGEST || name.bytes().any(forbidden) {
            Err(NamePatternError(text.to_owned()))
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
