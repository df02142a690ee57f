//! The flows that are open, as they are at the moment.

use weir_results::FlowRecord;
use weir_units::ByteSize;

use super::Simulation;
use crate::flows::{Flow, FlowReport};

/// A flow that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct OpenFlow<'s> {
    /// What it has done so far, as its record would say if the run ended now.
    pub record: FlowRecord<'s>,
    /// Its congestion window; `None` if it has none.
    pub window: Option<ByteSize>,
}

impl Simulation {
    /// Returns the flows that are open, in an order that does not change while they are.
    pub fn open_flows(&self) -> impl Iterator<Item = OpenFlow<'_>> {
        let flows = self.world.flows.open.iter();
        flows.map(|(_, flow)| OpenFlow {
            record: self.flow_record(&self.report(flow)),
            window: self.world.window(flow),
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
