//! The header of a transfer: its number, size and start time. All processes of a run share one clock,
//! so the receiver can compute the transfer's duration.

use weir_units::{ByteSize, Time};

/// The length of a header. It is part of the transfer, so no transfer is smaller.
pub(super) const LENGTH: usize = 24;

/// The first bytes of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransferHeader {
    /// The number of a random arrival, from 0; otherwise 0.
    pub(super) number: u64,
    /// The size of the transfer, header included.
    pub(super) size: ByteSize,
    /// The start time.
    pub(super) started: Time,
}

impl TransferHeader {
    /// Returns the actual size of a transfer of the size asked for.
    pub(super) fn size(asked: ByteSize) -> ByteSize {
        asked.max(ByteSize::from_bytes(LENGTH as u64))
    }

    pub(super) fn encode(self) -> [u8; LENGTH] {
        let words = [self.number, self.size.bytes(), self.started.as_nanos()];
        let mut bytes = [0; LENGTH];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: [u8; LENGTH]) -> Self {
        let mut words = bytes.chunks_exact(8).map(|place| {
            let mut word = [0; 8];
            word.copy_from_slice(place);
            u64::from_le_bytes(word)
        });
        let mut next = || words.next().unwrap_or(0);
        Self {
            number: next(),
            size: ByteSize::from_bytes(next()),
            started: Time::from_nanos(next()),
        }
    }

    /// Returns the number of bytes after the header.
    pub(super) fn rest(self) -> u64 {
        self.size.bytes().saturating_sub(LENGTH as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_transfer_header_round_trips(number: u64, size: u64, started: u64) {
            let preface = TransferHeader {
                number,
                size: ByteSize::from_bytes(size),
                started: Time::from_nanos(started),
            };
            prop_assert_eq!(TransferHeader::decode(preface.encode()), preface);
            prop_assert!(preface.rest() <= size);
        }
    }

    #[test]
    fn a_transfer_is_at_least_its_header() {
        let sizes =
            [0, 1, 24, 25].map(|size| TransferHeader::size(ByteSize::from_bytes(size)).bytes());
        assert_eq!(sizes, [24, 24, 24, 25]);
    }
}
