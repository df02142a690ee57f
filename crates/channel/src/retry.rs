//! How many failed calls are made again.

use std::sync::atomic::{AtomicU64, Ordering};

/// When failed calls are made again. A call is only made again where that is safe: it was not
/// sent, the server refused it before its handler began, or it is marked idempotent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryConfig {
    /// How often a call is sent at most; 4 by default, 1 for never again.
    pub max_attempts: u32,
    /// How many calls are made again for each new one in the long run; 0.1 by default. A retry that
    /// adds no load does not count: that of a call that was not sent, or that a draining server
    /// refused.
    pub budget_ratio: f64,
    /// How many calls may be made again at once, before the ratio counts; 100 by default.
    pub budget_burst: u32,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            budget_ratio: 0.1,
            budget_burst: 100,
        }
    }
}

/// A token bucket that tasks share: each call adds a fraction of a token, each retry takes one.
#[derive(Debug)]
pub struct RetryBudget {
    /// The bits of an `f64`.
    tokens: AtomicU64,
    ratio: f64,
    burst: f64,
}

impl RetryBudget {
    /// Creates a full budget.
    pub fn new(config: &RetryConfig) -> Self {
        let burst = f64::from(config.budget_burst);
        Self {
            tokens: AtomicU64::new(burst.to_bits()),
            ratio: config.budget_ratio.clamp(0.0, 1.0),
            burst,
        }
    }

    /// A new call begins.
    pub fn deposit(&self) {
        // A budget that is full, as it usually is, is only read.
        self.update(|tokens| (tokens < self.burst).then(|| (tokens + self.ratio).min(self.burst)));
    }

    /// Takes a token for a retry, if there is one.
    #[must_use = "without a token the call is not to be made again"]
    pub fn withdraw(&self) -> bool {
        self.update(|tokens| (tokens >= 1.0).then_some(tokens - 1.0))
    }

    /// Changes the tokens, or leaves them; returns whether it changed them.
    fn update(&self, change: impl Fn(f64) -> Option<f64>) -> bool {
        let change = |bits| change(f64::from_bits(bits)).map(f64::to_bits);
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        self.tokens.fetch_update(set, get, change).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn retries_stay_within_the_budget(
            steps in prop::collection::vec(any::<bool>(), 0..2000),
            ratio in 0.0f64..1.0,
            burst in 0u32..50,
        ) {
            let budget = RetryBudget::new(&RetryConfig {
                budget_ratio: ratio,
                budget_burst: burst,
                ..RetryConfig::default()
            });
            let (mut calls, mut retries) = (0u32, 0u32);
            for is_call in steps {
                if is_call {
                    calls += 1;
                    budget.deposit();
                } else {
                    retries += u32::from(budget.withdraw());
                }
                let most = f64::from(burst) + f64::from(calls) * ratio;
                prop_assert!(f64::from(retries) <= most + 1e-6);
            }
        }
    }
}
