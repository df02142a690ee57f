//! A distribution of amounts in bounded memory, and its quantiles.

use std::collections::BTreeMap;

use crate::Estimate;
use crate::order_statistics::ranks;

/// Each power of two has this many bins: a quantile is right within 1.6 %.
const BINS: u64 = 64;

/// How many values are in each bin. Bins are found by logarithm, so that there are at most 3,776.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    bins: BTreeMap<u16, u64>,
    count: u64,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        *self.bins.entry(bin(value)).or_default() += 1;
        self.count += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (bin, count) in &other.bins {
            let own = self.bins.entry(*bin).or_default();
            *own = own.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
    }

    /// Returns the bins and how many values are in each.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u16, u64)> {
        self.bins.iter().map(|(bin, count)| (*bin, *count))
    }

    /// Creates a histogram from bins; `None` if there is no such bin, or if the counts are too many.
    pub(crate) fn of_bins(bins: impl IntoIterator<Item = (u16, u64)>) -> Option<Self> {
        let mut histogram = Self::default();
        for (number, count) in bins {
            if number > bin(u64::MAX) || count == 0 {
                return None;
            }
            histogram.count = histogram.count.checked_add(count)?;
            *histogram.bins.entry(number).or_default() += count;
        }
        Some(histogram)
    }

    /// Returns the quantile below which a `part` of the values are, as so many base units each; `None`
    /// without values.
    ///
    /// The ends of the interval are order statistics (David and Nagaraja, "Order Statistics", section 7.1):
    /// it assumes nothing about the distribution.
    pub(crate) fn quantile(&self, part: f64, unit: f64) -> Option<Estimate> {
        let nearest = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let (first, last) = ranks(self.count, part);
        let (lowest, highest) = self.edges(nearest)?;
        let value = (lowest as f64 + highest as f64) / 2.0;
        let low = first
            .and_then(|rank| self.edges(rank))
            .map_or(0, |edges| edges.0);
        let high = last.and_then(|rank| self.edges(rank));
        Some(Estimate {
            value: value * unit,
            low: low as f64 * unit,
            high: high.map_or(f64::INFINITY, |edges| edges.1 as f64 * unit),
            connections: self.count,
        })
    }

    /// Returns the smallest and the largest value of the bin of the value with this rank, from 1 on.
    fn edges(&self, rank: u64) -> Option<(u64, u64)> {
        let mut upto = 0;
        let found = self.bins.iter().find(|(_, count)| {
            upto += **count;
            upto >= rank
        });
        found.map(|(bin, _)| edges(*bin))
    }
}

fn bin(value: u64) -> u16 {
    let shift = value.max(BINS).ilog2() - BINS.ilog2();
    // At most 58 * 64 - 1.
    (u64::from(shift) * BINS + (value >> shift)) as u16
}

/// Returns the smallest and the largest value of a bin.
fn edges(bin: u16) -> (u64, u64) {
    let bin = u64::from(bin);
    let shift = (bin / BINS).saturating_sub(1);
    let lowest = (bin - shift * BINS) << shift;
    (lowest, lowest + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_values_have_half_open_intervals() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5, 1.0), None);
        for value in 1..=5 {
            histogram.add(value);
        }
        let median = histogram.quantile(0.5, 2.0).unwrap();
        assert_eq!(
            (median.value, median.low, median.high),
            (6.0, 0.0, f64::INFINITY)
        );
        for value in 6..=100 {
            histogram.add(value);
        }
        let median = histogram.quantile(0.5, 1.0).unwrap();
        assert_eq!((median.value, median.low, median.high), (50.0, 40.0, 61.0));
    }

    proptest! {
        #[test]
        fn a_bin_holds_its_values_and_is_narrow(value: u64) {
            let (lowest, highest) = edges(bin(value));
            prop_assert!(lowest <= value && value <= highest, "{} {} {}", lowest, value, highest);
            prop_assert!(highest - lowest <= lowest / BINS);
        }

        #[test]
        fn merging_adds_the_values(one in proptest::collection::vec(any::<u64>(), 0..50), other in proptest::collection::vec(0_u64..1000, 0..50)) {
            let of = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|value| histogram.add(*value));
                histogram
            };
            let mut merged = of(&one);
            merged.merge(&of(&other));
            prop_assert_eq!(merged, of(&[one, other].concat()));
        }
    }
}
