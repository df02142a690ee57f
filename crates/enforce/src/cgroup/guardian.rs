//! The process that undoes what an enforcer has done when that is killed.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open, setsid};

use super::pins::Pins;

/// The command line of a guardian for a directory of the BPF file system; its process calls [`guard`].
pub type GuardianCommand = fn(&Path) -> Command;

/// A running guardian of this process.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
}

impl Guardian {
    /// Starts a guardian. Its standard input is this process, as a file descriptor.
    pub(super) fn start(command: GuardianCommand, directory: &Path) -> io::Result<Self> {
        let this = pidfd_open(getpid(), PidfdFlags::empty())?;
        let child = command(directory)
            .stdin(Stdio::from(this))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { child })
    }

    /// Returns whether it runs still.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // There is nothing left to guard.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the end of the process on standard input, and undoes what that has done to sockets, unless it
/// has done that itself or another process does. Returns the number of sockets; `None` if there was nothing
/// to do.
///
/// # Errors
/// Standard input is no process.
pub fn guard(directory: &Path) -> io::Result<Option<usize>> {
    /// What the kernel needs at most for programs that were running to end.
    const GRACE: Duration = Duration::from_millis(10);
    outlive_others();
    // SAFETY: standard input is open as long as the process.
    let process = unsafe { BorrowedFd::borrow_raw(0) };
    let mut wanted = [PollFd::new(&process, PollFlags::IN)];
    loop {
        match poll(&mut wanted, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    sleep(GRACE);
    let Some(pins) = Pins::take_over(directory) else {
        return Ok(None);
    };
    let sockets = pins.undo();
    pins.remove();
    Ok(Some(sockets))
}

/// Signals for the terminal, the process group or the service of the guarded process do not end this one.
fn outlive_others() {
    // It fails for the leader of a group, which a guardian is not.
    let _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the signals are ignored; no handler runs.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
