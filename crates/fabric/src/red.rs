//! Random early detection (Floyd & Jacobson 1993): drops or marks with a probability that rises with
//! the queue.
//!
//! A [`Ramp`] alone uses the instantaneous queue, as shallow data center switches and the shared queue
//! in [`discipline`](crate::discipline) do. [`Red`] is the original: the ramp over a moving average,
//! with drops spread evenly.

use weir_units::{ByteSize, Duration, Time};

use crate::random::{Generator, Probability};

/// A probability that rises with the queue: 0 up to `min`, then linear up to `probability` at `max`, and
/// 1 above `max`. With `min` at or above `max` only `max` counts: a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The longest queue at which nothing happens.
    pub min: ByteSize,
    /// The longest queue at which the probability is below 1.
    pub max: ByteSize,
    /// The probability at `max`.
    pub probability: Probability,
}

/// Random early detection on the average queue.
///
/// The average is exponentially weighted over arriving packets of every class. While the queue is empty
/// it decays as though small packets had found it empty one after the other. The probability rises by
/// `ramp` over the average. Each packet spared since the last drop raises it further, so that drops come
/// at even distances (section VII of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// The thresholds on the average queue. Drops become certain at `max`; with `gentle` later.
    pub ramp: Ramp,
    /// The weight of each new sample in the average, between 0 and 1: `w_q`, 0.002 in the paper.
    pub weight: Probability,
    /// The transmission time of a typical small packet: `s`. An empty queue counts as one more sample of
    /// zero each time that it has lasted this long.
    pub transmission: Duration,
    /// Between `max` and twice `max` the probability rises to 1, instead of jumping there
    /// (Floyd 2000, "Recommendation on using the gentle variant of RED").
    pub gentle: bool,
}

/// The decision of a threshold or a ramp about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedDecision {
    /// It is spared.
    Pass,
    /// It was chosen at random.
    Random,
    /// It was chosen with certainty.
    Certain,
}

impl Ramp {
    /// Decides about a packet that finds `queue`.
    #[inline]
    pub(crate) fn draw(&self, queue: ByteSize, random: &mut Generator) -> RedDecision {
        if queue > self.max {
            RedDecision::Certain
        } else if queue > self.min {
            let (above, span) = (queue - self.min, self.max - self.min);
            if self.probability.draw_scaled(above, span, random) {
                RedDecision::Random
            } else {
                RedDecision::Pass
            }
        } else {
            RedDecision::Pass
        }
    }

    /// Decides with the probability at `max` everywhere between the thresholds.
    pub(crate) fn draw_evenly(&self, queue: ByteSize, random: &mut Generator) -> RedDecision {
        if queue > self.max {
            RedDecision::Certain
        } else if queue > self.min && self.probability.draw(random) {
            RedDecision::Random
        } else {
            RedDecision::Pass
        }
    }
}

/// The state of one [`Red`] rule of a queue. Floating-point, but only by operations that IEEE 754
/// defines to the last bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedState {
    /// The average queue in bytes: `avg`.
    average: f64,
    /// Packets spared since the last drop, or since the average reached `min`: `count`.
    spared: u64,
    /// When the queue became empty: `q_time`.
    empty_since: Time,
}

