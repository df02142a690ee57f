//! The creation of a group's QUIC connections.

use std::sync::{Arc, PoisonError, RwLock};

use weir_congestion::{AlgorithmSpec, Context};
use weir_network::{quic_transport, seed_bytes};
use weir_quic::crypto::seeded::{SeededClient, SeededServer};
use weir_quic::{
    ClientConfig, ConfigError, Congestion, Endpoint, EndpointConfig, Interface, Interfaces,
    KnownClients, KnownServers, RetryPolicy, ServerConfig, TransportConfig,
};
use weir_scenario::{QuicOptions, Workload};
use weir_units::Time;

use super::end::QuicEnd;
use super::host_paths::HostPaths;
use super::messages::{Messages, StreamLayout};
use super::pair_endpoints::{ClientLink, HostEnvironment, PairLinks, WaysWithMtu};
use super::path_secrets::{PairSecrets, PathSecrets};
use crate::flows::HostPair;
use crate::packet::{SERVICE_PORT, ports};

/// The settings of a group's connections.
#[derive(Debug)]
pub(crate) struct QuicSetup {
    transport: Arc<TransportConfig>,
    layout: StreamLayout,
    pairs: PairLinks,
    /// Whether later connections between two hosts have no handshake.
    known_peers: bool,
    /// The congestion control of new paths, of open connections too.
    congestion: Arc<RwLock<AlgorithmSpec>>,
}

impl QuicSetup {
    pub(crate) fn new(
        options: &QuicOptions,
        congestion: &AlgorithmSpec,
        workload: &Workload,
    ) -> Result<Self, ConfigError> {
        let mut transport = quic_transport(options, congestion)?;
        let congestion = Arc::new(RwLock::new(congestion.clone()));
        let current = Arc::clone(&congestion);
        transport.congestion = Congestion::Custom(Arc::new(move |context: &Context| {
            let spec = current.read().unwrap_or_else(PoisonError::into_inner);
            spec.build(context)
        }));
        Ok(Self {
            congestion,
            transport: Arc::new(transport),
            layout: StreamLayout::of(workload),
            pairs: PairLinks::default(),
            known_peers: options.known_peers,
        })
    }

    /// Sets the congestion control of paths to come.
    pub(crate) fn set_congestion(&self, congestion: &AlgorithmSpec) {
        let current = self.congestion.write();
        *current.unwrap_or_else(PoisonError::into_inner) = congestion.clone();
    }

    /// Creates both ends of a flow between these hosts: the connecting one and the listening one. All
    /// random choices of both follow from the seed, and from earlier connections of known peers.
    pub(crate) fn ends(
        &mut self,
        now: Time,
        around: HostEnvironment<'_>,
        (pair, secrets): (HostPair, &mut PathSecrets),
        (flow, seed): (u32, u64),
    ) -> (QuicEnd, QuicEnd) {
        let links = self.pairs.links(around, pair);
        let (there, back) = ClientLink::ways(links, pair, flow);
        let (initiator, mut responder) = ports(flow);
        let secrets = self.known_peers.then(|| secrets.of(pair));
        if secrets.is_some() {
            // A client knows a server by its address, which has to stay the same.
            responder = SERVICE_PORT;
        }
        let PairSecrets { client, server } = secrets.unwrap_or_default();
        let client_endpoint = IdleEndpoint::new(there, (initiator, responder), [seed, 0]);
        let server_endpoint = IdleEndpoint::new(back, (responder, initiator), [seed, 1]);
        (
            self.client(now, client_endpoint, client, seed),
            self.server(server_endpoint, server, seed),
        )
    }

    fn client(
        &self,
        now: Time,
        idle_endpoint: IdleEndpoint,
        known_servers: Option<Arc<KnownServers>>,
        seed: u64,
    ) -> QuicEnd {
        let crypto = SeededClient::new(seed);
        let mut config = ClientConfig {
            known_servers,
            ..ClientConfig::new(Arc::new(crypto), self.transport.clone())
        };
        let locals: Vec<_> = idle_endpoint.ways.pairs().map(|(local, _)| local).collect();
        if locals.len() > 1 {
            config.local_addresses = locals;
        }
        let messages = Messages::new(self.layout, true);
        QuicEnd::client(
            now,
            idle_endpoint.endpoint,
            config,
            messages,
            idle_endpoint.ways,
        )
    }

    fn server(
        &self,
        idle_endpoint: IdleEndpoint,
        known_clients: Option<Arc<KnownClients>>,
        seed: u64,
    ) -> QuicEnd {
        let crypto = SeededServer::new(seed);
        let config = ServerConfig {
            retry: RetryPolicy::Never,
            known_clients,
            ..ServerConfig::new(Arc::new(crypto), self.transport.clone())
        };
        let messages = Messages::new(self.layout, false);
        QuicEnd::server(idle_endpoint.endpoint, config, messages, idle_endpoint.ways)
    }
}

/// An endpoint without connections, and its paths.
struct IdleEndpoint {
    endpoint: Endpoint,
    ways: HostPaths,
}

impl IdleEndpoint {
    /// Creates an endpoint with these paths, UDP ports (its own and the peer's), and seeds.
    fn new(ways: WaysWithMtu, (own, peer): (u16, u16), seeds: [u64; 2]) -> Self {
        let (ways, mtus): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
        let ways = HostPaths::new(&ways, own, peer);
        let interfaces = ways.pairs().zip(mtus).map(|((local, _), mtu)| Interface {
            mtu,
            is_loopback: false,
            addresses: vec![local.ip().into()],
        });
        let interfaces: Interfaces = interfaces.collect();
        let mut endpoint = Endpoint::new(EndpointConfig::default(), None, seed_bytes(seeds));
        endpoint.set_interfaces(Arc::new(interfaces));
        Self { endpoint, ways }
    }
}
