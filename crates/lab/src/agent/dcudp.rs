//! DCUDP sockets for a flow's connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use weir_congestion::AlgorithmSpec;
use weir_net::dcudp::{
    DcudpClient, DcudpConfig, DcudpConnectError, DcudpError, DcudpListener, DcudpStream,
};
use weir_network::dcudp_transport;
use weir_scenario::DcudpOptions;
use weir_units::ByteSize;

use super::meter::Probe;
use crate::control::FlowFailure;

/// As many as the addresses and ports of a scenario's clients allow.
const MOST_CONNECTIONS: usize = 100_000;
/// As many receive windows fit into a socket's buffer.
const WINDOWS: u64 = 8;

/// How a flow's connections are set up. Packets that are less than the quantum apart leave in batches,
/// which the host's link spreads again.
pub(super) fn config(
    options: &DcudpOptions,
    congestion: &AlgorithmSpec,
    seed: u64,
) -> Result<DcudpConfig, FlowFailure> {
    let rate = options
        .rate
        .ok_or_else(|| order("the rate of the link is missing"))?;
    let transport = dcudp_transport(options, congestion, rate).map_err(order)?;
    let mut config = DcudpConfig::new(rate);
    let quantum = config.transport.pacing_quantum;
    let window = transport.packet_size.bytes() * u64::from(transport.receive_window);
    config.transport = transport;
    config.transport.pacing_quantum = quantum;
    config.transport.seed = seed;
    // The connections of a flow meet at one socket: simulated hosts lose nothing there either.
    config.buffers.receive = ByteSize::from_bytes(window * WINDOWS);
    config.max_connections = MOST_CONNECTIONS;
    Ok(config)
}

/// Sockets that begin connections, one for each address of the host.
#[derive(Debug)]
pub(super) struct Clients {
    config: DcudpConfig,
    sockets: Mutex<BTreeMap<SocketAddr, Arc<DcudpClient>>>,
}

impl Clients {
    pub(super) fn new(config: DcudpConfig) -> Self {
        Self {
            config,
            sockets: Mutex::default(),
        }
    }

    /// The congestion control's name.
    pub(super) fn congestion(&self) -> &'static str {
        self.config.transport.congestion.name()
    }

    /// Opens a connection.
    pub(super) async fn connect(
        &self,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<DcudpStream, FlowFailure> {
        let client = self.socket(local)?;
        client.connect(peer).await.map_err(|error| match error {
            DcudpConnectError::Connection(DcudpError::HandshakeTimeout { .. }) => {
                FlowFailure::NoAnswer { peer }
            }
            DcudpConnectError::Connection(error) => FlowFailure::Lost {
                doing: "shaking hands".to_owned(),
                cause: error.to_string(),
            },
            error => order(error),
        })
    }

    fn socket(&self, local: SocketAddr) -> Result<Arc<DcudpClient>, FlowFailure> {
        let sockets = self.sockets.lock();
        let mut sockets = sockets.unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = sockets.get(&local) {
            return Ok(client.clone());
        }
        let client = DcudpClient::bind(local, self.config.clone()).map_err(order)?;
        let client = Arc::new(client);
        sockets.insert(local, client.clone());
        Ok(client)
    }
}

/// Takes connections at these addresses.
pub(super) fn listen(
    config: &DcudpConfig,
    local: &[SocketAddr],
) -> Result<Vec<DcudpListener>, FlowFailure> {
    let listeners = local
        .iter()
        .map(|local| DcudpListener::bind(*local, config.clone()).map_err(order));
    listeners.collect()
}

/// What is asked about a connection.
pub(super) fn describe(stream: &DcudpStream) -> Probe {
    Probe::Dcudp(stream.watch())
}

fn order(error: impl ToString) -> FlowFailure {
    FlowFailure::Order {
        problem: error.to_string(),
    }
}
