//! Counters of TCP connections.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of an [`HttpsServer`](crate::HttpsServer)'s TCP connections since it was bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// Connections that were accepted.
    pub accepted: u64,
    /// TLS handshakes that failed, or did not complete in time.
    pub failed_handshakes: u64,
    /// Connections that were closed because no request came for long.
    pub idle: u64,
}

#[derive(Debug, Default)]
pub(super) struct TcpCounters {
    pub(super) accepted: AtomicU64,
    pub(super) failed_handshakes: AtomicU64,
    pub(super) idle: AtomicU64,
}

impl TcpCounters {
    pub(super) fn stats(&self) -> TcpStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TcpStats {
            accepted: get(&self.accepted),
            failed_handshakes: get(&self.failed_handshakes),
            idle: get(&self.idle),
        }
    }
}
