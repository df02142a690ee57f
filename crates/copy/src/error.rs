//! Errors, each with what would help.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use weir_net::dcudp::DcudpConnectError;
use weir_net::tls::TlsError;
use weir_net::{ConnectError, ConnectionError, EndpointError};
use weir_units::{ByteSize, Duration};

use crate::path::PathError;
use crate::protocol::ProtocolError;

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of this machine cannot be read.
    #[error("{}: {source}", path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of this machine is neither a regular file nor a directory.
    #[error("{} is neither a file nor a directory", .0.display())]
    SourceKind(PathBuf),
    /// A file's name cannot be used on the server.
    #[error("{}: {problem}", path.display())]
    SourceName {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: PathError,
    },
    /// A file has another size than at the start.
    #[error("{} was changed while it was copied: repeat the command", .0.display())]
    SourceChanged(PathBuf),
    /// The directory that is to be served cannot be opened.
    #[error("cannot serve {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses a name below the directory.
    #[error("{name}: {source}")]
    Target {
        /// The name below the directory.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A part of the path is a symbolic link.
    #[error(
        "{name} is, or is below, a symbolic link or another thing than a directory: it is not followed"
    )]
    Link {
        /// The name below the directory.
        name: String,
    },
    /// There is something else than a file under the name.
    #[error("{name} exists, and is not a regular file")]
    TargetKind {
        /// The name below the directory.
        name: String,
    },
    /// A newer connection copies the same file.
    #[error("a newer copy of {name} has begun")]
    Superseded {
        /// The name below the directory.
        name: String,
    },
    /// Another copy writes the file.
    #[error("{name} is being written by another copy")]
    Locked {
        /// The name below the directory.
        name: String,
    },
    /// The file system is full.
    #[error(
        "{name} needs {missing} more, and the server's file system is full: make room and repeat the command, \
         which goes on where it stopped"
    )]
    Full {
        /// The name below the directory.
        name: String,
        /// What is missing of the file.
        missing: ByteSize,
    },
    /// What was stored is not what was sent.
    #[error("{name}: the SHA-256 of what arrived is not the file's; repeat the command")]
    Digest {
        /// The name below the directory.
        name: String,
    },
    /// The server refuses to go on.
    #[error("the server says: {0}")]
    Refused(String),
    /// The peer does not follow the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The connection ended.
    #[error("the connection ended: {0}; repeat the command, which goes on where it stopped")]
    Connection(#[source] io::Error),
    /// The server did not answer.
    #[error(
        "{peer} did not answer within {after}: is `weir copy serve` running there with the same --transport \
         {hint}, and does a firewall let UDP port {port} through?"
    )]
    NoAnswer {
        /// The server.
        peer: SocketAddr,
        /// The time limit.
        after: Duration,
        /// What else must agree.
        hint: &'static str,
        /// Its port.
        port: u16,
    },
    /// No connection could be made.
    #[error("{peer}: {reason}")]
    Connect {
        /// The server.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// A socket or its settings.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A certificate or a fingerprint.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Error {
    /// For `map_err` on the system's errors about a name of the server.
    pub(crate) fn target(name: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let name = name.to_string();
        move |source| Self::Target { name, source }
    }

    pub(crate) fn of_dcquic(peer: SocketAddr, error: ConnectionError) -> Self {
        match error {
            ConnectionError::HandshakeTimeout { after, .. } => Self::NoAnswer {
                peer,
                after,
                hint: "",
                port: peer.port(),
            },
            error => Self::Connect {
                peer,
                reason: error.to_string(),
            },
        }
    }

    pub(crate) fn of_connect(peer: SocketAddr, error: &ConnectError) -> Self {
        Self::Connect {
            peer,
            reason: error.to_string(),
        }
    }

    pub(crate) fn of_dcudp(peer: SocketAddr, error: &DcudpConnectError) -> Self {
        use weir_net::dcudp::DcudpError;
        match error {
            DcudpConnectError::Connection(DcudpError::HandshakeTimeout { after, .. }) => {
                Self::NoAnswer {
                    peer,
                    after: *after,
                    hint: "and the same key",
                    port: peer.port(),
                }
            }
            error => Self::Connect {
                peer,
                reason: error.to_string(),
            },
        }
    }
}
