//! TLS configuration of a client.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionStore, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::version::TLS13;
use weir_quic::crypto::tls::{TlsClient, provider};
use weir_quic::crypto::{ClientCrypto, ClientStart, Keys, Provider, Session, StartError};
use weir_quic::{ConnectionId, KnownServers, KnownServersCounters, Side, TokenStore, Version};
use weir_units::Duration;

use super::cipher_suite::{CipherSuite, protects_records, provider_with, tcp_provider_with};
use super::pin::PinnedCertificate;
use super::reload::{Counters, Reloadable, reload_every};
use super::spiffe::SpiffeServers;
use super::{
    Crls, DEFAULT_APPLICATION_PROTOCOL, Fingerprint, Identity, Reload, ReloadCounters, Roots,
    SpiffeId, TlsError,
};

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
    servers: TrustedServers,
    crls: Option<Crls>,
    identity: Option<Identity>,
    application_protocols: Vec<Vec<u8>>,
    cipher_suites: Vec<CipherSuite>,
    early_data: bool,
    sessions: KeptSessions,
    tokens: bool,
    known_peers: bool,
    secret_renewal: Duration,
    reload_interval: Option<Duration>,
}

/// The servers that a client trusts.
#[derive(Clone, PartialEq)]
enum TrustedServers {
    /// With a certificate of these authorities for the name that the client asks for.
    Named(Roots),
    Pinned(Fingerprint),
    /// These workloads, with a certificate of these authorities.
    Workloads(Roots, Vec<SpiffeId>),
}

/// Where sessions are kept.
#[derive(Clone)]
enum KeptSessions {
    Nowhere,
    InMemory,
    InStore(Arc<dyn ClientSessionStore>),
}

impl ClientTls {
    /// Trusts servers whose certificate is signed by these authorities: name, dates and chain are
    /// verified.
    ///
    /// # Errors
    /// [`TlsError::Verifier`] without any authority.
    pub fn with_roots(roots: Roots) -> Result<Self, TlsError> {
        let tls = Self::new(TrustedServers::Named(roots));
        tls.verifier()?;
        Ok(tls)
    }

    /// Trusts servers whose certificate is an SVID of one of these workloads or trust domains, signed by
    /// an authority in the bundle of their trust domain. The name that the client asks for plays no
    /// role.
    pub fn with_spiffe(bundle: Roots, servers: impl IntoIterator<Item = SpiffeId>) -> Self {
        Self::new(TrustedServers::Workloads(
            bundle,
            servers.into_iter().collect(),
        ))
    }

    /// Uses a configuration of rustls as it is, with its verifier, identity, protocols, suites, store of
    /// sessions and key log; its `enable_early_data` counts too. Address validation tokens and path
    /// secrets are kept besides, which [`ClientCredentials::without_tokens`] and
    /// [`ClientCredentials::without_known_peers`] turn off. Nothing is reloaded.
    ///
    /// # Errors
    /// [`TlsError::NoApplicationProtocol`] without one; [`TlsError::Quic`], which says why, where QUIC
    /// cannot use it: without TLS 1.3, or with suites that have no QUIC keys.
    pub fn from_rustls(
        config: impl Into<Arc<rustls::ClientConfig>>,
    ) -> Result<ClientCredentials, TlsError> {
        let config = config.into();
        if config.alpn_protocols.is_empty() {
            return Err(TlsError::NoApplicationProtocol);
        }
        let servers = KnownServers::new(KNOWN_SERVERS).with_renewal_interval(SECRET_RENEWAL);
        Ok(ClientCredentials {
            early_data: config.enable_early_data,
            crypto: Arc::new(TlsClient::new(config.clone())?),
            tokens: Some(Arc::new(TokenStore::new(TOKENS))),
            known_servers: Some(Arc::new(servers)),
            source: Source::Given(config),
        })
    }

    /// Trusts the one certificate with this fingerprint, whatever its names and dates, from a
    /// server that proves possession of its key.
    pub fn pinned(fingerprint: Fingerprint) -> Self {
        Self::new(TrustedServers::Pinned(fingerprint))
    }

