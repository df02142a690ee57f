//! Ports, which read frames from the kernel in a network namespace and write frames to it.
//!
//! Both kinds carry a virtio-net header before each frame, so that TCP sends and receives
//! super-packets (see [`offload`](crate::offload)). A [`Tap`] creates its own interface; a
//! [`PacketSocket`] uses an existing one, such as the outer end of a veth pair. `make bench-lab`
//! measures both.

mod error;
mod interface;
mod packet_socket;
mod tap;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

pub use error::PortError;
pub use packet_socket::PacketSocket;
pub use tap::Tap;

/// A port of either kind.
#[derive(Debug)]
pub enum Port {
    /// A TAP interface.
    Tap(Tap),
    /// A packet socket at an interface.
    PacketSocket(PacketSocket),
}

impl Port {
    /// Reads the next frame: see [`Tap::receive`].
    ///
    /// # Errors
    /// The system's error.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Tap(tap) => tap.receive(buffer),
            Self::PacketSocket(socket) => socket.receive(buffer),
        }
    }

    /// Returns whether the interface still exists: see [`PacketSocket::is_attached`]. That of a [`Tap`]
    /// always does.
    pub fn is_attached(&self) -> bool {
        match self {
            Self::Tap(_) => true,
            Self::PacketSocket(socket) => socket.is_attached(),
        }
    }

    /// Returns the number of frames lost since the last call because they were not read in time; always 0
    /// for a [`Tap`], which cannot know.
    pub fn take_dropped(&self) -> u64 {
        match self {
            Self::Tap(_) => 0,
            Self::PacketSocket(socket) => socket.take_dropped(),
        }
    }

    /// Discards the frames that a packet socket has and that have not been read; returns their number.
    pub(crate) fn discard(&self) -> u64 {
        match self {
            Self::Tap(_) => 0,
            Self::PacketSocket(socket) => socket.discard(),
        }
    }

    /// Writes a frame: see [`Tap::send`].
    ///
    /// # Errors
    /// The system's error.
    pub fn send(&self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        match self {
            Self::Tap(tap) => tap.send(frame),
            Self::PacketSocket(socket) => socket.send(frame),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tap(tap) => tap.as_fd(),
            Self::PacketSocket(socket) => socket.as_fd(),
        }
    }
}

impl From<Tap> for Port {
    fn from(tap: Tap) -> Self {
        Self::Tap(tap)
    }
}

impl From<PacketSocket> for Port {
    fn from(socket: PacketSocket) -> Self {
        Self::PacketSocket(socket)
    }
}

/// Writes one frame; returns `false` if there is no room for it.
fn write(port: BorrowedFd<'_>, frame: &[IoSlice<'_>]) -> io::Result<bool> {
    loop {
        match rustix::io::writev(port, frame) {
            Ok(_) => return Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
