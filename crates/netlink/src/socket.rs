//! A netlink socket, and the kernel's messages.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use netlink_packet_core::{
    NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The largest part of an answer, in bytes, that the kernel sends to readers with such a buffer.
pub const BUFFER: usize = 32 * 1024;
/// Messages begin at multiples of this (`NLMSG_ALIGNTO`).
const ALIGNMENT: usize = 4;

/// A socket of the family `NETLINK_ROUTE`, which stays in the network namespace of the thread that
/// opened it.
#[derive(Debug)]
pub struct Socket {
    descriptor: OwnedFd,
    /// The sequence number of the latest request and its answer.
    sequence: u32,
}

impl Socket {
    /// Opens a socket that receives these multicast groups (`RTMGRP_…`), besides answers.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(groups: u32, flags: SocketFlags) -> io::Result<Self> {
        let descriptor = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            flags | SocketFlags::CLOEXEC,
            // Protocol 0, `NETLINK_ROUTE`.
            None,
        )?;
        rustix::net::bind(&descriptor, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self {
            descriptor,
            sequence: 0,
        })
    }

    /// Sends a request with these flags (`NLM_F_…`). Until the next request, [`Message::answers`]
    /// is true of its answers.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        self.sequence = self.sequence.wrapping_add(1);
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        rustix::net::send(&self.descriptor, &bytes, SendFlags::empty())?;
        Ok(())
    }

    /// Receives a datagram into `buffer`, of [`BUFFER`] bytes.
    ///
    /// # Errors
    /// The kernel's error; `ENOBUFS` where messages were lost.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> rustix::io::Result<Datagram<'b>> {
        let (_, length) = rustix::net::recv(&self.descriptor, &mut *buffer, RecvFlags::TRUNC)?;
        let is_cut = length > buffer.len();
        let bytes = buffer.get(..length).unwrap_or(buffer);
        Ok(Datagram { bytes, is_cut })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// A datagram from the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'b> {
    bytes: &'b [u8],
    /// Whether the buffer was too small for it.
    pub is_cut: bool,
}

impl<'b> Datagram<'b> {
    /// Returns its messages, up to the first malformed one.
    pub fn messages(self) -> impl Iterator<Item = Message<'b>> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let message = Message { bytes: rest };
            let length = NetlinkBuffer::new_checked(rest).ok()?.length() as usize;
            let next = length.next_multiple_of(ALIGNMENT);
            rest = rest.get(next..).unwrap_or_default();
            Some(message)
        })
    }
}

/// One message of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Message<'b> {
    /// The message from its header on; following messages may be included.
    bytes: &'b [u8],
}

/// The content of a message.
#[derive(Debug)]
pub enum Content<'b> {
    /// A dump is complete.
    Done {
        /// Whether the state changed during the dump.
        is_interrupted: bool,
    },
    /// A request was carried out, or rejected.
    Acknowledgment(io::Result<()>),
    /// A message of this type (`RTM_…`), and its payload after the header.
    Other(u16, &'b [u8]),
}

impl<'b> Message<'b> {
    /// Returns whether it answers the latest request of a socket.
    pub fn answers(&self, socket: &Socket) -> bool {
        NetlinkBuffer::new(self.bytes).sequence_number() == socket.sequence
    }

    /// Returns its content.
    pub fn content(&self) -> Content<'b> {
        let message = NetlinkBuffer::new(self.bytes);
        match message.message_type() {
            NLMSG_DONE => Content::Done {
                is_interrupted: message.flags() & NLM_F_DUMP_INTR != 0,
            },
            NLMSG_ERROR => Content::Acknowledgment(acknowledged(message.payload())),
            kind => Content::Other(kind, message.payload()),
        }
    }

    /// Decodes the message of a route, link, address …; `None` where that fails.
    pub fn decode(&self) -> Option<RouteNetlinkMessage> {
        match NetlinkMessage::deserialize(self.bytes).ok()?.payload {
            NetlinkPayload::InnerMessage(message) => Some(message),
            _ => None,
        }
    }
}

/// An error of zero is an acknowledgment.
fn acknowledged(payload: &[u8]) -> io::Result<()> {
    match payload.first_chunk().copied().map_or(0, i32::from_ne_bytes) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_errors() {
        assert!(acknowledged(&0_i32.to_ne_bytes()).is_ok());
        let refused = acknowledged(&(-1_i32).to_ne_bytes()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn malformed_messages_end_a_datagram() {
        let done = [&20_u32.to_ne_bytes()[..], &3_u16.to_ne_bytes(), &[0; 14]].concat();
        let bytes = [done.as_slice(), &[1; 7]].concat();
        let datagram = Datagram {
            bytes: &bytes,
            is_cut: false,
        };
        let mut messages = datagram.messages();
        let first = messages.next().unwrap().content();
        assert!(matches!(
            first,
            Content::Done {
                is_interrupted: false
            }
        ));
        assert!(messages.next().is_none());
    }
}