    fn new(servers: TrustedServers) -> Self {
        Self {
            servers,
            crls: None,
            identity: None,
            application_protocols: vec![DEFAULT_APPLICATION_PROTOCOL.to_vec()],
            cipher_suites: CipherSuite::ALL.to_vec(),
            early_data: false,
            sessions: KeptSessions::InMemory,
            tokens: true,
            known_peers: true,
            secret_renewal: SECRET_RENEWAL,
            reload_interval: None,
        }
    }

    /// Refuses servers whose certificate, or that of one of its issuers, is in these lists or covered
    /// by none of them. Not for pinned certificates.
    pub fn crls(mut self, crls: Crls) -> Self {
        self.crls = Some(crls);
        self
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
    pub fn secret_renewal(mut self, interval: impl Into<Duration>) -> Self {
        self.secret_renewal = interval.into();
        self
    }

    /// Sets whether sessions, address validation tokens and path secrets are kept, in memory, and
    /// used; on by default. By each, a server can link connections of the same client.
    pub fn resumption(mut self, wanted: bool) -> Self {
        self.tokens = wanted;
        self.known_peers = wanted;
        self.sessions = if wanted {
            KeptSessions::InMemory
        } else {
            KeptSessions::Nowhere
        };
        self
    }

    /// Keeps sessions in the caller's store, to share them between endpoints or to know when there
    /// is one. When credentials are reloaded, sessions in that store stay.
    pub fn session_store(mut self, store: Arc<dyn ClientSessionStore>) -> Self {
        self.sessions = KeptSessions::InStore(store);
        self
    }

    /// Reads all files that this configuration was made from again at this interval, in a thread of
    /// its own; never by default. [`ClientCredentials::reload`] says what that does.
    pub fn reload_every(mut self, interval: impl Into<Duration>) -> Self {
        self.reload_interval = Some(interval.into());
        self
    }

    /// Builds the configuration; clones of the result share the kept sessions and tokens.
    ///
    /// # Errors
    /// [`TlsError::Rustls`] where rustls refuses the identity, and without any cipher suite;
    /// [`TlsError::Verifier`] where it refuses authorities or lists;
    /// [`TlsError::WithPinnedCertificate`] for lists with a pinned certificate; [`TlsError::Quic`]
    /// where QUIC cannot use the configuration.
    pub fn build(self) -> Result<ClientCredentials, TlsError> {
        let servers = KnownServers::new(KNOWN_SERVERS).with_renewal_interval(self.secret_renewal);
        let known_servers = self.known_peers.then(|| Arc::new(servers));
        let (early_data, tokens) = (self.early_data, self.tokens);
        let interval = self.reload_interval;
        let reloading = Arc::new(ReloadingClient {
            current: RwLock::new(Arc::new(self.client()?)),
            over_tcp: RwLock::default(),
            source: Mutex::new(self),
            counters: Counters::default(),
            known_servers: known_servers.clone(),
        });
        if let Some(interval) = interval {
            reload_every(&reloading, interval)?;
        }
        Ok(ClientCredentials {
            crypto: reloading.clone(),
            early_data,
            tokens: tokens.then(|| Arc::new(TokenStore::new(TOKENS))),
            known_servers,
            source: Source::Files(reloading),
        })
    }

    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let lists = self.crls.as_ref().map_or(&[][..], Crls::lists);
        Ok(match &self.servers {
            TrustedServers::Named(roots) => {
                WebPkiServerVerifier::builder_with_provider(roots.store(), provider())
                    .with_crls(lists.iter().cloned())
                    .build()?
            }
            TrustedServers::Pinned(_) if self.crls.is_some() => {
                return Err(TlsError::WithPinnedCertificate { setting: "crls" });
            }
            TrustedServers::Pinned(fingerprint) => {
                Arc::new(PinnedCertificate::new(*fingerprint, &provider()))
            }
            TrustedServers::Workloads(roots, ids) => Arc::new(SpiffeServers::new(
                roots.store(),
                self.crls.as_ref(),
                ids.clone(),
                provider().signature_verification_algorithms,
            )?),
        })
    }

