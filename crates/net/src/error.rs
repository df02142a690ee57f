//! The errors of endpoints, connections and streams, each with a remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use weir_quic::Executed;

/// Why an endpoint could not be created.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Another socket has the address.
    #[error("{address} is in use: stop the program that listens there or choose another port")]
    AddressInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address is not one of this machine's.
    #[error("{address} is no address of this machine: `ip address` lists those that are")]
    AddressNotAvailable {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The socket could not be set up for another reason.
    #[error("cannot listen on {address}: {source}")]
    Socket {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket could not be bound to a network interface.
    #[error("cannot use interface {interface}: {source}; `ip link` lists those that there are")]
    Interface {
        /// Its name.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
    /// A server cannot change its address: clients would not find it.
    #[error("a server keeps its addresses: clients would not find it elsewhere")]
    ServerStays,
    /// The endpoint has a connection that could not go on from the address.
    #[error(
        "{peer}, which this endpoint is connected to, cannot be reached from {address}: choose an address of the same family, or [::]"
    )]
    OtherFamily {
        /// The address asked for.
        address: SocketAddr,
        /// The connection's peer.
        peer: SocketAddr,
    },
    /// qlog files cannot be written.
    #[error(
        "cannot write qlog files to {}: {source}; QLOGDIR, or the program, asks for them",
        directory.display()
    )]
    Qlog {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The endpoint's secret cannot be kept.
    #[error("cannot keep the endpoint's secret in {}: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The endpoint's timer could not be created.
    #[error("cannot create a timer: {0}")]
    Timer(io::Error),
    /// A transport setting is out of range.
    #[error("transport setting: {0}")]
    Transport(#[from] weir_quic::ConfigError),
    /// A setting of DCUDP's transport is out of range.
    #[error("transport setting: {0}")]
    Dcudp(#[from] weir_dcudp::ConfigError),
    /// The system returns no random numbers.
    #[error("the system gives no random numbers")]
    Random,
    /// The kernel refuses busy polling.
    #[error("cannot poll the interface's queue: {0}; busy polling takes CAP_NET_ADMIN")]
    BusyPoll(io::Error),
    /// A thread for an engine could not be started.
    #[error("cannot start an engine's thread: {0}")]
    Thread(io::Error),
    /// No tokio runtime.
    #[error("endpoints are made within a tokio runtime, with I/O enabled")]
    NoRuntime,
}

impl EndpointError {
    pub(crate) fn interface(name: &str, source: io::Error) -> Self {
        Self::Interface {
            interface: name.to_owned(),
            source,
        }
    }

    pub(crate) fn bind(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { address },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable { address },
            _ => Self::Socket { address, source },
        }
    }
}

/// Why a connection could not be started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint was built without client credentials, and none were given.
    #[error("this endpoint has no client configuration: give it one, or use `connect_with`")]
    NoClientConfig,
    /// The socket's address family cannot reach the peer.
    #[error(
        "{remote} cannot be reached from {local}: bind an address of the same family, or [::] for both"
    )]
    AddressFamily {
        /// The peer's address.
        remote: SocketAddr,
        /// The endpoint's address.
        local: SocketAddr,
    },
    /// The engine rejects the connection: name, address or transport settings are wrong.
    #[error(transparent)]
    Engine(#[from] weir_quic::ConnectError),
    /// The endpoint is shutting down.
    #[error("the endpoint is shutting down")]
    ShuttingDown,
}

/// A connection that is over, or never was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The handshake did not complete before the handshake timeout.
    #[error(
        "{remote} did not complete a handshake within {after}: is a server listening there, and does UDP get through?"
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
        cause: weir_quic::ConnectionError,
    },
    /// The connection opens no more streams, as one of its ends shuts down. What it was to carry was
    /// not executed.
    #[error("the connection with {remote} is draining: open another one")]
    Draining {
        /// The peer's address.
        remote: SocketAddr,
    },
    /// The runtime that drove the endpoint has ended.
    #[error("the runtime that drove the endpoint has ended")]
    EndpointGone,
}

