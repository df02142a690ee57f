//! Netlink sockets for interfaces and addresses (netlink(7), rtnetlink(7)): one for notifications,
//! and one for a single dump.

use std::io;
use std::net::IpAddr;
use std::time::{Duration as Span, Instant};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::net::sockopt::{self, Timeout};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_netlink::{BUFFER, Socket};
use weir_quic::Interfaces;

use super::dump::{NetlinkDump, TableChanges};
use super::table::InterfaceTable;

/// `RTMGRP_LINK`, `_IPV4_IFADDR`, `_IPV4_ROUTE`, `_IPV6_IFADDR` and `_IPV6_ROUTE`.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
/// Timeout of a single dump. The kernel answers within the system call of the request; only
/// interfaces that change continuously make it longer.
const PATIENCE: Span = Span::from_millis(500);

/// Receives the kernel's notifications.
pub(crate) struct Netlink {
    socket: AsyncFd<Socket>,
    buffer: Vec<u8>,
    pub(super) dialogue: NetlinkDump,
}

impl Netlink {
    /// Subscribes, and requests a full dump. Must be called within a tokio runtime.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = Socket::open(GROUPS, SocketFlags::NONBLOCK)?;
        // SAFETY: the descriptor is owned by the `AsyncFd` from here on, so it stays open and the
        // same for as long as that lives.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        let mut netlink = Self {
            socket,
            buffer: vec![0; BUFFER],
            dialogue: NetlinkDump::default(),
        };
        netlink.start_over()?;
        Ok(netlink)
    }

    /// Waits until something changed; the initial dump is the first change.
    ///
    /// # Errors
    /// The socket's. After lost messages it starts a new dump by itself.
    pub(crate) async fn wait_for_changes(&mut self) -> io::Result<TableChanges> {
        let mut changes = TableChanges::default();
        loop {
            let received = {
                let mut guard = self.socket.readable().await?;
                let received = self.socket.get_ref().receive(&mut self.buffer);
                if matches!(received, Err(Errno::AGAIN)) {
                    guard.clear_ready();
                }
                received
            };
            match received {
                Ok(datagram) => {
                    let socket = self.socket.get_mut();
                    self.dialogue.read(socket, datagram, &mut changes)?;
                    if self.dialogue.is_complete() && changes != TableChanges::default() {
                        return Ok(changes);
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Too many messages for the socket's buffer: some are lost.
                Err(Errno::NOBUFS) => self.start_over()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn start_over(&mut self) -> io::Result<()> {
        self.dialogue.start_over(self.socket.get_mut())
    }
}

/// Returns the machine's interfaces now, those of this thread's network namespace. `None` where the
/// kernel does not answer: then the MTUs are unknown.
pub(crate) fn current() -> Option<Interfaces> {
    dump_once()
        .inspect_err(|error| tracing::debug!(%error, "the interfaces' MTUs cannot be read"))
        .map(|table| table.interfaces())
        .ok()
}

/// Returns the name of the interface with this address.
pub(crate) fn interface_of(address: IpAddr) -> Option<String> {
    dump_once()
        .inspect_err(|error| tracing::debug!(%error, "the interfaces cannot be read"))
        .ok()?
        .usable()
        .into_iter()
        .find_map(|(ip, name)| (ip == address).then_some(name))
}

fn dump_once() -> io::Result<InterfaceTable> {
    let mut socket = Socket::open(0, SocketFlags::empty())?;
    let mut dialogue = NetlinkDump::default();
    dialogue.start_over(&mut socket)?;
    let (asked_at, mut buffer) = (Instant::now(), vec![0; BUFFER]);
    while !dialogue.is_complete() {
        let left = PATIENCE.saturating_sub(asked_at.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(left))?;
        match socket.receive(&mut buffer) {
            Ok(datagram) => dialogue.read(&mut socket, datagram, &mut TableChanges::default())?,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(dialogue.table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_restarted_dump_returns_the_same_table() {
        let mut netlink = Netlink::open().unwrap();
        netlink.start_over().unwrap();
        let first = netlink.wait_for_changes().await.unwrap();
        assert!(first.addresses);
        let before = netlink.dialogue.table.usable();
        netlink.start_over().unwrap();
        netlink.wait_for_changes().await.unwrap();
        assert_eq!(netlink.dialogue.table.usable(), before);
    }

    #[tokio::test]
    async fn a_single_query_equals_the_monitored_table() {
        let mut netlink = Netlink::open().unwrap();
        netlink.wait_for_changes().await.unwrap();
        assert_eq!(current().unwrap(), netlink.dialogue.table.interfaces());
    }
}
