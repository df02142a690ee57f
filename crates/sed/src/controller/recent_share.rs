//! What flows without deadline have had of a link lately.
//!
//! Their share is promised over seconds. A deadline is often nearer: flows that had the whole link before it do not
//! need their share until then.

use weir_units::{Duration, Time};

/// Bytes count for less and less: after this long, for 1/e.
const MEMORY: Duration = Duration::from_secs(1);

/// The bytes of a port that were acknowledged lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentShare {
    updated_at: Time,
    all: f64,
    best_effort: f64,
}

impl RecentShare {
    /// Takes newly acknowledged bytes: of all flows, and of these, of the ones without deadline ahead.
    pub(super) fn update(&mut self, now: Time, all: u64, best_effort: u64) {
        let passed = now.since(self.updated_at);
        if !passed.is_zero() {
            let left = (-(passed.as_nanos() as f64) / MEMORY.as_nanos() as f64).exp();
            self.all *= left;
            self.best_effort *= left;
            self.updated_at = now;
        }
        self.all += all as f64;
        self.best_effort += best_effort as f64;
    }

    /// Returns whether flows without deadline have had at least this part.
    pub(super) fn is_at_least(&self, part: f64) -> bool {
        self.all > 0.0 && self.best_effort >= part * self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flows_had_before_counts_for_some_seconds() {
        let mut share = RecentShare::default();
        assert!(!share.is_at_least(0.05), "nothing is known");
        let mut now = Time::ZERO;
        let mut pass = |share: &mut RecentShare, millis: u64, best_effort: u64| {
            for _ in 0..millis {
                now += Duration::from_millis(1);
                share.update(now, 100, best_effort);
            }
        };
        pass(&mut share, 1000, 100);
        pass(&mut share, 2500, 1);
        assert!(share.is_at_least(0.05));
        pass(&mut share, 1000, 1);
        assert!(!share.is_at_least(0.05));
        pass(&mut share, 500, 20);
        assert!(share.is_at_least(0.05));
    }
}
