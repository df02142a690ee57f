//! Who sent a request.

use std::net::SocketAddr;

use weir_net::{Connection, PeerIdentity};

/// The client that sent a request: in the request's extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Quic(Connection),
    #[cfg(feature = "http2")]
    Tcp(SocketAddr, std::sync::Arc<PeerIdentity>),
}

impl Peer {
    pub(crate) fn new(connection: Connection) -> Self {
        let way = Way::Quic(connection);
        Self { way }
    }

    #[cfg(feature = "http2")]
    pub(crate) fn of_tcp(address: SocketAddr, identity: PeerIdentity) -> Self {
        let way = Way::Tcp(address, identity.into());
        Self { way }
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        match &self.way {
            Way::Quic(connection) => connection.remote_address(),
            #[cfg(feature = "http2")]
            Way::Tcp(address, _) => *address,
        }
    }

    /// Returns its identity: its certificates, if it has shown any.
    pub fn identity(&self) -> PeerIdentity {
        match &self.way {
            Way::Quic(connection) => connection.peer_identity(),
            #[cfg(feature = "http2")]
            Way::Tcp(_, identity) => PeerIdentity::clone(identity),
        }
    }

    /// Returns its connection, which it has where the request came by HTTP/3.
    pub fn connection(&self) -> Option<&Connection> {
        match &self.way {
            Way::Quic(connection) => Some(connection),
            #[cfg(feature = "http2")]
            Way::Tcp(..) => None,
        }
    }
}
