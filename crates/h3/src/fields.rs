//! Header fields that belong to a connection, which HTTP/3 does not have (RFC 9114, section 4.2).

use http::HeaderMap;
use http::header::{CONNECTION, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};

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
