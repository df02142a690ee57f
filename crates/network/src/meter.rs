//! What ports did after the warm-up, and samples of them.

use weir_fabric::{DropReason, EgressPort, Packet, PacketCount, StageCounters};
use weir_results::{Drops, PortSample, PortSummary, Ratio};
use weir_scenario::PortIndex;
use weir_units::{ByteSize, Rate, Time};

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
    sent: PacketCount,
    marks: u64,
    drops: Drops,
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
    pub fn begin<P: Packet + Clone>(&mut self, now: Time, egress_port: &EgressPort<P>) {
        self.advance(now);
        self.capacity = ByteSize::ZERO;
        self.before = PortCounts::of(egress_port);
    }

    /// The port as it is; `egress_port` is settled.
    pub fn sample<P: Packet + Clone>(
        &self,
        now: Time,
        egress_port: &EgressPort<P>,
    ) -> PortSample<'_> {
        let (counts, backlog) = (PortCounts::of(egress_port), egress_port.queue().backlog());
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

    /// What the port did since the warm-up; `egress_port` is settled.
    pub fn summary<P: Packet + Clone>(
        &mut self,
        now: Time,
        egress_port: &EgressPort<P>,
    ) -> PortSummary {
        self.advance(now);
        let counts = PortCounts::of(egress_port);
        let sent = counts.sent - self.before.sent;
        let on_the_wire = sent.size + self.framing * sent.packets;
        let queue = egress_port.queue().occupancy();
        let percentile =
            |fraction| queue.map_or(ByteSize::ZERO, |queue| queue.percentile(fraction));
        PortSummary {
            packets: sent.packets,
            bytes: sent.size,
            marks: counts.marks - self.before.marks,
            drops: counts.drops.with(self.before.drops, u64::saturating_sub),
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
    fn of<P: Packet + Clone>(egress_port: &EgressPort<P>) -> Self {
        Self {
            sent: egress_port.sent(),
            marks: egress_port.queue().marked().packets,
            drops: drops(&egress_port.counters()),
        }
    }
}

fn drops(counters: &StageCounters) -> Drops {
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
