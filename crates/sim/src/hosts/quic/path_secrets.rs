//! The path secrets of hosts, for connections without a handshake (`docs/known-peers.md`).

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_quic::{KnownClients, KnownClientsConfig, KnownServers};
use weir_scenario::HostIndex;
use weir_units::Time;

use crate::flows::HostPair;

/// Servers whose path secrets a client keeps, as many as a live one.
const KNOWN_SERVERS: usize = 4096;

/// The path secrets of all hosts. All groups with known peers share them.
#[derive(Debug, Default)]
pub(crate) struct PathSecrets {
    clients: BTreeMap<HostIndex, Arc<KnownServers>>,
    servers: BTreeMap<HostIndex, Arc<KnownClients>>,
}

/// The stores of the two ends of a connection; none without known peers.
#[derive(Debug, Default)]
pub(super) struct PairSecrets {
    pub(super) client: Option<Arc<KnownServers>>,
    pub(super) server: Option<Arc<KnownClients>>,
}

impl PathSecrets {
    /// Returns the stores of a client's and of a server's host.
    pub(super) fn of(&mut self, pair: HostPair) -> PairSecrets {
        let client = self.clients.entry(pair.from).or_insert_with(|| {
            let servers = KnownServers::new(KNOWN_SERVERS);
            Arc::new(servers)
        });
        let server = self.servers.entry(pair.to).or_insert_with(|| {
            let clients = KnownClients::new(KnownClientsConfig::default(), Time::ZERO);
            Arc::new(clients)
        });
        PairSecrets {
            client: Some(client.clone()),
            server: Some(server.clone()),
        }
    }
}
