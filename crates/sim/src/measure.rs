//! What ports and groups did after the warm-up, and samples of them.

use weir_fabric::{Counters, DropReason, Packet, Pipe, Tally};
use weir_results::{
    CompletionTimes, Drops, GroupSample, GroupSummary, PortSample, PortSummary, Ratio,
};
use weir_scenario::PortIndex;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::flows::Achieved;
use crate::world::World;

/// A port that is measured.
#[derive(Debug)]
pub struct PortMeter {
    /// Which.
    pub port: PortIndex,
    /// Its name.
    pub name: String,
    framing: ByteSize,
    before: PortCounts,
    /// What the link could have sent since the warm-up until `counted_to`, and its rate from then.
    capacity: ByteSize,
    rate: Rate,
    counted_to: Time,
}

/// What a port had counted at some moment.
#[derive(Clone, Copy, Debug, Default)]
struct PortCounts {
    sent: Tally,
    marks: u64,
    drops: Drops,
}

/// A group that is measured.
#[derive(Debug)]
pub(crate) struct GroupMeter {
    pub(crate) name: String,
    before: Achieved,
    /// The last sample: when, and what had been delivered.
    sampled: (Time, u64),
}

impl PortMeter {
    /// Before anything has happened.
    pub fn new(port: PortIndex, of: &weir_scenario::Port) -> Self {
        Self {
            port,
            name: of.name.clone(),
            framing: of.framing,
            before: PortCounts::default(),
            capacity: ByteSize::ZERO,
            rate: of.rate,
            counted_to: Time::ZERO,
        }
    }

    /// The link's rate changes, as a fault has it.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.rate = rate;
    }

    fn advance(&mut self, now: Time) {
        self.capacity += self.rate.size_in(now.since(self.counted_to));
        self.counted_to = now;
    }

    /// The warm-up is over.
    pub fn begin<P: Packet + Clone>(&mut self, now: Time, pipe: &Pipe<P>) {
        self.advance(now);
        self.capacity = ByteSize::ZERO;
        self.before = PortCounts::of(pipe);
    }

    /// The port as it is; `pipe` is settled.
    pub fn sample<P: Packet + Clone>(&self, now: Time, pipe: &Pipe<P>) -> PortSample<'_> {
        let (counts, backlog) = (PortCounts::of(pipe), pipe.queue().backlog());
        PortSample {
            time: now,
            port: &self.name,
            queue: backlog.size,
            queue_packets: backlog.packets,
            sent: counts.sent.size,
            marks: counts.marks,
            drops: counts.drops,
        }
    }

    /// What the port did since the warm-up; `pipe` is settled.
    pub fn summary<P: Packet + Clone>(&mut self, now: Time, pipe: &Pipe<P>) -> PortSummary {
        self.advance(now);
        let counts = PortCounts::of(pipe);
        let sent = counts.sent - self.before.sent;
        let on_the_wire = sent.size + self.framing * sent.packets;
        let queue = pipe.queue().occupancy();
        let percentile =
            |fraction| queue.map_or(ByteSize::ZERO, |queue| queue.percentile(fraction));
        PortSummary {
            packets: sent.packets,
            bytes: sent.size,
            marks: counts.marks - self.before.marks,
            drops: difference(counts.drops, self.before.drops),
            queue_mean: queue.map_or(ByteSize::ZERO, |queue| queue.mean()),
            queue_p50: percentile(0.5),
            queue_p99: percentile(0.99),
            queue_max: queue.map_or(ByteSize::ZERO, |queue| queue.maximum()),
            // What was on its way at either end of the span may make it a packet more.
            utilization: Ratio::of(
                on_the_wire.bytes().min(self.capacity.bytes()),
                self.capacity.bytes(),
            ),
        }
    }
}

impl PortCounts {
    fn of<P: Packet + Clone>(pipe: &Pipe<P>) -> Self {
        Self {
            sent: pipe.sent(),
            marks: pipe.queue().marked().packets,
            drops: drops(&pipe.counters()),
        }
    }
}

