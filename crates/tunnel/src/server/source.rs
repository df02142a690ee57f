//! Connections to destinations that come from the application's own address (IP_TRANSPARENT, ip(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use weir_policy::Prefix;

use crate::header::Header;
use crate::identity::ClientIdentity;
use crate::refusal::Refusal;

/// Where connections to destinations come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The server's own address, which the kernel chooses.
    Own,
    /// The application's address.
    Application(IpAddr),
}

impl Source {
    /// Returns the source for what a client asks for. An application that connects over its machine's loopback
    /// has the client's address.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] where that address is in none of the networks.
    pub(super) fn of(
        networks: &[Prefix],
        client: &ClientIdentity,
        header: &Header,
    ) -> Result<Self, Refusal> {
        if networks.is_empty() {
            return Ok(Self::Own);
        }
        let told = header.source.map(|source| source.ip().to_canonical());
        let address = match told {
            Some(address) if !address.is_loopback() => address,
            _ => client.address().ip().to_canonical(),
        };
        if networks.iter().any(|network| network.contains(address)) {
            Ok(Self::Application(address))
        } else {
            Err(Refusal::Forbidden)
        }
    }

    /// Connects to a destination by TCP.
    ///
    /// # Errors
    /// The system's.
    pub(super) async fn connect(self, to: SocketAddr) -> io::Result<TcpStream> {
        match self {
            Self::Own => TcpStream::connect(to).await,
            Self::Application(address) => {
                let socket = transparent(address, to, Type::STREAM)?;
                TcpSocket::from_std_stream(socket.into()).connect(to).await
            }
        }
    }

    /// Returns a UDP socket to a destination.
    ///
    /// # Errors
    /// The system's.
    pub(super) async fn udp(self, to: SocketAddr) -> io::Result<UdpSocket> {
        let socket = match self {
            Self::Own => {
                let any: SocketAddr = match to {
                    SocketAddr::V4(_) => ([0; 4], 0).into(),
                    SocketAddr::V6(_) => ([0u16; 8], 0).into(),
                };
                UdpSocket::bind(any).await?
            }
            Self::Application(address) => {
                UdpSocket::from_std(transparent(address, to, Type::DGRAM)?.into())?
            }
        };
        socket.connect(to).await?;
        Ok(socket)
    }
}

/// Fails where this process may not use addresses that are not this machine's.
///
/// # Errors
/// The system's: it takes CAP_NET_ADMIN, or CAP_NET_RAW.
pub(super) fn check_permission() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_ip_transparent_v4(true)
}

/// Returns a socket that is bound to an address which need not be this machine's.
fn transparent(address: IpAddr, to: SocketAddr, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), kind, None)?;
    match to {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true)?,
    }
    socket.set_nonblocking(true)?;
    // An address of the other family is refused here.
    socket.bind(&SocketAddr::new(address, 0).into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Protocol;

    fn source(networks: &[&str], told: Option<&str>) -> Result<Source, Refusal> {
        let networks: Vec<Prefix> = networks.iter().map(|text| text.parse().unwrap()).collect();
        let client = ClientIdentity::new("192.0.2.7:1000".parse().unwrap(), None);
        let header = Header {
            protocol: Protocol::Tcp,
            destination: "10.0.0.1:80".parse().unwrap(),
            source: told.map(|told| told.parse().unwrap()),
        };
        Source::of(&networks, &client, &header)
    }

    #[test]
    fn the_source_is_the_applications_where_the_networks_have_it() {
        let application = |text: &str| Ok(Source::Application(text.parse().unwrap()));
        let networks = ["192.0.2.0/24", "2001:db8::/32"];
        assert_eq!(source(&[], Some("10.9.0.1:1")), Ok(Source::Own));
        assert_eq!(
            source(&networks, Some("192.0.2.1:1")),
            application("192.0.2.1")
        );
        let mapped = Some("[::ffff:192.0.2.1]:1");
        assert_eq!(source(&networks, mapped), application("192.0.2.1"));
        assert_eq!(
            source(&networks, Some("[2001:db8::1]:1")),
            application("2001:db8::1")
        );
        for without in [None, Some("127.0.0.1:1"), Some("[::1]:1")] {
            assert_eq!(source(&networks, without), application("192.0.2.7"));
        }
        assert_eq!(
            source(&networks, Some("10.9.0.1:1")),
            Err(Refusal::Forbidden)
        );
    }
}
