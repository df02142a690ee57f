//! A histogram of durations.

use weir_units::Duration;

/// The bits of a duration that its bin keeps below the leading one: a bin is at most 1.6 % wide.
const PRECISION: u32 = 5;
const BINS: usize = (65 - PRECISION as usize) << PRECISION;

/// A histogram of durations: percentiles to two percent, the maximum exactly.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    bins: Box<[u64; BINS]>,
    count: u64,
    pub(super) maximum: Duration,
}

impl Distribution {
    pub(super) fn new() -> Self {
        Self {
            bins: Box::new([0; BINS]),
            count: 0,
            maximum: Duration::ZERO,
        }
    }

    /// Counts one duration.
    #[inline]
    pub(super) fn record(&mut self, span: Duration) {
        if let Some(bin) = self.bins.get_mut(bin_of(span.as_nanos())) {
            *bin += 1;
        }
        self.count += 1;
        self.maximum = self.maximum.max(span);
    }

    /// Returns the duration that this fraction of the samples does not exceed; zero without samples.
    pub(super) fn percentile(&self, fraction: f64) -> Duration {
        let wanted = ((self.count as f64 * fraction).ceil() as u64).clamp(1, self.count.max(1));
        let mut passed = 0;
        let bin = self.bins.iter().position(|&count| {
            passed += count;
            passed >= wanted
        });
        let largest = bin.map_or(0, largest_in);
        Duration::from_nanos(largest).min(self.maximum)
    }
}

fn bin_of(nanos: u64) -> usize {
    let shift = (nanos >> PRECISION).checked_ilog2().unwrap_or(0);
    ((shift as usize) << PRECISION) + (nanos >> shift) as usize
}

/// Returns the largest duration of a bin, in nanoseconds.
fn largest_in(bin: usize) -> u64 {
    let shift = (bin >> PRECISION).saturating_sub(1);
    let leading = (bin - (shift << PRECISION)) as u128;
    u64::try_from(((leading + 1) << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bins_are_narrow_and_in_order(nanos: u64) {
            let bin = bin_of(nanos);
            prop_assert!(bin < BINS);
            prop_assert!(nanos <= largest_in(bin) && largest_in(bin) - nanos <= nanos / 32);
            prop_assert!(nanos == u64::MAX || bin_of(nanos + 1) - bin <= 1);
        }

        #[test]
        fn percentiles_match_the_sorted_list(
            mut spans in prop::collection::vec(0_u64..10_000_000, 1..200),
            fraction in 0.0..=1.0f64,
        ) {
            let mut distribution = Distribution::new();
            for span in &spans {
                distribution.record(Duration::from_nanos(*span));
            }
            spans.sort_unstable();
            let rank = ((spans.len() as f64 * fraction).ceil() as usize).max(1);
            let (found, exact) = (distribution.percentile(fraction).as_nanos(), spans[rank - 1]);
            prop_assert!(found >= exact && found - exact <= exact / 32);
            prop_assert_eq!(distribution.percentile(1.0), distribution.maximum);
        }
    }

    #[test]
    fn an_empty_distribution_has_percentile_zero() {
        assert_eq!(Distribution::new().percentile(0.5), Duration::ZERO);
    }
}
