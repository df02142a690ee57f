//! Flows that send an amount and close.

use weir_units::{ByteSize, Time};

use super::{Agenda, Application, Pair};
use crate::flows::FlowId;
use crate::world::{Side, World};

#[derive(Debug)]
pub(super) struct Transfers {
    group: u32,
    starts: Agenda<Pair>,
    size: ByteSize,
}

impl Transfers {
    pub(super) fn new(group: u32, starts: Agenda<Pair>, size: ByteSize) -> Self {
        Self {
            group,
            starts,
            size,
        }
    }
}

impl Application for Transfers {
    fn next_time(&self) -> Option<Time> {
        self.starts.next_time()
    }

    fn on_time(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            begin(now, self.group, pair, self.size, world);
        }
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        end(now, flow, world);
    }
}

/// Opens a flow that sends this much and closes.
pub(super) fn begin(now: Time, group: u32, pair: Pair, size: ByteSize, world: &mut World) {
    let flow = world.open(now, group, pair, Some(size));
    world.wait_for(flow, Side::Responder, size.bytes());
    world.write(now, flow, Side::Initiator, size);
    world.finish(now, flow, Side::Initiator);
}

/// Everything has arrived.
pub(super) fn end(now: Time, flow: FlowId, world: &mut World) {
    world.count_completion_since_start(now, flow);
    world.dismiss(now, flow);
}
