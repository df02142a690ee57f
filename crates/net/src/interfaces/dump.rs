//! Dump requests to the kernel for all links and addresses, and the resulting table (rtnetlink(7)).
//! Works on any netlink socket.

use std::io;

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use weir_netlink::{Content, Datagram, Socket};

use super::table::InterfaceTable;

const RTM_NEWROUTE: u16 = 24;

/// A dump request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DumpRequest {
    Links,
    Addresses,
}

/// The pending request, and the table so far.
#[derive(Default)]
pub(super) struct NetlinkDump {
    /// Links and addresses; incomplete while a request is pending.
    pub(super) table: InterfaceTable,
    /// The pending request.
    pending: Option<DumpRequest>,
}

/// Which kinds of state a batch of messages changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableChanges {
    /// A link or an address.
    pub(crate) addresses: bool,
    /// A new route.
    pub(crate) routes: bool,
}

impl NetlinkDump {
    /// Whether all requests are answered.
    pub(super) fn is_complete(&self) -> bool {
        self.pending.is_none()
    }

    /// Clears the table and requests a full dump.
    pub(super) fn start_over(&mut self, socket: &mut Socket) -> io::Result<()> {
        self.table = InterfaceTable::default();
        self.request(socket, DumpRequest::Links)
    }

    /// The kernel answers one dump request at a time.
    fn request(&mut self, socket: &mut Socket, what: DumpRequest) -> io::Result<()> {
        let message = match what {
            DumpRequest::Links => RouteNetlinkMessage::GetLink(LinkMessage::default()),
            DumpRequest::Addresses => RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        };
        socket.request(message, NLM_F_DUMP)?;
        self.pending = Some(what);
        Ok(())
    }

    /// Reads all messages of a datagram; sends the next request where an answer has ended.
    ///
    /// # Errors
    /// The socket's, and rejected requests.
    pub(super) fn read(
        &mut self,
        socket: &mut Socket,
        datagram: Datagram<'_>,
        changes: &mut TableChanges,
    ) -> io::Result<()> {
        for message in datagram.messages() {
            match message.content() {
                Content::Done { is_interrupted } => {
                    let is_good = !is_interrupted && message.answers(socket);
                    self.on_answered(socket, is_good, changes)?;
                }
                Content::Acknowledgment(result) => ignore_busy(result)?,
                Content::Other(RTM_NEWROUTE, _) => changes.routes = true,
                Content::Other(kind, payload) => {
                    if let Err(error) = self.table.apply(kind, payload) {
                        tracing::debug!(%error, kind, "a netlink message is not understood");
                    }
                    changes.addresses = true;
                }
            }
        }
        Ok(())
    }

    /// Handles a complete answer. The request is repeated where the dump is inconsistent or the
    /// answer is not the pending one's.
    fn on_answered(
        &mut self,
        socket: &mut Socket,
        is_good: bool,
        changes: &mut TableChanges,
    ) -> io::Result<()> {
        match self.pending {
            Some(_) if !is_good => self.start_over(socket),
            Some(DumpRequest::Links) => self.request(socket, DumpRequest::Addresses),
            Some(DumpRequest::Addresses) | None => {
                self.pending = None;
                changes.addresses = true;
                Ok(())
            }
        }
    }
}

/// Handles a rejected request. While the kernel still answers the previous one, the end of that
/// answer repeats the request.
fn ignore_busy(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(busy) if busy.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn errors_other_than_busy_are_returned() {
        let refusal = |errno: Errno| ignore_busy(Err(errno.into()));
        assert!(ignore_busy(Ok(())).is_ok() && refusal(Errno::BUSY).is_ok());
        assert!(refusal(Errno::PERM).is_err());
    }
}
