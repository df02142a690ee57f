//! Keys from TLS 1.3 (RFC 9001), by rustls.
//!
//! [`TlsClient`] and [`TlsServer`] wrap a rustls configuration, check that QUIC can use it, and
//! begin handshakes. [`provider()`] is the choice of algorithms for data centers; a configuration
//! may use any other rustls provider that has `TLS13_AES_128_GCM_SHA256`.

mod keys;
mod provider;
mod session;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, ServerConnection, Suite, Version};
use rustls::{CipherSuite, ClientConfig, ServerConfig};

pub use provider::provider;

use super::{ClientCrypto, Keys, Provider, ServerCrypto, Session, StartError};
use crate::{ConnectionId, Side};
use session::TlsSession;

/// What a client needs to begin TLS handshakes.
///
/// Sessions to resume live in the configuration's store and are shared by all its users.
pub struct TlsClient {
    with_early_data: Arc<ClientConfig>,
    without_early_data: Arc<ClientConfig>,
    initial: Suite,
}

impl TlsClient {
    /// Wraps a configuration. Its `enable_early_data` does not matter: each
    /// [`start`](ClientCrypto::start) says whether it wants early data.
    ///
    /// # Errors
    /// [`StartError::Configuration`] without TLS 1.3 or `TLS13_AES_128_GCM_SHA256`, the suite of
    /// Initial packets.
    pub fn new(config: Arc<ClientConfig>) -> Result<Self, StartError> {
        let initial = initial_suite(config.crypto_provider())?;
        // rustls tells only a connection whether a configuration has TLS 1.3. This one must not
        // take a ticket out of the store.
        let mut trial = ClientConfig::clone(&config);
        trial.resumption = Resumption::disabled();
        let nobody = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
        ClientConnection::new(Arc::new(trial), Version::V1, nobody, Vec::new())
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
            initial,
        })
    }
}

impl ClientCrypto for TlsClient {
    fn start(
        self: Arc<Self>,
        server_name: &str,
        parameters: &[u8],
        early_data: bool,
    ) -> Result<Box<dyn Session>, StartError> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| StartError::InvalidServerName(server_name.to_owned()))?;
        let config = if early_data {
            &self.with_early_data
        } else {
            &self.without_early_data
        };
        let connection =
            ClientConnection::new(config.clone(), Version::V1, name, parameters.to_vec())
                .map_err(configuration)?;
        Ok(Box::new(TlsSession::client(connection, server_name)))
    }
}

/// What a server needs to answer TLS handshakes.
pub struct TlsServer {
    config: Arc<ServerConfig>,
    initial: Suite,
}

impl TlsServer {
    /// Wraps a configuration.
    ///
    /// # Errors
    /// [`StartError::Configuration`] without TLS 1.3 or `TLS13_AES_128_GCM_SHA256`; where
    /// `max_early_data_size` is neither 0 nor 2³² − 1 (RFC 9001, section 4.6.1); or where early
    /// data are wanted that rustls could never accept, because it needs a session store for them
    /// and has none, or a ticketer in its place.
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
        // rustls checks the rest whenever a connection begins; better now than then.
        ServerConnection::new(config.clone(), Version::V1, Vec::new()).map_err(configuration)?;
        Ok(Self { config, initial })
    }
}

impl ServerCrypto for TlsServer {
    fn start(self: Arc<Self>, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        let connection =
            ServerConnection::new(self.config.clone(), Version::V1, parameters.to_vec())
                .map_err(configuration)?;
        Ok(Box::new(TlsSession::server(connection)))
    }
}

impl Provider for TlsClient {
    fn initial_keys(&self, client_destination: &ConnectionId, side: Side) -> Keys {
        keys::initial(&self.initial, client_destination, side)
    }

    fn retry_tag(&self, original_destination: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        keys::retry_tag(original_destination, packet)
    }
}

impl Provider for TlsServer {
    fn initial_keys(&self, client_destination: &ConnectionId, side: Side) -> Keys {
        keys::initial(&self.initial, client_destination, side)
    }

    fn retry_tag(&self, original_destination: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        keys::retry_tag(original_destination, packet)
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

/// The suite of Initial packets, whatever is negotiated later (RFC 9001, section 5.2).
fn initial_suite(provider: &CryptoProvider) -> Result<Suite, StartError> {
    provider
        .cipher_suites
        .iter()
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
