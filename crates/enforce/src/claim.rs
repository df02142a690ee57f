//! The right to control the frames of an interface, which one process at a time has.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::Pid;

/// The time that a killed holder has for its end.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);
/// Refused processes that may ask for the holder's ID; later ones are not told.
const ASKERS: i32 = 4096;

/// An interface cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another process has it.
    #[error(
        "`{interface}` is controlled by {} already: stop that first",
        holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The interface.
        interface: String,
        /// The holder's process ID, if it is visible from here.
        holder: Option<i32>,
    },
    /// A system call failed.
    #[error("claiming `{interface}`: {source}")]
    System {
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
}

/// An interface that this process controls, until the value is dropped or the process ends.
///
/// It is an abstract Unix socket with the interface's index in its name: such names belong to a network
/// namespace, as indices do, need no folder, and go with the process.
#[derive(Debug)]
pub(crate) struct InterfaceClaim {
    _socket: OwnedFd,
}

impl InterfaceClaim {
    /// Claims an interface of the calling thread's network namespace. A holder that is just ending is
    /// waited for.
    ///
    /// # Errors
    /// See [`ClaimError`].
    pub(crate) fn take(interface: &str, index: u32) -> Result<Self, ClaimError> {
        let failed = |errno: Errno| ClaimError::System {
            interface: interface.to_owned(),
            source: errno.into(),
        };
        let name = format!("weir-enforce-{index}");
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(failed)?;
        let socket = unix_socket().map_err(failed)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match bind(&socket, &address) {
                Ok(()) => break,
                Err(Errno::ADDRINUSE) if Instant::now() < deadline => sleep(PAUSE),
                Err(Errno::ADDRINUSE) => {
                    return Err(ClaimError::Held {
                        interface: interface.to_owned(),
                        holder: holder(&address).map(|pid| pid.as_raw_nonzero().get()),
                    });
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
        listen(&socket, ASKERS).map_err(failed)?;
        Ok(Self { _socket: socket })
    }
}

fn unix_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Returns the process that listens at an address.
fn holder(address: &SocketAddrUnix) -> Option<Pid> {
    let socket = unix_socket().ok()?;
    connect(&socket, address).ok()?;
    Some(socket_peercred(socket.as_fd()).ok()?.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_holder_at_a_time() {
        // Indices that no interface has.
        let (one, other) = (u32::MAX - 1, u32::MAX - 2);
        let first = InterfaceClaim::take("one", one).unwrap();
        let _beside = InterfaceClaim::take("other", other).unwrap();
        let error = InterfaceClaim::take("one", one).unwrap_err();
        let own = std::process::id();
        assert!(
            error
                .to_string()
                .contains(&format!("`one` is controlled by process {own}")),
            "{error}"
        );
        drop(first);
        InterfaceClaim::take("one", one).unwrap();
    }
}
