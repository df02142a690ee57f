//! The arrivals of calls.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::Duration;

/// The times of a Poisson process, from its start on. The same seed and rate give the same times.
#[derive(Debug)]
pub(crate) struct Poisson {
    random: Pcg64Mcg,
    mean_s: f64,
    last_s: f64,
}

impl Poisson {
    /// Returns the arrivals at a rate per second, which must be positive.
    pub(crate) fn new(seed: u64, rate_per_s: f64) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            mean_s: rate_per_s.recip(),
            last_s: 0.0,
        }
    }

    /// Returns a number from zero, included, to one, excluded.
    fn fraction(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Iterator for Poisson {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.last_s -= self.mean_s * (1.0 - self.fraction()).ln();
        Some(Duration::from_secs_f64(self.last_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_rate_and_spread_of_a_poisson_process() {
        let times: Vec<f64> = Poisson::new(1, 1000.0)
            .take(100_000)
            .map(Duration::as_secs_f64)
            .collect();
        assert!((times[99_999] - 100.0).abs() < 2.0, "{}", times[99_999]);
        // In intervals of 10 ms, the count's variance is its mean.
        let mut counts = vec![0.0_f64; 9000];
        for time in &times {
            if let Some(count) = counts.get_mut((time * 100.0) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / 9000.0;
        let variance = counts
            .iter()
            .map(|count| (count - mean).powi(2))
            .sum::<f64>()
            / 9000.0;
        assert!((variance / mean - 1.0).abs() < 0.1, "{variance} and {mean}");
    }

    #[test]
    fn the_seed_decides() {
        let some = |seed| Poisson::new(seed, 5.0).take(10).collect::<Vec<_>>();
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
    }
}
