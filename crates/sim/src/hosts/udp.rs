//! Endpoints of UDP flows without congestion control.

use weir_counters::FlowCounters;
use weir_scenario::UdpEcn;
use weir_units::ByteSize;
use weir_wire::Ecn;

use super::end::End;
use crate::packet::Datagram;

/// One end of a UDP flow.
#[derive(Debug)]
pub(crate) struct UdpEnd {
    ecn: Ecn,
    counters: FlowCounters,
}

/// Returns the codepoint of a scenario's option.
pub(crate) fn codepoint(ecn: UdpEcn) -> Ecn {
    match ecn {
        UdpEcn::NotEct => Ecn::NotEct,
        UdpEcn::Ect0 => Ecn::Ect0,
        UdpEcn::Ect1 => Ecn::Ect1,
    }
}

impl UdpEnd {
    pub(crate) fn new(ecn: Ecn) -> Self {
        Self {
            ecn,
            counters: FlowCounters::ZERO,
        }
    }

    pub(super) fn send(&mut self, payload: u32) -> (Datagram, Ecn) {
        (Datagram { payload }, self.ecn)
    }

    pub(super) fn receive(&mut self, datagram: &Datagram, ecn: Ecn) {
        self.counters.delivered += ByteSize::from_bytes(datagram.payload.into());
        self.counters.marks += u64::from(ecn == Ecn::Ce);
    }
}

impl End for UdpEnd {
    fn achieved(&self) -> FlowCounters {
        self.counters
    }
}