impl ConnectionError {
    pub(crate) fn draining(remote: SocketAddr) -> Self {
        let remote = canonical(remote);
        Self::Draining { remote }
    }

    pub(crate) fn new(remote: SocketAddr, cause: weir_quic::ConnectionError) -> Self {
        let remote = canonical(remote);
        match cause {
            weir_quic::ConnectionError::HandshakeTimeout(after) => {
                Self::HandshakeTimeout { remote, after }
            }
            cause => Self::Lost { remote, cause },
        }
    }

    /// Returns whether the peer may have executed what the connection carried.
    pub fn executed(&self) -> Executed {
        match self {
            Self::Lost { cause, .. } => cause.executed(),
            Self::Draining { .. } => Executed::No,
            // A known peer may have received the request without an answer.
            Self::HandshakeTimeout { .. } | Self::EndpointGone => Executed::Maybe,
        }
    }

    /// Returns the code with which the peer's application closed the connection, if it did.
    pub fn peer_code(&self) -> Option<u64> {
        match self {
            Self::Lost {
                cause: weir_quic::ConnectionError::PeerApplication { code, .. },
                ..
            } => Some(*code),
            _ => None,
        }
    }
}

/// Returns an IPv4 address where it is one.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Why a datagram was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// The engine rejects it: disabled here, not accepted by the peer, too large, too early.
    #[error(transparent)]
    Refused(#[from] weir_quic::SendDatagramError),
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Why a connection cannot move to another path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The path cannot be used.
    #[error(transparent)]
    Path(#[from] weir_quic::PathError),
    /// The connection has no path from that address.
    #[error("the connection has no path from {local}: `Connection::paths` lists those that it has")]
    NoPathFrom {
        /// The local address.
        local: SocketAddr,
    },
    /// The endpoint has no socket at that address.
    #[error("the endpoint has no socket at {local}: give it one with `EndpointBuilder::also_at`")]
    NoSocketAt {
        /// The local address.
        local: SocketAddr,
    },
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Why nothing more can be written to a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The peer does not want the rest of the stream.
    #[error("the peer stopped reading, with code {0}")]
    Stopped(u64),
    /// The stream was finished or reset before.
    #[error("the stream was finished or reset before")]
    Finished,
    /// The server rejected the early data: open the stream again.
    #[error("the server did not accept early data: open the stream again")]
    EarlyDataRejected,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Why nothing more can be read from a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The peer abandoned the stream.
    #[error("the peer reset the stream, with code {0}")]
    Reset(u64),
    /// The stream was stopped before.
    #[error("the stream was stopped before")]
    Stopped,
    /// The stream is longer than the limit that was given.
    #[error("the stream is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The server rejected the early data: open the stream again.
    #[error("the server did not accept early data: open the stream again")]
    EarlyDataRejected,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            WriteError::Finished => io::ErrorKind::NotConnected,
            WriteError::EarlyDataRejected | WriteError::Connection(_) => {
                io::ErrorKind::ConnectionAborted
            }
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Stopped => io::ErrorKind::NotConnected,
            ReadError::TooLong { .. } => io::ErrorKind::InvalidData,
            ReadError::EarlyDataRejected | ReadError::Connection(_) => {
                io::ErrorKind::ConnectionAborted
            }
        };
        Self::new(kind, error)
    }
}

/// A wait that reached its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has passed")]
pub struct DeadlinePassed;

/// An endpoint cannot be followed by another one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuccessionError {
    /// It was not bound for that.
    #[error("the endpoint was not bound so that another one can follow it")]
    NotPrepared,
    /// There are two endpoints at the port already.
    #[error("another endpoint still has connections at this port")]
    Shared,
    /// The sockets cannot be set up.
    #[error("the port cannot be shared: {0}")]
    System(#[source] io::Error),
}
