//! Slowdowns: completion times in relation to those on the empty network.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration};

use crate::Ratio;

/// Returns how many times as long a transfer took as on the empty network; `None` if it would have taken no time.
pub(crate) fn slowdown(took: Duration, ideal: Duration) -> Option<Ratio> {
    Ratio::new(took.as_nanos() as f64 / ideal.as_nanos() as f64)
}

/// A transfer of a given size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTime {
    /// Its size.
    pub size: ByteSize,
    /// The time that it would take on the empty network.
    pub ideal: Duration,
    /// The time that it took; `None` if it was not complete.
    pub took: Option<Duration>,
}

/// The slowdowns of a group's transfers, in all and by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdowns {
    /// Those of all sizes.
    #[serde(flatten)]
    pub all: SlowdownStatistics,
    /// Those of sizes up to the one in the name, and above the one before; the last one has no upper end. Absent
    /// without transfers of such sizes.
    pub sizes: IndexMap<String, SlowdownStatistics>,
}

/// Slowdowns of complete transfers, and the number of the others. A percentile is the smallest slowdown that at least
/// that fraction of the complete transfers did not exceed (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowdownStatistics {
    /// Complete transfers.
    pub completed: u64,
    /// Transfers that had begun and were not complete at the end: they are not in the other figures.
    pub unfinished: u64,
    /// The mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Ratio>,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Ratio>,
    /// The 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<Ratio>,
    /// The 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Ratio>,
    /// The maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Ratio>,
}

/// The upper ends of the classes of sizes, in bytes.
const ENDS: [u64; 7] = [
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    u64::MAX,
];
/// The name of the class above.
const ABOVE: &str = "above";

/// The names of all classes, the smallest sizes first.
pub(crate) const SIZE_NAMES: [&str; 7] = ["1KB", "10KB", "100KB", "1MB", "10MB", "100MB", ABOVE];

impl Slowdowns {
    /// Computes the statistics of these transfers; `None` if there are none.
    pub fn of(transfers: &[TransferTime]) -> Option<Self> {
        if transfers.is_empty() {
            return None;
        }
        let mut least = 0;
        let mut sizes = IndexMap::new();
        for (most, name) in ENDS.into_iter().zip(SIZE_NAMES) {
            let within = transfers.iter().filter(|transfer| {
                let size = transfer.size.bytes();
                (least == 0 || size > least) && size <= most
            });
            let statistics = SlowdownStatistics::of(within);
            if statistics.completed + statistics.unfinished > 0 {
                sizes.insert(name.to_owned(), statistics);
            }
            least = most;
        }
        Some(Self {
            all: SlowdownStatistics::of(transfers.iter()),
            sizes,
        })
    }
}

impl SlowdownStatistics {
    fn of<'t>(transfers: impl Iterator<Item = &'t TransferTime>) -> Self {
        let mut found = Vec::new();
        let mut unfinished = 0;
        for transfer in transfers {
            match transfer.took {
                Some(took) => found.extend(slowdown(took, transfer.ideal).map(Ratio::value)),
                None => unfinished += 1,
            }
        }
        found.sort_unstable_by(f64::total_cmp);
        let percentile = |percent: usize| {
            let rank = found.len().saturating_mul(percent).div_ceil(100);
            Ratio::new(*found.get(rank.saturating_sub(1))?)
        };
        Self {
            completed: found.len() as u64,
            unfinished,
            // Without any this is 0/0, which `new` rejects.
            mean: Ratio::new(found.iter().sum::<f64>() / found.len() as f64),
            p50: percentile(50),
            p95: percentile(95),
            p99: percentile(99),
            max: percentile(100),
        }
    }
}

/// Returns the upper end of a class of sizes in bytes; for the open one, ten times that of the class before.
pub(crate) fn size_value(name: &str) -> f64 {
    let place = SIZE_NAMES.iter().position(|found| *found == name);
    match place.and_then(|place| ENDS.get(place).copied()) {
        Some(end) if end < u64::MAX => end as f64,
        _ => 10.0 * ENDS.iter().rev().nth(1).copied().unwrap_or(1) as f64,
    }
}

/// Returns the upper end of a class of sizes as a label.
pub(crate) fn size_end(name: &str) -> &str {
    if name == ABOVE { "\u{221e}" } else { name }
}

/// Returns a class of sizes in words: `10KB-100KB`.
pub(crate) fn size_range(name: &str) -> String {
    let position = SIZE_NAMES.iter().position(|found| *found == name);
    let before = position.and_then(|position| SIZE_NAMES.get(position.checked_sub(1)?));
    match before {
        None => format!("up to {name}"),
        Some(before) if name == ABOVE => format!("above {before}"),
        Some(before) => format!("{before} to {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(size: u64, took: Option<u64>) -> TransferTime {
        TransferTime {
            size: ByteSize::from_bytes(size),
            ideal: Duration::from_micros(10),
            took: took.map(Duration::from_micros),
        }
    }

    #[test]
    fn unfinished_transfers_are_counted_beside_the_others() {
        let mut transfers: Vec<_> = (1..=100).map(|n| transfer(10_000, Some(n * 10))).collect();
        transfers.push(transfer(10_001, None));
        transfers.push(transfer(200_000_000, Some(15)));
        let slowdowns = Slowdowns::of(&transfers).unwrap();
        let names: Vec<_> = slowdowns.sizes.keys().map(String::as_str).collect();
        assert_eq!(names, ["10KB", "100KB", "above"]);
        let small = slowdowns.sizes["10KB"];
        let value = |ratio: Option<Ratio>| ratio.map(Ratio::value);
        assert_eq!((small.completed, small.unfinished), (100, 0));
        assert_eq!(
            (value(small.p50), value(small.p99)),
            (Some(50.0), Some(99.0))
        );
        assert_eq!(
            (value(small.mean), value(small.max)),
            (Some(50.5), Some(100.0))
        );
        let middle = slowdowns.sizes["100KB"];
        assert_eq!(
            (middle.completed, middle.unfinished, middle.p50),
            (0, 1, None)
        );
        assert_eq!(value(slowdowns.sizes["above"].p50), Some(1.5));
        assert_eq!(
            (slowdowns.all.completed, slowdowns.all.unfinished),
            (101, 1)
        );
        assert_eq!(Slowdowns::of(&[]), None);
    }

    #[test]
    fn sizes_are_named_by_their_ends() {
        let names = ["1KB", "10KB", "above"].map(size_range);
        assert_eq!(names, ["up to 1KB", "1KB to 10KB", "above 100MB"]);
    }
}
