//! TLS over TCP with QUIC's certificates, also after a reload.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::ServerSessionMemoryCache;
use weir_net::tls::ServerCredentials;

use super::listen::BindError;
use crate::APPLICATION_PROTOCOL;

/// The application protocol (ALPN) of HTTP/2.
pub(super) const HTTP_2: &[u8] = b"h2";
/// The application protocol (ALPN) of HTTP/1.1.
const HTTP_1: &[u8] = b"http/1.1";
/// Sessions that are kept for resumption.
const SESSIONS: usize = 16 * 1024;

/// Configurations for handshakes over TCP.
pub(super) struct TcpTls {
    credentials: ServerCredentials,
    current: Mutex<Derived>,
}

/// A configuration, and the one of QUIC that it was made from.
struct Derived {
    source: Arc<ServerConfig>,
    config: Arc<ServerConfig>,
}

impl TcpTls {
    /// # Errors
    /// [`BindError`] where the configuration cannot be used for TCP, or lacks HTTP/3.
    pub(super) fn new(credentials: ServerCredentials) -> Result<Self, BindError> {
        let source = credentials.over_tcp()?;
        let mut protocols = source.alpn_protocols.iter();
        if !protocols.any(|name| name == APPLICATION_PROTOCOL) {
            return Err(BindError::NoHttp3);
        }
        let current = Mutex::new(Derived::new(source));
        Ok(Self {
            credentials,
            current,
        })
    }

    pub(super) fn credentials(&self) -> &ServerCredentials {
        &self.credentials
    }

    /// Returns the configuration of a handshake that begins now.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        let source = self.credentials.over_tcp();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match source {
            Ok(source) if Arc::ptr_eq(&current.source, &source) => {}
            Ok(source) => *current = Derived::new(source),
            // It could be used before, and a reload that fails changes nothing.
            Err(error) => tracing::warn!(%error, "the TLS configuration of before stays"),
        }
        current.config.clone()
    }
}

impl Derived {
    fn new(source: Arc<ServerConfig>) -> Self {
        let mut config = ServerConfig::clone(&source);
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
        // Nothing would say that a request came early, and may be a replay.
        config.max_early_data_size = 0;
        config.send_half_rtt_data = false;
        // A given configuration keeps those of QUIC here.
        if config.session_storage.can_cache() {
            config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        }
        Self {
            source,
            config: Arc::new(config),
        }
    }
}
