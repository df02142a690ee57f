//! What a connection tells its owner.

use crate::streams::StreamEvent;
use crate::{Code, ConnectionId, TransportError};

/// Something the application should know.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The connection is over.
    Closed(ConnectionError),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The handshake was not complete in time: no server there, or packets do not come through.
    #[error("no handshake within {0}")]
    HandshakeTimeout(weir_units::Duration),
    /// Nothing was heard of the peer for the idle timeout.
    #[error("the peer was silent for {0}")]
    IdleTimeout(weir_units::Duration),
    /// We closed the connection because of what the peer did, or could not go on.
    #[error("closed with {0}")]
    Transport(TransportError),
    /// The peer's transport closed the connection.
    #[error("the peer closed with {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    PeerTransport {
        /// Its code.
        code: Code,
        /// Its words.
        reason: String,
    },
    /// The peer's application closed the connection.
    #[error("the peer's application closed with code {code}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    PeerApplication {
        /// Its code.
        code: u64,
        /// Its words.
        reason: String,
    },
    /// Our application closed the connection.
    #[error("closed by this application")]
    Local,
    /// The server speaks no QUIC version of ours.
    #[error("the server does not speak QUIC version 1")]
    VersionMismatch,
}

/// What the endpoint must know to route packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// Packets with this ID are for the connection.
    IdIssued(ConnectionId),
    /// No longer.
    IdRetired(ConnectionId),
    /// The connection is over and done with; its handle may be used again.
    Drained,
}
