//! What the two halves of a request's stream share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No fault.
const NONE: u64 = u64::MAX;

/// The state of a request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Whether the header of a request is awaited, at a server. Until then only `h3` answers, and drops
    /// the stream without an end.
    is_awaited: AtomicBool,
    /// The code of what the peer did wrong: that of our reset.
    fault: AtomicU64,
}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            is_awaited: AtomicBool::new(false),
            fault: AtomicU64::new(NONE),
        }
    }
}

impl Exchange {
    /// A server waits for the header of the request.
    pub(crate) fn set_awaited(&self, is_awaited: bool) {
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
    }

    pub(super) fn is_answered_by_h3(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    pub(super) fn set_fault(&self, code: u64) {
        self.fault.store(code, Ordering::Relaxed);
    }

    pub(super) fn fault(&self) -> Option<u64> {
        let code = self.fault.load(Ordering::Relaxed);
        (code != NONE).then_some(code)
    }
}
