//! The socket on which the kernel tells of interfaces and addresses (netlink(7), rtnetlink(7)).

use std::io;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkMessage,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::table::Table;

/// `RTMGRP_LINK`, `_IPV4_IFADDR`, `_IPV4_ROUTE`, `_IPV6_IFADDR` and `_IPV6_ROUTE`.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
const RTM_NEWROUTE: u16 = 24;
/// The largest part of an answer that the kernel sends to readers who offer that much.
const BUFFER: usize = 32 * 1024;
/// Messages begin at multiples of this (`NLMSG_ALIGNTO`).
const ALIGNMENT: usize = 4;

/// A request for everything of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dump {
    Links,
    Addresses,
}

/// Listens to the kernel.
pub(crate) struct Netlink {
    socket: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
    table: Table,
    /// What was asked for and not answered yet.
    asked: Option<Dump>,
    /// The number of the latest request; its answer bears it too.
    sequence: u32,
}

/// What a batch of messages changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// A link or an address.
    pub(crate) addresses: bool,
    /// There is a new route.
    pub(crate) routes: bool,
}

impl Netlink {
    /// Subscribes, and asks for all that there is. Must be called within a tokio runtime.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            // Protocol 0, `NETLINK_ROUTE`.
            None,
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        // SAFETY: the descriptor is owned by the `AsyncFd` from here on, so it stays open and the
        // same for as long as that lives.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        let mut netlink = Self {
            socket,
            buffer: vec![0; BUFFER],
            table: Table::default(),
            asked: None,
            sequence: 0,
        };
        netlink.start_over()?;
        Ok(netlink)
    }

    /// Links and addresses as they are; not complete before the first news.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Waits until something changed, beginning with everything.
    ///
    /// # Errors
    /// The socket's. Where messages were lost it begins anew by itself.
    pub(crate) async fn news(&mut self) -> io::Result<News> {
        let mut news = News::default();
        loop {
            let received = {
                let mut guard = self.socket.readable().await?;
                let received = rustix::net::recv(
                    self.socket.get_ref(),
                    self.buffer.as_mut_slice(),
                    RecvFlags::empty(),
                );
                if received == Err(Errno::AGAIN) {
                    guard.clear_ready();
                }
                received
            };
            match received {
                Ok((length, _)) => {
                    let buffer = std::mem::take(&mut self.buffer);
                    let result = self.read(buffer.get(..length).unwrap_or(&buffer), &mut news);
                    self.buffer = buffer;
                    result?;
                    if self.asked.is_none() && news != News::default() {
                        return Ok(news);
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
        self.table = Table::default();
        self.ask(Dump::Links)
    }

    /// The kernel answers one such request at a time.
    fn ask(&mut self, what: Dump) -> io::Result<()> {
        let mut message = NetlinkMessage::from(match what {
            Dump::Links => RouteNetlinkMessage::GetLink(LinkMessage::default()),
            Dump::Addresses => RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        });
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        self.sequence = self.sequence.wrapping_add(1);
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        rustix::net::send(self.socket.get_ref(), &bytes, SendFlags::empty())?;
        self.asked = Some(what);
        Ok(())
    }

    /// Reads all messages of a datagram.
    fn read(&mut self, datagram: &[u8], news: &mut News) -> io::Result<()> {
        let mut rest = datagram;
        while let Ok(message) = NetlinkBuffer::new_checked(rest) {
            let length = message.length() as usize;
            let kind = message.message_type();
            match kind {
                NLMSG_DONE => {
                    let interrupted = message.flags() & NLM_F_DUMP_INTR != 0;
                    let expected = message.sequence_number() == self.sequence;
                    self.on_answered(!interrupted && expected, news)?;
                }
                NLMSG_ERROR => check(message.payload())?,
                RTM_NEWROUTE => news.routes = true,
                _ => {
                    if let Err(error) = self.table.apply(kind, message.payload()) {
                        tracing::debug!(%error, kind, "a netlink message is not understood");
                    }
                    news.addresses = true;
                }
            }
            let next = length.next_multiple_of(ALIGNMENT);
            rest = rest.get(next..).unwrap_or_default();
        }
        Ok(())
    }

    /// An answer is complete. It is asked for again where it tells of several moments or is not the
    /// one that is waited for.
    fn on_answered(&mut self, is_good: bool, news: &mut News) -> io::Result<()> {
        match self.asked {
            Some(_) if !is_good => self.start_over(),
            Some(Dump::Links) => self.ask(Dump::Addresses),
            Some(Dump::Addresses) | None => {
                self.asked = None;
                news.addresses = true;
                Ok(())
            }
        }
    }
}

/// A request was refused. While the kernel still answers the one before, the end of that answer has
/// it asked again.
fn check(error: &[u8]) -> io::Result<()> {
    let code = error.first_chunk().copied().map_or(0, i32::from_ne_bytes);
    match io::Error::from_raw_os_error(-code) {
        _ if code == 0 => Ok(()),
        busy if busy.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_tells_everything_also_when_it_is_asked_again_meanwhile() {
        let mut netlink = Netlink::open().unwrap();
        netlink.start_over().unwrap();
        let first = netlink.news().await.unwrap();
        assert!(first.addresses);
        let before = netlink.table().usable();
        netlink.start_over().unwrap();
        netlink.news().await.unwrap();
        assert_eq!(netlink.table().usable(), before);
    }

    #[test]
    fn refusals_other_than_of_haste_are_errors() {
        let refusal = |code: i32| check(&code.to_ne_bytes());
        assert!(refusal(0).is_ok() && refusal(-Errno::BUSY.raw_os_error()).is_ok());
        assert!(refusal(-Errno::PERM.raw_os_error()).is_err());
    }
}
