//! Events that qlog files could not take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events that no file has.
#[derive(Debug, Default)]
pub(crate) struct LostEvents {
    count: AtomicU64,
    said: AtomicBool,
}

impl LostEvents {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, events: u64, reason: &str) {
        self.count.fetch_add(events, Ordering::Relaxed);
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                reason,
                "qlog files of this endpoint are incomplete from now on"
            );
        }
    }
}
