//! When a certificate expires: the one field of X.509 that is read here. rustls has verified the
//! certificate, but does not tell (RFC 5280, section 4.1; X.690 for DER).

use weir_units::{Duration, Time};

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;

/// Returns the end of a certificate's validity, since 1970; `None` if it cannot be read.
pub(super) fn of(certificate: &[u8]) -> Option<Time> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (fields, _) = element(certificate, SEQUENCE)?;
    let fields = element(fields, VERSION).map_or(fields, |(_, rest)| rest);
    let (_, fields) = element(fields, INTEGER)?;
    let (_, fields) = element(fields, SEQUENCE)?;
    let (_, fields) = element(fields, SEQUENCE)?;
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, after) = time(validity)?;
    time(after).map(|(end, _)| end)
}

/// Returns the content of the first element, which has this tag, and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[first, length], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let value = |sum, byte: &u8| sum << 8 | usize::from(*byte);
            (length.iter().fold(0, value), rest)
        }
        0x80 | 0x85.. => return None,
    };
    rest.split_at_checked(length).filter(|_| first == tag)
}

/// Reads `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`, the forms that RFC 5280 allows.
fn time(bytes: &[u8]) -> Option<(Time, &[u8])> {
    let (text, rest, digits) = match element(bytes, UTC_TIME) {
        Some((text, rest)) => (text, rest, 2),
        None => element(bytes, GENERALIZED_TIME).map(|(text, rest)| (text, rest, 4))?,
    };
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if text.len() != digits + 10 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, length: usize| text.get(from..from + length)?.parse::<u64>().ok();
    let year = match (digits, number(0, digits)?) {
        (2, year @ 0..50) => 2000 + year,
        (2, year) => 1900 + year,
        (_, year) => year,
    };
    let at = |index: usize| number(digits + 2 * index, 2);
    let days = days_since_1970(year, at(0)?, at(1)?)?;
    let seconds = days * 86_400 + at(2)? * 3600 + at(3)? * 60 + at(4)?;
    Some((Time::ZERO + Duration::from_secs(seconds), rest))
}

/// Returns the days from 1970 to a day of the Gregorian calendar; `None` for an earlier one.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE_MONTH: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    if year < 1970 || !(1..=31).contains(&day) {
        return None;
    }
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = leap_days(year) > leap_days(year - 1);
    let before_month = BEFORE_MONTH.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    let before_year = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    Some(before_year + before_month + u64::from(is_leap && month > 2) + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_1970_with_leap_years() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((2000, 3, 1), 11_017),
            ((2024, 2, 29), 19_782),
            ((2026, 11, 26), 20_783),
            ((2100, 3, 1), 47_541),
        ] {
            let (year, month, day) = date;
            assert_eq!(days_since_1970(year, month, day), Some(days), "{date:?}");
        }
        assert_eq!(days_since_1970(1969, 12, 31), None);
        assert_eq!(days_since_1970(2026, 13, 1), None);
    }

    #[test]
    fn the_end_of_a_certificate_is_read_and_no_cut_one_panics() {
        for (year, days) in [(2049, 29_219), (2051, 29_949)] {
            let mut parameters = rcgen::CertificateParams::new(["server".to_owned()]).unwrap();
            parameters.not_after = rcgen::date_time_ymd(year, 12, 31);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = parameters.self_signed(&key).unwrap();
            let expected = Time::ZERO + Duration::from_secs(days * 86_400);
            assert_eq!(of(certificate.der()), Some(expected));
            for end in 0..certificate.der().len() {
                let _ = of(&certificate.der()[..end]);
            }
        }
        assert_eq!(of(&[]), None);
    }
}
