//! Counter of events missing from qlog files.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events missing from qlog files.
#[derive(Debug, Default)]
pub(crate) struct LostEvents {
    count: AtomicU64,
    warned: AtomicBool,
}

impl LostEvents {
    /// Returns their number.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, events: u64, reason: &str) {
        self.count.fetch_add(events, Ordering::Relaxed);
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                reason,
                "qlog files of this endpoint are incomplete from now on"
            );
        }
    }
}
