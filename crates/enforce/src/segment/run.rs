//! Segments that leave together.

use std::sync::Arc;

use weir_units::Duration;
use weir_wire::tcp::Flags;

use super::{ReceivedFrame, Segment};
use crate::offload::{CutFrame, HeaderChanges, MacAddress};

/// Consecutive segments of one frame that have been changed alike: they leave as one frame again.
#[derive(Debug)]
pub struct SegmentRun {
    from: Arc<ReceivedFrame>,
    first: u16,
    /// The segment after the last.
    end: u16,
    changes: HeaderChanges,
}

/// What not every segment of a super-packet can say.
const ALONE: Flags = Flags::from_bits(Flags::CWR.bits() | Flags::FIN.bits() | Flags::PSH.bits());

impl SegmentRun {
    /// A run of one segment.
    pub fn new(segment: &Segment) -> Self {
        Self {
            from: Arc::clone(&segment.from),
            first: segment.index,
            end: segment.index + 1,
            changes: segment.changes,
        }
    }

    /// Adds a segment, if it can travel with the others, and tells whether it does. Those that say CWR,
    /// FIN or PSH by a change cannot: a network card that cuts a super-packet leaves these to one of them.
    pub fn extend(&mut self, segment: &Segment) -> bool {
        let follows = self.end == segment.index
            && self.changes == segment.changes
            && !self.changes.tcp.added_flags().intersects(ALONE)
            && Arc::ptr_eq(&self.from, &segment.from);
        if follows {
            self.end += 1;
        }
        follows
    }

    /// How many segments there are.
    pub fn segments(&self) -> u16 {
        self.end - self.first
    }

    /// For how long they may have waited to be read.
    pub fn unread(&self) -> Duration {
        self.from.unread
    }

    /// The frame that they leave in, for this Ethernet address.
    pub fn frame_to(&self, to: MacAddress) -> CutFrame<'_> {
        let range = self.first..self.end;
        self.from.frame.cut(range, self.changes, to)
    }

    /// The frame that they leave in, for the address that it came with.
    pub fn frame(&self) -> CutFrame<'_> {
        self.frame_to(self.from.frame.destination())
    }
}
