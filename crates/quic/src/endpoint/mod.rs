//! An endpoint: it routes datagrams to connections and creates connections (RFC 9000, section 5.2).
//!
//! The caller owns the connections; the endpoint maps connection IDs to them.

mod accept;
mod clients;
mod draining;
mod found_sizes;
mod incoming;
mod incoming_names;
mod known;
mod known_parameters;

use std::collections::BTreeMap;
use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;

use crate::config::{ClientConfig, ConfigError, EndpointConfig, ServerConfig, TransportConfig};
use crate::connection::{Accepted, ClientSetup, Connection, Setup, StateReporter, known_session};
use crate::crypto::StartError;
use crate::event::EndpointEvent;
use crate::interfaces::{Interfaces, SMALLEST_MAX_UDP_PAYLOAD};
use crate::known_peers::{CredentialId, KNOWN_PEERS_VERSION, KeyId};
use crate::observe::{Observers, Subject};
use crate::packet::Invariants;
use crate::recovery::Precision;
use crate::secret::{EndpointKeys, EndpointSecret, ResetTokenDigest};
use crate::stateless_reset::{self, Resets};
use crate::token::ReplayFilter;
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionId, ConnectionIdLayout, Side, Version};
use accept::Arrival;
use clients::ClientPlace;
pub use clients::{ClientLimits, ClientTable};
use draining::{Draining, DrainingKey};
use found_sizes::FoundSizes;
use incoming::Undecided;
pub use incoming::{Decision, IncomingId, IncomingInfo};
use known_parameters::{DecodedParameters, OwnParameters};

/// A client's first destination ID must not be shorter (RFC 9000, section 7.2).
const SHORTEST_INITIAL_DESTINATION: usize = 8;
/// The connection IDs of clients' first packets.
const FIRST_DESTINATION: ConnectionIdLayout = ConnectionIdLayout::new(ConnectionId::MAX_LENGTH);
/// The used tokens that a server stores: about 2 MB at most.
const USED_TOKENS: usize = 64 * 1024;

/// Into how many parts a receive buffer is divided at most.
const MOST_SHARES: u64 = 8;
/// The number of connections that begin with exact timers after a loss.
const EXACT_CONNECTIONS: u32 = 100;

/// The handle of a connection at its endpoint: a small index, reused once the connection is
/// drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(pub usize);

/// The destination of a datagram.
#[derive(Debug)]
pub enum Route {
    /// This connection: pass it to [`Connection::handle_datagram`].
    Connection(ConnectionHandle),
    /// It started this connection, which has already processed it.
    New(ConnectionHandle, Box<Connection>),
    /// It comes from a client that waits for a decision: [`Endpoint::decide`].
    Incoming(IncomingInfo),
    /// It was kept until such a decision.
    Kept,
    /// Answer it with this datagram.
    Reply(Vec<u8>),
    /// The engine with this index has to route it: its connection ID names that one.
    Engine(usize),
    /// Answer it with this datagram, unless it is a stateless reset for another engine
    /// ([`Endpoint::route_reset`]): a reset names no engine.
    EveryEngine(Vec<u8>),
    /// It belongs to a connection in its draining period: drop it.
    Draining,
    /// It belongs to no connection: drop it.
    Drop,
}

/// Why a connection cannot be started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConnectError {
    /// The transport's settings are out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The handshake cannot start.
    #[error(transparent)]
    Handshake(#[from] StartError),
    /// The peer's address cannot be connected to.
    #[error("cannot connect to {0}: the address or the port is unspecified")]
    InvalidAddress(SocketAddr),
}

/// Counters of replies without a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Retry packets sent: clients that had to validate their address first.
    pub retries: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
    /// Connections refused: too many, an invalid token, an invalid configuration, or by decision.
    pub refusals: u64,
    /// Connections refused, in a handshake or of a known peer, as their client or its network has
    /// too many ([`ClientLimits`]).
    pub client_limit_refusals: u64,
    /// Known peers whose connection was refused: an unknown secret, or a key ID that was used or is
    /// too old.
    pub known_peer_refusals: u64,
}

