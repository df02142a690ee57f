//! A rate control for DCUDP that holds the queue at the marking threshold and is fair. It is our
//! own and replaces Figure 4 of Ye, Mhamdi and Hamdi (CloudNet 2014), whose interpretations achieve
//! neither with many senders (`docs/dcudp.md`).
//!
//! It keeps these parts of Figure 4: two rates, of which `Rate_data` falls below `Rate_max` during
//! congestion and doubles up to it afterwards; the lock (`freeze`); a floor of one packet per round
//! trip. It differs in:
//!
//! - **Marks** reduce by the marked fraction, as in DCTCP (Alizadeh et al., SIGCOMM 2010, equations
//!   1 and 2). Figure 4 reduces by one packet per round trip, which shrinks as a queue lengthens
//!   the round trip. The reduction applies to the *delivery rate* and not to the sending rate. It
//!   therefore does not accumulate while the queue drains, and reports may arrive faster than the
//!   queue responds.
//! - **The queue** acts on the rate directly. A queue integrates the excess of the rates over the
//!   link rate. A control that integrates marks on top of it oscillates; a term proportional to the
//!   queue stabilizes it. A sender estimates its own share at each report: its packets in flight,
//!   less one round trip's deliveries. What exceeds twice a round trip's deliveries, the excess, is
//!   subtracted from the rate so that it drains in `drain` minimum RTTs. After the burst of UDP
//!   Mode this stops the senders. They continue at their delivery rate, together the link rate,
//!   just as the queue has drained. Marks are ignored meanwhile, because everything is marked.
//! - **Growth** is per *minimum* RTT, and accelerates once several round trips had no mark: freed
//!   bandwidth is taken within milliseconds.
//!
//! [`dcudp-rtt-fair`](crate::dcudp_rtt_fair) is the same control with a *reference*: every sender decides,
//! grows and drains as if its round trip took at least that long.
//!
//! The control needs marked fractions. With an echo instead, each round trip with an echo counts as
//! fully marked.

mod delivered;
mod parameters;
#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Duration, Rate};

use self::delivered::DeliveryAverage;
pub(crate) use self::parameters::{AVERAGE, DRAIN, G, KEEP, PATIENCE};
use self::parameters::{INCREMENT, PARAMETERS};
use crate::algorithm::{Algorithm, Context, Typed};
use crate::dcudp::rates::{Rates, one_packet_per_rtt};
use crate::dcudp::round::RoundTripCounts;
use crate::dcudp::{CAPACITY, FREEZE, INITIAL_RTT, SHORTEST_RTT};
use crate::{AckSample, AlgorithmSpec, Controller, LossSample, PacketSent, Snapshot};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "dcudp-proportional",
    summary: "DCUDP's two rates, reduced by the marked fraction and by what waits in the queue",
    own_parameters: &PARAMETERS,
    build: |spec, context| {
        let pace = Pace {
            increment: spec.get(&INCREMENT),
            increment_of: &INCREMENT,
            reference: Duration::ZERO,
        };
        Box::new(Proportional::new(ALGORITHM.name, pace, spec, context))
    },
};

/// Initial value of the smoothed fraction: between the marks of a queue around the threshold and
/// the marks of a queue above it.
const INITIAL_FRACTION: f64 = 0.2;
/// The largest fraction of a rate that accelerated growth adds in a round trip. The queue must not
/// grow much before the first mark returns.
const MOST_HURRY: f64 = 0.125;
/// Growth stops after this many minimum RTTs without an acknowledgment.
const MOST_TRIPS: f64 = 64.0;
/// The most doublings of the increment; no realistic rate needs more.
const MOST_DOUBLINGS: u64 = 40;

/// How fast a sender's rate grows, and in which time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Packets per period that the rate grows in one.
    pub(crate) increment: f64,
    /// The parameter with that number: its default differs.
    pub(crate) increment_of: &'static Typed<f64>,
    /// The shortest period; a longer minimum RTT is the period.
    pub(crate) reference: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Proportional {
    name: &'static str,
    rates: Rates,
    /// The smoothed fraction of marked packets.
    alpha: f64,
    delivered: DeliveryAverage,
    /// Own packets in the queue beyond the tolerated number.
    excess: f64,
    round: RoundTripCounts,
    /// Consecutive round trips without a mark.
    unmarked: u64,
    frozen: bool,
    rtt: Duration,
    min_rtt: Duration,
    phase: &'static str,
    g: f64,
    pace: Pace,
    keep: f64,
    drain: f64,
    patience: u64,
    freeze: bool,
}

