//! Flows that always have data to send.

use weir_units::Time;

use super::{Application, HostPair, TimerQueue};
use crate::flows::FlowId;
use crate::world::World;

#[derive(Debug)]
pub(super) struct Bulk {
    group: u32,
    starts: TimerQueue<HostPair>,
}

impl Bulk {
    pub(super) fn new(group: u32, starts: TimerQueue<HostPair>) -> Self {
        Self { group, starts }
    }
}

impl Application for Bulk {
    fn timeout(&self) -> Option<Time> {
        self.starts.timeout()
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            let flow = world.open(now, self.group, pair, None);
            world.write_endlessly(now, flow);
        }
    }

    fn on_delivered(&mut self, _: Time, _: FlowId, _: &mut World) {}
}
