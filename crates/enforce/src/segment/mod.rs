//! Real segments as packets of the fabric, from the receive buffer to the frames that they leave in.
//!
//! A [`FramePools`] reads frames. Each segment of a frame is a [`Segment`], which queues and elements can
//! mark, rewrite, keep and clone without copying: segments share the frame, and store their changes. A
//! [`SegmentRun`] collects consecutive segments with the same changes, and cuts the frame that they
//! leave in.

mod pool;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use weir_fabric::{Burst, Packet};
use weir_units::{ByteSize, Duration};
use weir_wire::tcp::{self, Flags, Sequence, Timestamps};
use weir_wire::{Ecn, FlowKey};

use crate::offload::{CutFrame, HeaderChanges, SuperFrame};

pub use pool::FramePools;
pub use run::{Egress, SegmentRun};

/// A received frame, and its time of arrival.
#[derive(Debug)]
pub struct ReceivedFrame {
    /// The frame.
    pub frame: SuperFrame,
    /// The longest time that it can have waited to be read.
    pub unread: Duration,
    /// The number of frames that the pool has kept before.
    pub number: u64,
}

/// One segment of a frame: the packet that a network card would have put on the wire.
///
/// A segment to be damaged is dropped instead, because the receiver's checksum would drop it. The
/// checksums of super-packets are not computed yet.
#[derive(Clone, Debug)]
pub struct Segment {
    from: Arc<ReceivedFrame>,
    index: u16,
    changes: HeaderChanges,
    length: u32,
    destination: u32,
    /// Whether it needs a frame of its own on a network.
    is_apart: bool,
}

impl Segment {
    /// Creates the segment at `index` of a frame, for a destination of the switch.
    pub fn new(from: Arc<ReceivedFrame>, index: u16, destination: u32) -> Self {
        Self {
            changes: from.frame.ecn().into(),
            // IP packets are shorter than 2^32 bytes.
            length: from.frame.segment_length(index).bytes() as u32,
            from,
            index,
            destination,
            is_apart: false,
        }
    }

    /// Returns the frame that a network card puts on the wire: see [`SuperFrame::on_wire`].
    pub fn on_wire(&self) -> CutFrame<'_> {
        self.from.frame.on_wire(self.index, self.changes)
    }
}

impl Packet for Segment {
    #[inline]
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(u64::from(self.length))
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.changes.ecn
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.changes.ecn = ecn;
    }

    fn dscp(&self) -> u8 {
        self.from.frame.dscp()
    }

    #[inline]
    fn destination(&self) -> u32 {
        self.destination
    }

    fn flow(&self) -> FlowKey {
        *self.from.frame.flow()
    }

    fn burst(&self) -> Option<Burst> {
        // Pieces of a burst may have been changed differently.
        if !self.changes.tcp.is_empty() {
            return None;
        }
        let last = self.from.frame.segments().checked_sub(1)?;
        Some(Burst {
            id: self.from.number,
            is_inner: self.index > 0 && self.index < last,
        })
    }

    fn tcp(&self) -> Option<tcp::Segment> {
        let segment = self.from.frame.tcp(self.index)?;
        Some(self.changes.tcp.view(segment))
    }

    fn set_window(&mut self, window: u16) {
        self.changes.tcp.set_window(window);
    }

    fn refuse_sack(&mut self) {
        self.changes.tcp.remove_sack();
    }

    fn clear_sack_blocks(&mut self) {
        self.changes.tcp.remove_sack();
    }

    fn set_acknowledgment(&mut self, number: Sequence) {
        self.changes.tcp.set_acknowledgment(number);
    }

    fn set_timestamps(&mut self, timestamps: Timestamps) {
        self.changes.tcp.set_timestamps(timestamps);
    }

    fn set_flags(&mut self, flags: Flags) {
        if let Some(segment) = self.tcp() {
            self.changes.tcp.set_flags(segment.flags, flags);
        }
    }

    fn keep_apart(&mut self) {
        self.is_apart = true;
    }
}
