//! The instructions on QPACK's streams (RFC 9204, sections 4.3 and 4.4), where neither side has a
//! dynamic table.

use crate::frames::Violation;

/// Set Dynamic Table Capacity, to 0.
const CAPACITY_ZERO: u8 = 0x20;
/// The most bytes of an integer after its first one.
const MAX_INTEGER: u8 = 9;

/// The instructions on one stream, as they arrive.
#[derive(Debug)]
pub(crate) struct Instructions {
    is_encoder: bool,
    /// How many bytes of an integer have come after its first one, within a Stream Cancellation.
    cancellation: Option<u8>,
}

impl Instructions {
    /// The stream of the peer's encoder.
    pub(crate) fn of_encoder() -> Self {
        Self {
            is_encoder: true,
            cancellation: None,
        }
    }

    /// The stream of the peer's decoder.
    pub(crate) fn of_decoder() -> Self {
        Self {
            is_encoder: false,
            cancellation: None,
        }
    }

    /// Follows bytes that arrived.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if !self.is_encoder {
            return bytes.iter().try_for_each(|byte| self.push(*byte));
        }
        // There is no room for entries.
        if bytes.iter().any(|byte| *byte != CAPACITY_ZERO) {
            return Err(Violation::EncoderStream);
        }
        Ok(())
    }

    /// Follows a byte of the decoder's stream. Only cancellations refer to no entry.
    fn push(&mut self, byte: u8) -> Result<(), Violation> {
        self.cancellation = match self.cancellation {
            None if byte & 0xc0 == 0x40 => (byte & 0x3f == 0x3f).then_some(0),
            None | Some(MAX_INTEGER..) => return Err(Violation::DecoderStream),
            Some(length) => (byte & 0x80 != 0).then_some(length + 1),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoder(bytes: &[u8]) -> Result<(), Violation> {
        Instructions::of_encoder().pass(bytes)
    }

    fn decoder(bytes: &[u8]) -> Result<(), Violation> {
        Instructions::of_decoder().pass(bytes)
    }

    #[test]
    fn no_table_has_entries() {
        assert_eq!(encoder(&[0x20, 0x20]), Ok(()));
        for wrong in [0x21, 0x80, 0x40, 0x00] {
            assert_eq!(encoder(&[0x20, wrong]), Err(Violation::EncoderStream));
        }
    }

    #[test]
    fn streams_may_be_cancelled() {
        assert_eq!(decoder(&[0x44, 0x48]), Ok(()));
        assert_eq!(decoder(&[0x7f, 0xff, 0x01, 0x40]), Ok(()));
        assert_eq!(
            decoder(&[0x7f, 0xff, 0x01, 0x84]),
            Err(Violation::DecoderStream)
        );
        assert_eq!(decoder(&[0x84]), Err(Violation::DecoderStream));
        assert_eq!(decoder(&[0x01]), Err(Violation::DecoderStream));
        assert_eq!(decoder(&[0x7f; 1]), Ok(()));
        assert_eq!(decoder(&[0xff; 1]), Err(Violation::DecoderStream));
        let endless = [&[0x7f][..], &[0xff; 20]].concat();
        assert_eq!(decoder(&endless), Err(Violation::DecoderStream));
    }
}
