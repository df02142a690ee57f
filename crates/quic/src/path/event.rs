//! What a connection tells its owner of its paths.

use std::fmt;

use weir_units::Duration;

use crate::PathId;

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
