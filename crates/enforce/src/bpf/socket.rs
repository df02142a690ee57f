//! What a program keeps for a socket, reached by the socket's file descriptor.
//!
//! The handles are file descriptors of BPF maps: they can be sent to another process, which may use
//! them for its own sockets. That takes `CAP_BPF`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{ClockId, clock_gettime};
use weir_units::Duration;

use super::socket_map::{Plain, SocketMap};

/// 1 in the fixed point of `bpf/fraction.h`.
const ONE: f64 = (1_u32 << 20) as f64;

/// What DCTCP or D2TCP has estimated for a socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// α, the smoothed fraction of packets that met a mark.
    pub alpha: f64,
    /// How many windows of data α has seen; it wraps around.
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
    /// What is estimated for a TCP socket; `None` before its first window of data has ended, and for
    /// one with another congestion control.
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

    /// Takes what another process has sent; an error if it is something else.
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

/// Tells D2TCP the deadlines of messages.
#[derive(Debug)]
pub struct Deadlines {
    map: SocketMap<RawDeadline>,
}

impl Deadlines {
    /// The message that a TCP socket sends has to be acknowledged by `time_left` from now. `end` is
    /// the number of bytes of the stream up to and with the message's last one: what has been written
    /// since the connection began, and the message. When they are acknowledged, the flow is without
    /// a deadline, and so a DCTCP flow, until the next one is set.
    ///
    /// # Errors
    /// Not a TCP socket of this process, or the process lacks `CAP_BPF`.
    pub fn set(&self, socket: impl AsFd, end: u64, time_left: Duration) -> io::Result<()> {
        // The clock of `tcp_mstamp`, with which the program compares.
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
        let deadline = RawDeadline {
            end,
            at_us: now_us.saturating_add(time_left.as_nanos() / 1_000),
        };
        self.map.set(socket.as_fd(), &deadline)
    }

    /// Takes a socket's deadline back.
    ///
    /// # Errors
    /// As for [`Deadlines::set`].
    pub fn clear(&self, socket: impl AsFd) -> io::Result<()> {
        // A deadline for nothing: all of it has arrived.
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

    /// Takes what another process has sent; an error if it is something else.
    fn try_from(map: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            map: SocketMap::new(map)?,
        })
    }
}
