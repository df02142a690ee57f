//! A rate control for DCUDP that holds the queue at the marking threshold and shares fairly: ours, in
//! place of Figure 4 of Ye, Mhamdi and Hamdi (CloudNet 2014), whose readings do neither with many
//! senders (`docs/dcudp.md`).
//!
//! What it keeps of Figure 4: two rates, of which `Rate_data` falls below `Rate_max` while there is
//! congestion and doubles up to it afterwards; the lock (`freeze`); a floor of one packet per round trip.
//! What is different:
//!
//! - A reduction is proportional to the marked fraction, as DCTCP's is (Alizadeh et al., SIGCOMM 2010,
//!   equations 1 and 2), and not a packet per round trip, which a queue that lengthens the round trip
//!   makes ever less of.
//! - What is acknowledged bounds both rates: from above, since what exceeds it only fills the queue, and
//!   from below, since less than a part of it would let the link idle once the queue has drained. So a
//!   start with far too many senders costs a few round trips and not a time-out.
//! - The rates grow per *smallest* round-trip time, and ever faster once no mark has come for several:
//!   freed bandwidth is taken within milliseconds.
//!
//! As with `dcudp`, what the acknowledgments of one round trip say is put together. It wants fractions:
//! with an echo instead, each round trip with one counts as marked whole.

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::dcudp::{CAPACITY, FASTEST, FREEZE, INITIAL_RTT, SHORTEST_RTT, packets_per_second};
use crate::registry::{Algorithm, Context, Parameter, Typed};
use crate::{AckSample, AlgorithmSpec, Controller, LossSample, PacketSent, Snapshot};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "dcudp-proportional",
    summary: "DCUDP's two rates, reduced by the marked fraction and bounded by what is delivered",
    own_parameters: &PARAMETERS,
    build: |spec, context| Box::new(Proportional::new(spec, context)),
};

const PARAMETERS: [Parameter; 8] = [
    CAPACITY.parameter(),
    G.parameter(),
    INCREMENT.parameter(),
    DRAIN.parameter(),
    KEEP.parameter(),
    AVERAGE.parameter(),
    PATIENCE.parameter(),
    FREEZE.parameter(),
];

const G: Typed<f64> = Typed {
    name: "g",
    doc: "the weight of a new marked fraction in the smoothed one",
    default: 0.125,
    min: 0.001,
    max: 1.0,
};

const INCREMENT: Typed<f64> = Typed {
    name: "increment",
    doc: "by how many packets per smallest round-trip time the rates grow in one",
    default: 0.1,
    min: 0.001,
    max: 1000.0,
};

const DRAIN: Typed<f64> = Typed {
    name: "drain",
    doc: "no reduction takes Rate_data below this part of what is delivered",
    default: 0.5,
    min: 0.0,
    max: 1.0,
};

const KEEP: Typed<f64> = Typed {
    name: "keep",
    doc: "no reduction takes Rate_max below this part of what is delivered",
    default: 0.8,
    min: 0.0,
    max: 1.0,
};

const AVERAGE: Typed<f64> = Typed {
    name: "average",
    doc: "over how many smallest round-trip times deliveries are averaged",
    default: 16.0,
    min: 1.0,
    max: 1000.0,
};

const PATIENCE: Typed<u64> = Typed {
    name: "patience",
    doc: "after so many round trips without a mark the increment doubles with each",
    default: 5,
    min: 1,
    max: 1_000_000,
};

/// A rate beyond what is delivered by this factor is not kept while packets are marked.
const EXCESS: f64 = 2.0;
/// The most doublings of the increment: no rate of this world needs more.
const MOST_DOUBLINGS: u64 = 40;

#[derive(Clone, Debug)]
struct Proportional {
    packet_size: ByteSize,
    /// Packets per second.
    rate_data: f64,
    /// Packets per second.
    rate_max: f64,
    /// The smoothed fraction of packets that are marked.
    alpha: f64,
    delivered: Delivered,
    round: Round,
    /// Round trips without a mark, one after the other.
    unmarked: u64,
    frozen: bool,
    rtt: Duration,
    min_rtt: Duration,
    phase: &'static str,
    g: f64,
    increment: f64,
    drain: f64,
    keep: f64,
    patience: u64,
    freeze: bool,
}

/// What the acknowledgments of a round trip have said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// When the one before ended; unknown for the first.
    began: Option<Time>,
    acked: ByteSize,
    marked: ByteSize,
    echo: bool,
    app_limited: bool,
}

impl Round {
    fn on_ack(&mut self, ack: &AckSample) {
        self.acked += ack.acked;
        self.marked += ack.ce_marked;
        self.echo |= ack.ece;
        self.app_limited |= ack.app_limited;
    }

    /// The marked fraction.
    fn fraction(&self) -> f64 {
        if self.echo || self.acked.is_zero() {
            return f64::from(u8::from(self.echo || !self.marked.is_zero()));
        }
        (self.marked.bytes() as f64 / self.acked.bytes() as f64).min(1.0)
    }
}

/// Deliveries per time, the older ones weighing less.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    packets: f64,
    seconds: f64,
    /// Over how many smallest round-trip times.
    average: f64,
}

impl Delivered {
    fn add(&mut self, packets: f64, elapsed: Duration, min_rtt: Duration) {
        let elapsed = elapsed.as_secs_f64();
        let kept = (-elapsed / (self.average * min_rtt.as_secs_f64())).exp();
        self.packets = self.packets * kept + packets;
        self.seconds = self.seconds * kept + elapsed;
    }

    /// Packets per second, once there is something to go by.
    fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.packets > 0.0).then(|| self.packets / self.seconds)
    }
}

