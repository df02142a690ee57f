//! UDP ports for the data of a test.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use tokio::time::sleep;
use weir_units::Duration;

use super::error::Error;
use crate::transport::Transport;

/// The time to wait for the port of the previous test: its endpoint may still be closing connections.
const FREE_WITHIN: Duration = Duration::from_secs(3);

/// Listens on a server's port, once the previous test has released it.
///
/// # Errors
/// [`Error::AddressInUse`] or [`Error::Listen`].
pub(super) async fn listen_when_free<T: Transport>(
    transport: &T,
    address: SocketAddr,
) -> Result<T::Listener, Error> {
    let begun = Instant::now();
    loop {
        match transport.listen(&[address]) {
            Err(crate::Error::AddressInUse(_)) if Duration::from(begun.elapsed()) < FREE_WITHIN => {
                sleep(std::time::Duration::from_millis(10)).await;
            }
            listening => return listening.map_err(|error| Error::listening(address, error)),
        }
    }
}

/// Returns the local address that routes to the server, with any free port.
pub(super) fn local_address_to(server: SocketAddr) -> Result<SocketAddr, Error> {
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    // Connecting a UDP socket sends nothing; it makes the kernel look up the route.
    let found = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(server)?;
        socket.local_addr()
    });
    let mut local = found.map_err(Error::stream("looking for a way to the server"))?;
    local.set_port(0);
    Ok(local)
}
