//! Why a tunnel does not begin.

use std::io;
use std::net::SocketAddr;

/// Why a client or a server does not begin.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// A socket cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Applications' addresses cannot be used.
    #[error("connections cannot come from applications' addresses, which takes CAP_NET_ADMIN: {0}")]
    Transparent(#[source] io::Error),
    /// A predecessor of a client is a server.
    #[error("the predecessor is a server: a client takes the place of a client")]
    OtherKind,
    /// A predecessor has another address.
    #[error("the predecessor does not listen on {0}: a successor has the same address and port")]
    OtherAddress(SocketAddr),
    /// The DCQUIC endpoint cannot be made.
    #[error(transparent)]
    Endpoint(#[from] weir_net::EndpointError),
    /// The server's name cannot be used.
    #[error(transparent)]
    Channel(#[from] weir_channel::ChannelError),
    /// The TLS configuration does not work over TCP.
    #[error(transparent)]
    Tls(#[from] weir_net::tls::TlsError),
}
