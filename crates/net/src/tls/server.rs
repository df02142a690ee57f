//! TLS configuration of a server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use weir_quic::crypto::tls::TlsServer;
use weir_quic::crypto::{Answerer, ClientNames, Keys, Provider, ServerCrypto, Session, StartError};
use weir_quic::{ConnectionId, KnownClients, KnownClientsConfig, Side, Version};
use weir_units::Duration;

use super::cipher_suite::{CipherSuite, protects_records, provider_with, tcp_provider_with};
use super::client_auth::{ClientAuth, still_accepts};
use super::reload::{Counters, Reloadable, reload_every};
use super::resolver::IdentityResolver;
use super::sessions::Sessions;
use super::{
    Crls, DEFAULT_APPLICATION_PROTOCOL, Fingerprint, Identity, Reload, ReloadCounters, Roots,
    SpiffeId, TicketKeys, TlsError,
};
use crate::clock::Clock;

/// Sessions that a server keeps for resumption.
const SESSIONS: usize = 16 * 1024;

/// A server's identity and its accepted clients. Sessions can be resumed.
#[derive(Clone, Debug)]
pub struct ServerTls {
    identities: Vec<Identity>,
    clients: ClientAuth,
    application_protocols: Vec<Vec<u8>>,
    cipher_suites: Vec<CipherSuite>,
    early_data: bool,
    tickets: usize,
    ticket_keys: Option<TicketKeys>,
    known_peers: Option<KnownClientsConfig>,
    reload_interval: Option<Duration>,
}

impl ServerTls {
    /// Creates a server with this identity that accepts all clients.
    pub fn new(identity: Identity) -> Self {
        Self {
            identities: vec![identity],
            clients: ClientAuth::default(),
            application_protocols: vec![DEFAULT_APPLICATION_PROTOCOL.to_vec()],
            cipher_suites: CipherSuite::ALL.to_vec(),
            early_data: false,
            tickets: 2,
            ticket_keys: None,
            known_peers: None,
            reload_interval: None,
        }
    }

    /// Uses a configuration of rustls as it is, with its identities, verifier, protocols, suites, tickets
    /// and key log. [`ServerCredentials::known_peers`] may be added; nothing is reloaded, which the
    /// configuration's own resolver and verifier can do.
    ///
    /// # Errors
    /// [`TlsError::NoApplicationProtocol`] without one; [`TlsError::Quic`], which says why, where QUIC
    /// cannot use it: without TLS 1.3, with suites that have no QUIC keys, with a limit of early data
    /// other than 0 and 2³² − 1, or with early data but without a store of sessions.
    pub fn from_rustls(
        config: impl Into<Arc<rustls::ServerConfig>>,
    ) -> Result<ServerCredentials, TlsError> {
        let config = config.into();
        if config.alpn_protocols.is_empty() {
            return Err(TlsError::NoApplicationProtocol);
        }
        let server = Arc::new(TlsServer::new(config)?);
        Ok(ServerCredentials {
            crypto: server.clone(),
            known_peers: None,
            source: Source::Given(server),
        })
    }

    /// Adds an identity. A client gets the first one whose certificate has the name that it asks for
    /// (SNI), or else the first of all.
    pub fn also(mut self, identity: Identity) -> Self {
        self.identities.push(identity);
        self
    }

    /// Accepts only clients whose certificate is signed by these authorities (mutual TLS).
    pub fn client_roots(mut self, roots: Roots) -> Self {
        self.clients.roots = Some(roots);
        self
    }

    /// Refuses clients whose certificate, or that of one of its issuers, is in these lists or covered by
    /// none of them. Needs [`Self::client_roots`].
    pub fn client_crls(mut self, crls: Crls) -> Self {
        self.clients.crls = Some(crls);
        self
    }

