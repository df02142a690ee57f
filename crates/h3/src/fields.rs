//! Header fields that a message must not have: those that belong to a connection (RFC 9114, section
//! 4.2), and lengths that are none.

use http::HeaderMap;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const FIELDS: [HeaderName; 5] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Whether a header has fields that make a message malformed.
pub(crate) fn is_malformed(headers: &HeaderMap) -> bool {
    FIELDS.iter().any(|name| headers.contains_key(name))
        || headers.get(TE).is_some_and(|value| value != "trailers")
        || content_length(headers).is_err()
}

/// The values of `content-length` are no number, or several ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoLength;

/// Returns the length that a header says the body has (RFC 9110, section 8.6).
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, NoLength> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let digits = value.to_str().map_err(|_| NoLength)?;
        if digits.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Err(NoLength);
        }
        let value = digits.parse().map_err(|_| NoLength)?;
        if length.replace(value).is_some_and(|other| other != value) {
            return Err(NoLength);
        }
    }
    Ok(length)
}

/// Removes the fields that a message must not have, as those of services made for HTTP/1.1.
pub(crate) fn remove_connection_fields(headers: &mut HeaderMap) {
    for name in &FIELDS {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_length_is_one_number() {
        let length = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            content_length(&headers)
        };
        assert_eq!(length(&[]), Ok(None));
        assert_eq!(length(&["17"]), Ok(Some(17)));
        assert_eq!(length(&["17", "17"]), Ok(Some(17)));
        for wrong in [
            &["ten"][..],
            &["+1"],
            &["-1"],
            &[""],
            &["1", "2"],
            &["99999999999999999999"],
        ] {
            assert_eq!(length(wrong), Err(NoLength), "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_a_connection_are_found_and_removed() {
        let mut headers = HeaderMap::new();
        headers.insert(TE, HeaderValue::from_static("trailers"));
        assert!(!is_malformed(&headers));
        for name in FIELDS {
            headers.insert(name, HeaderValue::from_static("x"));
            assert!(is_malformed(&headers));
            remove_connection_fields(&mut headers);
            assert!(!is_malformed(&headers));
        }
        headers.insert(TE, HeaderValue::from_static("gzip"));
        assert!(is_malformed(&headers));
        remove_connection_fields(&mut headers);
        assert!(headers.is_empty());
    }
}
