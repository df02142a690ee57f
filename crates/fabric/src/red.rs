//! Random early detection (Floyd & Jacobson 1993): drop or mark by chance, the likelier the longer
//! the queue.
//!
//! A [`Ramp`] by itself looks at the queue as it is now: the way of shallow data center switches,
//! and of the shared queue in [`discipline`](crate::discipline). [`Red`] is the original: the ramp
//! over a moving average, with drops spread evenly.

use weir_units::{ByteSize, Duration, Time};

use crate::random::{Generator, Probability};

/// A probability that rises with the queue: none up to `min`, then linearly up to `probability` at
/// `max`, and certainty above `max`. With `min` at or above `max` only `max` counts: a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The longest queue at which nothing happens.
    pub min: ByteSize,
    /// The longest queue at which chance decides.
    pub max: ByteSize,
    /// The probability at `max`.
    pub probability: Probability,
}

/// Random early detection on the average queue.
///
/// The average is an exponentially weighted one over arriving packets of every class. While the
/// queue is empty it decays as though small packets had found it empty one after the other. The
/// probability rises by `ramp` over the average, and is raised further with each packet spared since
/// the last drop, so that drops come at even distances (section VII of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// The thresholds on the average queue. Drops become certain at `max`; with `gentle` later.
    pub ramp: Ramp,
    /// The weight of each new sample in the average, between 0 and 1: `w_q`, 0.002 in the paper.
    pub weight: Probability,
    /// How long the link takes to send a typical small packet: `s`. An empty queue counts as one
    /// more sample of zero each time it has lasted this long.
    pub transmission: Duration,
    /// Between `max` and twice `max` the probability rises on to 1, instead of jumping there
    /// (Floyd 2000, "Recommendation on using the gentle variant of RED").
    pub gentle: bool,
}

/// What a threshold or a ramp says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// It is spared.
    Spared,
    /// Chance chose it.
    Chosen,
    /// It had no chance.
    Certain,
}

impl Ramp {
    /// For a packet that finds `queue`.
    #[inline]
    pub(crate) fn draw(&self, queue: ByteSize, random: &mut Generator) -> Hit {
        if queue > self.max {
            Hit::Certain
        } else if queue > self.min {
            let (above, span) = (queue - self.min, self.max - self.min);
            match self.probability.draw_scaled(above, span, random) {
                true => Hit::Chosen,
                false => Hit::Spared,
            }
        } else {
            Hit::Spared
        }
    }

    /// The same with the probability at `max` everywhere between the thresholds.
    pub(crate) fn draw_evenly(&self, queue: ByteSize, random: &mut Generator) -> Hit {
        if queue > self.max {
            Hit::Certain
        } else if queue > self.min && self.probability.draw(random) {
            Hit::Chosen
        } else {
            Hit::Spared
        }
    }
}

/// What one [`Red`] rule of a queue remembers. Floating-point, but only by operations that IEEE 754
/// defines to the last bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedState {
    /// The average queue in bytes: `avg`.
    average: f64,
    /// Packets spared since the last drop, or since the average reached `min`: `count`.
    spared: u64,
    /// Since when the queue is empty: `q_time`.
    empty_since: Time,
}

impl RedState {
    /// A packet of whatever class arrives and finds `queue`.
    pub(crate) fn sample(&mut self, now: Time, queue: ByteSize, red: &Red) {
        let weight = red.weight.value();
        if queue.is_zero() {
            // The packet itself is the one sample more.
            let missed = match now.since(self.empty_since) / red.transmission {
                _ if red.transmission.is_zero() => 0,
                missed => missed,
            };
            self.average *= power(1.0 - weight, missed.saturating_add(1));
            self.empty_since = now;
        } else {
            self.average += weight * (queue.bytes() as f64 - self.average);
        }
    }

    /// The last packet leaves the queue.
    pub(crate) fn emptied(&mut self, at: Time) {
        self.empty_since = at;
    }

    /// Decides about a packet of the rule's class, after [`Self::sample`].
    pub(crate) fn draw(&mut self, red: &Red, random: &mut Generator) -> Hit {
        let Some(base) = red.base_probability(self.average) else {
            self.spared = 0;
            return Hit::Spared;
        };
        if base >= 1.0 {
            self.spared = 0;
            return Hit::Certain;
        }
        // p_b / (1 - count * p_b): uniform over the next 1 / p_b packets.
        let spread = 1.0 - self.spared as f64 * base;
        if spread <= base || random_fraction(random) < base / spread {
            self.spared = 0;
            Hit::Chosen
        } else {
            self.spared += 1;
            Hit::Spared
        }
    }

    /// The average queue.
    pub(crate) fn average(&self) -> ByteSize {
        ByteSize::from_bytes(self.average.round() as u64)
    }
}

impl Red {
    /// `p_b` at this average; `None` where no packet is to be dropped.
    fn base_probability(&self, average: f64) -> Option<f64> {
        let Ramp {
            min,
            max,
            probability,
        } = self.ramp;
        let (min, max) = (min.bytes() as f64, max.bytes() as f64);
        let highest = probability.value();
        if average >= max {
            // Past a threshold of zero there is no room to be gentle in.
            let beyond = if self.gentle && max > 0.0 {
                (average - max) / max
            } else {
                1.0
            };
            Some((highest + (1.0 - highest) * beyond).min(1.0))
        } else if average >= min {
            Some(highest * (average - min) / (max - min))
        } else {
            None
        }
    }
}

/// A number drawn uniformly from [0, 1).
fn random_fraction(random: &mut Generator) -> f64 {
    use rand_core::Rng;
    // 53 bits: what the significand holds.
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// `base` to a whole power by squaring: the same on every machine, which `powf` is not.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 && product > 0.0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}