    /// Makes the configuration, without any session.
    fn client(&self) -> Result<TlsClient, TlsError> {
        let mut config = self.config(provider_with(&self.cipher_suites))?;
        config.resumption = match &self.sessions {
            KeptSessions::Nowhere => Resumption::disabled(),
            KeptSessions::InMemory => Resumption::in_memory_sessions(SESSIONS),
            KeptSessions::InStore(store) => Resumption::store(store.clone()),
        };
        Ok(TlsClient::new(Arc::new(config))?)
    }

    /// The same for TLS over TCP, with sessions of its own: those in a store belong to QUIC.
    fn over_tcp(&self) -> Result<Arc<rustls::ClientConfig>, TlsError> {
        let mut config = self.config(tcp_provider_with(&self.cipher_suites))?;
        config.resumption = match &self.sessions {
            KeptSessions::InMemory => Resumption::in_memory_sessions(SESSIONS),
            KeptSessions::Nowhere | KeptSessions::InStore(_) => Resumption::disabled(),
        };
        Ok(Arc::new(config))
    }

    fn config(&self, cryptography: Arc<CryptoProvider>) -> Result<rustls::ClientConfig, TlsError> {
        let builder = rustls::ClientConfig::builder_with_provider(cryptography)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier()?);
        let mut config = match self.identity.clone() {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.into_parts();
                builder.with_client_auth_cert(chain, key)?
            }
        };
        config
            .alpn_protocols
            .clone_from(&self.application_protocols);
        config.key_log = super::key_log();
        Ok(config)
    }

    /// Reads all files again.
    fn reread(&self) -> Result<Self, TlsError> {
        Ok(Self {
            servers: match &self.servers {
                TrustedServers::Named(roots) => TrustedServers::Named(roots.reread()?),
                TrustedServers::Pinned(fingerprint) => TrustedServers::Pinned(*fingerprint),
                TrustedServers::Workloads(roots, ids) => {
                    TrustedServers::Workloads(roots.reread()?, ids.clone())
                }
            },
            crls: self.crls.as_ref().map(Crls::reread).transpose()?,
            identity: self.identity.as_ref().map(Identity::reread).transpose()?,
            ..self.clone()
        })
    }

    fn has_contents_of(&self, other: &Self) -> bool {
        self.servers == other.servers && self.crls == other.crls && self.identity == other.identity
    }
}

/// A client's TLS configuration, ready for use, with its sessions and address validation tokens.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    pub(crate) crypto: Arc<dyn ClientCrypto>,
    pub(crate) early_data: bool,
    pub(crate) tokens: Option<Arc<TokenStore>>,
    pub(crate) known_servers: Option<Arc<KnownServers>>,
    source: Source,
}

/// Where a configuration comes from.
#[derive(Clone, Debug)]
enum Source {
    /// It is made again when its files have changed.
    Files(Arc<ReloadingClient>),
    Given(Arc<rustls::ClientConfig>),
}

impl ClientCredentials {
    /// Keeps no address validation tokens; see [`ClientTls::resumption`].
    pub fn without_tokens(mut self) -> Self {
        self.tokens = None;
        self
    }

    /// Keeps no path secrets: every connection has a handshake.
    pub fn without_known_peers(mut self) -> Self {
        self.known_servers = None;
        self
    }

    /// Reads the files of authorities, revocation lists and the identity again. All are replaced at
    /// once, for connections from then on, or none is; open connections go on. Where anything has
    /// changed, sessions and path secrets are forgotten, so that the next connection to each server
    /// verifies it again and shows the new identity.
    ///
    /// # Errors
    /// As of [`ClientTls::build`] and of reading the files. Counted and logged as a warning too;
    /// everything stays as it is.
    pub fn reload(&self) -> Result<Reload, TlsError> {
        match &self.source {
            Source::Files(reloading) => reloading.reload(),
            Source::Given(_) => Ok(Reload::Unchanged),
        }
    }

