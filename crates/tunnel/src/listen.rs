//! Sockets that listen for TCP connections.

use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};

use crate::error::TunnelError;

/// Connections that wait to be accepted; the kernel's `net.core.somaxconn` may be less.
const BACKLOG: i32 = 4096;

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
