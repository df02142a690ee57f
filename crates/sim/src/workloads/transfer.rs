//! Flows that send a fixed size and close, once or in rounds.

use weir_network::Random;
use weir_units::{ByteSize, Duration, Time};

use super::{Application, HostPair, TimerQueue};
use crate::flows::FlowId;
use crate::world::{Side, World};

#[derive(Debug)]
pub(super) struct Transfers {
    group: u32,
    starts: TimerQueue<(HostPair, TransferRounds)>,
    size: ByteSize,
    random: Random,
}

/// The remaining transfers of a pair of hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferRounds {
    /// Their number, the next one included.
    pub(super) left: u32,
    /// When the next one begins.
    pub(super) begin: Time,
    /// The time from the begin of one to the begin of the next.
    pub(super) interval: Duration,
    /// Each flow starts within this time from its begin.
    pub(super) within: Duration,
}

impl Transfers {
    pub(super) fn new(
        group: u32,
        mut first: TimerQueue<HostPair>,
        size: ByteSize,
        rounds: TransferRounds,
        random: Random,
    ) -> Self {
        let mut starts = TimerQueue::new();
        while let Some(time) = first.timeout() {
            if let Some(pair) = first.due(time) {
                starts.note(time, (pair, rounds));
            }
        }
        Self {
            group,
            starts,
            size,
            random,
        }
    }
}

impl Application for Transfers {
    fn timeout(&self) -> Option<Time> {
        self.starts.timeout()
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some((pair, rounds)) = self.starts.due(now) {
            begin(now, self.group, pair, self.size, world);
            if rounds.left > 1 {
                let next = TransferRounds {
                    left: rounds.left - 1,
                    begin: rounds.begin + rounds.interval,
                    ..rounds
                };
                let start = next.begin + self.random.span_up_to(next.within);
                self.starts.note(start, (pair, next));
            }
        }
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        end(now, flow, world);
    }
}

/// Opens a flow that sends this much and closes.
pub(super) fn begin(now: Time, group: u32, pair: HostPair, size: ByteSize, world: &mut World) {
    let flow = world.open(now, group, pair, Some(size));
    world.wait_for(flow, Side::Responder, size.bytes());
    world.write(now, flow, Side::Initiator, size);
    world.finish(now, flow, Side::Initiator);
}

/// Ends a flow: all its data have arrived.
pub(super) fn end(now: Time, flow: FlowId, world: &mut World) {
    world.count_completion_since_start(now, flow);
    world.finish_flow(now, flow);
}
