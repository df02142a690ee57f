//! `tracestate` (W3C Trace Context, section 3.3): what tracing systems add for themselves.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The most list members.
const MOST_MEMBERS: usize = 32;
/// The longest text, which every implementation passes on.
const LONGEST: usize = 512;

/// The value of `tracestate`, passed on unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceState(String);

/// Why a text is no `tracestate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceStateError {
    /// It is too long.
    #[error("longer than 512 bytes, or more than 32 members")]
    TooLong,
    /// A member is not `key=value`, or has other characters than allowed.
    #[error("a member is no key=value")]
    Member,
    /// A key occurs twice.
    #[error("a key occurs twice")]
    Duplicate,
}

impl TraceState {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for TraceState {
    type Err = TraceStateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LONGEST {
            return Err(TraceStateError::TooLong);
        }
        let mut keys = BTreeSet::new();
        let members = text
            .split(',')
            .map(|member| member.trim_matches([' ', '\t']));
        // Empty members are allowed.
        for member in members.filter(|member| !member.is_empty()) {
            let (key, value) = member.split_once('=').ok_or(TraceStateError::Member)?;
            if !is_key(key) || !is_value(value) {
                return Err(TraceStateError::Member);
            }
            if !keys.insert(key) {
                return Err(TraceStateError::Duplicate);
            }
        }
        if keys.len() > MOST_MEMBERS {
            return Err(TraceStateError::TooLong);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Section 3.3.2.2.1: a simple key, or tenant and system.
fn is_key(key: &str) -> bool {
    match key.split_once('@') {
        None => is_key_part(key, 256, |byte| byte.is_ascii_lowercase()),
        Some((tenant, system)) => {
            let begins = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            is_key_part(tenant, 241, begins)
                && is_key_part(system, 14, |byte| byte.is_ascii_lowercase())
        }
    }
}

fn is_key_part(part: &str, longest: usize, begins: impl Fn(u8) -> bool) -> bool {
    let is_character =
        |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    part.len() <= longest
        && part.bytes().next().is_some_and(begins)
        && part.bytes().all(is_character)
}

/// Section 3.3.2.2.2: printable ASCII without comma and equals sign, not empty.
fn is_value(value: &str) -> bool {
    let is_character = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(is_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_states_are_passed_on_unchanged() {
        for text in ["", "rojo=00f067aa0ba902b7", "a@b=1, c=2,,", "1t@sys=x y"] {
            assert_eq!(text.parse::<TraceState>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn others_are_errors() {
        for text in ["a", "A=1", "a=", "a=b=c", "1a=2", "a@=1", "a=\u{e9}"] {
            assert_eq!(
                text.parse::<TraceState>(),
                Err(TraceStateError::Member),
                "{text}"
            );
        }
        assert_eq!(
            "a=1,a=2".parse::<TraceState>(),
            Err(TraceStateError::Duplicate)
        );
        let many: Vec<_> = (0..33).map(|index| format!("k{index}=1")).collect();
        assert_eq!(
            many.join(",").parse::<TraceState>(),
            Err(TraceStateError::TooLong)
        );
        let long = format!("a={}", "x".repeat(600));
        assert_eq!(long.parse::<TraceState>(), Err(TraceStateError::TooLong));
    }
}