fn drops(counters: &Counters) -> Drops {
    let by = |reason| counters.dropped.by(reason).packets;
    Drops {
        red: by(DropReason::Red),
        tail: by(DropReason::Tail),
        buffer: by(DropReason::Buffer),
        mtu: by(DropReason::Mtu),
        loss: by(DropReason::Loss),
        down: by(DropReason::Down),
        corruption: by(DropReason::Corruption),
        element: by(DropReason::Element),
    }
}

fn difference(now: Drops, before: Drops) -> Drops {
    Drops {
        red: now.red - before.red,
        tail: now.tail - before.tail,
        buffer: now.buffer - before.buffer,
        mtu: now.mtu - before.mtu,
        loss: now.loss - before.loss,
        down: now.down - before.down,
        corruption: now.corruption - before.corruption,
        element: now.element - before.element,
    }
}

impl GroupMeter {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            before: Achieved::default(),
            sampled: (Time::ZERO, 0),
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin(&mut self, world: &World, group: u32) {
        self.before = total(world, group).0;
    }

    pub(crate) fn sample(&mut self, now: Time, world: &World, group: u32) -> GroupSample<'_> {
        let (achieved, window) = total(world, group);
        let (last, delivered) = self.sampled;
        self.sampled = (now, achieved.delivered);
        GroupSample {
            time: now,
            group: &self.name,
            delivered: ByteSize::from_bytes(achieved.delivered),
            goodput: rate(achieved.delivered - delivered, now.since(last)),
            retransmits: achieved.retransmits,
            timeouts: achieved.timeouts,
            window,
        }
    }

    /// What the group achieved within this span after the warm-up; its share is left open.
    pub(crate) fn summary(
        &self,
        now: Time,
        world: &World,
        group: u32,
        span: Duration,
    ) -> GroupSummary {
        let achieved = total(world, group).0 - self.before;
        let account = &world.flows.accounts()[group as usize];
        let flows = world.flows.iter().filter(|(_, flow)| flow.group == group);
        let endless = flows.filter(|(_, flow)| flow.size.is_none());
        let goodputs = endless.map(|(_, flow)| {
            let delivered = world.achieved(flow).delivered - flow.before.delivered;
            rate(delivered, span)
        });
        GroupSummary {
            goodput: rate(achieved.delivered, span),
            share: Ratio::ZERO,
            link_share: None,
            flows: account.flows,
            delivered: ByteSize::from_bytes(achieved.delivered),
            retransmits: achieved.retransmits,
            timeouts: achieved.timeouts,
            marks: achieved.marks,
            completed: account.completions.len() as u64,
            completion: CompletionTimes::of(&mut account.completions.clone()),
            fairness: Ratio::fairness(goodputs),
            flows_with_timeout: account.with_timeout
                + (world.flows.iter())
                    .filter(|(_, flow)| flow.group == group && world.achieved(flow).timeouts > 0)
                    .count() as u64,
            deadlines_missed: crate::deadlines::missed(world, group, now),
            epochs: world.epochs.summary(group),
        }
    }
}

/// What a group has achieved so far, and the mean window of its open flows.
fn total(world: &World, group: u32) -> (Achieved, Option<ByteSize>) {
    let mut sum = world.flows.accounts()[group as usize].closed;
    let (mut windows, mut count) = (ByteSize::ZERO, 0);
    for (_, flow) in world.flows.iter().filter(|(_, flow)| flow.group == group) {
        sum = sum + world.achieved(flow);
        if let Some(window) = world.window(flow) {
            windows += window;
            count += 1;
        }
    }
    (sum, (count > 0).then(|| windows / count.max(1)))
}

/// Bytes per time; nothing where no time has passed.
pub(crate) fn rate(bytes: u64, span: Duration) -> Rate {
    if span.is_zero() {
        return Rate::ZERO;
    }
    Rate::from_size_over(ByteSize::from_bytes(bytes), span)
}
