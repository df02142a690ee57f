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
//! - It is a reduction of what is delivered, averaged over some round trips, and not of the rate: what
//!   exceeds it only fills the queue, and far below it the link would idle once the queue has drained. So a
//!   start with far too many senders costs a few round trips and not a time-out, and reports may come
//!   faster than the queue answers.
//! - Where no acknowledgment comes for twice as long as one should take, the queue has grown: the rate is
//!   halved, but not below half of what was delivered.
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
    KEEP.parameter(),
    AVERAGE.parameter(),
    PATIENCE.parameter(),
    SILENCE.parameter(),
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

const KEEP: Typed<f64> = Typed {
    name: "keep",
    doc: "no reduction takes Rate_max below this part of what is delivered",
    default: 0.9,
    min: 0.0,
    max: 1.0,
};

const AVERAGE: Typed<f64> = Typed {
    name: "average",
    doc: "over how many smallest round-trip times deliveries are averaged, eight packets at least",
    default: 4.0,
    min: 1.0,
    max: 1000.0,
};

const PATIENCE: Typed<u64> = Typed {
    name: "patience",
    doc: "after so many round trips without a mark the increment doubles with each",
    default: 16,
    min: 1,
    max: 1_000_000,
};

const SILENCE: Typed<f64> = Typed {
    name: "silence",
    doc: "without an acknowledgment for so many times the time that one takes, the rate is halved; 0: never",
    default: 2.0,
    min: 0.0,
    max: 1e6,
};

/// Deliveries are averaged over so many packets at least.
const FEWEST: f64 = 8.0;
/// What is left of the rate, as a part of what is delivered, where the queue has grown too long for an
/// acknowledgment to come: enough to keep the link busy once it has drained.
const LEAST: f64 = 0.5;
/// The part of a rate that hurrying adds at most in a round trip: the queue must not grow much before the
/// first mark is heard of.
const MOST_HURRY: f64 = 0.125;
/// After so many smallest round-trip times without an acknowledgment growth stops.
const MOST_TRIPS: f64 = 64.0;
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
    /// Of how many round trips; no more are counted than weigh in.
    rounds: u32,
    delivered: Delivered,
    round: Round,
    /// Round trips without a mark, one after the other.
    unmarked: u64,
    frozen: bool,
    /// When the last acknowledgment came.
    heard: Time,
    rtt: Duration,
    min_rtt: Duration,
    phase: &'static str,
    g: f64,
    increment: f64,
    keep: f64,
    patience: u64,
    silence: f64,
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
        let least = self.rate().map_or(0.0, |rate| FEWEST / rate);
        let kept = (-elapsed / (self.average * min_rtt.as_secs_f64()).max(least)).exp();
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
            rounds: 0,
            delivered: Delivered {
                packets: 0.0,
                seconds: 0.0,
                average: spec.get(&AVERAGE),
            },
            round: Round::default(),
            unmarked: 0,
            frozen: false,
            heard: Time::MAX,
            rtt: INITIAL_RTT,
            min_rtt: INITIAL_RTT,
            phase: "start",
            g: spec.get(&G),
            increment: spec.get(&INCREMENT),
            keep: spec.get(&KEEP),
            patience: spec.get(&PATIENCE),
            silence: spec.get(&SILENCE),
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

    /// The first acknowledgment of a congestion: until there is more to go by, what it measures takes the
    /// place of the capacity.
    fn begin(&mut self, ack: &AckSample) {
        if let Some(delivery) = ack.delivery
            && self.round.fraction() > 0.0
        {
            let rate = packets_per_second(delivery.rate, self.packet_size);
            self.rate_data = self.rate_data.min(rate);
            self.rate_max = self.rate_max.min(2.0 * rate);
            self.bound();
        }
    }

    /// A round trip has ended, which took so long.
    fn end_round(&mut self, elapsed: Duration) {
        let round = self.round;
        let is_first = self.rounds == 0;
        self.delivered
            .add(self.packets(round.acked), elapsed, self.min_rtt);
        let fraction = round.fraction();
        self.rounds = self.rounds.saturating_add(1);
        // A mean of the first ones, until they are as many as weigh in.
        let weight = self.g.max(1.0 / f64::from(self.rounds));
        self.alpha += weight * (fraction - self.alpha);
        if fraction > 0.0 {
            self.unmarked = 0;
            self.slow_down(is_first);
        } else {
            self.unmarked += 1;
            if !round.app_limited {
                self.speed_up(elapsed);
            }
        }
    }

    fn slow_down(&mut self, is_first: bool) {
        if self.frozen {
            return;
        }
        let Some(delivered) = self.delivered.rate() else {
            return;
        };
        let left = 1.0 - self.alpha / 2.0;
        let (data, max) = (delivered * left, delivered * left.max(self.keep));
        (self.rate_data, self.rate_max) = match is_first {
            true => (data, max),
            false => (self.rate_data.min(data), self.rate_max.min(max)),
        };
        self.bound();
        self.frozen = self.freeze;
        self.phase = "reduce";
    }

    /// A packet is sent, and the queue may have grown too long for an acknowledgment to come.
    fn heed_silence(&mut self, now: Time) {
        let due = self.rtt.as_secs_f64() + 1.0 / self.rate_data;
        let silence = now.since(self.heard);
        if self.silence == 0.0 || silence.as_secs_f64() <= self.silence * due {
            return;
        }
        // The round trip is at least as long as that.
        self.rtt = self.rtt.max(silence);
        let least = LEAST * self.delivered.rate().unwrap_or(0.0);
        self.rate_data = (self.rate_data / 2.0).max(least.min(self.rate_data));
        self.unmarked = 0;
        self.bound();
        self.phase = "silence";
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
        // A round trip through a queue is several of the smallest. Those count who send rarely, too.
        let trips = (elapsed.as_secs_f64() / min_rtt).min(MOST_TRIPS);
        let step = self.increment * trips / min_rtt;
        let hurried = (step * (hurry - 1.0)).min(MOST_HURRY * self.rate_max);
        self.rate_max += step + hurried;
        self.rate_data = self.rate_max;
        self.bound();
        self.phase = if doublings > 0 { "hurry" } else { "increment" };
    }
}

