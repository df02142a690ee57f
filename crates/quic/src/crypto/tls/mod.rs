//! Keys from TLS 1.3 (RFC 9001), by rustls.
//!
//! [`TlsClient`] and [`TlsServer`] wrap a rustls configuration, check that QUIC can use it, and
//! start handshakes. [`provider()`] selects the algorithms for data centers; a configuration may
//! use any other rustls provider.

mod client_hello;
mod compatible;
mod expiry;
mod keys;
mod provider;
mod random;
mod session;
mod sha256;
pub mod suites;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::quic::{self, ClientConnection, ServerConnection, Suite};
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::{CipherSuite, ClientConfig, ServerConfig};

pub(super) use keys::{TlsHeaderKey, TlsPacketKey};
pub use provider::provider;

use super::{
    Answerer, ClientCrypto, ClientNames, ClientStart, Keys, Provider, ServerCrypto, Session,
    StartError,
};
use crate::{ConnectionId, Side, Version};
use compatible::Secrets;
use session::TlsSession;

/// Starts TLS handshakes for clients.
///
/// Resumable sessions are in the configuration's store and are shared by all its users. They belong
/// to QUIC version 1: tickets must not cross versions (RFC 9369, section 5), and handshakes in
/// version 2 are full ones.
pub struct TlsClient {
    with_early_data: Arc<ClientConfig>,
    without_early_data: Arc<ClientConfig>,
    version_2: Arc<ClientConfig>,
    initial: Suite,
}

impl TlsClient {
    /// Wraps a configuration. Its `enable_early_data` is ignored: each
    /// [`start`](ClientCrypto::start) selects whether it uses early data.
    ///
    /// # Errors
    /// [`StartError::Configuration`] without TLS 1.3.
    pub fn new(config: Arc<ClientConfig>) -> Result<Self, StartError> {
        let initial = initial_suite(config.crypto_provider())?;
        // rustls reports only to a connection whether a configuration has TLS 1.3. This connection
        // must not take a ticket from the store.
        let mut version_2 = ClientConfig::clone(&config);
        version_2.resumption = Resumption::disabled();
        let version_2 = Arc::new(version_2);
        let nobody = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
        ClientConnection::new(version_2.clone(), quic::Version::V1, nobody, Vec::new())
            .map_err(configuration)?;
        let with_setting = |enable_early_data| {
            if config.enable_early_data == enable_early_data {
                return config.clone();
            }
            let mut other = ClientConfig::clone(&config);
            other.enable_early_data = enable_early_data;
            Arc::new(other)
        };
        Ok(Self {
            with_early_data: with_setting(true),
            without_early_data: with_setting(false),
            version_2,
            initial,
        })
    }
}

impl ClientCrypto for TlsClient {
    fn start(self: Arc<Self>, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let name = ServerName::try_from(start.server_name.to_owned())
            .map_err(|_| StartError::InvalidServerName(start.server_name.to_owned()))?;
        let mut config = match start.version {
            Version::V2 => self.version_2.clone(),
            Version::V1 if start.early_data => self.with_early_data.clone(),
            Version::V1 => self.without_early_data.clone(),
        };
        let secrets = start
            .version_may_change
            .then(|| Arc::new(Secrets::new(config.key_log.clone())));
        if let Some(secrets) = &secrets {
            Arc::make_mut(&mut config).key_log = secrets.clone();
        }
        let version = keys::quic_version(start.version);
        let connection = ClientConnection::new(config, version, name, start.parameters.to_vec())
            .map_err(configuration)?;
        let session = TlsSession::client(connection, start.server_name, secrets);
        Ok(Box::new(session))
    }
}

/// Starts TLS handshakes for servers.
///
/// Sessions are resumed in QUIC version 1 only: tickets must not cross versions (RFC 9369, section
/// 5).
pub struct TlsServer {
    config: Arc<ServerConfig>,
    version_2: Arc<ServerConfig>,
    initial: Suite,
}

impl TlsServer {
    /// Wraps a configuration.
    ///
    /// # Errors
    /// [`StartError::Configuration`] without TLS 1.3; if `max_early_data_size` is neither 0 nor 2³²
    /// − 1 (RFC 9001, section 4.6.1); or if early data is enabled but rustls could never accept it,
    /// because it needs a session store for it and has none, or has a ticketer instead.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, StartError> {
        let initial = initial_suite(config.crypto_provider())?;
        if config.max_early_data_size > 0 {
            if config.ticketer.enabled() {
                return Err(StartError::Configuration(
                    "early data need a session store; remove the ticketer".to_owned(),
                ));
            }
            if !config.session_storage.can_cache() {
                return Err(StartError::Configuration(
                    "early data need a session store that keeps sessions".to_owned(),
                ));
            }
        }
        // rustls checks the rest when a connection starts; check it now.
        ServerConnection::new(config.clone(), quic::Version::V1, Vec::new())
            .map_err(configuration)?;
        let mut version_2 = ServerConfig::clone(&config);
        version_2.session_storage = Arc::new(NoServerSessionStorage {});
        version_2.ticketer = Arc::new(NoTickets);
        version_2.send_tls13_tickets = 0;
        version_2.max_early_data_size = 0;
        Ok(Self {
            config,
            version_2: Arc::new(version_2),
            initial,
        })
    }
}

impl TlsServer {
    /// Returns the configuration.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

impl ServerCrypto for TlsServer {
    fn start(
        self: Arc<Self>,
        version: Version,
        answer: Answerer,
    ) -> Result<Box<dyn Session>, StartError> {
        Ok(Box::new(TlsSession::server(self, version, answer)))
    }

    fn names_in(&self, hello: &[u8]) -> Option<ClientNames> {
        client_hello::names(hello)
    }
}

impl TlsServer {
    /// Creates a connection in this version.
    fn connection(
        &self,
        version: Version,
        parameters: Vec<u8>,
    ) -> Result<ServerConnection, rustls::Error> {
        let config = match version {
            Version::V1 => &self.config,
            Version::V2 => &self.version_2,
        };
        ServerConnection::new(config.clone(), keys::quic_version(version), parameters)
    }
}

/// Issues no tickets and accepts none.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl Provider for TlsClient {
    fn initial_keys(
        &self,
        version: Version,
        client_destination: &ConnectionId,
        side: Side,
    ) -> Keys {
        keys::initial(&self.initial, version, client_destination, side)
    }

    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16] {
        keys::retry_tag(version, original_destination, packet)
    }
}

impl Provider for TlsServer {
    fn initial_keys(
        &self,
        version: Version,
        client_destination: &ConnectionId,
        side: Side,
    ) -> Keys {
        keys::initial(&self.initial, version, client_destination, side)
    }

    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16] {
        keys::retry_tag(version, original_destination, packet)
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").finish_non_exhaustive()
    }
}

/// Returns the suite of Initial packets, whatever is negotiated later (RFC 9001, section 5.2), even
/// if the configuration offers it for no other packets.
fn initial_suite(chosen: &CryptoProvider) -> Result<Suite, StartError> {
    let ours = provider();
    let suites = chosen.cipher_suites.iter().chain(&ours.cipher_suites);
    suites
        .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
        .find_map(|suite| suite.tls13()?.quic_suite())
        .ok_or_else(|| {
            StartError::Configuration(
                "TLS13_AES_128_GCM_SHA256 is missing, which Initial packets need".to_owned(),
            )
        })
}

fn configuration(error: rustls::Error) -> StartError {
    StartError::Configuration(error.to_string())
}
