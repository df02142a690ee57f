//! Network namespaces without names.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::NetworkError;

/// A network namespace. It lives as long as this descriptor, or a process in it.
#[derive(Debug)]
pub(super) struct Namespace {
    file: File,
}

impl Namespace {
    /// Makes a namespace, without IPv6: an interface with IPv6 sends packets on its own.
    ///
    /// # Errors
    /// No privilege, or no namespaces in this kernel.
    pub(super) fn new() -> Result<Self, NetworkError> {
        let file = on_thread(|| {
            // SAFETY: this leaves only the calling thread's network namespace; no descriptor table,
            // memory or stack is unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(NetworkError::of_namespace)?;
            without_ipv6().map_err(NetworkError::system("turning IPv6 off"))?;
            File::open("/proc/thread-self/ns/net")
                .map_err(NetworkError::system("opening a network namespace"))
        })?;
        Ok(Self { file })
    }

    /// Returns a path by which other processes can open it while this process holds it.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.descriptor()).into()
    }

    /// Returns the descriptor, for messages to the kernel.
    pub(super) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Runs `work` on a thread of its own in the namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetworkError> {
        on_thread(|| {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(NetworkError::system("entering a network namespace"))?;
            Ok(work())
        })
    }
}

/// Turns IPv6 off in the calling thread's namespace, if the kernel has it.
fn without_ipv6() -> io::Result<()> {
    for scope in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
        match fs::write(path, "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Runs `work` on a thread of its own, whose namespace ends with it; passes a panic on.
pub(super) fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| resume_unwind(panic))
}
