//! Repeatable randomness: a validated probability type and seeded generators.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{ByteSize, Duration};

/// The integer for probability 1.
const CERTAIN: u64 = 1 << 63;

/// A probability between 0 and 1, in steps of 2⁻⁶³.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

impl Probability {
    /// Probability 0.
    pub const NEVER: Self = Self(0);
    /// Probability 1.
    pub const ALWAYS: Self = Self(CERTAIN);

    /// Returns the probability `value`; an error unless it lies between 0 and 1.
    pub fn new(value: f64) -> Result<Self, ProbabilityError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self((value * CERTAIN as f64) as u64))
        } else {
            Err(ProbabilityError { value })
        }
    }

    /// Returns it as a number between 0 and 1.
    pub fn value(self) -> f64 {
        self.0 as f64 / CERTAIN as f64
    }

    /// Draws: true with exactly this probability times `part / whole`. `part` is at most `whole`.
    pub(crate) fn draw_scaled(
        self,
        part: ByteSize,
        whole: ByteSize,
        generator: &mut Generator,
    ) -> bool {
        let draw = u128::from(generator.next_u64() >> 1);
        draw * u128::from(whole.bytes()) < u128::from(self.0) * u128::from(part.bytes())
    }

    /// Draws: true with this probability. [`Self::NEVER`] and [`Self::ALWAYS`] cost no draw.
    pub(crate) fn draw(self, generator: &mut Generator) -> bool {
        match self {
            Self::NEVER => false,
            Self::ALWAYS => true,
            Self(threshold) => generator.next_u64() >> 1 < threshold,
        }
    }
}

/// A number that is not a probability.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{value} is not a probability: a number between 0 and 1 is needed")]
pub struct ProbabilityError {
    /// The number given.
    pub value: f64,
}

/// PCG XSL RR 128/64 (O'Neill 2014): small, fast, and the same on every machine.
pub(crate) type Generator = Pcg64Mcg;

/// Returns the generator of one purpose under a seed. Purposes draw independently, so that changing one
/// fault's probability leaves the others' choices as they were.
pub(crate) fn generator(seed: u64, purpose: u64) -> Generator {
    // Multiples of the golden ratio keep nearby seeds and purposes apart.
    Generator::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns a duration drawn uniformly between zero and `limit`, both included.
pub(crate) fn uniform_duration(limit: Duration, generator: &mut Generator) -> Duration {
    if limit.is_zero() {
        return Duration::ZERO;
    }
    let choices = u128::from(limit.as_nanos()) + 1;
    let nanos = (u128::from(generator.next_u64()) * choices) >> 64;
    Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probabilities_are_accepted() {
        for value in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Probability::new(value).is_err(), "{value}");
        }
        assert_eq!(Probability::new(1.0), Ok(Probability::ALWAYS));
        assert_eq!(Probability::new(0.0), Ok(Probability::NEVER));
        assert_eq!(Probability::new(0.25).unwrap().value(), 0.25);
    }

    #[test]
    fn draws_have_the_given_probability() {
        let mut generator = generator(1, 1);
        for value in [0.01, 0.1, 0.5] {
            let probability = Probability::new(value).unwrap();
            let draws = 1_000_000;
            let hits = (0..draws)
                .filter(|_| probability.draw(&mut generator))
                .count();
            let deviation = (value * (1.0 - value) * f64::from(draws)).sqrt();
            let error = (hits as f64 - value * f64::from(draws)).abs();
            assert!(error < 4.0 * deviation, "{value}: {hits}");
        }
    }

    #[test]
    fn uniform_durations_include_both_ends() {
        let mut generator = generator(1, 2);
        let spans: Vec<u64> = (0..200)
            .map(|_| uniform_duration(Duration::from_nanos(3), &mut generator).as_nanos())
            .collect();
        assert_eq!(
            (spans.iter().min(), spans.iter().max()),
            (Some(&0), Some(&3))
        );
    }
}
