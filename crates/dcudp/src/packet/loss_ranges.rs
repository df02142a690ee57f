//! NAK compression, as in UDT. A number alone is a missing packet. A number with its highest bit
//! set starts a range that the next number ends.

use super::{DecodeError, take_u32};
use crate::SequenceNumber;

const RANGE: u32 = 1 << 31;

/// A range of missing data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRange {
    /// The first packet.
    pub first: SequenceNumber,
    /// The last packet, inclusive.
    pub last: SequenceNumber,
}

/// The ranges of a NAK: validated, ascending, disjoint, spanning less than half the sequence number
/// space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRanges<'a> {
    bytes: &'a [u8],
}

impl<'a> LossRanges<'a> {
    /// Decodes the output of [`write_loss_range`].
    ///
    /// # Errors
    /// [`DecodeError::LossRanges`] if they are empty, not ascending, overlapping or not in their
    /// shortest form; [`DecodeError::Truncated`] if a range has no end.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        let mut origin = None;
        // One past the end of the previous ranges, counted from the first number.
        let mut reached = 0;
        while !rest.is_empty() {
            let range = next_range(&mut rest)?;
            let origin = *origin.get_or_insert(range.first);
            let (first, last) = (range.first.ahead_of(origin), range.last.ahead_of(origin));
            let apart = first >= reached && last >= first;
            if !apart || u64::from(last) >= SequenceNumber::CYCLE / 2 {
                return Err(DecodeError::LossRanges);
            }
            reached = last + 1;
        }
        if origin.is_none() {
            return Err(DecodeError::LossRanges);
        }
        Ok(Self { bytes })
    }

    /// Returns the ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = LossRange> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || next_range(&mut rest).ok())
    }

    /// Returns the encoded ranges.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Appends a range to `buffer`: one number, or two.
pub fn write_loss_range(buffer: &mut Vec<u8>, range: LossRange) {
    let (first, last) = (range.first.value(), range.last.value());
    if first == last {
        buffer.extend_from_slice(&first.to_be_bytes());
    } else {
        buffer.extend_from_slice(&(first | RANGE).to_be_bytes());
        buffer.extend_from_slice(&last.to_be_bytes());
    }
}

fn next_range(rest: &mut &[u8]) -> Result<LossRange, DecodeError> {
    let word = take_u32(rest)?;
    let first = SequenceNumber::new(word);
    if word & RANGE == 0 {
        return Ok(LossRange { first, last: first });
    }
    let last = take_u32(rest)?;
    if last & RANGE != 0 || last == first.value() {
        return Err(DecodeError::LossRanges);
    }
    Ok(LossRange {
        first,
        last: SequenceNumber::new(last),
    })
}
