//! Repetitions whose values fall into two groups: the scenario is bistable, and its mean describes neither.

use serde::Serialize;

/// The gap between the groups, in spans of the wider one.
const GAP: f64 = 3.0;
/// The gap between the groups, as a part of the largest value.
const SMALLEST_GAP: f64 = 0.1;

/// Two groups of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TwoGroups {
    /// The mean of the lower values.
    pub low: f64,
    /// How many there are.
    pub low_count: usize,
    /// The mean of the higher values.
    pub high: f64,
    /// How many there are.
    pub high_count: usize,
}

impl TwoGroups {
    /// Returns the groups, if the values fall into two: each has two values at least, and the gap between
    /// them is three times as wide as either and a tenth of the largest value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let gap_before = |index: &usize| sorted[*index] - sorted[*index - 1];
        let split = (2..sorted.len().saturating_sub(1))
            .max_by(|one, other| gap_before(one).total_cmp(&gap_before(other)))?;
        let (low, high) = sorted.split_at(split);
        let span = |values: &[f64]| values[values.len() - 1] - values[0];
        let (gap, widest) = (gap_before(&split), span(low).max(span(high)));
        let largest = sorted
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        (gap >= GAP * widest && gap >= SMALLEST_GAP * largest && gap > 0.0).then(|| Self {
            low: mean(low),
            low_count: low.len(),
            high: mean(high),
            high_count: high.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_a_wide_gap_are_two_groups() {
        let groups = TwoGroups::of(&[0.21, 0.8, 0.19, 0.81, 0.2]).unwrap();
        assert_eq!((groups.low_count, groups.high_count), (3, 2));
        assert!((groups.low - 0.2).abs() < 1e-9 && (groups.high - 0.805).abs() < 1e-9);
    }

    #[test]
    fn values_that_only_vary_are_one() {
        for values in [
            &[][..],
            &[1.0],
            &[1.0, 2.0],
            &[1.0, 1.0, 9.0],
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            &[1.0, 1.0, 1.0, 1.0],
            &[100.0, 100.1, 101.0, 101.1],
            // One that stands apart is no group.
            &[1.0, 1.0, 1.0, 1.0, 9.0],
        ] {
            assert_eq!(TwoGroups::of(values), None, "{values:?}");
        }
    }
}
