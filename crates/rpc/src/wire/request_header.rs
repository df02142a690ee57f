//! The header of a request.

use bytes::Bytes;
use weir_quic::codec::{Reader, put_varint};
use weir_units::Duration;

use super::fields::{put_metadata, put_string, read_metadata};
use super::{LONGEST_METHOD, Limits, WireError};
use crate::metadata::Metadata;

/// The header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The method's name.
    pub method: String,
    /// How much time the call has left, if it has a deadline; sent in microseconds, rounded up.
    pub time_left: Option<Duration>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The call's metadata.
    pub metadata: Metadata,
}

impl RequestHeader {
    /// Appends the payload of its frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_string(out, self.method.as_bytes());
        let micros = |span: Duration| span.as_nanos().div_ceil(1_000).max(1);
        put_varint(out, self.time_left.map_or(0, micros));
        put_varint(out, self.attempt.into());
        put_metadata(out, &self.metadata);
    }

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// The first field that is malformed or above a limit.
    pub fn read(payload: &Bytes, limits: &Limits) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let method = reader.length_prefixed()?;
        let time_left = match reader.varint()? {
            0 => None,
            micros => Some(Duration::from_micros(micros)),
        };
        let attempt = reader.varint()?;
        let attempt = u32::try_from(attempt).map_err(|_| WireError::Value(attempt))?;
        if attempt == 0 {
            return Err(WireError::Value(0));
        }
        Ok(Self {
            method: read_method(method)?.to_owned(),
            time_left,
            attempt,
            metadata: read_metadata(payload, &mut reader, limits)?,
        })
    }
}

/// Returns whether this is a method's name: 1 to 255 printable ASCII characters without space.
pub(crate) fn is_method(name: &str) -> bool {
    (1..=LONGEST_METHOD).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn read_method(bytes: &[u8]) -> Result<&str, WireError> {
    let name = std::str::from_utf8(bytes).map_err(|_| WireError::Method)?;
    is_method(name).then_some(name).ok_or(WireError::Method)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> RequestHeader {
        let mut metadata = Metadata::new();
        metadata.add("tenant", "a").unwrap();
        RequestHeader {
            method: "kv.Get".to_owned(),
            time_left: Some(Duration::from_micros(1_500)),
            attempt: 2,
            metadata,
        }
    }

    fn written(header: &RequestHeader) -> Vec<u8> {
        let mut out = Vec::new();
        header.write(&mut out);
        out
    }

    #[test]
    fn the_bytes_are_those_of_the_document() {
        let expected = b"\x06kv.Get\x45\xdc\x02\x01\x06tenant\x01a";
        assert_eq!(written(&header()), expected);
    }

    #[test]
    fn what_follows_the_fields_is_ignored() {
        let mut bytes = written(&header());
        bytes.extend_from_slice(b"a later version");
        let read = RequestHeader::read(&bytes.into(), &Limits::default());
        assert_eq!(read, Ok(header()));
    }

    #[test]
    fn a_span_below_a_microsecond_is_not_sent_as_no_deadline() {
        let short = RequestHeader {
            time_left: Some(Duration::ZERO),
            ..header()
        };
        let read = RequestHeader::read(&written(&short).into(), &Limits::default()).unwrap();
        assert_eq!(read.time_left, Some(Duration::from_micros(1)));
    }

    #[test]
    fn malformed_fields_are_errors() {
        let limits = Limits::default();
        let read = |bytes: &[u8]| RequestHeader::read(&Bytes::copy_from_slice(bytes), &limits);
        assert_eq!(read(b""), Err(WireError::Truncated));
        assert_eq!(read(b"\x00\x00\x01\x00"), Err(WireError::Method));
        assert_eq!(read(b"\x03a b\x00\x01\x00"), Err(WireError::Method));
        assert_eq!(read(b"\x02\xff\xfe\x00\x01\x00"), Err(WireError::Method));
        assert_eq!(read(b"\x01m\x00\x00\x00"), Err(WireError::Value(0)));
        let pairs = WireError::TooManyPairs {
            count: 16_000,
            limit: 64,
        };
        assert_eq!(read(b"\x01m\x00\x01\x7e\x80"), Err(pairs));
        assert_eq!(
            read(b"\x01m\x00\x01\x01\x01a\x3fshort"),
            Err(WireError::Truncated)
        );
        assert!(matches!(
            read(b"\x01m\x00\x01\x01\x01A\x00"),
            Err(WireError::Metadata(_))
        ));
        for length in 0..written(&header()).len() {
            assert_eq!(
                read(&written(&header())[..length]),
                Err(WireError::Truncated)
            );
        }
    }

    proptest! {
        #[test]
        fn headers_round_trip(
            method in "[!-~]{1,255}",
            micros in prop::option::of(1u64..1 << 40),
            attempt in 1u32..,
            pairs in prop::collection::vec(
                ("[a-z0-9._-]{1,64}", prop::collection::vec(any::<u8>(), 0..100)), 0..10),
        ) {
            let mut metadata = Metadata::new();
            for (name, value) in pairs {
                metadata.add(&name, value).unwrap();
            }
            let header = RequestHeader {
                method,
                time_left: micros.map(Duration::from_micros),
                attempt,
                metadata,
            };
            let read = RequestHeader::read(&written(&header).into(), &Limits::default());
            prop_assert_eq!(read, Ok(header));
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(header) = RequestHeader::read(&bytes.into(), &Limits::default()) {
                prop_assert!(is_method(&header.method));
            }
        }
    }
}
