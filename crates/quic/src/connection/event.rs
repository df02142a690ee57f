//! What a connection tells its owner.

use crate::streams::StreamEvent;
use crate::version::in_words;
use crate::{Code, ConnectionId, TransportError, Versions};

/// Something the application should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete: the peer is known and streams may be used.
    Connected,
    /// The server did not take the early data: streams opened so far are gone and must be opened
    /// anew (RFC 9001, section 4.6.2).
    EarlyDataRejected,
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
    #[error(
        "the server does not speak any version of ours ({}): it offers {}",
        in_words(&ours.numbers()),
        in_words(offered)
    )]
    NoCommonVersion {
        /// The versions that we take.
        ours: Versions,
        /// The versions that the server offers, as they stand in its packet.
        offered: Vec<u32>,
    },
    /// The peer has lost the connection's state and says so by a stateless reset (RFC 9000, 10.3).
    #[error("the peer does not know the connection any more: it was probably restarted")]
    StatelessReset,
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
