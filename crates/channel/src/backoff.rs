//! How long to wait before the next try.

use weir_units::Duration;

/// Exponential backoff with jitter: before the n-th try since the last success between half and all
/// of `first` × 2ⁿ⁻¹, at most `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The wait before the second try.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

/// The waits of one who tries again.
#[derive(Clone, Debug)]
pub struct Backoff {
    config: BackoffConfig,
    failures: u32,
}

impl Backoff {
    /// Begins without a failure.
    pub const fn new(config: BackoffConfig) -> Self {
        Self {
            config,
            failures: 0,
        }
    }

    /// Returns how long to wait after a failure; the random number is for the jitter.
    pub fn next(&mut self, random: u64) -> Duration {
        let factor = 1u64.checked_shl(self.failures).unwrap_or(u64::MAX);
        self.failures = self.failures.saturating_add(1);
        let nanos = self.config.first.as_nanos().saturating_mul(factor);
        let nanos = nanos.min(self.config.longest.as_nanos());
        let half = nanos / 2;
        Duration::from_nanos(half + random % (nanos - half).saturating_add(1).max(1))
    }

    /// Begins again after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFIG: BackoffConfig = BackoffConfig {
        first: Duration::from_millis(20),
        longest: Duration::from_secs(5),
    };

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(CONFIG);
        // The largest jitter.
        let waits: Vec<_> = (0..10)
            .map(|_| {
                let ahead = backoff.clone().next(0).as_nanos();
                backoff.next(0);
                ahead * 2 / 1_000_000
            })
            .collect();
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000]);
        backoff.reset();
        assert_eq!(backoff.next(0), Duration::from_millis(10));
    }

    proptest! {
        #[test]
        fn a_wait_is_between_half_and_all(tries in 1u32..200, random: u64) {
            let mut backoff = Backoff::new(CONFIG);
            let mut wait = Duration::ZERO;
            for _ in 0..tries {
                wait = backoff.next(random);
            }
            let all = Duration::from_nanos((20_000_000u64 << (tries - 1).min(20)).min(5_000_000_000));
            prop_assert!(wait <= all && wait.as_nanos() >= all.as_nanos() / 2);
        }

        #[test]
        fn extreme_settings_do_not_panic(first: u64, longest: u64, random: u64) {
            let mut backoff = Backoff::new(BackoffConfig {
                first: Duration::from_nanos(first),
                longest: Duration::from_nanos(longest),
            });
            for _ in 0..70 {
                prop_assert!(backoff.next(random).as_nanos() <= longest);
            }
        }
    }
}
