//! Medians and tails of measured times.

use serde::{Deserialize, Serialize};
use weir_units::Duration;

/// The summary of many measured times. All samples are kept, so percentiles are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of samples.
    pub count: usize,
    nanoseconds: [u64; 5],
}

impl Summary {
    /// Summarizes times in nanoseconds; sorts them. `None` if there are none.
    #[must_use]
    pub fn of(nanoseconds: &mut [u64]) -> Option<Self> {
        nanoseconds.sort_unstable();
        let longest = *nanoseconds.last()?;
        let at = |per_mille| percentile(nanoseconds, per_mille);
        Some(Self {
            count: nanoseconds.len(),
            nanoseconds: [at(100), at(500), at(990), at(999), longest],
        })
    }

    /// Returns the time that 10 % of the samples do not exceed.
    #[must_use]
    pub fn p10(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds[0])
    }

    /// Returns the time that half of the samples do not exceed.
    #[must_use]
    pub fn median(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds[1])
    }

    /// Returns the time that 99 % of the samples do not exceed.
    #[must_use]
    pub fn p99(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds[2])
    }

    /// Returns the time that 99.9 % of the samples do not exceed.
    #[must_use]
    pub fn p999(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds[3])
    }

    /// Returns the maximum.
    #[must_use]
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds[4])
    }
}

/// Returns the smallest sample that `per_mille` thousandths of all do not exceed (nearest rank).
fn percentile(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut samples: Vec<u64> = (1..=1000).rev().collect();
        let summary = Summary::of(&mut samples).unwrap();
        assert_eq!(summary.p10(), Duration::from_nanos(100));
        assert_eq!(summary.median(), Duration::from_nanos(500));
        assert_eq!(summary.p99(), Duration::from_nanos(990));
        assert_eq!(summary.p999(), Duration::from_nanos(999));
        assert_eq!(summary.longest(), Duration::from_nanos(1000));
        assert!(Summary::of(&mut []).is_none());
    }

    proptest! {
        #[test]
        fn a_percentile_leaves_the_right_share_above(
            mut samples in prop::collection::vec(0_u64..1_000_000, 1..3000),
        ) {
            let summary = Summary::of(&mut samples).unwrap();
            let not_above = |limit: Duration| {
                samples.iter().filter(|sample| **sample <= limit.as_nanos()).count() as f64
            };
            let all = samples.len() as f64;
            prop_assert!(not_above(summary.median()) >= 0.5 * all);
            prop_assert!(not_above(summary.p99()) >= 0.99 * all);
            prop_assert!(not_above(summary.p999()) >= 0.999 * all);
            prop_assert!(summary.p10() <= summary.median());
            prop_assert!(summary.median() <= summary.p99());
            prop_assert!(summary.p99() <= summary.p999());
            prop_assert!(summary.p999() <= summary.longest());
        }
    }
}
