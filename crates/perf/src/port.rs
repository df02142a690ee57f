//! UDP ports for the data of a test.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use tokio::time::sleep;
use weir_net::EndpointError;
use weir_units::Duration;

use crate::error::Error;

/// The endpoint of the test before may still be closing its connections; for this long its port
/// is waited for.
const FREE_WITHIN: Duration = Duration::from_secs(3);

/// Binds a server's port, once the test before has let go of it.
pub(crate) async fn when_free<T>(
    address: SocketAddr,
    bind: impl Fn() -> Result<T, EndpointError>,
) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match bind() {
            Ok(bound) => return Ok(bound),
            Err(EndpointError::AddressInUse { .. })
                if Duration::from(begun.elapsed()) < FREE_WITHIN =>
            {
                sleep(std::time::Duration::from_millis(10)).await;
            }
            Err(EndpointError::AddressInUse { address }) => {
                return Err(Error::AddressInUse(address));
            }
            Err(error) => {
                return Err(Error::Listen {
                    address,
                    source: io::Error::other(error),
                });
            }
        }
    }
}

/// The address from which this machine reaches the server, with any free port.
pub(crate) fn towards(server: SocketAddr) -> Result<SocketAddr, Error> {
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
