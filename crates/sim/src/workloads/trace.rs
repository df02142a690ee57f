//! Flows from a trace.

use std::sync::Arc;

use weir_scenario::{Trace, TraceFlow};
use weir_units::Time;

use super::{Application, HostPair, transfer};
use crate::flows::FlowId;
use crate::world::World;

#[derive(Debug)]
pub(super) struct TracedFlows {
    group: u32,
    begin: Time,
    flows: Arc<[TraceFlow]>,
    /// The number of flows that have started.
    started: usize,
}

impl TracedFlows {
    /// Creates the application of a trace that begins at a time.
    pub(super) fn new(group: u32, trace: &Trace, begin: Time) -> Self {
        Self {
            group,
            begin,
            flows: Arc::clone(&trace.flows),
            started: 0,
        }
    }
}

impl Application for TracedFlows {
    fn timeout(&self) -> Option<Time> {
        let next = self.flows.get(self.started)?;
        Some(self.begin + next.start)
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while self.timeout().is_some_and(|time| time <= now) {
            let TraceFlow { from, to, size, .. } = self.flows[self.started];
            self.started += 1;
            transfer::begin(now, self.group, HostPair { from, to }, size, world);
        }
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        transfer::end(now, flow, world);
    }
}
