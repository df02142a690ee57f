//! Endpoints of UDP flows without congestion control.

use weir_scenario::UdpEcn;
use weir_wire::Ecn;

use crate::flows::Achieved;
use crate::packet::Datagram;

/// One end of a UDP flow.
#[derive(Debug)]
pub(crate) struct UdpEnd {
    ecn: Ecn,
    delivered: u64,
    marks: u64,
}

/// The codepoint that a scenario names.
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
            delivered: 0,
            marks: 0,
        }
    }

    pub(super) fn send(&mut self, payload: u32) -> (Datagram, Ecn) {
        (Datagram { payload }, self.ecn)
    }

    pub(super) fn receive(&mut self, datagram: &Datagram, ecn: Ecn) {
        self.delivered += u64::from(datagram.payload);
        self.marks += u64::from(ecn == Ecn::Ce);
    }

    pub(crate) fn achieved(&self) -> Achieved {
        Achieved {
            delivered: self.delivered,
            marks: self.marks,
            ..Achieved::default()
        }
    }
}
