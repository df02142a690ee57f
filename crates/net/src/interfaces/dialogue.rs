//! Questions to the kernel for all links and addresses, and what its answers come to
//! (rtnetlink(7)). Whose socket it is makes no difference.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkMessage,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use super::table::Table;

/// The largest part of an answer that the kernel sends to readers who offer that much.
pub(super) const BUFFER: usize = 32 * 1024;
const RTM_NEWROUTE: u16 = 24;
/// Messages begin at multiples of this (`NLMSG_ALIGNTO`).
const ALIGNMENT: usize = 4;

/// A request for everything of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dump {
    Links,
    Addresses,
}

/// What was asked, and what the kernel told so far.
#[derive(Default)]
pub(super) struct Dialogue {
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

/// A socket to the kernel that hears what these groups are told.
pub(super) fn open(groups: u32, flags: SocketFlags) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        flags | SocketFlags::CLOEXEC,
        // Protocol 0, `NETLINK_ROUTE`.
        None,
    )?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

impl Dialogue {
    /// Links and addresses as they are; not complete while an answer is due.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// As [`Dialogue::table`], when there is nothing more to ask.
    pub(super) fn into_table(self) -> Table {
        self.table
    }

    /// Whether everything that was asked for is answered.
    pub(super) fn is_complete(&self) -> bool {
        self.asked.is_none()
    }

    /// Forgets what it knows, and asks for all that there is.
    pub(super) fn start_over(&mut self, socket: impl AsFd) -> io::Result<()> {
        self.table = Table::default();
        self.ask(socket, Dump::Links)
    }

    /// The kernel answers one such request at a time.
    fn ask(&mut self, socket: impl AsFd, what: Dump) -> io::Result<()> {
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
        rustix::net::send(socket, &bytes, SendFlags::empty())?;
        self.asked = Some(what);
        Ok(())
    }

    /// Reads all messages of a datagram; asks on where an answer has ended.
    ///
    /// # Errors
    /// The socket's, and refusals of the kernel's.
    pub(super) fn read(
        &mut self,
        socket: impl AsFd,
        datagram: &[u8],
        news: &mut News,
    ) -> io::Result<()> {
        let socket = socket.as_fd();
        let mut rest = datagram;
        while let Ok(message) = NetlinkBuffer::new_checked(rest) {
            let length = message.length() as usize;
            let kind = message.message_type();
            match kind {
                NLMSG_DONE => {
                    let interrupted = message.flags() & NLM_F_DUMP_INTR != 0;
                    let expected = message.sequence_number() == self.sequence;
                    self.on_answered(socket, !interrupted && expected, news)?;
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
    fn on_answered(&mut self, socket: impl AsFd, is_good: bool, news: &mut News) -> io::Result<()> {
        match self.asked {
            Some(_) if !is_good => self.start_over(socket),
            Some(Dump::Links) => self.ask(socket, Dump::Addresses),
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
    match io::Error::from_raw_os_error(code.saturating_neg()) {
        _ if code == 0 => Ok(()),
        busy if busy.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn refusals_other_than_of_haste_are_errors() {
        let refusal = |code: i32| check(&code.to_ne_bytes());
        assert!(refusal(0).is_ok() && refusal(-Errno::BUSY.raw_os_error()).is_ok());
        assert!(refusal(-Errno::PERM.raw_os_error()).is_err());
    }
}
