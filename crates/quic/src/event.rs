//! What a connection tells its owner.

use crate::migration::Decision;
use crate::streams::StreamEvent;
use crate::{ConnectionError, ConnectionId, PathEvent};

/// Something the application should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The handshake is complete: the peer is known and streams may be used.
    Connected,
    /// The server did not take the early data: streams opened so far are gone and must be opened
    /// anew (RFC 9001, section 4.6.2).
    EarlyDataRejected,
    /// There are datagrams to read, where there were none before: read until none is left.
    DatagramsReadable,
    /// Something about a stream.
    Stream(StreamEvent),
    /// The migration monitor has the connection move, for these reasons; [`PathEvent::Moved`]
    /// follows.
    Moving(Box<Decision>),
    /// Something about the ways to the peer.
    Path(PathEvent),
    /// The connection is over.
    Closed(ConnectionError),
}

/// What the endpoint must know to route packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// Packets with this ID are for the connection.
    IdIssued(ConnectionId),
    /// No longer.
    IdRetired(ConnectionId),
    /// A datagram that ends with this token says that the peer has lost the connection's state.
    ResetTokenInUse([u8; 16]),
    /// No longer.
    ResetTokenRetired([u8; 16]),
    /// The connection is over and done with; its handle may be used again.
    Drained,
}
