//! Events that a connection reports to the application and to its endpoint.

use std::net::IpAddr;

use weir_units::{ByteSize, Time};

use crate::migration::Decision;
use crate::streams::StreamEvent;
use crate::{ConnectionError, ConnectionId, PathEvent};

/// An event for the application.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The handshake is complete: the peer is known and streams may be used. It comes a second time
    /// where a connection without a handshake was refused and has had one after all.
    Connected,
    /// The server rejected the early data: the streams opened so far are gone and must be opened
    /// again (RFC 9001, section 4.6.2).
    EarlyDataRejected,
    /// Datagrams can be read after the queue was empty: read until none is left.
    DatagramsReadable,
    /// A side goes away. If it is the peer, no stream can be opened any more, and those of ours that it
    /// refuses ([`Connection::is_refused`](crate::Connection::is_refused)) have ended.
    GoingAway,
    /// A stream event.
    Stream(StreamEvent),
    /// The migration monitor moves the connection, for these reasons; [`PathEvent::Moved`] follows.
    Moving(Box<Decision>),
    /// A path event.
    Path(PathEvent),
    /// The connection has ended.
    Closed(ConnectionError),
}

/// An event that changes the endpoint's routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The connection issued this ID.
    IdIssued(ConnectionId),
    /// The connection's ID was retired.
    IdRetired(ConnectionId),
    /// A datagram that ends with this token means that the peer has lost the connection's state.
    ResetTokenInUse([u8; 16]),
    /// The token is no longer in use.
    ResetTokenRetired([u8; 16]),
    /// The connection has lost packets: the next connections begin with exact timers.
    PacketsLost,
    /// The connection has found the size of the packets that the way to this peer carries.
    PacketSizeFound {
        /// When.
        now: Time,
        /// The peer's address.
        remote: IpAddr,
        /// The UDP payload.
        size: ByteSize,
    },
    /// The connection has ended completely; its handle may be reused.
    Drained {
        /// The end of the draining period, if the peer closed: until then packets with its IDs may
        /// still arrive, and are dropped without an answer.
        draining_until: Option<Time>,
    },
}
