//! What a connection tells its owner.

use std::fmt;

use weir_units::Duration;

use crate::migration::Decision;
use crate::streams::StreamEvent;
use crate::version::in_words;
use crate::{Code, ConnectionId, PathId, TransportError, Versions};

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

/// Something happened to the ways to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// The peer was reached over a path and answered after `rtt`.
    Validated {
        /// The path.
        path: PathId,
        /// How long the answer took.
        rtt: Duration,
    },
    /// Nobody answered on a path.
    Failed {
        /// The path.
        path: PathId,
    },
    /// A path is given up.
    Closed {
        /// The path.
        path: PathId,
    },
    /// Another path is in use. Where only a port changed, it keeps its name.
    Moved {
        /// The path that was in use.
        from: PathId,
        /// The one that is now.
        to: PathId,
        /// Why.
        cause: MoveCause,
    },
}

impl PathEvent {
    /// The path that it is about; where the connection moved, the new one.
    pub const fn path(&self) -> PathId {
        match *self {
            Self::Validated { path, .. } | Self::Failed { path } | Self::Closed { path } => path,
            Self::Moved { to, .. } => to,
        }
    }
}

/// Why another path is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveCause {
    /// The application asked for it.
    Asked,
    /// The migration monitor asked for it.
    Proactive,
    /// The peer moved.
    Peer,
    /// The peer's port changed, probably at a NAT.
    PeerRebound,
    /// An address of ours changed.
    LocalAddress,
    /// The address of ours under the path is gone.
    AddressGone,
    /// The path that was in use could not be validated.
    NotValidated,
    /// The server prefers to be reached there.
    PreferredAddress,
}

impl MoveCause {
    /// A stable name for logs and metrics: `asked`, `proactive`, `peer`, `peer-rebound`,
    /// `local-address`, `address-gone`, `not-validated`, `preferred-address`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Proactive => "proactive",
            Self::Peer => "peer",
            Self::PeerRebound => "peer-rebound",
            Self::LocalAddress => "local-address",
            Self::AddressGone => "address-gone",
            Self::NotValidated => "not-validated",
            Self::PreferredAddress => "preferred-address",
        }
    }
}

impl fmt::Display for MoveCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "the application asked for it",
            Self::Proactive => "the path in use got worse",
            Self::Peer => "the peer moved",
            Self::PeerRebound => "the peer's port changed",
            Self::LocalAddress => "the local address changed",
            Self::AddressGone => "the local address is gone",
            Self::NotValidated => "the path in use could not be validated",
            Self::PreferredAddress => "the server prefers it",
        })
    }
}

impl fmt::Display for PathEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Validated { path, rtt } => write!(f, "{path} works, round trip {rtt}"),
            Self::Failed { path } => write!(f, "nobody answers on {path}"),
            Self::Closed { path } => write!(f, "{path} is given up"),
            Self::Moved { from, to, cause } => write!(f, "from {from} to {to}: {cause}"),
        }
    }
}

/// Why a path cannot be moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Only clients move on their own account (RFC 9000, section 9).
    #[error("only a client can move its connection to another path")]
    NotClient,
    /// RFC 9000, section 9: not before the handshake is confirmed.
    #[error("a connection can move once its handshake is confirmed")]
    NotConfirmed,
    /// The peer's `disable_active_migration`.
    #[error("the peer forbids migration")]
    Forbidden,
    /// There is no such path (any more).
    #[error("the connection has no {0}")]
    Unknown(PathId),
    /// Nobody has answered on it yet, or nobody did lately.
    #[error("{0} is not validated")]
    NotValidated(PathId),
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
