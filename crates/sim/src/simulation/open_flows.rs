//! The flows that are open, as they are at the moment.

use weir_results::FlowRecord;
use weir_units::ByteSize;

use super::Simulation;
use crate::flows::{Flow, FlowReport};
use crate::packet::{SERVICE_PORT, ports};

/// A flow that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct OpenFlow<'s> {
    /// What it has done so far, as its record would say if the run ended now.
    pub record: FlowRecord<'s>,
    /// Its congestion window; `None` if it has none.
    pub window: Option<ByteSize>,
    /// The smoothed fraction of CE-marked bytes (DCTCP's α); `None` if its algorithm keeps none.
    pub ce_fraction: Option<f64>,
    /// The ports of its packets as they are [observed](weir_results::Observation::Packet): the initiator's, and the
    /// other end's.
    pub ports: (u16, u16),
}

impl Simulation {
    /// Returns the flows that are open, in an order that does not change while they are.
    pub fn open_flows(&self) -> impl Iterator<Item = OpenFlow<'_>> {
        let flows = self.world.flows.open.iter();
        flows.map(|(id, flow)| {
            let (initiator, responder) = ports(id.number);
            let mut groups = self.scenario.groups.iter();
            let group = groups.nth(flow.group as usize);
            let has_known_peers = group.is_some_and(|group| group.transport.has_known_peers());
            let responder = if has_known_peers {
                SERVICE_PORT
            } else {
                responder
            };
            OpenFlow {
                record: self.flow_record(&self.report(flow)),
                window: self.world.window(flow),
                ce_fraction: self.world.ce_fraction(flow),
                ports: (initiator, responder),
            }
        })
    }

    /// Returns what a flow has done so far.
    pub(super) fn report(&self, flow: &Flow) -> FlowReport {
        FlowReport {
            flow: flow.clone(),
            achieved: self.world.achieved(flow),
            path: self.world.path(flow),
        }
    }
}
