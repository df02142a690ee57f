//! TLS over TCP: one configuration for all of a host's flows that are alike, so that sessions are
//! resumed between two hosts whichever flow began them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weir_net::tls::{Fingerprint, Identity, TlsError, client_over_tcp, server_over_tcp};
use weir_scenario::TlsOptions;
use weir_units::ByteSize;

use super::quic::PROTOCOL;

/// How many sessions a client keeps, each of one server.
const SESSIONS: usize = 1024;
/// Each ticket resumes one session; a server gives two, so that a connection may begin before the
/// one before it has ended.
const TICKETS: usize = 2;

/// The configurations so far.
#[derive(Debug, Default)]
pub(super) struct TlsConfigs {
    clients: Mutex<HashMap<(Fingerprint, Key), Arc<ClientConfig>>>,
    servers: Mutex<HashMap<Key, Arc<ServerConfig>>>,
}

/// What a scenario may change.
type Key = (ByteSize, bool);

fn key(options: &TlsOptions) -> Key {
    (options.record, options.resume)
}

impl TlsConfigs {
    /// Makes the client's side of connections to the server with this certificate.
    pub(super) fn connector(
        &self,
        pin: Fingerprint,
        options: &TlsOptions,
    ) -> Result<TlsConnector, TlsError> {
        let clients = self.clients.lock();
        let mut clients = clients.unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = clients.get(&(pin, key(options))) {
            return Ok(TlsConnector::from(config.clone()));
        }
        let mut config = client_over_tcp(pin, PROTOCOL)?;
        config.max_fragment_size = Some(fragment(options));
        if options.resume {
            config.resumption = Resumption::in_memory_sessions(SESSIONS);
        }
        let config = Arc::new(config);
        clients.insert((pin, key(options)), config.clone());
        Ok(TlsConnector::from(config))
    }

    /// Makes the server's side of connections.
    pub(super) fn acceptor(
        &self,
        identity: &Identity,
        options: &TlsOptions,
    ) -> Result<TlsAcceptor, TlsError> {
        let servers = self.servers.lock();
        let mut servers = servers.unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = servers.get(&key(options)) {
            return Ok(TlsAcceptor::from(config.clone()));
        }
        let mut config = server_over_tcp(identity, PROTOCOL)?;
        config.max_fragment_size = Some(fragment(options));
        if options.resume {
            config.send_tls13_tickets = TICKETS;
        }
        let config = Arc::new(config);
        servers.insert(key(options), config.clone());
        Ok(TlsAcceptor::from(config))
    }
}

/// What rustls counts to a record besides the data: its header.
fn fragment(options: &TlsOptions) -> usize {
    const HEADER: usize = 5;
    options.record.as_usize() + HEADER
}