impl Controller for Proportional {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    fn on_sent(&mut self, sent: &PacketSent) {
        self.frozen = false;
        self.heed_silence(sent.now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.smoothed_rtt.is_zero() {
            self.rtt = ack.smoothed_rtt.max(SHORTEST_RTT);
            self.min_rtt = ack.min_rtt.clamp(SHORTEST_RTT, self.rtt);
        }
        self.round.on_ack(ack);
        self.heard = ack.now;
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
        self.slow_down(false);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::samples::{PACKET, ack, build, loss, micros, packets};

    const SPEC: &str = "dcudp-proportional,capacity=1.2Gbps";

    /// What a round trip of 100 us says in which `count` packets were acknowledged, `marked` of them.
    fn report(controller: &mut dyn Controller, now: u64, count: u64, marked: u64) {
        let mut sample = ack(now, now - 100, count);
        sample.ce_marked = packets(marked);
        sample.round_ended = true;
        controller.on_ack(&sample);
        send(controller, now);
    }

    fn send(controller: &mut dyn Controller, now: u64) {
        controller.on_sent(&PacketSent {
            now: micros(now),
            size: PACKET,
            in_flight: PACKET,
        });
    }

    /// In packets of 1500 bytes per round trip of 100 us.
    fn window(controller: &dyn Controller) -> f64 {
        let rate = controller.pacing_rate().unwrap().bits_per_second();
        rate as f64 / 12_000.0 * 1e-4
    }

    fn close(left: f64, right: f64) {
        assert!((left / right - 1.0).abs() < 1e-6, "{left} is not {right}");
    }

    #[test]
    fn it_begins_with_the_capacity_and_goes_to_what_is_delivered() {
        let mut controller = build(SPEC);
        close(window(&*controller), 10.0);
        report(&mut *controller, 200, 1, 1);
        close(window(&*controller), 10.0);
        // Four packets in a round trip, all marked: half of them, and then no less.
        for now in [300, 400, 500, 600] {
            report(&mut *controller, now, 4, 4);
            close(window(&*controller), 2.0);
        }
        // The congestion is over: back to nine tenths at once, and on from there.
        report(&mut *controller, 700, 4, 0);
        close(window(&*controller), 3.6);
        report(&mut *controller, 800, 4, 0);
        close(window(&*controller), 3.7);
    }

    #[test]
    fn a_reduction_is_half_of_the_marked_fraction() {
        let mut controller = build(SPEC);
        report(&mut *controller, 200, 10, 0);
        report(&mut *controller, 300, 10, 1);
        close(window(&*controller), 9.5);
    }

    #[test]
    fn without_marks_growth_becomes_ever_faster() {
        let mut controller = build(SPEC);
        let mut now = 200;
        for _ in 0..5 {
            report(&mut *controller, now, 4, 4);
            now += 100;
        }
        let mut rounds = 0;
        while window(&*controller) < 20.0 {
            let count = window(&*controller) as u64;
            report(&mut *controller, now, count, 0);
            now += 100;
            rounds += 1;
        }
        // 0.1 packets at a time would take 160 round trips.
        assert!(rounds < 50, "{rounds}");
    }

    #[test]
    fn silence_halves_down_to_half_of_what_was_delivered() {
        let mut controller = build(SPEC);
        report(&mut *controller, 200, 8, 0);
        report(&mut *controller, 300, 8, 0);
        let before = window(&*controller);
        // Twice a round trip and the packet's own time.
        send(&mut *controller, 510);
        close(window(&*controller), before);
        send(&mut *controller, 600);
        close(window(&*controller), before / 2.0);
        for now in [2_000, 5_000, 20_000] {
            send(&mut *controller, now);
        }
        close(window(&*controller), 4.0);
    }

    #[test]
    fn a_loss_is_a_round_trip_that_was_marked_whole() {
        let mut controller = build(SPEC);
        report(&mut *controller, 200, 10, 0);
        report(&mut *controller, 300, 10, 0);
        controller.on_loss(&loss(350, 100, 3, LossCause::Nak));
        close(window(&*controller), 5.0);
    }

    #[test]
    fn the_rate_never_falls_below_a_packet_per_round_trip() {
        let mut controller = build(SPEC);
        for round in 0..1_000 {
            report(&mut *controller, 200 + 100 * round, 1, 1);
        }
        close(window(&*controller), 1.0);
    }

    #[test]
    fn an_echo_counts_as_a_round_trip_that_was_marked_whole() {
        let mut controller = build(SPEC);
        report(&mut *controller, 200, 8, 0);
        let mut sample = ack(300, 200, 8);
        (sample.ece, sample.round_ended) = (true, true);
        controller.on_ack(&sample);
        close(window(&*controller), 4.0);
    }
}
