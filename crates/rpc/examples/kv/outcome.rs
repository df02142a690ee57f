//! What a load has seen. The example `grpc-kv` has it too.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_net::Duration;

use super::Failure;

/// Counts of the calls that went wrong, and whether to make more.
#[derive(Default)]
pub(crate) struct Outcome {
    stopped: AtomicBool,
    failed: AtomicU64,
    wrong: AtomicU64,
}

impl Outcome {
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A call failed.
    pub(crate) fn add_failure(&self, error: &impl Display) {
        println!("a call failed: {error}");
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer was not what had been written.
    pub(crate) fn add_wrong_answer(&self) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
    }

    /// Prints the result; `channel` says what the channel did.
    pub(crate) fn report(
        &self,
        channel: &str,
        mut latencies: Vec<Duration>,
        keys: usize,
    ) -> Result<(), Failure> {
        latencies.sort_unstable();
        let calls = latencies.len();
        let quantile = |per_mille: usize| {
            let latency = latencies.get(calls * per_mille / 1000);
            latency.copied().unwrap_or_default().as_micros()
        };
        let failed = self.failed.load(Ordering::Relaxed);
        let wrong = self.wrong.load(Ordering::Relaxed);
        println!(
            "{calls} calls, {failed} failed, {wrong} wrong answers, {channel}; \
             p50 {} us, p99 {} us, p99.9 {} us; {keys} keys",
            quantile(500),
            quantile(990),
            quantile(999),
        );
        match failed + wrong {
            0 => Ok(()),
            count => Err(format!("{count} calls went wrong").into()),
        }
    }
}
