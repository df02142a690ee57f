//! Flows with repeated requests and responses.

use weir_units::{Duration, Time};

use super::calls::Calls;
use super::{Application, HostPair, TimerQueue};
use crate::flows::FlowId;
use crate::world::World;

#[derive(Debug)]
pub(super) struct Requests {
    starts: TimerQueue<HostPair>,
    /// Flows that pause before their next request, by position.
    pauses: TimerQueue<usize>,
    calls: Calls,
    pause: Duration,
    /// The number of requests per flow.
    count: u64,
}

impl Requests {
    pub(super) fn new(
        starts: TimerQueue<HostPair>,
        calls: Calls,
        pause: Duration,
        count: u64,
    ) -> Self {
        Self {
            starts,
            pauses: TimerQueue::new(),
            calls,
            pause,
            count,
        }
    }
}

impl Application for Requests {
    fn timeout(&self) -> Option<Time> {
        let times = [
            self.starts.timeout(),
            self.pauses.timeout(),
            self.calls.timeouts.timeout(),
        ];
        times.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            let position = self.calls.open(now, pair, world);
            self.calls.send_request(now, position, world);
        }
        while let Some(position) = self.pauses.due(now) {
            self.calls.send_request(now, position, world);
        }
        self.calls.handle_timeout(now, world);
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        let Some(outcome) = self.calls.on_delivered(now, flow, world) else {
            return;
        };
        let position = outcome.position;
        if self.calls.requests_made(position) < self.count {
            self.calls.hang_up_if_fresh(now, position, world);
            self.pauses.note(now + self.pause, position);
        } else {
            world.finish_flow(now, flow);
        }
    }

    /// A flow whose connection has failed ends, unless it repeats its request.
    fn on_failed(&mut self, now: Time, flow: FlowId, world: &mut World) {
        self.calls.on_failed(now, flow, world);
    }
}
