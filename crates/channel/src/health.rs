//! Whether a connected server answers.

use weir_units::{Duration, Time};

use crate::backoff::{Backoff, BackoffConfig};

/// Failures in a row after which a server is avoided.
const FAILURES: u32 = 5;
/// How long it is avoided.
const AVOIDED: BackoffConfig = BackoffConfig {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(30),
};

/// Counts failures of a server's calls. After five in a row it is avoided for a while, and longer
/// each time; one answer makes up for all.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    failures: u32,
    avoided_until: Time,
    backoff: Backoff,
}

impl Health {
    pub(crate) const fn new() -> Self {
        Self {
            failures: 0,
            avoided_until: Time::ZERO,
            backoff: Backoff::new(AVOIDED),
        }
    }

    pub(crate) fn on_answer(&mut self) {
        self.failures = 0;
        self.avoided_until = Time::ZERO;
        self.backoff.reset();
    }

    pub(crate) fn on_failure(&mut self, now: Time, random: u64) {
        self.failures += 1;
        if self.failures >= FAILURES {
            self.failures = 0;
            self.avoided_until = now + self.backoff.next(random);
        }
    }

    pub(crate) fn is_avoided(&self, now: Time) -> bool {
        now < self.avoided_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_row_count() {
        let mut health = Health::new();
        let now = Time::from_nanos(1_000);
        for _ in 0..3 {
            for _ in 0..4 {
                health.on_failure(now, 0);
            }
            assert!(!health.is_avoided(now));
            health.on_answer();
        }
        for _ in 0..5 {
            health.on_failure(now, 0);
        }
        assert!(health.is_avoided(now));
        let later = now + Duration::from_millis(500);
        assert!(!health.is_avoided(later));
        for _ in 0..5 {
            health.on_failure(later, 0);
        }
        assert!(health.is_avoided(later + Duration::from_millis(999)));
        health.on_answer();
        assert!(!health.is_avoided(later));
    }
}
