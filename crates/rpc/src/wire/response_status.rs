//! The status at the end of a response.

use bytes::Bytes;
use weir_quic::codec::{Reader, put_varint};

use super::fields::{put_metadata, put_string, read_metadata};
use super::{Limits, WireError};
use crate::status::{Code, Status};

/// The status at the end of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseStatus {
    /// Whether the call's handler began.
    pub executed: bool,
    /// Code, text, details and metadata.
    pub status: Status,
}

impl ResponseStatus {
    /// Appends the payload of its frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_varint(out, self.status.code.number());
        put_varint(out, self.executed.into());
        put_string(out, self.status.text.as_bytes());
        put_string(out, &self.status.details);
        put_metadata(out, &self.status.metadata);
    }

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// The first field that is malformed or above a limit.
    pub fn read(payload: &Bytes, limits: &Limits) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let code = Code::from_number(reader.varint()?);
        let executed = match reader.varint()? {
            0 => false,
            1 => true,
            other => return Err(WireError::Value(other)),
        };
        let text = std::str::from_utf8(reader.length_prefixed()?).map_err(|_| WireError::Text)?;
        let text = text.to_owned();
        let details = payload.slice_ref(reader.length_prefixed()?);
        Ok(Self {
            executed,
            status: Status {
                code,
                text,
                details,
                metadata: read_metadata(payload, &mut reader, limits)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(status: &ResponseStatus) -> Vec<u8> {
        let mut out = Vec::new();
        status.write(&mut out);
        out
    }

    #[test]
    fn the_bytes_are_those_of_the_document() {
        let status = ResponseStatus {
            executed: true,
            status: Status::new(Code::NotFound, "no key").with_details("k"),
        };
        assert_eq!(written(&status), b"\x05\x01\x06no key\x01k\x00");
    }

    #[test]
    fn malformed_fields_are_errors_and_unknown_codes_are_not() {
        let limits = Limits::default();
        let read = |bytes: &[u8]| ResponseStatus::read(&Bytes::copy_from_slice(bytes), &limits);
        assert_eq!(read(b"\x00\x02\x00\x00\x00"), Err(WireError::Value(2)));
        assert_eq!(read(b"\x00\x01\x01\xff\x00\x00"), Err(WireError::Text));
        assert_eq!(read(b"\x00\x01\x00\x00"), Err(WireError::Truncated));
        let unknown = read(b"\x3f\x01\x00\x00\x00").unwrap();
        assert_eq!(unknown.status.code, Code::Unknown);
    }

    proptest! {
        #[test]
        fn statuses_round_trip(
            number in 0u64..17,
            executed in any::<bool>(),
            text in ".{0,40}",
            details in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut status = Status::new(Code::from_number(number), text).with_details(details);
            status.metadata.add("name", "value").unwrap();
            let status = ResponseStatus { executed, status };
            let read = ResponseStatus::read(&written(&status).into(), &Limits::default());
            prop_assert_eq!(read, Ok(status));
        }

        #[test]
        fn any_bytes_are_a_status_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(status) = ResponseStatus::read(&bytes.into(), &Limits::default()) {
                prop_assert!(status.status.code.number() <= 16);
            }
        }
    }
}
