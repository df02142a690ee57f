//! Counters of a server.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a server since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Calls whose handler began.
    pub executed: u64,
    /// Calls refused before that: at the concurrency limit, or too large.
    pub refused: u64,
    /// Calls of unknown methods.
    pub unimplemented: u64,
    /// Streams whose bytes are no call.
    pub malformed: u64,
    /// Handlers that panicked.
    pub panicked: u64,
    /// Calls that the client cancelled, or whose connection ended, before they had an answer.
    pub cancelled: u64,
    /// Handlers that were dropped at the deadline.
    pub deadline_exceeded: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) executed: Counter,
    pub(super) refused: Counter,
    pub(super) unimplemented: Counter,
    pub(super) malformed: Counter,
    pub(super) panicked: Counter,
    pub(super) cancelled: Counter,
    pub(super) deadline_exceeded: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn stats(&self) -> ServerStats {
        ServerStats {
            executed: self.executed.get(),
            refused: self.refused.get(),
            unimplemented: self.unimplemented.get(),
            malformed: self.malformed.get(),
            panicked: self.panicked.get(),
            cancelled: self.cancelled.get(),
            deadline_exceeded: self.deadline_exceeded.get(),
        }
    }
}
