//! Counters of a server.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a server since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Requests whose header has arrived.
    pub requests: u64,
    /// Requests that are being answered now.
    pub running: u64,
    /// Requests that the client gave up before the response was sent.
    pub cancelled: u64,
    /// Services that panicked; their requests are reset with `H3_INTERNAL_ERROR`.
    pub panicked: u64,
    /// Requests that broke the rules of HTTP/3, were too large, or did not arrive in time.
    pub malformed: u64,
    /// Requests that were refused because the server shuts down.
    pub refused: u64,
    /// Responses whose body failed, or whose header or trailers are larger than their client takes.
    pub failed: u64,
    /// Responses that were given up at their [`ResponseDeadline`](crate::ResponseDeadline).
    pub expired: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    running: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) panicked: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) expired: AtomicU64,
}

/// A request that is being answered.
pub(super) struct Running<'a> {
    count: &'a AtomicU64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// A request is being answered for as long as this value lives.
    pub(super) fn run(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running {
            count: &self.running,
        }
    }

    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> ServerStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ServerStats {
            requests: get(&self.requests),
            running: get(&self.running),
            cancelled: get(&self.cancelled),
            panicked: get(&self.panicked),
            malformed: get(&self.malformed),
            refused: get(&self.refused),
            failed: get(&self.failed),
            expired: get(&self.expired),
        }
    }
}
