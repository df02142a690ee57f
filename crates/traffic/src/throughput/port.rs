//! UDP ports for the data of a test.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use tokio::time::sleep;
use weir_units::Duration;

use super::error::Error;
use crate::transport::Transport;

/// The endpoint of the test before may still be closing its connections; for this long its port
/// is waited for.
const FREE_WITHIN: Duration = Duration::from_secs(3);

/// Listens at a server's port, once the test before has let go of it.
///
/// # Errors
/// [`Error::AddressInUse`] or [`Error::Listen`].
pub(super) async fn when_free<T: Transport>(
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

/// The address from which this machine reaches the server, with any free port.
pub(super) fn towards(server: SocketAddr) -> Result<SocketAddr, Error> {
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    // Connecting a UDP socket sends nothing; it has the kernel look for the way.
    let found = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(server)?;
        socket.local_addr()
    });
    let mut local = found.map_err(Error::stream("looking for a way to the server"))?;
    local.set_port(0);
    Ok(local)
}
