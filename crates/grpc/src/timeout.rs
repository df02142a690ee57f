//! `grpc-timeout`: how long a call may take (gRPC over HTTP/2, "Requests").

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The name of the header field.
pub(crate) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The most digits of a value.
const MAX_DIGITS: usize = 8;
const MAX_VALUE: u128 = 99_999_999;

/// The units, from the finest to the coarsest: their letter, and their length in nanoseconds.
const UNITS: [(u8, u128); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// Returns the time that a request allows; `None` where it says nothing, or nothing that can be read.
pub(crate) fn read(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(GRPC_TIMEOUT)?.as_bytes();
    let (unit, digits) = value.split_last()?;
    let is_number = !digits.is_empty() && digits.len() <= MAX_DIGITS;
    if !is_number || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (_, nanos) = UNITS.into_iter().find(|(letter, _)| letter == unit)?;
    let digits = digits.iter();
    let value = digits.fold(0, |value, digit| value * 10 + u128::from(digit - b'0'));
    let nanos = value * nanos;
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

/// Writes the time that a request allows, in the finest unit that holds it, rounded up.
pub(crate) fn write(headers: &mut HeaderMap, time: Duration) {
    let nanos = time.as_nanos();
    let fitting = UNITS
        .into_iter()
        .map(|(letter, unit)| (letter, nanos.div_ceil(unit)))
        .find(|(_, value)| *value <= MAX_VALUE);
    let (letter, value) = fitting.unwrap_or((b'H', MAX_VALUE));
    let text = format!("{value}{}", char::from(letter));
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(GRPC_TIMEOUT, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(GRPC_TIMEOUT, HeaderValue::from_str(text).unwrap());
        read(&headers)
    }

    #[test]
    fn values_are_read() {
        assert_eq!(parsed("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(parsed("2M"), Some(Duration::from_secs(120)));
        assert_eq!(parsed("3S"), Some(Duration::from_secs(3)));
        assert_eq!(parsed("4m"), Some(Duration::from_millis(4)));
        assert_eq!(parsed("5u"), Some(Duration::from_micros(5)));
        assert_eq!(parsed("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for wrong in [
            "",
            "S",
            "1",
            "1s",
            "100000000n",
            "-1S",
            "+1S",
            "1.5S",
            "1 S",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(nanos in any::<u64>()) {
            let time = Duration::from_nanos(nanos);
            let mut headers = HeaderMap::new();
            write(&mut headers, time);
            let read = read(&headers).unwrap();
            // Never shorter, and at most by one part in a million longer.
            prop_assert!(read >= time);
            prop_assert!(read <= time + time / 100_000 + Duration::from_nanos(1));
        }

        #[test]
        fn any_value_is_read_or_not(value in "[ -~]{0,12}") {
            let _ = parsed(&value);
        }
    }
}
