//! TLS over TCP: one configuration for all of a host's flows that are alike, so that sessions are
//! resumed between two hosts whichever flow began them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::{ClientConfig, ServerConfig};
use weir_net::tls::{Fingerprint, Identity};
use weir_scenario::TlsOptions;
use weir_traffic::Error;
use weir_traffic::tls::{EarlyData, Trust, client_config, server_config};
use weir_units::ByteSize;

/// The application protocol (RFC 7301).
pub(super) const PROTOCOL: &[u8] = b"weir-lab";
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
    /// The client's side of connections to the server with this certificate.
    pub(super) fn client(
        &self,
        pin: Fingerprint,
        options: &TlsOptions,
    ) -> Result<Arc<ClientConfig>, Error> {
        let clients = self.clients.lock();
        let mut clients = clients.unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = clients.get(&(pin, key(options))) {
            return Ok(config.clone());
        }
        let mut config = client_config(&Trust::Fingerprint(pin), PROTOCOL, None)?;
        config.max_fragment_size = Some(fragment(options));
        if options.resume {
            config.resumption = Resumption::in_memory_sessions(SESSIONS);
        }
        let config = Arc::new(config);
        clients.insert((pin, key(options)), config.clone());
        Ok(config)
    }

    /// The server's side of connections.
    pub(super) fn server(
        &self,
        identity: &Identity,
        options: &TlsOptions,
    ) -> Result<Arc<ServerConfig>, Error> {
        let servers = self.servers.lock();
        let mut servers = servers.unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = servers.get(&key(options)) {
            return Ok(config.clone());
        }
        let tickets = if options.resume { TICKETS } else { 0 };
        let mut config = server_config(identity, PROTOCOL, tickets, EarlyData::Refused)?;
        config.max_fragment_size = Some(fragment(options));
        let config = Arc::new(config);
        servers.insert(key(options), config.clone());
        Ok(config)
    }
}

/// What rustls counts to a record besides the data: its header.
fn fragment(options: &TlsOptions) -> usize {
    const HEADER: usize = 5;
    options.record.as_usize() + HEADER
}
