//! Whether a failed call is made again.

use super::error::CallError;
use crate::executed::Executed;
use crate::status::Code;

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

/// A token bucket: each call adds a fraction of a token, each retry takes one.
#[derive(Clone, Debug)]
pub(super) struct RetryBudget {
    tokens: f64,
    ratio: f64,
    burst: f64,
}

impl RetryBudget {
    pub(super) fn new(config: &RetryConfig) -> Self {
        let burst = f64::from(config.budget_burst);
        Self {
            tokens: burst,
            ratio: config.budget_ratio.clamp(0.0, 1.0),
            burst,
        }
    }

    /// A new call begins.
    pub(super) fn deposit(&mut self) {
        self.tokens = (self.tokens + self.ratio).min(self.burst);
    }

    /// Takes a token for a retry, if there is one.
    pub(super) fn withdraw(&mut self) -> bool {
        let has_token = self.tokens >= 1.0;
        if has_token {
            self.tokens -= 1.0;
        }
        has_token
    }
}

/// What a failure says about making the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Not safe, or without use.
    Never,
    /// The call was not sent.
    NotSent,
    /// A draining server refused the call.
    Moved,
    /// The retry adds load.
    Costs,
}

/// Returns what a failure says about making the call again.
pub(super) fn retry(error: &CallError, is_idempotent: bool) -> Retry {
    match error {
        CallError::NotBegun(_) => Retry::NotSent,
        CallError::Status { status, executed } => match (executed, status.code) {
            (Executed::No, Code::Unavailable) => Retry::Moved,
            (Executed::No, Code::ResourceExhausted) => Retry::Costs,
            (_, Code::Unavailable) if is_idempotent => Retry::Costs,
            _ => Retry::Never,
        },
        CallError::Connection { .. } | CallError::Reset(_) if error.executed() == Executed::No => {
            Retry::Moved
        }
        CallError::Connection { .. } | CallError::Reset(_) if is_idempotent => Retry::Costs,
        _ => Retry::Never,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::status::Status;

    fn refused(code: Code, executed: Executed) -> CallError {
        CallError::Status {
            status: Status::new(code, ""),
            executed,
        }
    }

    fn lost(executed: Executed) -> CallError {
        CallError::Connection {
            error: weir_net::ConnectionError::EndpointGone,
            executed,
        }
    }

    #[test]
    fn only_safe_calls_are_made_again() {
        let not_sent = CallError::NotBegun(weir_net::ConnectionError::EndpointGone);
        assert_eq!(retry(&not_sent, false), Retry::NotSent);
        let draining = refused(Code::Unavailable, Executed::No);
        assert_eq!(retry(&draining, false), Retry::Moved);
        let overload = refused(Code::ResourceExhausted, Executed::No);
        assert_eq!(retry(&overload, false), Retry::Costs);
        assert_eq!(retry(&lost(Executed::No), false), Retry::Moved);
        let late = CallError::Reset(weir_net::SHUT_DOWN);
        assert_eq!(retry(&late, false), Retry::Moved);
        for unsafe_error in [
            refused(Code::Unavailable, Executed::Yes),
            lost(Executed::Maybe),
            CallError::Reset(1),
        ] {
            assert_eq!(retry(&unsafe_error, false), Retry::Never, "{unsafe_error}");
            assert_eq!(retry(&unsafe_error, true), Retry::Costs, "{unsafe_error}");
        }
        for useless in [
            refused(Code::NotFound, Executed::Yes),
            refused(Code::Unimplemented, Executed::No),
            refused(Code::ResourceExhausted, Executed::Yes),
            CallError::DeadlinePassed {
                after: weir_units::Duration::ZERO,
                executed: Executed::No,
            },
        ] {
            assert_eq!(retry(&useless, true), Retry::Never, "{useless}");
        }
    }

    proptest! {
        #[test]
        fn retries_stay_within_the_budget(
            steps in prop::collection::vec(any::<bool>(), 0..2000),
            ratio in 0.0f64..1.0,
            burst in 0u32..50,
        ) {
            let mut budget = RetryBudget::new(&RetryConfig {
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
