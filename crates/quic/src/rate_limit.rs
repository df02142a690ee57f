//! A token bucket for answers to unauthenticated packets.

use weir_units::{Duration, Time};

/// Allows bursts, and then one action per interval.
#[derive(Debug)]
pub(crate) struct RateLimit {
    burst: u64,
    interval: Duration,
    /// When a whole burst is available again.
    replenished: Time,
}

impl RateLimit {
    pub(crate) const fn new(burst: u64, interval: Duration) -> Self {
        Self {
            burst,
            interval,
            replenished: Time::ZERO,
        }
    }

    /// Whether an action is allowed now; it counts then.
    pub(crate) fn allow(&mut self, now: Time) -> bool {
        let replenished = self.replenished.max(now) + self.interval;
        let allowed = replenished.since(now) <= self.interval * self.burst;
        if allowed {
            self.replenished = replenished;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_one_action_per_interval() {
        let mut limit = RateLimit::new(1000, Duration::from_millis(1));
        let mut now = Time::from_nanos(1_000_000_000_000);
        let burst = (0..5000).filter(|_| limit.allow(now)).count();
        assert_eq!(burst, 1000);
        let mut allowed = 0;
        for _ in 0..20_000 {
            now += Duration::from_micros(100);
            allowed += u64::from(limit.allow(now));
        }
        assert!((1999..=2001).contains(&allowed), "{allowed} in two seconds");
        assert!(limit.allow(now + Duration::from_secs(10)));
    }
}
