//! Flows whose requests are synchronized with those of all other such flows: [`crate::epochs`] starts
//! each round.

use weir_units::Time;

use super::calls::{Calls, Outcome};
use super::{Application, HostPair, TimerQueue};
use crate::flows::FlowId;
use crate::world::World;

#[derive(Debug)]
pub(super) struct SynchronizedRequests {
    group: u32,
    starts: TimerQueue<HostPair>,
    calls: Calls,
    /// The number of flows that have started.
    flows: usize,
}

impl SynchronizedRequests {
    pub(super) fn new(group: u32, starts: TimerQueue<HostPair>, calls: Calls) -> Self {
        Self {
            group,
            starts,
            calls,
            flows: 0,
        }
    }

    fn report(&self, outcome: Outcome, world: &mut World) {
        let flow = (self.group, outcome.position as u64);
        (world.epochs).end_request(flow, outcome.took, outcome.attempts);
    }
}

impl Application for SynchronizedRequests {
    fn timeout(&self) -> Option<Time> {
        let times = [self.starts.timeout(), self.calls.timeouts.timeout()];
        times.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            self.calls.open(now, pair, world);
            self.flows += 1;
            world.epochs.join();
        }
        self.calls.handle_timeout(now, world);
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        if let Some(outcome) = self.calls.on_delivered(now, flow, world) {
            self.report(outcome, world);
        }
    }

    fn on_failed(&mut self, now: Time, flow: FlowId, world: &mut World) {
        if let Some(outcome) = self.calls.on_failed(now, flow, world) {
            // The flow continues with the next epoch, on another connection.
            world.close_connection(now, flow);
            self.report(outcome, world);
        }
    }

    fn on_epoch(&mut self, now: Time, world: &mut World) {
        for position in 0..self.flows {
            self.calls.send_request(now, position, world);
        }
    }
}
