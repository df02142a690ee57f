//! Counters of frames that a host's kernel did not accept, by cause.

use std::io;

/// Counters of frames that a host's kernel did not accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The kernel had no room.
    pub(super) full: u64,
    /// The interface is down or gone.
    pub(super) down: u64,
}

impl Losses {
    /// Counts a frame lost by `error`. If the kernel cannot allocate memory, it had no room.
    pub(super) fn count(&mut self, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENOMEM) => self.full += 1,
            _ => self.down += 1,
        }
    }
}
