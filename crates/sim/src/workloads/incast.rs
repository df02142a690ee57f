//! Incast: receivers that request data from many senders at once, wait for all responses, and repeat.

use std::collections::BTreeMap;

use weir_network::Random;
use weir_units::{ByteSize, Duration, Time};

use super::{Application, HostPair, TimerQueue};
use crate::flows::{FlowId, FlowMap};
use crate::world::{Side, World};

/// The rounds of each receiver.
#[derive(Debug)]
pub(super) struct IncastRounds {
    /// The size of each flow's response.
    pub(super) response: ByteSize,
    /// The number of rounds.
    pub(super) count: u32,
    /// The pause after the last response.
    pub(super) pause: Duration,
    /// Senders start within this time.
    pub(super) spread: Duration,
}

/// An incast group. The requests themselves are not simulated: a sender starts to respond when it is
/// asked, or within `spread` from then. A round is complete when its last byte has arrived.
#[derive(Debug)]
pub(super) struct Incast {
    group: u32,
    starts: TimerQueue<HostPair>,
    agenda: TimerQueue<Step>,
    rounds: IncastRounds,
    random: Random,
    /// By the receiving host.
    receivers: BTreeMap<usize, Receiver>,
    /// The receiving host of each flow.
    receiver_of: FlowMap<usize>,
}

/// A receiving host.
#[derive(Debug, Default)]
struct Receiver {
    flows: Vec<FlowId>,
    /// Flows that are not opened yet.
    to_open: usize,
    rounds: u32,
    /// Outstanding responses.
    due: usize,
    asked_at: Time,
}

#[derive(Debug)]
enum Step {
    Ask(usize),
    Respond(FlowId),
}

impl Incast {
    pub(super) fn new(
        group: u32,
        starts: TimerQueue<HostPair>,
        rounds: IncastRounds,
        random: Random,
    ) -> Self {
        let mut receivers: BTreeMap<usize, Receiver> = BTreeMap::new();
        for pair in starts.iter() {
            receivers.entry(pair.to.index()).or_default().to_open += 1;
        }
        Self {
            group,
            starts,
            agenda: TimerQueue::new(),
            rounds,
            random,
            receivers,
            receiver_of: FlowMap::default(),
        }
    }

    fn open(&mut self, now: Time, pair: HostPair, world: &mut World) {
        let flow = world.open(now, self.group, pair, None);
        let host = pair.to.index();
        self.receiver_of.insert(flow, host);
        let receiver = self.receivers.entry(host).or_default();
        receiver.flows.push(flow);
        receiver.to_open = receiver.to_open.saturating_sub(1);
        if receiver.to_open == 0 {
            self.agenda.note(now, Step::Ask(host));
        }
    }

    fn start_round(&mut self, now: Time, host: usize, world: &mut World) {
        let Some(receiver) = self.receivers.get_mut(&host) else {
            return;
        };
        receiver.rounds += 1;
        receiver.due = receiver.flows.len();
        receiver.asked_at = now;
        let expected = self.rounds.response.bytes() * u64::from(receiver.rounds);
        for flow in &receiver.flows {
            world.wait_for(*flow, Side::Responder, expected);
            let begin = now + self.random.span_up_to(self.rounds.spread);
            self.agenda.note(begin, Step::Respond(*flow));
        }
    }
}

impl Application for Incast {
    fn timeout(&self) -> Option<Time> {
        let times = [self.starts.timeout(), self.agenda.timeout()];
        times.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            self.open(now, pair, world);
        }
        while let Some(step) = self.agenda.due(now) {
            match step {
                Step::Ask(host) => self.start_round(now, host, world),
                Step::Respond(flow) => {
                    world.write(now, flow, Side::Initiator, self.rounds.response);
                }
            }
        }
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        let Some(host) = self.receiver_of.get(flow).copied() else {
            return;
        };
        let Some(receiver) = self.receivers.get_mut(&host) else {
            return;
        };
        receiver.due = receiver.due.saturating_sub(1);
        if receiver.due > 0 {
            return;
        }
        world.count_completion(flow, now.since(receiver.asked_at));
        if receiver.rounds < self.rounds.count {
            self.agenda.note(now + self.rounds.pause, Step::Ask(host));
        } else {
            for flow in &receiver.flows {
                world.finish_flow(now, *flow);
            }
        }
    }
}
