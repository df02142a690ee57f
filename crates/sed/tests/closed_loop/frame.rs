//! Segments of the closed loop.

use std::net::IpAddr;

use weir_fabric::Packet;
use weir_units::ByteSize;
use weir_wire::tcp::{Segment, Sequence};
use weir_wire::{Ecn, FlowKey};

/// A segment from the senders (`forth`) or from the receivers.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) segment: Segment,
    pub(crate) forth: bool,
    pub(crate) flow: usize,
}

pub(crate) fn key(flow: usize) -> FlowKey {
    FlowKey {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        source_port: 1000 + flow as u16,
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

impl Packet for Frame {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(20 + u64::from(self.segment.payload)) + self.segment.header_length()
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn destination(&self) -> u32 {
        u32::from(self.forth)
    }
    fn flow(&self) -> FlowKey {
        if self.forth {
            key(self.flow)
        } else {
            key(self.flow).reversed()
        }
    }
    fn tcp(&self) -> Option<Segment> {
        Some(self.segment)
    }
    fn set_window(&mut self, window: u16) {
        self.segment.window = window;
    }
    fn set_acknowledgment(&mut self, number: Sequence) {
        self.segment.acknowledgment = number;
    }
}
