//! A rate control for DCUDP that holds the queue at the marking threshold and shares fairly: ours, in
//! place of Figure 4 of Ye, Mhamdi and Hamdi (CloudNet 2014), whose readings do neither with many
//! senders (`docs/dcudp.md`).
//!
//! What it keeps of Figure 4: two rates, of which `Rate_data` falls below `Rate_max` while there is
//! congestion and doubles up to it afterwards; the lock (`freeze`); a floor of one packet per round trip.
//! What is different:
//!
//! - **Marks** reduce by the marked fraction, as DCTCP's do (Alizadeh et al., SIGCOMM 2010, equations 1 and
//!   2), and not by a packet per round trip, which a queue that lengthens the round trip makes ever less of.
//!   It is a reduction of what is *delivered* and not of the rate, so that it does not add up while the
//!   queue drains, and reports may come faster than the queue answers.
//! - **The queue** acts on the rate directly. A queue adds up what the rates exceed the link by, and a
//!   control that adds up marks over a queue that adds up rates swings; a term proportional to the queue is
//!   what steadies it. A sender knows its own part, to a report: what it has in flight, less what is
//!   delivered in a round trip. What is beyond that and as much again, the excess, is taken off the rate
//!   such that it would be gone in `drain` smallest round trips. After the burst of UDP Mode this stops the
//!   senders, and lets them go on at what is delivered to them, together the link's rate, just as the queue
//!   has drained. Marks say nothing while it lasts: everything is marked then.
//! - **Growth** is per *smallest* round-trip time, and ever faster once no mark has come for several: freed
//!   bandwidth is taken within milliseconds.
//!
//! It wants fractions: with an echo instead, each round trip with one counts as marked whole.

mod delivered;
mod parameters;
#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Duration, Rate};

use self::delivered::DeliveryAverage;
use self::parameters::{AVERAGE, DRAIN, G, INCREMENT, KEEP, PARAMETERS, PATIENCE};
use super::rates::{Rates, least};
use super::round::RoundTripCounts;
use super::{CAPACITY, FREEZE, INITIAL_RTT, SHORTEST_RTT};
use crate::algorithm::{Algorithm, Context};
use crate::{AckSample, AlgorithmSpec, Controller, LossSample, PacketSent, Snapshot};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "dcudp-proportional",
    summary: "DCUDP's two rates, reduced by the marked fraction and by what waits in the queue",
    own_parameters: &PARAMETERS,
    build: |spec, context| Box::new(Proportional::new(spec, context)),
};

/// The smoothed fraction before there is one: between what marks say of a queue around the threshold and
/// what they say of one above it.
const INITIAL_FRACTION: f64 = 0.2;
/// The part of a rate that hurrying adds at most in a round trip: the queue must not grow much before the
/// first mark is heard of.
const MOST_HURRY: f64 = 0.125;
/// After so many smallest round-trip times without an acknowledgment growth stops.
const MOST_TRIPS: f64 = 64.0;
/// The most doublings of the increment: no rate of this world needs more.
const MOST_DOUBLINGS: u64 = 40;

#[derive(Clone, Debug)]
struct Proportional {
    rates: Rates,
    /// The smoothed fraction of packets that are marked.
    alpha: f64,
    delivered: DeliveryAverage,
    /// Own packets that wait too long.
    excess: f64,
    round: RoundTripCounts,
    /// Round trips without a mark, one after the other.
    unmarked: u64,
    frozen: bool,
    rtt: Duration,
    min_rtt: Duration,
    phase: &'static str,
    g: f64,
    increment: f64,
    keep: f64,
    drain: f64,
    patience: u64,
    freeze: bool,
}