    /// Accepts only clients whose certificate is an SVID of one of these workloads or trust domains.
    /// Needs [`Self::client_roots`]: the bundle of the trust domain, which has to be the same for all.
    pub fn client_spiffe_ids(mut self, ids: impl IntoIterator<Item = SpiffeId>) -> Self {
        self.clients.spiffe = ids.into_iter().collect();
        self
    }

    /// Accepts only clients whose certificate has one of these fingerprints, whatever its names, dates and
    /// issuer. Not together with [`Self::client_roots`].
    pub fn client_fingerprints(
        mut self,
        fingerprints: impl IntoIterator<Item = Fingerprint>,
    ) -> Self {
        self.clients.pinned = fingerprints.into_iter().collect();
        self
    }

    /// Accepts clients without a certificate too; those with a certificate still have to have a valid
    /// one. Needs [`Self::client_roots`].
    pub fn client_auth_optional(mut self) -> Self {
        self.clients.is_optional = true;
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

    /// Seals sessions into the tickets, with keys that other servers have too, instead of keeping them:
    /// a client then resumes its session at any of them that accepts the same clients. A ticket can be
    /// used several times, so that early data are not possible.
    pub fn ticket_keys(mut self, keys: TicketKeys) -> Self {
        self.ticket_keys = Some(keys);
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

    /// Reads all files that this configuration was made from again at this interval, in a thread of
    /// its own; never by default. [`ServerCredentials::reload`] says what that does.
    pub fn reload_every(mut self, interval: impl Into<Duration>) -> Self {
        self.reload_interval = Some(interval.into());
        self
    }

    /// Builds the configuration; clones of the result share the kept sessions.
    ///
    /// # Errors
    /// [`TlsError::Rustls`] where rustls rejects an identity, and without any cipher suite;
    /// [`TlsError::Verifier`] where it rejects the client authorities or lists;
    /// [`TlsError::WithoutClientRoots`], [`TlsError::ClientRootsAndFingerprints`] and
    /// [`TlsError::EarlyDataWithTicketKeys`] where settings do
    /// not go together; [`TlsError::Quic`] where QUIC cannot use the configuration.
    pub fn build(self) -> Result<ServerCredentials, TlsError> {
        let sessions = Arc::new(Sessions::new(SESSIONS));
        let (known_peers, interval) = (self.known_peers, self.reload_interval);
        let reloading = Arc::new(ReloadingServer {
            current: RwLock::new(Arc::new(self.server(sessions.clone())?)),
            over_tcp: RwLock::default(),
            source: Mutex::new((self, sessions)),
            counters: Counters::default(),
            known_clients: Mutex::default(),
        });
        if let Some(interval) = interval {
            reload_every(&reloading, interval)?;
        }
        Ok(ServerCredentials {
            crypto: reloading.clone(),
            known_peers,
            source: Source::Files(reloading),
        })
    }

    fn server(&self, sessions: Arc<Sessions>) -> Result<TlsServer, TlsError> {
        if self.early_data && self.ticket_keys.is_some() {
            return Err(TlsError::EarlyDataWithTicketKeys);
        }
        let mut config = self.config(provider_with(&self.cipher_suites), sessions)?;
        config.max_early_data_size = if self.early_data { u32::MAX } else { 0 };
        Ok(TlsServer::new(Arc::new(config))?)
    }

    /// The same for TLS over TCP, with sessions of its own and no early data.
    fn over_tcp(&self) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        let sessions = Arc::new(Sessions::new(SESSIONS));
        let config = self.config(tcp_provider_with(&self.cipher_suites), sessions)?;
        Ok(Arc::new(config))
    }

    fn config(
        &self,
        cryptography: Arc<CryptoProvider>,
        sessions: Arc<Sessions>,
    ) -> Result<rustls::ServerConfig, TlsError> {
        let builder = rustls::ServerConfig::builder_with_provider(cryptography)
            .with_protocol_versions(&[&TLS13])?;
        let builder = match self.clients.verifier()? {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(verifier),
        };
        let resolver = IdentityResolver::new(&self.identities)?;
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        config
            .alpn_protocols
            .clone_from(&self.application_protocols);
        config.key_log = super::key_log();
        config.session_storage = sessions;
        if let Some(keys) = &self.ticket_keys {
            config.ticketer = keys.tickets(self.clients.digest());
        }
        config.send_half_rtt_data = false;
        config.send_tls13_tickets = self.tickets;
        Ok(config)
    }

    /// Reads all files again.
    fn reread(&self) -> Result<Self, TlsError> {
        let identities = self.identities.iter().map(Identity::reread);
        let ticket_keys = self.ticket_keys.as_ref().map(TicketKeys::reread);
        Ok(Self {
            identities: identities.collect::<Result<_, _>>()?,
            clients: self.clients.reread()?,
            ticket_keys: ticket_keys.transpose()?,
            ..self.clone()
        })
    }

    fn has_contents_of(&self, other: &Self) -> bool {
        self.identities == other.identities
            && self.clients == other.clients
            && self.ticket_keys == other.ticket_keys
    }
}

/// A server's TLS configuration, ready for use.
#[derive(Clone, Debug)]
pub struct ServerCredentials {
    pub(crate) crypto: Arc<dyn ServerCrypto>,
    pub(crate) known_peers: Option<KnownClientsConfig>,
    source: Source,
}

/// Where a configuration comes from.
#[derive(Clone, Debug)]
enum Source {
    /// It is made again when its files have changed.
    Files(Arc<ReloadingServer>),
    Given(Arc<TlsServer>),
}

impl ServerCredentials {
    /// Offers path secrets to clients; see [`ServerTls::known_peers`].
    pub fn known_peers(mut self, limits: KnownClientsConfig) -> Self {
        self.known_peers = Some(limits);
        self
    }

