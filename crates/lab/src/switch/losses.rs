//! Frames that a host's kernel did not take, by their cause.

use std::io;

/// Frames that the host's kernel did not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Because it had no room.
    pub(super) full: u64,
    /// Because the interface is down or gone.
    pub(super) down: u64,
}

impl Losses {
    /// No room comes as an error too, where the kernel could not allocate memory.
    pub(super) fn count(&mut self, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENOMEM) => self.full += 1,
            _ => self.down += 1,
        }
    }
}