impl Proportional {
    fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        Self {
            rates: Rates::new(spec.get(&CAPACITY), context.packet_size),
            alpha: INITIAL_FRACTION,
            delivered: DeliveryAverage::new(spec.get(&AVERAGE)),
            excess: 0.0,
            round: RoundTripCounts::default(),
            unmarked: 0,
            frozen: false,
            rtt: INITIAL_RTT,
            min_rtt: INITIAL_RTT,
            phase: "start",
            g: spec.get(&G),
            increment: spec.get(&INCREMENT),
            keep: spec.get(&KEEP),
            drain: spec.get(&DRAIN),
            patience: spec.get(&PATIENCE),
            freeze: spec.get(&FREEZE),
        }
    }

    /// One packet per round trip, and `Rate_data` at most `Rate_max`.
    fn bound(&mut self) {
        self.rates.bound(self.rtt);
        self.rates.data = self.rates.data.min(self.rates.max);
    }

    fn is_draining(&self) -> bool {
        self.drain > 0.0 && self.excess > 0.0
    }

    /// What the packets that wait too long take off the rate, in packets per second.
    fn draining(&self) -> f64 {
        if !self.is_draining() {
            return 0.0;
        }
        self.excess / (self.drain * self.min_rtt.as_secs_f64())
    }

    fn measure(&mut self, ack: &AckSample) {
        if !ack.smoothed_rtt.is_zero() {
            self.rtt = ack.smoothed_rtt.max(SHORTEST_RTT);
            self.min_rtt = ack.min_rtt.clamp(SHORTEST_RTT, self.rtt);
        }
        if !ack.acked.is_zero() {
            // Behind a queue that grows fast the smoothed one is long out of date.
            self.rtt = self.rtt.max(ack.now.since(ack.newest_sent));
        }
    }

    /// The first acknowledgment of a congestion: until there is more to go by, what it measures takes the
    /// place of the capacity.
    fn begin(&mut self, round: &RoundTripCounts, ack: &AckSample) {
        if let Some(delivery) = ack.delivery
            && round.is_marked()
        {
            let rate = self.rates.packets_per_second(delivery.rate);
            self.rates.data = self.rates.data.min(rate);
            self.rates.max = self.rates.max.min(2.0 * rate);
            self.bound();
        }
    }

    /// A round trip has ended, which took so long.
    fn end_round(&mut self, round: &RoundTripCounts, elapsed: Duration, in_flight: ByteSize) {
        let acked = self.rates.packets(round.acked);
        self.delivered.add(acked, elapsed, self.min_rtt);
        let in_flight = self.rates.packets(in_flight);
        self.excess = self.delivered.excess(in_flight, self.min_rtt);
        let fraction = round.fraction();
        if !self.is_draining() {
            self.alpha += self.g * (fraction - self.alpha);
        }
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
        let Some(delivered) = self.delivered.rate() else {
            return;
        };
        if self.is_draining() {
            // Whatever each has had so far, together this is what the link can do.
            self.rates.max = delivered * self.keep;
            self.rates.data = self.rates.max;
            self.phase = "drain";
        } else {
            let left = 1.0 - self.alpha / 2.0;
            self.rates.data = self.rates.data.min(delivered * left);
            self.rates.max = self.rates.max.min(delivered * left.max(self.keep));
            self.phase = "reduce";
        }
        self.bound();
        self.frozen = self.freeze;
    }

    fn speed_up(&mut self, elapsed: Duration) {
        if self.rates.data < self.rates.max {
            self.rates.data = (self.rates.data * 2.0).min(self.rates.max);
            self.phase = "double";
            return;
        }
        let doublings = self.unmarked.saturating_sub(self.patience);
        let hurry = (1_u64 << doublings.min(MOST_DOUBLINGS)) as f64;
        let min_rtt = self.min_rtt.as_secs_f64();
        // A round trip through a queue is several of the smallest. Those count who send rarely, too.
        let trips = (elapsed.as_secs_f64() / min_rtt).min(MOST_TRIPS);
        let step = self.increment * trips / min_rtt;
        let hurried = (step * (hurry - 1.0)).min(MOST_HURRY * self.rates.max);
        self.rates.max += step + hurried;
        self.rates.data = self.rates.max;
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
        self.measure(ack);
        let Some(round) = self.round.on_ack(ack) else {
            return;
        };
        match round.began {
            Some(began) => self.end_round(&round, ack.now.since(began), ack.in_flight),
            None => self.begin(&round, ack),
        }
    }

    /// As a round trip that was marked whole: the switch had no room left to mark in.
    fn on_loss(&mut self, _loss: &LossSample) {
        self.unmarked = 0;
        self.alpha = 1.0;
        self.slow_down();
        self.phase = "loss";
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        let scale = self.rates.resize(size);
        self.delivered.resize(scale);
        self.excess *= scale;
        self.bound();
    }

    /// There is none: the rate alone limits.
    fn window(&self) -> ByteSize {
        ByteSize::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let least = least(self.rtt).min(self.rates.data);
        let rate = (self.rates.data - self.draining()).max(least);
        Some(self.rates.rate_of(rate))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: self.phase,
            ce_fraction: Some(self.alpha),
            bandwidth: Some(self.rates.rate_of(self.rates.max)),
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
