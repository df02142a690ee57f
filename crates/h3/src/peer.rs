//! Who sent a request.

use std::net::SocketAddr;

use weir_net::{Connection, PeerIdentity};

/// The client that sent a request: in the request's extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    connection: Connection,
}

impl Peer {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// Returns its identity: its certificates, if it has shown any.
    pub fn identity(&self) -> PeerIdentity {
        self.connection.peer_identity()
    }

    /// Returns its connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}
