//! What a cable counts.

use std::iter::Sum;

/// Counters of forwarded frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InlineCounters {
    /// Frames received, super-packets counted once.
    pub frames: u64,
    /// Of these, frames without a valid IP packet: passed unchanged.
    pub untouched: u64,
    /// Segments passed to the element.
    pub segments: u64,
    /// Frames that could not be read.
    pub unreadable: u64,
    /// Frames for which the other side had no room.
    pub full: u64,
    /// Frames longer than the other side's MTU.
    pub too_long: u64,
    /// Frames for a side that is down or gone.
    pub down: u64,
    /// Frames and segments that were too old to be forwarded after this process had paused.
    pub late: u64,
}

impl Sum for InlineCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            frames: sum.frames + one.frames,
            untouched: sum.untouched + one.untouched,
            segments: sum.segments + one.segments,
            unreadable: sum.unreadable + one.unreadable,
            full: sum.full + one.full,
            too_long: sum.too_long + one.too_long,
            down: sum.down + one.down,
            late: sum.late + one.late,
        })
    }
}
