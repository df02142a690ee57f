//! Binds UDP and TCP ports of the same number.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use weir_net::tls::TlsError;
use weir_net::{Endpoint, EndpointBuilder, EndpointError};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Ports that are tried where any free one will do.
const ATTEMPTS: usize = 16;

/// Why a server of HTTP/3 and HTTP/2 could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The TLS configuration cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The TLS configuration has no HTTP/3.
    #[error("the TLS configuration lacks the application protocol h3")]
    NoHttp3,
    /// The UDP port, or what belongs to it, cannot be had.
    #[error("UDP, for HTTP/3: {0}")]
    Udp(#[from] EndpointError),
    /// Another program has the TCP port.
    #[error(
        "TCP, for HTTP/2: {address} is in use, though for UDP it is free: stop the program that listens \
         there or choose another port"
    )]
    TcpInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The TCP port cannot be had for another reason.
    #[error("TCP, for HTTP/2: cannot listen on {address}: {source}")]
    Tcp {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// Binds an endpoint, and a listener for each of its addresses.
pub(super) fn bind(
    endpoint: &EndpointBuilder,
    address: SocketAddr,
) -> Result<(Endpoint, Vec<Arc<TcpListener>>), BindError> {
    let attempts = if address.port() == 0 { ATTEMPTS } else { 1 };
    // They are held meanwhile, so that the kernel chooses other ports.
    let mut in_vain = Vec::new();
    loop {
        let bound = endpoint.clone().bind(address)?;
        let listeners = bound.local_addresses().into_iter().map(listen).collect();
        match listeners {
            Ok(listeners) => return Ok((bound, listeners)),
            Err(BindError::TcpInUse { .. }) if in_vain.len() + 1 < attempts => in_vain.push(bound),
            Err(error) => return Err(error),
        }
    }
}

fn listen(address: SocketAddr) -> Result<Arc<TcpListener>, BindError> {
    let listener = socket(address).and_then(TcpListener::from_std);
    let listener = listener.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::TcpInUse { address },
        _ => BindError::Tcp { address, source },
    });
    Ok(Arc::new(listener?))
}

fn socket(address: SocketAddr) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // As the endpoint's socket, whatever the system's default is.
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // Connections of an earlier process may not have timed out yet.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