/// The endpoint's state of a connection.
#[derive(Default)]
struct Slot {
    ids: SmallVec<[ConnectionId; 1]>,
    /// The client's address and first destination ID, on servers, while the handshake is half open.
    initial: Option<(SocketAddr, ConnectionId)>,
    /// The credential and the key ID of a known peer's connection, on servers.
    known: Option<(CredentialId, KeyId)>,
    /// The client's place among those of its address, on servers: held until the connection is removed.
    _place: Option<ClientPlace>,
    /// Reset tokens of the peer's connection IDs in use.
    resets: SmallVec<[ResetTokenDigest; 1]>,
}

/// The state that all connections of a QUIC endpoint share.
pub struct Endpoint {
    config: EndpointConfig,
    server: Option<ServerConfig>,
    /// Whether every new connection is refused.
    refuses_new: bool,
    rng: ChaCha12Rng,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Our IDs. We choose them at random, so that no peer can make them collide.
    ids: FxHashMap<ConnectionId, ConnectionHandle>,
    /// The last one that a packet was routed by: packets come in batches.
    last_routed: Option<(ConnectionId, ConnectionHandle)>,
    draining: Draining,
    found_sizes: FoundSizes,
    /// Reset tokens of our peers.
    peer_resets: FxHashMap<ResetTokenDigest, ConnectionHandle>,
    keys: Arc<EndpointKeys>,
    used_tokens: ReplayFilter,
    resets: Resets,
    /// IDs that clients chose for their first packets.
    initials: BTreeMap<(SocketAddr, ConnectionId), ConnectionHandle>,
    /// Connections that known peers began, by credential and key ID.
    known: FxHashMap<(CredentialId, KeyId), ConnectionHandle>,
    refusals: known::Refusals,
    /// The remembered parameters of servers, of clients, and what we have promised to clients.
    servers_parameters: DecodedParameters,
    clients_parameters: DecodedParameters,
    promised_parameters: DecodedParameters,
    /// Our own as a client and as a server.
    own_parameters: [OwnParameters; 2],
    undecided: Undecided,
    observers: Option<Arc<dyn Observers>>,
    interfaces: Arc<Interfaces>,
    /// How many more connections begin with exact timers.
    exact_connections: u32,
    counters: EndpointCounters,
}

impl Endpoint {
    /// Creates an endpoint; without a server configuration it accepts no connections. All its
    /// randomness comes from `seed`, including its secret if the configuration has none.
    pub fn new(config: EndpointConfig, server: Option<ServerConfig>, seed: [u8; 32]) -> Self {
        let secret = config
            .secret
            .unwrap_or_else(|| EndpointSecret::from_seed(&seed));
        Self {
            config,
            server,
            refuses_new: false,
            rng: ChaCha12Rng::from_seed(seed),
            slots: Vec::new(),
            free: Vec::new(),
            ids: FxHashMap::default(),
            last_routed: None,
            draining: Draining::default(),
            found_sizes: FoundSizes::default(),
            peer_resets: FxHashMap::default(),
            keys: Arc::new(EndpointKeys::new(&secret)),
            used_tokens: ReplayFilter::new(USED_TOKENS),
            resets: Resets::new(),
            initials: BTreeMap::new(),
            known: FxHashMap::default(),
            refusals: known::Refusals::new(),
            servers_parameters: DecodedParameters::default(),
            clients_parameters: DecodedParameters::default(),
            promised_parameters: DecodedParameters::default(),
            own_parameters: Default::default(),
            undecided: Undecided::default(),
            observers: None,
            interfaces: Arc::default(),
            exact_connections: 0,
            counters: EndpointCounters::default(),
        }
    }

    /// Sets the observers of new connections.
    pub fn set_observers(&mut self, observers: Option<Arc<dyn Observers>>) {
        self.observers = observers;
    }

    /// Sets the machine's interfaces for new connections. Each announces the size that the
    /// interface of its received packets carries as its limit, and sends no larger packets than the
    /// interface of its sent packets carries.
    pub fn set_interfaces(&mut self, interfaces: Arc<Interfaces>) {
        self.interfaces = interfaces;
    }

