//! TLS over TCP. All flows of a host with equal options share one configuration, so that any flow
//! between two hosts can resume their sessions.

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
/// The number of sessions that a client keeps, one per server.
const SESSIONS: usize = 1024;
/// The number of tickets that a server issues. Each resumes one session; with two, a connection can
/// begin before the previous one has ended.
const TICKETS: usize = 2;

/// The configurations created so far.
#[derive(Debug, Default)]
pub(super) struct TlsConfigs {
    clients: Mutex<HashMap<(Fingerprint, Key), Arc<ClientConfig>>>,
    servers: Mutex<HashMap<Key, Arc<ServerConfig>>>,
}

/// The options that a scenario can change.
type Key = (ByteSize, bool);

fn key(options: &TlsOptions) -> Key {
    (options.record, options.resume)
}

impl TlsConfigs {
    /// Returns the client configuration for the server with this certificate.
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

    /// Returns the server configuration.
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

/// Returns rustls's fragment size, which includes the record header.
fn fragment(options: &TlsOptions) -> usize {
    const HEADER: usize = 5;
    options.record.as_usize() + HEADER
}
