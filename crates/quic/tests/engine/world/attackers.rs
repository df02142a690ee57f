//! Servers without a certificate, and forged Version Negotiation packets.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_quic::crypto::seeded::{SeededFault, SeededServer};
use weir_quic::packet::{self, Header};
use weir_quic::{
    Connection, ConnectionHandle, Endpoint, EndpointConfig, KnownClients, KnownClientsConfig,
    ServerConfig, TransportConfig,
};
use weir_units::Time;

use super::{SERVER, World};

/// Builds a Version Negotiation packet in answer to a client's datagram, as an observer can.
pub(crate) fn negotiation(datagram: &[u8], offered: &[u32]) -> Vec<u8> {
    let header = Header::decode(datagram, 8).unwrap();
    let mut forged = Vec::new();
    packet::write_version_negotiation(
        &mut forged,
        header.source.as_bytes(),
        header.destination.as_bytes(),
        offered,
        0,
    );
    forged
}

/// The true server, while packets to its address reach an attacker that has no certificate.
pub(crate) struct Impostor {
    endpoint: Endpoint,
    connections: BTreeMap<ConnectionHandle, Connection>,
}

impl Impostor {
    /// Puts an attacker at the server's address. It says that no path secret was ever known there, and,
    /// if `reduced`, allows one stream of a kind at once.
    pub(crate) fn begin(world: &mut World, reduced: bool) -> Self {
        let crypto = SeededServer::new(world.plan.seed).with_fault(SeededFault::WrongFinished);
        let clients = KnownClients::new(KnownClientsConfig::default(), Time::ZERO);
        let mut transport: TransportConfig = (*world.server.transport).clone();
        if reduced {
            transport.max_bidirectional_streams = 1;
        }
        let server = ServerConfig {
            known_clients: Some(Arc::new(clients)),
            ..ServerConfig::new(Arc::new(crypto), Arc::new(transport))
        };
        let attacker = Endpoint::new(EndpointConfig::default(), Some(server), [66; 32]);
        let host = &mut world.hosts[SERVER];
        Self {
            endpoint: std::mem::replace(&mut host.endpoint, attacker),
            connections: std::mem::take(&mut host.connections),
        }
    }

    /// Ends the attack: the true server is back.
    pub(crate) fn end(self, world: &mut World) {
        let host = &mut world.hosts[SERVER];
        host.endpoint = self.endpoint;
        host.connections = self.connections;
    }
}
