//! Runs of segments that leave in one frame.

use std::sync::Arc;

use weir_units::Duration;
use weir_wire::tcp::Flags;

use super::{ReceivedFrame, Segment};
use crate::offload::{CutFrame, HeaderChanges, MacAddress};

/// Consecutive segments of one frame with the same changes: they leave in one frame again.
#[derive(Debug)]
pub struct SegmentRun {
    from: Arc<ReceivedFrame>,
    first: u16,
    /// The segment after the last.
    end: u16,
    changes: HeaderChanges,
    is_apart: bool,
}

/// Where the frames of a run go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// To a host, whose TCP receives super-packets whole: the header of the first segment holds for all.
    Host,
    /// To a network, where a card splits super-packets, and leaves CWR to the first segment (RFC 3168 wants
    /// it on one).
    Network,
}

/// The flags that only one segment of a super-packet may have.
const ALONE: Flags = Flags::from_bits(Flags::FIN.bits() | Flags::PSH.bits());

impl SegmentRun {
    /// Creates a run of one segment.
    pub fn new(segment: &Segment) -> Self {
        Self {
            from: Arc::clone(&segment.from),
            first: segment.index,
            end: segment.index + 1,
            changes: segment.changes,
            is_apart: segment.is_apart,
        }
    }

    /// Adds a segment, if it can leave in the same frame; returns whether it can. A segment with FIN or PSH
    /// set by a change cannot: a network card that segments a super-packet sets these in one segment only.
    /// That is so for CWR too, which matters if an element wants [own frames](weir_fabric::Packet::keep_apart).
    pub fn extend(&mut self, segment: &Segment, egress: Egress) -> bool {
        let is_apart = egress == Egress::Network && (self.is_apart || segment.is_apart);
        let follows = self.end == segment.index
            && !is_apart
            && self.changes == segment.changes
            && !self.changes.tcp.added_flags().intersects(ALONE)
            && Arc::ptr_eq(&self.from, &segment.from);
        if follows {
            self.end += 1;
        }
        follows
    }

    /// Whether a segment belongs to the same flow.
    pub fn is_of_flow(&self, segment: &Segment) -> bool {
        Arc::ptr_eq(&self.from, &segment.from)
            || self.from.frame.flow() == segment.from.frame.flow()
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> u16 {
        self.end - self.first
    }

    /// Returns the longest time that they can have waited to be read.
    pub fn unread(&self) -> Duration {
        self.from.unread
    }

    /// Returns the frame of the segments, to this Ethernet address.
    pub fn frame_to(&self, to: MacAddress) -> CutFrame<'_> {
        let range = self.first..self.end;
        self.from.frame.cut(range, self.changes, to)
    }

    /// Returns the frame of the segments, to its original destination address.
    pub fn frame(&self) -> CutFrame<'_> {
        self.frame_to(self.from.frame.destination())
    }
}
