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
