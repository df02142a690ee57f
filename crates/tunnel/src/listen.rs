//! Sockets that listen for TCP connections.

use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};

use crate::error::TunnelError;
use crate::handover::Inheritance;

/// Connections that wait to be accepted; the kernel's `net.core.somaxconn` may be less.
pub(crate) const BACKLOG: i32 = 4096;

/// Returns the listener at an address that a predecessor had, or else a new one, within a tokio runtime.
///
/// # Errors
/// [`TunnelError::Listen`].
pub(crate) fn inherit_or_listen(
    address: SocketAddr,
    inherited: Option<&mut Inheritance>,
) -> Result<TcpListener, TunnelError> {
    // It is in non-blocking mode already, with the predecessor.
    match inherited.and_then(|inherited| inherited.tcp(address)) {
        Some(listener) => TcpListener::from_std(listener)
            .map_err(|source| TunnelError::Listen { address, source }),
        None => listen(address),
    }
}

/// Returns the UDP socket at an address that a predecessor had, or else a new one, within a tokio runtime.
///
/// # Errors
/// [`TunnelError::Listen`].
pub(crate) fn inherit_or_bind_udp(
    address: SocketAddr,
    inherited: Option<&mut Inheritance>,
) -> Result<UdpSocket, TunnelError> {
    match inherited.and_then(|inherited| inherited.udp(address)) {
        Some(socket) => {
            UdpSocket::from_std(socket).map_err(|source| TunnelError::Listen { address, source })
        }
        None => bind_udp(address),
    }
}

/// Listens on an address, within a tokio runtime.
///
/// # Errors
/// [`TunnelError::Listen`].
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, TunnelError> {
    let listening = || {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // A restart need not wait for old connections.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    listening().map_err(|source| TunnelError::Listen { address, source })
}

/// Binds a UDP socket, within a tokio runtime.
///
/// # Errors
/// [`TunnelError::Listen`].
pub(crate) fn bind_udp(address: SocketAddr) -> Result<UdpSocket, TunnelError> {
    let binding = || {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket)
    };
    binding().map_err(|source| TunnelError::Listen { address, source })
}