    /// Returns how often files were read again with another result than before.
    pub fn reloads(&self) -> ReloadCounters {
        match &self.source {
            Source::Files(reloading) => reloading.counters.get(),
            Source::Given(_) => ReloadCounters::default(),
        }
    }

    /// Returns a configuration of rustls for TLS over TCP beside QUIC, with the same servers, identity,
    /// protocols and suites; its sessions are its own. Ask for it at each connection: a reload replaces it.
    /// One of [`ClientTls::from_rustls`] is returned as it is.
    ///
    /// # Errors
    /// As of [`ClientTls::build`]; [`TlsError::QuicAlone`] where the suites of a given configuration
    /// protect no records.
    pub fn over_tcp(&self) -> Result<Arc<rustls::ClientConfig>, TlsError> {
        match &self.source {
            Source::Files(reloading) => reloading.over_tcp(),
            Source::Given(config) if !protects_records(config.crypto_provider()) => {
                Err(TlsError::QuicAlone)
            }
            Source::Given(config) => Ok(config.clone()),
        }
    }

    /// Returns the verifier of servers' certificates that is in force, to verify those of open
    /// connections again after a reload; `None` for a configuration of [`ClientTls::from_rustls`], which
    /// has its own.
    ///
    /// # Errors
    /// [`TlsError::Verifier`], as of [`ClientTls::build`].
    pub fn server_verifier(&self) -> Result<Option<Arc<dyn ServerCertVerifier>>, TlsError> {
        let Source::Files(reloading) = &self.source else {
            return Ok(None);
        };
        let source = reloading.source.lock();
        let source = source.unwrap_or_else(PoisonError::into_inner);
        source.verifier().map(Some)
    }

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

/// A configuration that can be replaced.
struct ReloadingClient {
    current: RwLock<Arc<TlsClient>>,
    /// The same for TCP, once somebody has asked for it.
    over_tcp: RwLock<Option<Arc<rustls::ClientConfig>>>,
    /// What it was made from.
    source: Mutex<ClientTls>,
    counters: Counters,
    known_servers: Option<Arc<KnownServers>>,
}

impl ReloadingClient {
    fn current(&self) -> Arc<TlsClient> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn over_tcp(&self) -> Result<Arc<rustls::ClientConfig>, TlsError> {
        let kept = self.over_tcp.read();
        if let Some(config) = &*kept.unwrap_or_else(PoisonError::into_inner) {
            return Ok(config.clone());
        }
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let config = source.over_tcp()?;
        let kept = self.over_tcp.write();
        *kept.unwrap_or_else(PoisonError::into_inner) = Some(config.clone());
        Ok(config)
    }

    fn replace(&self) -> Result<Reload, TlsError> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let next = source.reread()?;
        if next.has_contents_of(&source) {
            return Ok(Reload::Unchanged);
        }
        // Without the sessions of the old one: servers are not verified again when they are resumed.
        let client = Arc::new(next.client()?);
        let mut over_tcp = self
            .over_tcp
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if over_tcp.is_some() {
            *over_tcp = Some(next.over_tcp()?);
        }
        drop(over_tcp);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = client;
        if let Some(servers) = &self.known_servers {
            servers.clear();
        }
        *source = next;
        Ok(Reload::Changed)
    }
}

impl Reloadable for ReloadingClient {
    fn reload(&self) -> Result<Reload, TlsError> {
        let result = self.replace();
        self.counters.note(&result);
        result
    }
}

impl Provider for ReloadingClient {
    fn initial_keys(
        &self,
        version: Version,
        client_destination: &ConnectionId,
        side: Side,
    ) -> Keys {
        self.current()
            .initial_keys(version, client_destination, side)
    }

    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16] {
        self.current()
            .retry_tag(version, original_destination, packet)
    }
}

impl ClientCrypto for ReloadingClient {
    fn start(self: Arc<Self>, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        self.current().start(start)
    }
}

impl fmt::Debug for ReloadingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadingClient")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
