//! A client for requests, one at a time.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rustix::net::SocketFlags;

use crate::socket::{BUFFER, Content, Socket};

/// Sends requests to the kernel, and waits for each answer.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
}

impl Client {
    /// Opens a client in this thread's network namespace, in which it stays.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::open(0, SocketFlags::empty())?;
        Ok(Self { socket })
    }

    /// Creates or replaces an object.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, |_| ())
    }

    /// Changes or removes an existing object.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn change(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_ACK, |_| ())
    }

    /// Returns the addresses of all interfaces.
    ///
    /// # Errors
    /// The kernel's error.
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

    /// Returns the kinds of all queueing disciplines, each with its interface index.
    ///
    /// # Errors
    /// The kernel's error.
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

    /// Returns whether an interface has traffic-control filters below this parent (major, minor).
    ///
    /// # Errors
    /// The kernel's error: there is no such interface or parent.
    pub fn has_filters(&mut self, interface: u32, (major, minor): (u16, u16)) -> io::Result<bool> {
        let mut request = TcMessage::default();
        request.header.index = i32::try_from(interface).map_err(io::Error::other)?;
        request.header.parent = TcHandle { major, minor };
        let mut found = false;
        let request = RouteNetlinkMessage::GetTrafficFilter(request);
        self.ask(request, NLM_F_DUMP, |answer| {
            found |= matches!(answer, RouteNetlinkMessage::NewTrafficFilter(_));
        })?;
        Ok(found)
    }

    /// Sends a request and reads until its answer is complete. Messages that cannot be decoded are
    /// no part of the answer.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut take: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.socket.request(message, flags)?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let datagram = self.socket.receive(&mut buffer)?;
            if datagram.is_cut {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let messages = datagram.messages();
            for message in messages.filter(|message| message.answers(&self.socket)) {
                match message.content() {
                    Content::Done { .. } => return Ok(()),
                    Content::Acknowledgment(result) => return result,
                    Content::Other(..) => message.decode().into_iter().for_each(&mut take),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_address_dumps_are_equal() {
        let mut client = Client::open().unwrap();
        let first = client.addresses().unwrap();
        assert_eq!(client.addresses().unwrap(), first);
    }

    #[test]
    fn loopback_has_no_queue() {
        let disciplines = Client::open().unwrap().disciplines().unwrap();
        let loopback = |(index, _): &&(u32, String)| *index == 1;
        let kinds = disciplines.iter().filter(loopback);
        assert!(kinds.clone().count() > 0, "{disciplines:?}");
        assert!(
            kinds.clone().all(|(_, kind)| kind == "noqueue"),
            "{disciplines:?}"
        );
    }
}
