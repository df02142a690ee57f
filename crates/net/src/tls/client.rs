//! TLS configuration of a client.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionStore, Resumption, WebPkiServerVerifier};
use rustls::version::TLS13;
use weir_quic::crypto::ClientCrypto;
use weir_quic::crypto::tls::{TlsClient, provider};
use weir_quic::{KnownServers, KnownServersCounters, TokenStore};
use weir_units::Duration;

use super::cipher_suite::{CipherSuite, provider_with};
use super::pin::PinnedCertificate;
use super::{DEFAULT_APPLICATION_PROTOCOL, Fingerprint, Identity, Roots, TlsError};

/// Servers whose sessions are kept for resumption.
const SESSIONS: usize = 256;
/// Address validation tokens that are kept: a few per server, each valid for one connection.
const TOKENS: usize = 4 * SESSIONS;
/// Servers whose path secrets are kept.
const KNOWN_SERVERS: usize = 4096;
/// After which time an open connection renews the secret.
const SECRET_RENEWAL: Duration = Duration::from_secs(600);

/// A client's trust anchors and identity. Sessions are kept and resumed.
#[derive(Clone)]
pub struct ClientTls {
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<Identity>,
    application_protocols: Vec<Vec<u8>>,
    cipher_suites: Vec<CipherSuite>,
    early_data: bool,
    resumption: Resumption,
    tokens: bool,
    known_peers: bool,
    secret_renewal: Duration,
}

impl ClientTls {
    /// Trusts servers whose certificate is signed by these authorities: name, dates and chain are
    /// verified.
    ///
    /// # Errors
    /// [`TlsError::Verifier`] without any authority.
    pub fn with_roots(roots: Roots) -> Result<Self, TlsError> {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots.store(), provider()).build()?;
        Ok(Self::new(verifier))
    }

    /// Trusts the one certificate with this fingerprint, whatever its names and dates, from a
    /// server that proves possession of its key.
    pub fn pinned(fingerprint: Fingerprint) -> Self {
        Self::new(Arc::new(PinnedCertificate::new(fingerprint, &provider())))
    }

    fn new(verifier: Arc<dyn ServerCertVerifier>) -> Self {
        Self {
            verifier,
            identity: None,
            application_protocols: vec![DEFAULT_APPLICATION_PROTOCOL.to_vec()],
            cipher_suites: CipherSuite::ALL.to_vec(),
            early_data: false,
            resumption: Resumption::in_memory_sessions(SESSIONS),
            tokens: true,
            known_peers: true,
            secret_renewal: SECRET_RENEWAL,
        }
    }

    /// Presents this identity to servers that ask for one (mutual TLS).
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Offers these application protocols (ALPN) instead of
    /// [`DEFAULT_APPLICATION_PROTOCOL`].
    pub fn application_protocols<Protocol: Into<Vec<u8>>>(
        mut self,
        protocols: impl IntoIterator<Item = Protocol>,
    ) -> Self {
        self.application_protocols = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Offers only these cipher suites, in order of preference: for regulated environments, or
    /// processors without AES instructions. AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305 by
    /// default.
    pub fn cipher_suites(mut self, suites: impl IntoIterator<Item = CipherSuite>) -> Self {
        self.cipher_suites = suites.into_iter().collect();
        self
    }

    /// Allows 0-RTT with servers that accept it; off by default.
    ///
    /// Only streams and calls that ask for it use it. An attacker on the network can replay early
    /// data to a server (RFC 8446, section 8): send only what may safely happen twice.
    pub fn early_data(mut self, allowed: bool) -> Self {
        self.early_data = allowed;
        self
    }

    /// Sets whether path secrets of servers that offer them are kept, in memory, so that later
    /// connections have no handshake (`docs/known-peers.md`); on by default.
    pub fn known_peers(mut self, wanted: bool) -> Self {
        self.known_peers = wanted;
        self
    }

    /// Sets after which time an open connection renews the path secret of its server; 10 minutes by
    /// default, zero for never.
    pub fn secret_renewal(mut self, interval: Duration) -> Self {
        self.secret_renewal = interval;
        self
    }

    /// Sets whether sessions, address validation tokens and path secrets are kept, in memory, and
    /// used; on by default. By each, a server can link connections of the same client.
    pub fn resumption(mut self, wanted: bool) -> Self {
        self.tokens = wanted;
        self.known_peers = wanted;
        self.resumption = if wanted {
            Resumption::in_memory_sessions(SESSIONS)
        } else {
            Resumption::disabled()
        };
        self
    }

    /// Keeps sessions in the caller's store, to share them between endpoints or to know when there
    /// is one.
    pub fn session_store(mut self, store: Arc<dyn ClientSessionStore>) -> Self {
        self.resumption = Resumption::store(store);
        self
    }

    /// Builds the configuration; clones of the result share the kept sessions and tokens.
    ///
    /// # Errors
    /// [`TlsError::Rustls`] where rustls refuses the identity, and without any cipher suite;
    /// [`TlsError::Quic`] where QUIC cannot use the configuration.
    pub fn build(self) -> Result<ClientCredentials, TlsError> {
        let cryptography = provider_with(&self.cipher_suites);
        let builder = rustls::ClientConfig::builder_with_provider(cryptography)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier);
        let mut config = match self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.into_parts();
                builder.with_client_auth_cert(chain, key)?
            }
        };
        config.alpn_protocols = self.application_protocols;
        config.key_log = super::key_log();
        config.resumption = self.resumption;
        let servers = KnownServers::new(KNOWN_SERVERS).with_renewal_interval(self.secret_renewal);
        Ok(ClientCredentials {
            crypto: Arc::new(TlsClient::new(Arc::new(config))?),
            early_data: self.early_data,
            tokens: self.tokens.then(|| Arc::new(TokenStore::new(TOKENS))),
            known_servers: self.known_peers.then(|| Arc::new(servers)),
        })
    }
}

/// A client's TLS configuration, ready for use, with its sessions and address validation tokens.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    pub(crate) crypto: Arc<dyn ClientCrypto>,
    pub(crate) early_data: bool,
    pub(crate) tokens: Option<Arc<TokenStore>>,
    pub(crate) known_servers: Option<Arc<KnownServers>>,
}

impl ClientCredentials {
    /// Returns the counters of connections without a handshake.
    pub fn known_servers(&self) -> KnownServersCounters {
        let servers = self.known_servers.as_ref();
        servers.map_or_else(KnownServersCounters::default, |servers| servers.counters())
    }

    /// Forgets the path secrets of all servers: the next connection to each has a full handshake.
    pub fn forget_known_servers(&self) {
        if let Some(servers) = &self.known_servers {
            servers.clear();
        }
    }
}
