//! The low-latency setting: looking for a reply for a while before going to sleep.
//!
//! Waking a sleeping core costs some 20 µs, as long as a round trip on a fabric. With the setting,
//! while a reply is due on any connection, the driver asks the socket again and again, for at
//! most the time set after the last packet that calls for a reply. Between two tries it gives way
//! twice: to the other tasks of its runtime, and by `sched_yield` to the other threads of its
//! core, as a peer on the same core could not answer otherwise.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir_units::{Duration, Time};

use crate::send_queue::SendQueue;

#[derive(Debug)]
pub(crate) struct Spin {
    span: Duration,
    /// Connections on which a reply is due.
    due: AtomicUsize,
    /// Until when it is worth looking for one, in nanoseconds.
    until: AtomicU64,
    /// How long the driver looked in vain or not, in nanoseconds.
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

    /// A connection was active: whether a reply was due on it before, and is now.
    pub(crate) fn note<L>(&self, was_due: bool, due: bool, now: Time, queue: &SendQueue<L>) {
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
            // A driver that sleeps would notice the reply too late.
            queue.wake();
        }
    }

    /// Whether the driver should look again instead of sleeping.
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
