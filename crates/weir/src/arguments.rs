//! Parsers of argument values.

use weir_results::Ratio;
use weir_units::{ByteSize, Duration, ParseError};

/// Parses a duration; a bare number is seconds, as in iperf3.
pub(crate) fn seconds(text: &str) -> Result<Duration, ParseError> {
    with_unit(text, "s").parse()
}

/// Parses a size; a bare number is bytes.
pub(crate) fn size(text: &str) -> Result<ByteSize, ParseError> {
    with_unit(text, "B").parse()
}

/// Parses a percentage such as `10%`; a bare number is percent too.
pub(crate) fn percent(text: &str) -> Result<Ratio, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let value = number.parse::<f64>().ok().filter(|value| *value >= 0.0);
    let ratio = value.and_then(|value| Ratio::new(value / 100.0));
    ratio.ok_or_else(|| format!("`{text}` is no percentage such as 10%"))
}

/// Parses a duration above zero.
pub(crate) fn limit(text: &str) -> Result<Duration, String> {
    match seconds(text) {
        Ok(Duration::ZERO) => Err("it must be above zero".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

fn with_unit(text: &str, unit: &str) -> String {
    let is_bare = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_bare {
        format!("{text}{unit}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_have_a_natural_unit() {
        assert_eq!(seconds("10").unwrap(), Duration::from_secs(10));
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        assert_eq!(seconds("200ms").unwrap(), Duration::from_millis(200));
        assert_eq!(size("8972").unwrap(), ByteSize::from_bytes(8972));
        assert_eq!(size("1MB").unwrap(), ByteSize::from_bytes(1_000_000));
        for wrong in ["", "1m", "-3", "1e3", "ten"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(limit("0").is_err());
        assert_eq!(percent("5%"), Ok(Ratio::of(5, 100)));
        assert_eq!(percent("12.5"), Ok(Ratio::of(125, 1000)));
        for wrong in ["", "%", "-1%", "ten", "inf"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