impl Proportional {
    fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        let packet_size = context.packet_size.max(ByteSize::from_bytes(1));
        let capacity = packets_per_second(spec.get(&CAPACITY), packet_size);
        Self {
            packet_size,
            rate_data: capacity,
            rate_max: capacity,
            alpha: 1.0,
            delivered: Delivered {
                packets: 0.0,
                seconds: 0.0,
                average: spec.get(&AVERAGE),
            },
            round: Round::default(),
            unmarked: 0,
            frozen: false,
            rtt: INITIAL_RTT,
            min_rtt: INITIAL_RTT,
            phase: "start",
            g: spec.get(&G),
            increment: spec.get(&INCREMENT),
            drain: spec.get(&DRAIN),
            keep: spec.get(&KEEP),
            patience: spec.get(&PATIENCE),
            freeze: spec.get(&FREEZE),
        }
    }

    fn packets(&self, size: ByteSize) -> f64 {
        size.bytes() as f64 / self.packet_size.bytes() as f64
    }

    /// One packet per round trip, and `Rate_data` at most `Rate_max`.
    fn bound(&mut self) {
        let floor = 1.0 / self.rtt.as_secs_f64();
        self.rate_max = self.rate_max.clamp(floor, FASTEST);
        self.rate_data = self.rate_data.clamp(floor, self.rate_max);
    }

    /// The first acknowledgment of a congestion: what it measures takes the place of the capacity.
    fn begin(&mut self, ack: &AckSample) {
        let Some(delivery) = ack.delivery else {
            return;
        };
        let rate = packets_per_second(delivery.rate, self.packet_size);
        self.rate_max = self.rate_max.min(rate);
        self.bound();
    }

    /// A round trip has ended, which took so long.
    fn end_round(&mut self, elapsed: Duration) {
        let round = self.round;
        self.delivered
            .add(self.packets(round.acked), elapsed, self.min_rtt);
        let fraction = round.fraction();
        self.alpha += self.g * (fraction - self.alpha);
        if fraction > 0.0 {
            self.unmarked = 0;
            self.slow_down();
        } else {
            self.unmarked += 1;
            if !round.app_limited {
                self.speed_up(elapsed);
            }
        }
    }

    fn slow_down(&mut self) {
        if self.frozen {
            return;
        }
        let delivered = self.delivered.rate();
        if let Some(delivered) = delivered {
            self.rate_max = self.rate_max.min(EXCESS * delivered);
            self.rate_data = self.rate_data.min(self.rate_max);
        }
        let (delivered, left) = (delivered.unwrap_or(0.0), 1.0 - self.alpha / 2.0);
        let reduced = |rate: f64, part: f64| (rate * left).max((part * delivered).min(rate));
        self.rate_data = reduced(self.rate_data, self.drain);
        self.rate_max = reduced(self.rate_max, self.keep);
        self.bound();
        self.frozen = self.freeze;
        self.phase = "reduce";
    }

    fn speed_up(&mut self, elapsed: Duration) {
        if self.rate_data < self.rate_max {
            self.rate_data = (self.rate_data * 2.0).min(self.rate_max);
            self.phase = "double";
            return;
        }
        let doublings = self.unmarked.saturating_sub(self.patience);
        let hurry = (1_u64 << doublings.min(MOST_DOUBLINGS)) as f64;
        let min_rtt = self.min_rtt.as_secs_f64();
        // A round trip through a queue is several of the smallest.
        let trips = (elapsed.as_secs_f64() / min_rtt).min(self.rtt.as_secs_f64() / min_rtt + 1.0);
        let step = self.increment * hurry * trips / min_rtt;
        // With each round trip at most twice the rate.
        self.rate_max += step.min(self.rate_max);
        self.rate_data = self.rate_max;
        self.bound();
        self.phase = if doublings > 0 { "hurry" } else { "increment" };
    }
}

impl Controller for Proportional {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    fn on_sent(&mut self, _sent: &PacketSent) {
        self.frozen = false;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.smoothed_rtt.is_zero() {
            self.rtt = ack.smoothed_rtt.max(SHORTEST_RTT);
            self.min_rtt = ack.min_rtt.clamp(SHORTEST_RTT, self.rtt);
        }
        self.round.on_ack(ack);
        if !ack.round_ended {
            return;
        }
        match self.round.began {
            Some(began) => self.end_round(ack.now.since(began)),
            None => self.begin(ack),
        }
        self.round = Round {
            began: Some(ack.now),
            ..Round::default()
        };
    }

    /// As a round trip that was marked whole: the switch had no room left to mark in.
    fn on_loss(&mut self, _loss: &LossSample) {
        self.unmarked = 0;
        self.alpha = 1.0;
        self.slow_down();
        self.phase = "loss";
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        let size = size.max(ByteSize::from_bytes(1));
        let scale = self.packet_size.bytes() as f64 / size.bytes() as f64;
        self.packet_size = size;
        self.rate_data *= scale;
        self.rate_max *= scale;
        self.delivered.packets *= scale;
        self.bound();
    }

    /// There is none: the rate alone limits.
    fn window(&self) -> ByteSize {
        ByteSize::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let bits = self.rate_data * 8.0 * self.packet_size.bytes() as f64;
        Some(Rate::from_bits_per_second((bits as u64).max(1)))
    }

    fn snapshot(&self) -> Snapshot {
        let bits = self.rate_max * 8.0 * self.packet_size.bytes() as f64;
        Snapshot {
            phase: self.phase,
            ce_fraction: Some(self.alpha),
            bandwidth: Some(Rate::from_bits_per_second(bits as u64)),
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
