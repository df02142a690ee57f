//! Ports: where frames of a network namespace come out of the kernel and go in again.
//!
//! Both kinds carry a virtio-net header before each frame, so that TCP hands over super-packets and
//! takes them back (see [`offload`](crate::offload)). A [`Tap`] is an interface of its own; a
//! [`PacketSocket`] sits at one that is there, such as the outer end of a veth pair. What each is
//! worth, `make bench-lab` measures.

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
    /// Takes the next frame that the kernel has sent: see [`Tap::receive`].
    ///
    /// # Errors
    /// What the system says.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Tap(tap) => tap.receive(buffer),
            Self::PacketSocket(socket) => socket.receive(buffer),
        }
    }

    /// Whether the interface is still there: see [`PacketSocket::is_attached`]. That of a [`Tap`] is.
    pub fn is_attached(&self) -> bool {
        match self {
            Self::Tap(_) => true,
            Self::PacketSocket(socket) => socket.is_attached(),
        }
    }

    /// How many frames were lost since the last call, because they were not read in time; a [`Tap`] does
    /// not tell.
    pub fn take_dropped(&self) -> u64 {
        match self {
            Self::Tap(_) => 0,
            Self::PacketSocket(socket) => socket.take_dropped(),
        }
    }

    /// Hands the kernel a frame: see [`Tap::send`].
    ///
    /// # Errors
    /// What the system says.
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

/// Writes one frame; false if there is no room for it.
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
