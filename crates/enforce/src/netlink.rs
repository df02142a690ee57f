//! Requests to the kernel about the links, addresses, routes, neighbours and queueing disciplines of this
//! thread's network namespace (rtnetlink(7)): one at a time, each answered before the next.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NetlinkMessage,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The largest part of an answer that the kernel sends to readers who offer that much.
const BUFFER: usize = 32 * 1024;
/// Messages begin at multiples of this (`NLMSG_ALIGNTO`).
const ALIGNMENT: usize = 4;

/// A socket to the kernel, which stays in the namespace where it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// In this thread's namespace.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open() -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // Protocol 0, `NETLINK_ROUTE`.
            None,
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Has something made or changed, whether or not it is there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, |_| ())
    }

    /// Has something changed or removed that is there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn change(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_ACK, |_| ())
    }

    /// The addresses of all interfaces.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn addresses(&mut self) -> io::Result<Vec<IpAddr>> {
        let mut found = Vec::new();
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.ask(request, NLM_F_DUMP, |answer| {
            if let RouteNetlinkMessage::NewAddress(message) = answer {
                let attributes = message.attributes.into_iter();
                found.extend(attributes.filter_map(|attribute| match attribute {
                    AddressAttribute::Address(address) | AddressAttribute::Local(address) => {
                        Some(address)
                    }
                    _ => None,
                }));
            }
        })?;
        Ok(found)
    }

    /// The kinds of all queueing disciplines, each with the number of its interface.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn disciplines(&mut self) -> io::Result<Vec<(u32, String)>> {
        let mut found = Vec::new();
        let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        self.ask(request, NLM_F_DUMP, |answer| {
            if let RouteNetlinkMessage::NewQueueDiscipline(message) = answer
                && let Ok(interface) = u32::try_from(message.header.index)
            {
                let attributes = message.attributes.into_iter();
                found.extend(attributes.filter_map(|attribute| match attribute {
                    TcAttribute::Kind(kind) => Some((interface, kind)),
                    _ => None,
                }));
            }
        })?;
        Ok(found)
    }

    /// Sends a request and reads until it is answered.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut take: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        self.sequence = self.sequence.wrapping_add(1);
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let (_, length) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::TRUNC)?;
            let datagram = buffer.get(..length).ok_or(io::ErrorKind::InvalidData)?;
            if read(datagram, self.sequence, &mut take)? {
                return Ok(());
            }
        }
    }
}

/// Reads the messages of a datagram. Whether the answer to the request with this number is complete.
fn read(
    datagram: &[u8],
    sequence: u32,
    take: &mut impl FnMut(RouteNetlinkMessage),
) -> io::Result<bool> {
    let mut rest = datagram;
    while let Ok(message) = NetlinkBuffer::new_checked(rest) {
        let next = (message.length() as usize).next_multiple_of(ALIGNMENT);
        if message.sequence_number() == sequence {
            match message.message_type() {
                NLMSG_DONE => return Ok(true),
                NLMSG_ERROR => return acknowledged(message.payload()),
                _ => take_message(rest, take),
            }
        }
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(false)
}

/// What this program does not understand is nothing that it asked for.
fn take_message(bytes: &[u8], take: &mut impl FnMut(RouteNetlinkMessage)) {
    if let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes)
        && let netlink_packet_core::NetlinkPayload::InnerMessage(message) = message.payload
    {
        take(message);
    }
}

/// An error of zero is an acknowledgment.
fn acknowledged(payload: &[u8]) -> io::Result<bool> {
    match payload.first_chunk().copied().map_or(0, i32::from_ne_bytes) {
        0 => Ok(true),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_addresses_as_often_as_it_is_asked() {
        let mut netlink = Netlink::open().unwrap();
        let first = netlink.addresses().unwrap();
        assert_eq!(netlink.addresses().unwrap(), first);
    }

    #[test]
    fn loopback_has_no_queue() {
        let disciplines = Netlink::open().unwrap().disciplines().unwrap();
        let loopback = |(index, _): &&(u32, String)| *index == 1;
        let kinds = disciplines.iter().filter(loopback);
        assert!(kinds.clone().count() > 0, "{disciplines:?}");
        assert!(
            kinds.clone().all(|(_, kind)| kind == "noqueue"),
            "{disciplines:?}"
        );
    }

    #[test]
    fn refusals_are_errors() {
        assert!(acknowledged(&0_i32.to_ne_bytes()).unwrap());
        let refused = acknowledged(&(-1_i32).to_ne_bytes()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
