//! The errors of DCUDP, each with a remedy.

use std::io;
use std::net::SocketAddr;

use weir_dcudp::ConnectionError;
use weir_units::ByteSize;

/// Why a connection could not be started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DcudpConnectError {
    /// The socket's address family cannot reach the peer.
    #[error(
        "{remote} cannot be reached from {local}: bind an address of the same family, or [::] for both"
    )]
    AddressFamily {
        /// The peer's address.
        remote: SocketAddr,
        /// The socket's address.
        local: SocketAddr,
    },
    /// Address or transport settings are wrong.
    #[error(transparent)]
    Engine(#[from] weir_dcudp::ConnectError),
    /// No server accepted the connection.
    #[error(transparent)]
    Connection(#[from] DcudpError),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcudpError {
    /// No server answered.
    #[error(
        "{remote} did not answer within {after}: is a DCUDP server listening there, and does UDP get through?"
    )]
    HandshakeTimeout {
        /// The peer's address.
        remote: SocketAddr,
        /// The handshake timeout.
        after: weir_units::Duration,
    },
    /// The connection is over for another reason.
    #[error("connection with {remote}: {cause}")]
    Lost {
        /// The peer's address.
        remote: SocketAddr,
        /// Why.
        cause: ConnectionError,
    },
    /// The interface carries no packets of the connection's size.
    #[error(
        "connection with {remote}: a packet of {size} does not fit the network interface: lower `packet_size`"
    )]
    PacketTooLarge {
        /// The peer's address.
        remote: SocketAddr,
        /// The UDP payload that was too large.
        size: ByteSize,
    },
    /// The runtime that drove the socket has ended.
    #[error("the runtime that drove the socket has ended")]
    EndpointGone,
}

impl DcudpError {
    pub(super) fn new(remote: SocketAddr, cause: ConnectionError) -> Self {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        match cause {
            ConnectionError::HandshakeTimeout(after) => Self::HandshakeTimeout { remote, after },
            cause => Self::Lost { remote, cause },
        }
    }

    /// Returns the engine's error, if it reported one.
    pub fn cause(&self) -> Option<ConnectionError> {
        match self {
            Self::HandshakeTimeout { after, .. } => Some(ConnectionError::HandshakeTimeout(*after)),
            Self::Lost { cause, .. } => Some(*cause),
            Self::PacketTooLarge { .. } | Self::EndpointGone => None,
        }
    }
}

impl From<DcudpError> for io::Error {
    fn from(error: DcudpError) -> Self {
        let kind = match error.cause() {
            None => io::ErrorKind::ConnectionAborted,
            Some(
                ConnectionError::HandshakeTimeout(_)
                | ConnectionError::IdleTimeout(_)
                | ConnectionError::Stalled(_)
                | ConnectionError::CloseTimeout(_),
            ) => io::ErrorKind::TimedOut,
            Some(ConnectionError::Refused(_)) => io::ErrorKind::ConnectionRefused,
            Some(
                ConnectionError::PeerAborted(_)
                | ConnectionError::PeerTimeout
                | ConnectionError::PeerViolation,
            ) => io::ErrorKind::ConnectionReset,
            Some(ConnectionError::PeerClosed) => io::ErrorKind::BrokenPipe,
            Some(ConnectionError::Violation(_) | ConnectionError::Aborted) => {
                io::ErrorKind::ConnectionAborted
            }
        };
        Self::new(kind, error)
    }
}