impl Proportional {
    pub(crate) fn new(
        name: &'static str,
        pace: Pace,
        spec: &AlgorithmSpec,
        context: &Context,
    ) -> Self {
        Self {
            name,
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
            pace,
            keep: spec.get(&KEEP),
            drain: spec.get(&DRAIN),
            patience: spec.get(&PATIENCE),
            freeze: spec.get(&FREEZE),
        }
    }

    /// Returns the time in which the control decides once: the minimum RTT or the reference, whichever is
    /// longer.
    fn period(&self) -> Duration {
        self.min_rtt.max(self.pace.reference)
    }

    /// Keeps the rates at one packet per round trip, or reference, or above, and `Rate_data` at most at
    /// `Rate_max`.
    fn bound(&mut self) {
        self.rates.bound(self.rtt.max(self.pace.reference));
        self.rates.data = self.rates.data.min(self.rates.max);
    }

    fn is_draining(&self) -> bool {
        self.drain > 0.0 && self.excess > 0.0
    }

    /// Returns the reduction of the rate that drains the excess, in packets per second.
    fn drain_rate(&self) -> f64 {
        if !self.is_draining() {
            return 0.0;
        }
        self.excess / (self.drain * self.period().as_secs_f64())
    }

    fn measure(&mut self, ack: &AckSample) {
        if !ack.smoothed_rtt.is_zero() {
            self.rtt = ack.smoothed_rtt.max(SHORTEST_RTT);
            self.min_rtt = ack.min_rtt.clamp(SHORTEST_RTT, self.rtt);
        }
        if !ack.acked.is_zero() {
            // Behind a fast-growing queue the smoothed RTT is outdated.
            self.rtt = self.rtt.max(ack.now.since(ack.newest_sent));
        }
    }

    /// Handles the first acknowledgment. If it is marked, its delivery rate replaces the capacity.
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

    /// Handles the end of a round trip that took `elapsed`.
    fn end_round(&mut self, round: &RoundTripCounts, elapsed: Duration, in_flight: ByteSize) {
        let acked = self.rates.packets(round.acked);
        let period = self.period();
        self.delivered.add(acked, elapsed, period);
        let in_flight = self.rates.packets(in_flight);
        self.excess = self.delivered.excess(in_flight, self.min_rtt, period);
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
            // The delivery rates of all senders together are the link rate, whatever their shares
            // were.
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
        let period = self.period().as_secs_f64();
        // A round trip through a queue lasts several minimum RTTs. Slow senders must count them
        // too.
        let trips = (elapsed.as_secs_f64() / period).min(MOST_TRIPS);
        let step = self.pace.increment * trips / period;
        let hurried = (step * (hurry - 1.0)).min(MOST_HURRY * self.rates.max);
        self.rates.max += step + hurried;
        self.rates.data = self.rates.max;
        self.bound();
        self.phase = if doublings > 0 { "hurry" } else { "increment" };
    }
}

impl Controller for Proportional {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_sent(&mut self, _sent: &PacketSent) {
        self.frozen = false;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.measure(ack);
        // Reports within the reference are combined.
        let began = self.round.began;
        let is_over = began.is_none_or(|began| ack.now.since(began) >= self.pace.reference);
        let ack = &AckSample {
            round_ended: ack.round_ended && is_over,
            ..*ack
        };
        let Some(round) = self.round.on_ack(ack) else {
            return;
        };
        match round.began {
            Some(began) => self.end_round(&round, ack.now.since(began), ack.in_flight),
            None => self.begin(&round, ack),
        }
    }

    /// Treats a loss as a fully marked round trip: the switch buffer was full, so it could not
    /// mark.
    fn on_loss(&mut self, _loss: &LossSample) {
        self.unmarked = 0;
        self.alpha = 1.0;
        self.slow_down();
        self.phase = "loss";
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[
            G.name,
            INCREMENT.name,
            KEEP.name,
            AVERAGE.name,
            DRAIN.name,
            PATIENCE.name,
            FREEZE.name,
        ]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        self.g = spec.get(&G);
        self.pace.increment = spec.get(self.pace.increment_of);
        self.keep = spec.get(&KEEP);
        self.delivered.set_average(spec.get(&AVERAGE));
        self.drain = spec.get(&DRAIN);
        self.patience = spec.get(&PATIENCE);
        self.freeze = spec.get(&FREEZE);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        let scale = self.rates.resize(size);
        self.delivered.resize(scale);
        self.excess *= scale;
        self.bound();
    }

    /// There is no window: only the rate limits.
    fn window(&self) -> ByteSize {
        ByteSize::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let least = one_packet_per_rtt(self.rtt.max(self.pace.reference)).min(self.rates.data);
        let rate = (self.rates.data - self.drain_rate()).max(least);
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
