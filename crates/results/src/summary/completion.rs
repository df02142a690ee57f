//! Completion times of transfers.

use serde::{Deserialize, Serialize};
use weir_units::Duration;

use crate::serialized::seconds;

/// Times from a transfer's start until its last byte arrived. A percentile is the shortest time
/// that at least that fraction of the transfers did not exceed (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionTimes {
    /// The sum.
    #[serde(rename = "total_s", with = "seconds", default)]
    pub total: Duration,
    /// The mean.
    #[serde(rename = "mean_s", with = "seconds")]
    pub mean: Duration,
    /// The median.
    #[serde(rename = "p50_s", with = "seconds")]
    pub p50: Duration,
    /// The 95th percentile.
    #[serde(rename = "p95_s", with = "seconds")]
    pub p95: Duration,
    /// The 99th percentile.
    #[serde(rename = "p99_s", with = "seconds")]
    pub p99: Duration,
    /// The 99.9th percentile.
    #[serde(rename = "p999_s", with = "seconds")]
    pub p999: Duration,
    /// The maximum.
    #[serde(rename = "max_s", with = "seconds")]
    pub max: Duration,
}

impl CompletionTimes {
    /// Computes the statistics of these times and sorts them; `None` if there are none.
    pub fn of(times: &mut [Duration]) -> Option<Self> {
        times.sort_unstable();
        let max = *times.last()?;
        let sum: u128 = times.iter().map(|time| u128::from(time.as_nanos())).sum();
        let mean = sum / times.len() as u128;
        let per_mille = |part: usize| {
            let rank = (times.len().saturating_mul(part)).div_ceil(1000);
            times.get(rank.saturating_sub(1)).copied().unwrap_or(max)
        };
        Some(Self {
            total: Duration::from_nanos(u64::try_from(sum).unwrap_or(u64::MAX)),
            mean: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            p50: per_mille(500),
            p95: per_mille(950),
            p99: per_mille(990),
            p999: per_mille(999),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_recorded_times() {
        let mut times: Vec<Duration> = (1..=1000).rev().map(Duration::from_micros).collect();
        let of = CompletionTimes::of(&mut times).unwrap();
        assert_eq!(of.mean, Duration::from_nanos(500_500));
        assert_eq!(of.total, Duration::from_micros(500_500));
        assert_eq!(of.p50, Duration::from_micros(500));
        assert_eq!(of.p95, Duration::from_micros(950));
        assert_eq!(of.p99, Duration::from_micros(990));
        assert_eq!(of.p999, Duration::from_micros(999));
        assert_eq!(of.max, Duration::from_micros(1000));
    }

    #[test]
    fn a_single_time_is_every_percentile() {
        let time = Duration::MAX;
        let of = CompletionTimes::of(&mut [time]).unwrap();
        assert_eq!([of.mean, of.p50, of.p99, of.max], [time; 4]);
        assert_eq!(CompletionTimes::of(&mut []), None);
    }
}