    /// Reads the files of identities, client authorities, revocation lists and ticket keys again. All
    /// are replaced at once, for handshakes from then on, or none is; open connections go on.
    ///
    /// Where authorities, lists or workloads of clients have changed, sessions end, and so do the path
    /// secrets of clients that would not be accepted any more.
    ///
    /// # Errors
    /// As of [`ServerTls::build`] and of reading the files. Counted and logged as a warning too;
    /// everything stays as it is.
    pub fn reload(&self) -> Result<Reload, TlsError> {
        let reloading = self.reloading();
        reloading.map_or(Ok(Reload::Unchanged), |reloading| reloading.reload())
    }

    /// Returns how often files were read again with another result than before.
    pub fn reloads(&self) -> ReloadCounters {
        let reloading = self.reloading();
        reloading.map_or_else(ReloadCounters::default, |reloading| {
            reloading.counters.get()
        })
    }

    /// Returns a configuration of rustls for TLS over TCP beside QUIC, with the same identities,
    /// clients, protocols, suites and ticket keys, without early data. Ask for it at each handshake: a
    /// reload replaces it. One of [`ServerTls::from_rustls`] is returned as it is.
    ///
    /// # Errors
    /// As of [`ServerTls::build`]; [`TlsError::QuicAlone`] where the suites of a given configuration
    /// protect no records.
    pub fn over_tcp(&self) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        match &self.source {
            Source::Files(reloading) => reloading.over_tcp(),
            Source::Given(server) => {
                let config = server.config();
                if !protects_records(config.crypto_provider()) {
                    return Err(TlsError::QuicAlone);
                }
                Ok(config.clone())
            }
        }
    }

