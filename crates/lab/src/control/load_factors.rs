//! A load that changes while a flow runs.

use serde::{Deserialize, Serialize};
use weir_units::{Duration, Time};

/// How many times its first load a flow offers, from each of these times on; before them once. The times are in
/// order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoadFactors(pub Vec<(Time, f64)>);

impl LoadFactors {
    /// Whether the load never changes.
    pub fn is_constant(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns when an interval that begins at `from` ends: one of the length `at_first` under the first load.
    /// Where the load changes, what is left becomes shorter or longer in proportion.
    pub fn after(&self, from: Time, at_first: Duration) -> Time {
        let mut factor = 1.0;
        let (mut now, mut left) = (from, at_first);
        for (change, next) in &self.0 {
            if *change > now {
                let until = left.mul_f64(1.0 / factor);
                if now + until <= *change {
                    break;
                }
                let passed = change.since(now).mul_f64(factor);
                left = left.checked_sub(passed).unwrap_or(Duration::ZERO);
                now = *change;
            }
            factor = *next;
        }
        if factor == 1.0 {
            return now + left;
        }
        now + left.mul_f64(1.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_stretched_where_the_load_changes() {
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let load = LoadFactors(vec![(at(100), 2.0), (at(200), 0.5)]);
        let after = |from, interval| load.after(at(from), Duration::from_micros(interval));
        assert_eq!(after(0, 50), at(50));
        assert_eq!(after(0, 100), at(100));
        assert_eq!(after(90, 30), at(110));
        assert_eq!(after(100, 30), at(115));
        // 10 before, 200 in the middle, and 40 that take twice as long.
        assert_eq!(after(90, 250), at(280));
        assert_eq!(after(300, 10), at(320));
        assert_eq!(
            LoadFactors::default().after(at(7), Duration::from_micros(3)),
            at(10)
        );
    }
}
