//! Port statistics: totals after the warm-up, and samples.

use weir_fabric::{DropReason, EgressPort, Packet, PacketCount, StageCounters};
use weir_results::{Drops, PortSample, PortSummary, Ratio};
use weir_scenario::PortIndex;
use weir_units::{ByteSize, Rate, Time};

/// A measured port.
#[derive(Debug)]
pub struct PortMeter {
    /// The port's index.
    pub port: PortIndex,
    /// Its name.
    pub name: String,
    framing: ByteSize,
    before: PortCounts,
    /// The bytes that the link could have sent from the warm-up until `counted_to`, and its rate from then.
    capacity: ByteSize,
    rate: Rate,
    counted_to: Time,
}

/// A port's counters at one time.
#[derive(Clone, Copy, Debug, Default)]
struct PortCounts {
    sent: PacketCount,
    marks: u64,
    drops: Drops,
}

impl PortMeter {
    /// Creates a meter before the first event.
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

    /// Records a rate change of the link by a fault.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.rate = rate;
    }

    fn advance(&mut self, now: Time) {
        self.capacity += self.rate.size_in(now.since(self.counted_to));
        self.counted_to = now;
    }

    /// Starts to measure: the warm-up is over.
    pub fn begin<P: Packet + Clone>(&mut self, now: Time, egress_port: &EgressPort<P>) {
        self.advance(now);
        self.capacity = ByteSize::ZERO;
        self.before = PortCounts::of(egress_port);
    }

    /// Returns a sample of the port; `egress_port` is up to date.
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

    /// Returns the port's statistics since the warm-up; `egress_port` is up to date.
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
            // Packets in transit at either end of the period may add one packet.
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
        codel: by(DropReason::Codel),
        tail: by(DropReason::Tail),
        buffer: by(DropReason::Buffer),
        mtu: by(DropReason::Mtu),
        loss: by(DropReason::Loss),
        down: by(DropReason::Down),
        corruption: by(DropReason::Corruption),
        element: by(DropReason::Element),
    }
}