    /// Returns the counters of replies without a connection.
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }

    /// Creates the reporter of a new connection, if it is observed.
    fn reporter(
        &self,
        subject: Subject,
        parameters: TransportParameters,
    ) -> Option<Box<StateReporter>> {
        let observer = self.observers.as_ref()?.observe(&subject)?;
        Some(Box::new(StateReporter::new(subject, observer, parameters)))
    }

    /// Replaces the server configuration of new connections; `None` accepts no more of them.
    pub fn set_server(&mut self, server: Option<ServerConfig>) {
        self.server = server;
    }

    /// Refuses all connections that clients begin from now on, with CONNECTION_REFUSED.
    pub fn refuse_new(&mut self) {
        self.refuses_new = true;
    }

    /// Whether a server with this configuration refuses another connection.
    fn refuses_connection(&self, server: &ServerConfig) -> bool {
        self.refuses_new || self.connections() + self.undecided.len() >= server.max_connections
    }

    /// Returns the number of connections, including closed ones that are not drained.
    pub fn connections(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Starts a connection to a server.
    ///
    /// # Errors
    /// [`ConnectError`] if settings, name or address are invalid.
    pub fn connect(
        &mut self,
        now: Time,
        client: ClientConfig,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Box<Connection>), ConnectError> {
        client.transport.validate()?;
        if !client.versions.contains(client.version) {
            return Err(ConfigError::FirstVersion {
                version: client.version,
            }
            .into());
        }
        if remote.port() == 0 || remote.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress(remote));
        }
        let local_id = self.config.connection_ids.generate(&mut self.rng);
        let remote_id = FIRST_DESTINATION.generate(&mut self.rng);
        let grease = self.rng.next_u64();
        let server_name = Arc::<str>::from(server_name);
        let setup = ClientSetup {
            crypto: client.crypto.clone(),
            server_name: server_name.clone(),
            versions: client.versions,
            tokens: client.tokens.clone(),
        };
        let standby = client.local_addresses.iter().copied().map(Some);
        let accepted = self.accepted(&client.transport, remote, iter::once(local).chain(standby));
        let precision = self.precision(&client.transport);
        let mut parameters =
            Connection::parameters(&client.transport, accepted, &precision, local_id, None);
        parameters.known_peers = client.known_servers.is_some();
        parameters.receive_burst = self.receive_share();
        let subject = Subject {
            side: Side::Client,
            original_destination: remote_id,
            local_id,
            local,
            remote,
        };
        let reporter = self
            .observers
            .is_some()
            .then(|| self.reporter(subject, parameters.clone()));
        let known = self.known_start(now, &client, (remote, &server_name), accepted, &precision);
        let session = match known_session(&known.start) {
            Some(session) => Box::new(session),
            None => setup.start(client.version, parameters, client.early_data, grease)?,
        };
        let setup = Setup {
            config: client.transport,
            seed: self.connection_seed(),
            remote,
            local,
            original_destination: remote_id,
            id_layout: self.config.connection_ids,
            local_id,
            remote_id,
            version: client.version,
            accepted,
            interfaces: self.interfaces.clone(),
            precision,
            found_size: self.found_sizes.of(now, remote.ip()),
            keys: self.keys.clone(),
            provider: client.crypto,
            reporter: reporter.flatten(),
            client: Some(setup),
            server: None,
            known,
        };
        let handle = self.insert(Slot::default());
        self.add_id(handle, local_id);
        let mut connection = Box::new(Connection::new(now, setup, session));
        for local in client.local_addresses {
            connection.add_local_address(now, local);
        }
        Ok((handle, connection))
    }

    /// Returns what a connection to `remote` accepts at each of these local addresses.
    fn accepted(
        &self,
        config: &TransportConfig,
        remote: SocketAddr,
        locals: impl Iterator<Item = Option<SocketAddr>>,
    ) -> Accepted {
        let carried = locals.filter_map(|local| self.interfaces.largest_payload(local, remote));
        let carried = carried.map(ByteSize::from_bytes);
        Accepted {
            payload: carried.fold(config.max_udp_payload_size, ByteSize::min),
            burst: self.config.receive_burst,
        }
    }

    /// Returns the share of a receive buffer, in bytes, that a new connection may fill at once. Few
    /// connections send at the same time, therefore no share is below an eighth. A known peer keeps
    /// that of its handshake.
    fn receive_share(&self) -> Option<u64> {
        let connections = (self.connections() as u64 + 1).min(MOST_SHARES);
        let burst = self.config.receive_burst?;
        Some(burst.bytes() / connections)
    }

    /// Returns which deadlines of a new connection are exact.
    fn precision(&mut self, config: &TransportConfig) -> Precision {
        let tick = if config.exact_timers {
            Duration::ZERO
        } else {
            self.config.timer_tick
        };
        let has_losses = self.exact_connections > 0;
        self.exact_connections = self.exact_connections.saturating_sub(1);
        Precision::new(tick, has_losses)
    }

    /// Routes a datagram to its connection; starts a connection if a client requests one.
    pub fn route(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Route {
        let Some(&first) = datagram.first() else {
            return Route::Drop;
        };
        if first & 0x80 == 0 {
            let id = datagram.get(1..=self.config.connection_ids.length());
            if let (Some(id), Some((last, handle))) = (id, &self.last_routed)
                && last.as_bytes() == id
            {
                return Route::Connection(*handle);
            }
            let Some(id) = id.and_then(ConnectionId::new) else {
                return Route::Drop;
            };
            if let Some(handle) = self.ids.get(&id) {
                self.last_routed = Some((id, *handle));
                return Route::Connection(*handle);
            }
            return match self.config.connection_ids.other_engine(id.as_bytes()) {
                Some(engine) => Route::Engine(engine),
                None => self.unknown(now, &id, datagram),
            };
        }
        let Ok(invariants) = Invariants::decode(datagram) else {
            return Route::Drop;
        };
        if let Some(id) = ConnectionId::new(invariants.destination) {
            let known = self
                .ids
                .get(&id)
                .or_else(|| self.initials.get(&(remote, id)));
            if let Some(handle) = known {
                return Route::Connection(*handle);
            }
            if self.undecided.keep_initial(remote, id, ecn, datagram) {
                return Route::Kept;
            }
            if let Some(engine) = self.config.connection_ids.other_engine(id.as_bytes()) {
                return Route::Engine(engine);
            }
        }
        let is_known = invariants.version == KNOWN_PEERS_VERSION;
        if is_known && let Some(route) = self.route_known(now, remote, local, ecn, datagram) {
            return route;
        }
        let Ok(invariants) = Invariants::decode(datagram) else {
            return Route::Drop;
        };
        // Port 0 cannot be answered.
        let too_short = datagram.len() < SMALLEST_MAX_UDP_PAYLOAD;
        if invariants.version == 0 || too_short || remote.port() == 0 {
            return Route::Drop;
        }
        let Some(server) = self.server.clone() else {
            return Route::Drop;
        };
        let version = Version::from_wire(invariants.version);
        if !version.is_some_and(|version| server.versions.contains(version)) {
            return self.negotiate_version(&server, &invariants);
        }
        let arrival = Arrival {
            now,
            remote,
            local,
            ecn,
            datagram,
        };
        self.accept(server, arrival)
    }

    /// Handles a short-header packet to an unknown ID: a peer's stateless reset, or a packet of a
    /// connection without state here.
    fn unknown(&mut self, now: Time, id: &ConnectionId, datagram: &[u8]) -> Route {
        if self.draining.contains(now, &DrainingKey::Id(*id)) {
            return Route::Draining;
        }
        if let Some(route) = self.route_reset(now, datagram) {
            return route;
        }
        let answer = self
            .resets
            .answer(now, &self.keys, id, datagram.len(), &mut self.rng);
        self.counters.stateless_resets += u64::from(answer.is_some());
        match answer {
            // At the limited rate of the answers, so that garbage does not keep all engines busy.
            Some(reply) if self.config.connection_ids.is_shared() => Route::EveryEngine(reply),
            Some(reply) => Route::Reply(reply),
            None => Route::Drop,
        }
    }

    /// Routes a datagram that may be a peer's stateless reset; `None` where it is none for a
    /// connection of this endpoint.
    pub fn route_reset(&mut self, now: Time, datagram: &[u8]) -> Option<Route> {
        if self.peer_resets.is_empty() && self.draining.is_empty() {
            return None;
        }
        let digest = self.keys.digest(&stateless_reset::candidate(datagram)?);
        if let Some(handle) = self.peer_resets.get(&digest) {
            return Some(Route::Connection(*handle));
        }
        let is_draining = self.draining.contains(now, &DrainingKey::Reset(digest));
        is_draining.then_some(Route::Draining)
    }

    /// Handles an event of a connection.
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        match event {
            EndpointEvent::IdIssued(id) => self.add_id(handle, id),
            EndpointEvent::IdRetired(id) => self.retire_id(handle, &id),
            EndpointEvent::ResetTokenInUse(token) => {
                let digest = self.keys.digest(&token);
                if let Some(Some(slot)) = self.slots.get_mut(handle.0) {
                    slot.resets.push(digest);
                    self.peer_resets.insert(digest, handle);
                }
            }
            EndpointEvent::ResetTokenRetired(token) => {
                let digest = self.keys.digest(&token);
                self.remove_reset(handle, digest);
                if let Some(Some(slot)) = self.slots.get_mut(handle.0) {
                    slot.resets.retain(|other| *other != digest);
                }
            }
            EndpointEvent::PacketsLost => self.exact_connections = EXACT_CONNECTIONS,
            EndpointEvent::PacketSizeFound { now, remote, size } => {
                self.found_sizes.add(now, remote, size);
            }
            EndpointEvent::Drained { draining_until } => self.remove(handle, draining_until),
        }
    }

    fn connection_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.rng.fill_bytes(&mut seed);
        seed
    }

    fn insert(&mut self, slot: Slot) -> ConnectionHandle {
        if let Some(index) = self.free.pop() {
            self.slots[index] = Some(slot);
            return ConnectionHandle(index);
        }
        self.slots.push(Some(slot));
        ConnectionHandle(self.slots.len() - 1)
    }

    fn add_id(&mut self, handle: ConnectionHandle, id: ConnectionId) {
        if let Some(Some(slot)) = self.slots.get_mut(handle.0) {
            slot.ids.push(id);
            self.ids.insert(id, handle);
        }
    }

    fn retire_id(&mut self, handle: ConnectionHandle, id: &ConnectionId) {
        let Some(Some(slot)) = self.slots.get_mut(handle.0) else {
            return;
        };
        if let Some(initial) = slot.initial.take_if(|(_, initial)| initial == id) {
            self.initials.remove(&initial);
        } else if let Some(position) = slot.ids.iter().position(|known| known == id) {
            slot.ids.swap_remove(position);
            self.ids.remove(id);
            self.last_routed = None;
        }
    }

    /// A peer may reuse the token of another connection; that one's entry stays.
    fn remove_reset(&mut self, handle: ConnectionHandle, digest: ResetTokenDigest) {
        if self.peer_resets.get(&digest) == Some(&handle) {
            self.peer_resets.remove(&digest);
        }
    }

    /// Forgets a connection, except for the keys that it is found by in its draining period.
    fn remove(&mut self, handle: ConnectionHandle, draining_until: Option<Time>) {
        let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::take) else {
            return;
        };
        self.last_routed = None;
        for id in slot.ids {
            self.ids.remove(&id);
            if let Some(until) = draining_until {
                self.draining.add(until, DrainingKey::Id(id));
            }
        }
        for digest in slot.resets {
            self.remove_reset(handle, digest);
            if let Some(until) = draining_until {
                self.draining.add(until, DrainingKey::Reset(digest));
            }
        }
        if let Some(initial) = slot.initial {
            self.initials.remove(&initial);
        }
        if let Some(known) = slot.known {
            self.known.remove(&known);
        }
        self.free.push(handle.0);
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections())
            .field("server", &self.server.is_some())
            .finish_non_exhaustive()
    }
}
