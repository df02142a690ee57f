//! Path events that a connection reports to the application.

use std::fmt;

use weir_units::Duration;

use crate::PathId;

/// A change of the paths to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// A path was validated; the peer's response took `rtt`.
    Validated {
        /// The path.
        path: PathId,
        /// The round-trip time of the validation.
        rtt: Duration,
    },
    /// The validation of a path failed.
    Failed {
        /// The path.
        path: PathId,
    },
    /// A path was closed.
    Closed {
        /// The path.
        path: PathId,
    },
    /// The connection moved to another path. If only a port changed, the path keeps its ID.
    Moved {
        /// The path that was in use.
        from: PathId,
        /// The path that is in use now.
        to: PathId,
        /// The cause of the move.
        cause: MoveCause,
    },
}

impl PathEvent {
    /// Returns the path of the event; after a move, the new one.
    pub const fn path(&self) -> PathId {
        match *self {
            Self::Validated { path, .. } | Self::Failed { path } | Self::Closed { path } => path,
            Self::Moved { to, .. } => to,
        }
    }
}

/// The cause of a move to another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveCause {
    /// The application requested it.
    Requested,
    /// The migration monitor requested it.
    Proactive,
    /// The peer moved.
    Peer,
    /// The peer's port changed, probably at a NAT.
    PeerRebound,
    /// A local address changed.
    LocalAddress,
    /// The local address of the path was removed.
    AddressGone,
    /// The path that was in use could not be validated.
    NotValidated,
    /// The server prefers this address.
    PreferredAddress,
}

impl MoveCause {
    /// Returns a stable name for logs and metrics: `asked`, `proactive`, `peer`, `peer-rebound`,
    /// `local-address`, `address-gone`, `not-validated`, `preferred-address`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requested => "asked",
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
            Self::Requested => "the application asked for it",
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

/// Why a connection cannot move to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Only clients initiate a move (RFC 9000, section 9).
    #[error("only a client can move its connection to another path")]
    NotClient,
    /// RFC 9000, section 9: not before the handshake is confirmed.
    #[error("a connection can move once its handshake is confirmed")]
    NotConfirmed,
    /// The peer's `disable_active_migration`.
    #[error("the peer forbids migration")]
    Forbidden,
    /// The path does not exist (any more).
    #[error("the connection has no {0}")]
    Unknown(PathId),
    /// The path is not validated yet, or its last validation failed.
    #[error("{0} is not validated")]
    NotValidated(PathId),
}
