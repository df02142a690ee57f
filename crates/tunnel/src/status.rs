//! What `weir tunnel status` shows.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, TunnelValues};

/// The state of a client or a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The address that a server listens on; a client has one for each tunnel.
    pub server: Option<SocketAddr>,
    /// The servers of a client.
    pub peers: Vec<PeerStatus>,
    /// The tunnels: the listeners of a client, the destinations of a server.
    pub tunnels: Vec<TunnelValues>,
}

/// A server of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name and port.
    pub server: String,
    /// Whether new connections go by TLS over TCP.
    pub falls_back: bool,
    /// How many have gone so.
    pub fallbacks: u64,
    /// The DCQUIC connections.
    pub connections: Vec<ConnectionStatus>,
}

/// A DCQUIC connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionStatus {
    /// The server's address.
    pub server: SocketAddr,
    /// Whether it is ready, or why not.
    pub state: String,
    /// Open streams.
    pub streams: usize,
    /// The smoothed round-trip time in microseconds.
    pub rtt_us: Option<f64>,
    /// Packets declared lost.
    pub lost: Option<u64>,
    /// Whether it began without a handshake.
    pub known_peer: bool,
}

impl Status {
    pub(crate) fn client(peers: Vec<PeerStatus>, counters: &Counters) -> Self {
        Self {
            server: None,
            peers,
            tunnels: counters.values(),
        }
    }

    pub(crate) fn server(address: SocketAddr, counters: &Counters) -> Self {
        Self {
            server: Some(address),
            peers: Vec::new(),
            tunnels: counters.values(),
        }
    }
}
