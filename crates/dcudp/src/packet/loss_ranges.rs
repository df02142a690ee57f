//! NAK compression, as in UDT: a number alone is a packet that is missing; a number with its highest
//! bit set begins a range that the next number ends.

use super::{DecodeError, take_u32};
use crate::SequenceNumber;

const RANGE: u32 = 1 << 31;

/// Missing data packets in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRange {
    /// The first one.
    pub first: SequenceNumber,
    /// The last one, included.
    pub last: SequenceNumber,
}

/// The ranges of a NAK: checked, in order, apart from each other, spanning less than half a cycle of
/// sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRanges<'a> {
    bytes: &'a [u8],
}

impl<'a> LossRanges<'a> {
    /// Reads what [`write_loss_range`] has written.
    ///
    /// # Errors
    /// [`DecodeError::LossRanges`] where they are empty, out of order, overlap or are not in their
    /// shortest form; [`DecodeError::Truncated`] where a range has no end.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        let mut origin = None;
        // One past what the ranges before reach, counted from the first number.
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

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = LossRange> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || next_range(&mut rest).ok())
    }

    /// As they stand in the packet.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Writes a range to the end of `buffer`: one number, or two.
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