impl RedState {
    /// Samples the queue at the arrival of a packet of any class.
    pub(crate) fn sample(&mut self, now: Time, queue: ByteSize, red: &Red) {
        let weight = red.weight.value();
        if queue.is_zero() {
            // The arriving packet is one more sample.
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

    /// Records that the last packet has left the queue.
    pub(crate) fn emptied(&mut self, at: Time) {
        self.empty_since = at;
    }

    /// Decides about a packet of the rule's class, after [`Self::sample`].
    pub(crate) fn draw(&mut self, red: &Red, random: &mut Generator) -> RedDecision {
        let Some(base) = red.base_probability(self.average) else {
            self.spared = 0;
            return RedDecision::Pass;
        };
        if base >= 1.0 {
            self.spared = 0;
            return RedDecision::Certain;
        }
        // p_b / (1 - count * p_b): uniform over the next 1 / p_b packets.
        let spread = 1.0 - self.spared as f64 * base;
        if spread <= base || random_fraction(random) < base / spread {
            self.spared = 0;
            RedDecision::Random
        } else {
            self.spared += 1;
            RedDecision::Pass
        }
    }

    /// The average queue.
    pub(crate) fn average(&self) -> ByteSize {
        ByteSize::from_bytes(self.average.round() as u64)
    }
}

impl Red {
    /// Returns `p_b` at this average; `None` where no packet is to be dropped.
    fn base_probability(&self, average: f64) -> Option<f64> {
        let Ramp {
            min,
            max,
            probability,
        } = self.ramp;
        let (min, max) = (min.bytes() as f64, max.bytes() as f64);
        let highest = probability.value();
        if average >= max {
            // With a threshold of zero there is no range for gentle mode.
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

/// Returns a number drawn uniformly from [0, 1).
fn random_fraction(random: &mut Generator) -> f64 {
    use rand_core::Rng;
    // 53 bits: the size of the significand.
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns `base` to a whole power by squaring: the same on every machine, unlike `powf`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    const MIN: ByteSize = ByteSize::from_bytes(10_000);
    const MAX: ByteSize = ByteSize::from_bytes(30_000);

    fn bytes(count: u64) -> ByteSize {
        ByteSize::from_bytes(count)
    }

    fn ramp(probability: f64) -> Ramp {
        Ramp {
            min: MIN,
            max: MAX,
            probability: Probability::new(probability).unwrap(),
        }
    }

    /// With a weight of 1 the average is the queue itself.
    fn red(probability: f64, weight: f64) -> Red {
        Red {
            ramp: ramp(probability),
            weight: Probability::new(weight).unwrap(),
            transmission: Duration::from_nanos(100),
            gentle: false,
        }
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// Checks that `hits` of `draws` are within four standard deviations of the expectation.
    fn assert_fraction(hits: usize, draws: usize, probability: f64) {
        let expected = probability * draws as f64;
        let deviation = (expected * (1.0 - probability)).sqrt();
        let error = (hits as f64 - expected).abs();
        assert!(
            error <= 4.0 * deviation,
            "{hits} of {draws} at {probability}"
        );
    }

    #[test]
    fn a_ramp_rises_linearly_between_its_thresholds() {
        let mut random = generator(1, 0);
        for probability in [0.05, 0.5, 1.0] {
            for (queue, part) in [
                (10_001, 0.000_05),
                (15_000, 0.25),
                (29_000, 0.95),
                (30_000, 1.0),
            ] {
                let draws = 100_000;
                let hits = (0..draws).filter(|_| {
                    let hit = ramp(probability).draw(bytes(queue), &mut random);
                    assert_ne!(hit, RedDecision::Certain);
                    hit == RedDecision::Random
                });
                assert_fraction(hits.count(), draws, part * probability);
            }
            let mut draw = |queue| ramp(probability).draw(bytes(queue), &mut random);
            assert!((0..1000).all(|_| draw(10_000) == RedDecision::Pass));
            assert!((0..1000).all(|_| draw(30_001) == RedDecision::Certain));
        }
    }

    #[test]
    fn equal_thresholds_make_a_step() {
        for min in [MAX, bytes(50_000)] {
            let step = Ramp { min, ..ramp(1.0) };
            let mut random = generator(1, 0);
            assert_eq!(step.draw(MAX, &mut random), RedDecision::Pass);
            assert_eq!(step.draw(bytes(30_001), &mut random), RedDecision::Certain);
        }
    }

    #[test]
    fn the_average_moves_by_its_weight() {
        let red = red(0.1, 0.25);
        let mut state = RedState::default();
        let averages = [(); 3].map(|()| {
            state.sample(at(0), bytes(64_000), &red);
            state.average().bytes()
        });
        assert_eq!(averages, [16_000, 28_000, 37_000]);
    }

    #[test]
    fn an_empty_queue_counts_once_per_transmission_time() {
        let red = red(0.1, 0.5);
        let mut state = RedState::default();
        state.sample(at(0), bytes(64_000), &red);
        state.emptied(at(1000));
        // 399 ns make three whole samples, and the packet is the fourth.
        state.sample(at(1399), ByteSize::ZERO, &red);
        assert_eq!(state.average(), bytes(32_000 / 16));
        // No time has passed since: one more sample.
        state.sample(at(1399), ByteSize::ZERO, &red);
        assert_eq!(state.average(), bytes(32_000 / 32));
        // Much later the average is zero, and nothing overflows.
        state.sample(Time::MAX, ByteSize::ZERO, &red);
        assert_eq!(state.average(), ByteSize::ZERO);
    }

    #[test]
    fn power_by_squaring_is_accurate() {
        let by_hand: f64 = (0..1000).map(|_| 0.998).product();
        assert!((power(0.998, 1000) / by_hand - 1.0).abs() < 1e-12);
        assert_eq!(power(0.5, 0), 1.0);
        assert_eq!(power(0.0, 3), 0.0);
        assert_eq!(power(0.999, u64::MAX), 0.0);
    }

    #[test]
    fn drops_come_at_uniform_distances() {
        // In the middle of the thresholds the base probability is a tenth.
        let red = red(0.2, 1.0);
        let mut random = generator(1, 0);
        let mut state = RedState::default();
        let mut distances = [0; 11];
        let mut distance = 0;
        let drops = 100_000;
        while distances.iter().sum::<usize>() < drops {
            state.sample(at(0), bytes(20_000), &red);
            distance += 1;
            if state.draw(&red, &mut random) == RedDecision::Random {
                distances[distance] += 1;
                distance = 0;
            }
        }
        // 1 to 10 packets, each equally often.
        assert_eq!(distances[0], 0);
        for hits in &distances[1..] {
            assert_fraction(*hits, drops, 0.1);
        }
    }

    #[test]
    fn gentle_red_ramps_between_max_and_twice_max() {
        let mut random = generator(1, 0);
        let red = red(0.5, 1.0);
        let gentle = Red {
            gentle: true,
            ..red
        };
        let probability = |red: &Red, average| red.base_probability(average);
        assert_eq!(probability(&red, 9_999.0), None);
        assert_eq!(probability(&red, 10_000.0), Some(0.0));
        assert_eq!(probability(&red, 25_000.0), Some(0.375));
        assert_eq!(probability(&red, 30_000.0), Some(1.0));
        assert_eq!(probability(&gentle, 30_000.0), Some(0.5));
        assert_eq!(probability(&gentle, 45_000.0), Some(0.75));
        assert_eq!(probability(&gentle, 60_000.0), Some(1.0));
        for (red, queue, hit) in [
            (red, 30_000, RedDecision::Certain),
            (gentle, 60_000, RedDecision::Certain),
        ] {
            let mut state = RedState::default();
            state.sample(at(0), bytes(queue), &red);
            assert_eq!(state.draw(&red, &mut random), hit);
        }
    }
}
