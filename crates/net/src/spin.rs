//! The low-latency setting: busy polling for a reply before sleeping.
//!
//! Waking a sleeping core costs some 20 µs, as long as an RTT on a fabric. With the setting, while
//! a connection expects a reply, the driver polls the socket repeatedly, for at most the configured
//! time after the last packet that calls for a reply. Between two polls it yields twice: to the
//! other tasks of its runtime, and by `sched_yield` to the other threads of its core, as a peer on
//! the same core could not answer otherwise.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir_units::{Duration, Time};

use crate::driver_queue::DriverQueue;

#[derive(Debug)]
pub(crate) struct Spin {
    span: Duration,
    /// Connections that expect a reply.
    due: AtomicUsize,
    /// When polling ends, in nanoseconds.
    until: AtomicU64,
    /// Time spent polling, in nanoseconds, successful or not.
    spent: AtomicU64,
}

impl Spin {
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            span,
            due: AtomicUsize::new(0),
            until: AtomicU64::new(0),
            spent: AtomicU64::new(0),
        }
    }

    /// Notes an active connection: whether it expected a reply before, and does now.
    pub(crate) fn note<T>(&self, was_due: bool, due: bool, now: Time, queue: &DriverQueue<T>) {
        match (was_due, due) {
            (false, true) => {
                self.due.fetch_add(1, Ordering::Relaxed);
            }
            (true, false) => {
                self.due.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
        if due {
            let until = (now + self.span).as_nanos();
            self.until.fetch_max(until, Ordering::Relaxed);
            // A sleeping driver would notice the reply too late.
            queue.wake();
        }
    }

    /// Returns whether the driver should poll again instead of sleeping.
    pub(crate) fn is_on(&self, now: Time) -> bool {
        self.due.load(Ordering::Relaxed) > 0 && now.as_nanos() < self.until.load(Ordering::Relaxed)
    }

    pub(crate) fn add_spent(&self, span: Duration) {
        self.spent.fetch_add(span.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }
}
