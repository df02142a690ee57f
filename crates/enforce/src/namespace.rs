//! Work in the network namespace of an interface, whichever thread asks for it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace.
#[derive(Debug)]
pub(crate) struct NetworkNamespace(File);

impl NetworkNamespace {
    /// Returns that of the calling thread.
    pub(crate) fn of_this_thread() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Runs a closure in it, in a separate thread: this one may be in another namespace, and has to stay
    /// there. Returns `None` if the namespace cannot be entered.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.0.as_fd(), kind).ok()?;
                Some(work())
            });
            thread.join().ok().flatten()
        })
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
