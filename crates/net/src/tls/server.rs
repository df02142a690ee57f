//! TLS configuration of a server.

use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use weir_quic::KnownClientsConfig;
use weir_quic::crypto::ServerCrypto;
use weir_quic::crypto::tls::{TlsServer, provider};

use super::cipher_suite::{CipherSuite, provider_with};
use super::sessions::Sessions;
use super::{DEFAULT_APPLICATION_PROTOCOL, Identity, Roots, TlsError};

/// Sessions that a server keeps for resumption.
const SESSIONS: usize = 16 * 1024;

/// A server's identity and its accepted clients. Sessions can be resumed.
#[derive(Clone, Debug)]
pub struct ServerTls {
    identity: Identity,
    client_roots: Option<Roots>,
    application_protocols: Vec<Vec<u8>>,
    cipher_suites: Vec<CipherSuite>,
    early_data: bool,
    tickets: usize,
    known_peers: Option<KnownClientsConfig>,
}

impl ServerTls {
    /// Creates a server with this identity that accepts all clients.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            client_roots: None,
            application_protocols: vec![DEFAULT_APPLICATION_PROTOCOL.to_vec()],
            cipher_suites: CipherSuite::ALL.to_vec(),
            early_data: false,
            tickets: 2,
            known_peers: None,
        }
    }

    /// Accepts only clients whose certificate is signed by these authorities (mutual TLS).
    pub fn client_roots(mut self, roots: Roots) -> Self {
        self.client_roots = Some(roots);
        self
    }

    /// Accepts these application protocols (ALPN) instead of [`DEFAULT_APPLICATION_PROTOCOL`].
    pub fn application_protocols<Protocol: Into<Vec<u8>>>(
        mut self,
        protocols: impl IntoIterator<Item = Protocol>,
    ) -> Self {
        self.application_protocols = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Accepts only these cipher suites, in order of preference: for regulated environments, or
    /// processors without AES instructions. AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305 by
    /// default.
    pub fn cipher_suites(mut self, suites: impl IntoIterator<Item = CipherSuite>) -> Self {
        self.cipher_suites = suites.into_iter().collect();
        self
    }

    /// Accepts 0-RTT from clients that resume a session; off by default.
    ///
    /// This process accepts a session's early data once, but an attacker can still replay them to
    /// another server with the same identity, or after a restart (RFC 8446, section 8). Requests
    /// and streams that arrived so are marked
    /// ([`Request::is_early_data`](crate::Request::is_early_data)): answer only those that may
    /// safely happen twice.
    pub fn early_data(mut self, accepted: bool) -> Self {
        self.early_data = accepted;
        self
    }

    /// Sets how many tickets a client gets per connection, each valid for one resumption; 2 by
    /// default.
    pub fn tickets(mut self, count: usize) -> Self {
        self.tickets = count;
        self
    }

    /// Offers path secrets to clients, so that their later connections have no handshake
    /// (`docs/known-peers.md`); off by default.
    ///
    /// Requests are never executed twice, but within the lifetime of a secret there is no forward
    /// secrecy. Servers that share an address, as behind a load balancer, must not offer them.
    pub fn known_peers(mut self, limits: KnownClientsConfig) -> Self {
        self.known_peers = Some(limits);
        self
    }

    /// Builds the configuration; clones of the result share the kept sessions.
    ///
    /// # Errors
    /// [`TlsError::Rustls`] where rustls rejects the identity, and without any cipher suite;
    /// [`TlsError::Verifier`] where it rejects the client authorities; [`TlsError::Quic`] where
    /// QUIC cannot use the configuration.
    pub fn build(self) -> Result<ServerCredentials, TlsError> {
        let cryptography = provider_with(&self.cipher_suites);
        let builder = rustls::ServerConfig::builder_with_provider(cryptography)
            .with_protocol_versions(&[&TLS13])?;
        let builder = match self.client_roots {
            None => builder.with_no_client_auth(),
            Some(roots) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots.store(), provider()).build()?,
            ),
        };
        let (chain, key) = self.identity.into_parts();
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = self.application_protocols;
        config.key_log = super::key_log();
        config.session_storage = Arc::new(Sessions::new(SESSIONS));
        config.max_early_data_size = if self.early_data { u32::MAX } else { 0 };
        config.send_half_rtt_data = false;
        config.send_tls13_tickets = self.tickets;
        Ok(ServerCredentials {
            crypto: Arc::new(TlsServer::new(Arc::new(config))?),
            known_peers: self.known_peers,
        })
    }
}

/// A server's TLS configuration, ready for use.
#[derive(Clone, Debug)]
pub struct ServerCredentials {
    pub(crate) crypto: Arc<dyn ServerCrypto>,
    pub(crate) known_peers: Option<KnownClientsConfig>,
}
