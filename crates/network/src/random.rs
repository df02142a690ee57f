//! The random choices of workloads and samples.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use weir_units::Duration;

/// A generator for the random choices of workloads. The same seed gives the same choices.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// Creates a generator from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(!seed)))
    }

    /// Returns a uniform duration from zero to `span`, both included.
    #[inline]
    pub fn span_up_to(&mut self, span: Duration) -> Duration {
        let nanos = match span.as_nanos().checked_add(1) {
            Some(count) => self.below(count),
            None => self.0.next_u64(),
        };
        Duration::from_nanos(nanos)
    }

    /// Returns a uniform number below `count`, which is not zero.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        // The upper word of the product is uniform except for a bias of `count` in 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(count)) >> 64) as u64
    }

    /// Returns a uniform number from zero, included, to one, excluded.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        // The 53 bits of a double's significand.
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the time until the next event of a Poisson process. The logarithm is computed in software,
    /// so that it is the same on every machine.
    #[inline]
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-libm::log(1.0 - self.fraction()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_uniform_and_exponential() {
        let mut random = Random::new(1);
        let mean = |mut draw: Box<dyn FnMut() -> Duration>| {
            let sum: u64 = (0..100_000).map(|_| draw().as_nanos()).sum();
            sum as f64 / 100_000.0
        };
        let span = Duration::from_micros(10);
        let mut other = random.clone();
        let uniform = mean(Box::new(move || random.span_up_to(span)));
        assert!((uniform - 5_000.0).abs() < 50.0, "{uniform}");
        let exponential = mean(Box::new(move || other.exponential(span)));
        assert!((exponential - 10_000.0).abs() < 150.0, "{exponential}");
        assert_eq!(Random::new(2).span_up_to(Duration::ZERO), Duration::ZERO);
    }
}
