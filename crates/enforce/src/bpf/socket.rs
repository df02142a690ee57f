//! The state that a program keeps for a socket, accessed by the socket's file descriptor.
//!
//! The handles are file descriptors of BPF maps. They can be sent to another process, which can use
//! them for its own sockets with `CAP_BPF`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{ClockId, clock_gettime};
use weir_units::Duration;

use super::socket_map::{Plain, SocketMap};

/// 1 in the fixed point of `bpf/fraction.h`.
const ONE: f64 = (1_u32 << 20) as f64;

/// The estimates of DCTCP or D2TCP for a socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// α, the smoothed fraction of CE-marked packets.
    pub alpha: f64,
    /// The number of windows of data that α covers; it wraps around.
    pub windows: u32,
}

/// `struct observation` of `bpf/dctcp.h`.
#[derive(Debug, Default)]
#[repr(C)]
struct RawObservation {
    alpha: u32,
    windows: u32,
}

// SAFETY: two numbers of four bytes.
unsafe impl Plain for RawObservation {}

/// Reads [`Observation`]s.
#[derive(Debug)]
pub struct Observations {
    map: SocketMap<RawObservation>,
}

impl Observations {
    /// Returns the estimates for a TCP socket; `None` before its first window of data has ended, and for
    /// a socket with another congestion control.
    ///
    /// # Errors
    /// Not a TCP socket of this process, or the process lacks `CAP_BPF`.
    pub fn read(&self, socket: impl AsFd) -> io::Result<Option<Observation>> {
        let raw = self.map.get(socket.as_fd())?;
        Ok(raw.map(|raw| Observation {
            alpha: f64::from(raw.alpha) / ONE,
            windows: raw.windows,
        }))
    }
}

impl AsFd for Observations {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl From<Observations> for OwnedFd {
    fn from(observations: Observations) -> Self {
        observations.map.into()
    }
}

impl TryFrom<OwnedFd> for Observations {
    type Error = io::Error;

    /// Takes a descriptor that another process has sent; fails if it is not such a map.
    fn try_from(map: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            map: SocketMap::new(map)?,
        })
    }
}

/// `struct deadline` of `bpf/d2tcp.h`.
#[derive(Debug, Default)]
#[repr(C)]
struct RawDeadline {
    end: u64,
    at_us: u64,
}

// SAFETY: two numbers of eight bytes.
unsafe impl Plain for RawDeadline {}

/// Sets the deadlines of messages for D2TCP.
#[derive(Debug)]
pub struct Deadlines {
    map: SocketMap<RawDeadline>,
}

impl Deadlines {
    /// Sets the deadline of the message that a TCP socket sends: it has to be acknowledged by `time_left`
    /// from now. `end` is the number of bytes of the stream up to and including the message: all bytes
    /// written since the connection began, and the message. Once they are acknowledged, the flow has no
    /// deadline and behaves as DCTCP, until the next one is set.
    ///
    /// # Errors
    /// Not a TCP socket of this process, or the process lacks `CAP_BPF`.
    pub fn set(&self, socket: impl AsFd, end: u64, time_left: Duration) -> io::Result<()> {
        // The clock of `tcp_mstamp`, which the program compares it with.
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
        let deadline = RawDeadline {
            end,
            at_us: now_us.saturating_add(time_left.as_nanos() / 1_000),
        };
        self.map.set(socket.as_fd(), &deadline)
    }

    /// Clears a socket's deadline.
    ///
    /// # Errors
    /// As for [`Deadlines::set`].
    pub fn clear(&self, socket: impl AsFd) -> io::Result<()> {
        // A deadline for zero bytes, which are all acknowledged.
        self.map.set(socket.as_fd(), &RawDeadline::default())
    }
}

impl AsFd for Deadlines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl From<Deadlines> for OwnedFd {
    fn from(deadlines: Deadlines) -> Self {
        deadlines.map.into()
    }
}

impl TryFrom<OwnedFd> for Deadlines {
    type Error = io::Error;

    /// Takes a descriptor that another process has sent; fails if it is not such a map.
    fn try_from(map: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            map: SocketMap::new(map)?,
        })
    }
}