    /// Returns the verifier of clients' certificates that is in force, to verify those of open
    /// connections again after a reload; `None` where clients need none, and for a configuration of
    /// [`ServerTls::from_rustls`], which has its own.
    ///
    /// # Errors
    /// [`TlsError::Verifier`], as of [`ServerTls::build`].
    pub fn client_verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        let Some(reloading) = self.reloading() else {
            return Ok(None);
        };
        let source = reloading.source.lock();
        let source = source.unwrap_or_else(PoisonError::into_inner);
        source.0.clients.verifier()
    }

    fn reloading(&self) -> Option<&Arc<ReloadingServer>> {
        match &self.source {
            Source::Files(reloading) => Some(reloading),
            Source::Given(_) => None,
        }
    }

    /// Ends secrets of an endpoint's clients when they would not be accepted any more.
    pub(crate) fn follow(&self, clients: &Arc<KnownClients>, clock: Clock) {
        if let Some(reloading) = self.reloading() {
            let mut followed = reloading.known_clients();
            followed.retain(|(clients, _)| clients.strong_count() > 0);
            followed.push((Arc::downgrade(clients), clock));
        }
    }
}

/// A configuration that can be replaced.
#[derive(Debug)]
struct ReloadingServer {
    current: RwLock<Arc<TlsServer>>,
    /// The same for TCP, once somebody has asked for it.
    over_tcp: RwLock<Option<Arc<rustls::ServerConfig>>>,
    /// What it was made from.
    source: Mutex<(ServerTls, Arc<Sessions>)>,
    counters: Counters,
    /// The path secrets of clients, of endpoints with this configuration.
    known_clients: Mutex<Vec<(Weak<KnownClients>, Clock)>>,
}

impl ReloadingServer {
    fn current(&self) -> Arc<TlsServer> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn over_tcp(&self) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        let kept = self.over_tcp.read();
        if let Some(config) = &*kept.unwrap_or_else(PoisonError::into_inner) {
            return Ok(config.clone());
        }
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let config = source.0.over_tcp()?;
        let kept = self.over_tcp.write();
        *kept.unwrap_or_else(PoisonError::into_inner) = Some(config.clone());
        Ok(config)
    }

    fn known_clients(&self) -> MutexGuard<'_, Vec<(Weak<KnownClients>, Clock)>> {
        let known_clients = self.known_clients.lock();
        known_clients.unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self) -> Result<Reload, TlsError> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let next = source.0.reread()?;
        if next.has_contents_of(&source.0) {
            return Ok(Reload::Unchanged);
        }
        let accepts_others = next.clients != source.0.clients;
        // A session that is resumed is not verified again.
        let sessions = if accepts_others {
            Arc::new(Sessions::new(SESSIONS))
        } else {
            source.1.clone()
        };
        let server = Arc::new(next.server(sessions.clone())?);
        let mut over_tcp = self
            .over_tcp
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if over_tcp.is_some() {
            *over_tcp = Some(next.over_tcp()?);
        }
        drop(over_tcp);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = server;
        if accepts_others {
            self.end_secrets(&next.clients)?;
        }
        *source = (next, sessions);
        Ok(Reload::Changed)
    }

    fn end_secrets(&self, accepted: &ClientAuth) -> Result<(), TlsError> {
        let Some(verifier) = accepted.verifier()? else {
            return Ok(());
        };
        for (clients, clock) in self.known_clients().iter() {
            if let Some(clients) = clients.upgrade() {
                let now = clock.now() + clock.epoch();
                let verifier = verifier.clone();
                clients.restrict(now, move |client| still_accepts(&*verifier, client));
            }
        }
        Ok(())
    }
}

impl Reloadable for ReloadingServer {
    fn reload(&self) -> Result<Reload, TlsError> {
        let result = self.replace();
        self.counters.note(&result);
        result
    }
}

impl Provider for ReloadingServer {
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

impl ServerCrypto for ReloadingServer {
    fn start(
        self: Arc<Self>,
        version: Version,
        answer: Answerer,
    ) -> Result<Box<dyn Session>, StartError> {
        self.current().start(version, answer)
    }

    fn names_in(&self, hello: &[u8]) -> Option<ClientNames> {
        self.current().names_in(hello)
    }
}
