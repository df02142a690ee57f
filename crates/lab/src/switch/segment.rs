//! Real segments as packets of the fabric.

use std::rc::Rc;

use weir_enforce::offload::SuperFrame;
use weir_fabric::Packet;
use weir_units::{ByteSize, Duration};
use weir_wire::{Ecn, FlowKey};

/// A frame on its way, and what is known of when it came.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) frame: SuperFrame,
    /// For how long it may have waited to be read while the switch did something else.
    pub(super) unread: Duration,
}

/// One segment of a frame: what a network card would have put on the wire as a packet of its own.
///
/// A segment that is to be damaged is dropped instead, as the receiver's checksum would have it: the
/// checksums of super-packets are not there yet.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) from: Rc<Arrived>,
    pub(super) index: u16,
    ecn: Ecn,
    length: u32,
    destination: u32,
}

impl Segment {
    pub(super) fn new(from: Rc<Arrived>, index: u16, destination: u32) -> Self {
        Self {
            ecn: from.frame.ecn(),
            // IP packets are shorter than 2^32 bytes.
            length: from.frame.segment_length(index).bytes() as u32,
            from,
            index,
            destination,
        }
    }
}

impl Packet for Segment {
    #[inline]
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(u64::from(self.length))
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    #[inline]
    fn destination(&self) -> u32 {
        self.destination
    }

    fn flow(&self) -> FlowKey {
        *self.from.frame.flow()
    }
}
