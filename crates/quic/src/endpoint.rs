//! Routing datagrams to connections, and making connections (RFC 9000, section 5.2).
//!
//! The caller owns the connections; the endpoint knows which connection IDs are theirs.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use rustc_hash::FxHashMap;
use weir_units::Time;
use weir_wire::Ecn;

use crate::config::{
    ClientConfig, ConfigError, EndpointConfig, SMALLEST_MAX_UDP_PAYLOAD, ServerConfig,
};
use crate::connection::{Connection, EndpointEvent, Setup, random_id};
use crate::crypto::{Keys, StartError};
use crate::frame::{self, Close};
use crate::packet::{self, Header, Invariants, Kind, LongFields, LongKind};
use crate::{Code, ConnectionId, Side};

/// A client's first destination ID must not be shorter (RFC 9000, section 7.2).
const SHORTEST_INITIAL_DESTINATION: usize = 8;

/// Names a connection to its endpoint: a small index, used again once the connection is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(pub usize);

/// Where a datagram belongs.
#[derive(Debug)]
pub enum Route {
    /// To this connection: hand it to [`Connection::handle_datagram`].
    Connection(ConnectionHandle),
    /// It began this connection, which has taken it in already.
    New(ConnectionHandle, Box<Connection>),
    /// It is to be answered with this datagram.
    Reply(Vec<u8>),
    /// Nowhere.
    Drop,
}

/// Why a connection cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The transport's settings are out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The handshake cannot begin.
    #[error(transparent)]
    Handshake(#[from] StartError),
    /// The peer's address cannot be connected to.
    #[error("cannot connect to {0}: the address or the port is unspecified")]
    InvalidAddress(SocketAddr),
}

/// What the endpoint knows of a connection.
#[derive(Default)]
struct Slot {
    ids: Vec<ConnectionId>,
    /// The client's address and first destination ID, on servers.
    initial: Option<(SocketAddr, ConnectionId)>,
}

/// The part of a QUIC endpoint that all its connections share.
pub struct Endpoint {
    config: EndpointConfig,
    server: Option<ServerConfig>,
    rng: ChaCha12Rng,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Our IDs. They are random and ours, so that nobody can choose them to collide.
    ids: FxHashMap<ConnectionId, ConnectionHandle>,
    /// IDs that clients chose for their first packets.
    initials: BTreeMap<(SocketAddr, ConnectionId), ConnectionHandle>,
}

impl Endpoint {
    /// An endpoint; one without a server configuration takes no connections. All its randomness
    /// comes from `seed`.
    pub fn new(config: EndpointConfig, server: Option<ServerConfig>, seed: [u8; 32]) -> Self {
        Self {
            config,
            server,
            rng: ChaCha12Rng::from_seed(seed),
            slots: Vec::new(),
            free: Vec::new(),
            ids: FxHashMap::default(),
            initials: BTreeMap::new(),
        }
    }

    /// Replaces what new connections of clients get; `None` takes no more of them.
    pub fn set_server(&mut self, server: Option<ServerConfig>) {
        self.server = server;
    }

    /// How many connections there are, those included that have closed but not drained.
    pub fn connections(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Begins a connection to a server.
    ///
    /// # Errors
    /// [`ConnectError`] where settings, name or address are invalid.
    pub fn connect(
        &mut self,
        now: Time,
        client: ClientConfig,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        client.transport.validate()?;
        if remote.port() == 0 || remote.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress(remote));
        }
        let local_id = random_id(self.config.connection_id_length, &mut self.rng);
        let remote_id = random_id(ConnectionId::MAX_LENGTH, &mut self.rng);
        let grease = self.rng.next_u64();
        let mut parameters = Vec::with_capacity(256);
        Connection::parameters(&client.transport, local_id, None).encode(
            Side::Client,
            &mut parameters,
            Some(grease),
        );
        let initial_keys = client.crypto.initial_keys(&remote_id, Side::Client);
        let session = client
            .crypto
            .start(server_name, &parameters, client.early_data)?;
        let setup = Setup {
            side: Side::Client,
            config: client.transport,
            seed: self.connection_seed(),
            remote,
            local,
            original_destination: remote_id,
            local_id,
            remote_id,
        };
        let handle = self.insert(Slot::default());
        self.add_id(handle, local_id);
        Ok((handle, Connection::new(now, setup, session, initial_keys)))
    }

    /// Which connection a datagram belongs to; begins a connection where a client asks for one.
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
            let id = datagram.get(1..=self.config.connection_id_length);
            return match id
                .and_then(ConnectionId::new)
                .and_then(|id| self.ids.get(&id))
            {
                Some(handle) => Route::Connection(*handle),
                None => Route::Drop,
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
        }
        if self.server.is_none() || datagram.len() < SMALLEST_MAX_UDP_PAYLOAD {
            return Route::Drop;
        }
        match invariants.version {
            packet::VERSION_1 => self.accept(now, remote, local, ecn, datagram),
            0 => Route::Drop,
            _ => {
                let mut reply = Vec::new();
                packet::write_version_negotiation(
                    &mut reply,
                    invariants.source,
                    invariants.destination,
                    &[
                        packet::VERSION_1,
                        packet::reserved_version(self.rng.next_u32()),
                    ],
                    self.rng.next_u32() as u8,
                );
                Route::Reply(reply)
            }
        }
    }

    /// Something changed about a connection.
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        match event {
            EndpointEvent::IdIssued(id) => self.add_id(handle, id),
            EndpointEvent::IdRetired(id) => self.retire_id(handle, &id),
            EndpointEvent::Drained => self.remove(handle),
        }
    }

    /// A datagram for no connection of ours may begin one.
    fn accept(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Route {
        let Ok(header) = Header::decode(datagram, self.config.connection_id_length) else {
            return Route::Drop;
        };
        let Some(server) = self.server.clone() else {
            return Route::Drop;
        };
        // A client may have learned on an earlier connection that we take packets without the bit.
        let bit_ok = header.fixed_bit || server.transport.grease_quic_bit;
        if header.kind != Kind::Initial
            || header.destination.len() < SHORTEST_INITIAL_DESTINATION
            || !bit_ok
        {
            return Route::Drop;
        }
        let initial_keys = server
            .crypto
            .initial_keys(&header.destination, Side::Server);
        if self.connections() >= server.max_connections {
            return Route::Reply(refusal(&header, &initial_keys, Code::CONNECTION_REFUSED));
        }
        let local_id = random_id(self.config.connection_id_length, &mut self.rng);
        let mut parameters = Vec::with_capacity(256);
        Connection::parameters(&server.transport, local_id, Some(header.destination)).encode(
            Side::Server,
            &mut parameters,
            Some(self.rng.next_u64()),
        );
        let session = match server.crypto.start(&parameters) {
            Ok(session) => session,
            Err(error) => {
                tracing::error!(%error, "a connection was refused");
                return Route::Reply(refusal(&header, &initial_keys, Code::INTERNAL_ERROR));
            }
        };
        let setup = Setup {
            side: Side::Server,
            config: server.transport,
            seed: self.connection_seed(),
            remote,
            local,
            original_destination: header.destination,
            local_id,
            remote_id: header.source,
        };
        let mut connection = Box::new(Connection::new(now, setup, session, initial_keys));
        connection.handle_datagram(now, remote, local, ecn, datagram);
        if !connection.is_authenticated() {
            return Route::Drop;
        }
        let initial = (remote, header.destination);
        let handle = self.insert(Slot {
            ids: Vec::new(),
            initial: Some(initial),
        });
        self.initials.insert(initial, handle);
        self.add_id(handle, local_id);
        Route::New(handle, connection)
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
        }
    }

    fn remove(&mut self, handle: ConnectionHandle) {
        let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::take) else {
            return;
        };
        for id in &slot.ids {
            self.ids.remove(id);
        }
        if let Some(initial) = slot.initial {
            self.initials.remove(&initial);
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

/// An Initial packet that closes a connection which never began. It keeps no state.
fn refusal(header: &Header, keys: &Keys, code: Code) -> Vec<u8> {
    /// Room for the sample of header protection.
    const SMALLEST_PAYLOAD: usize = 4;
    let mut reply = Vec::with_capacity(128);
    let fields = LongFields {
        kind: LongKind::Initial { token: &[] },
        destination: header.source,
        source: header.destination,
        number: 0,
        number_length: 1,
        size_limit: SMALLEST_MAX_UDP_PAYLOAD,
    };
    let written = packet::write_long_header(&mut reply, &fields);
    let payload_start = reply.len();
    let close = Close::Transport {
        code,
        frame_type: 0,
        reason: b"",
    };
    frame::write::close(&mut reply, &close, payload_start + 64);
    let end = reply.len().max(payload_start + SMALLEST_PAYLOAD) + keys.local.packet.tag_length();
    reply.resize(end, 0);
    written.finish(&mut reply, end);
    keys.local.packet.seal(0, payload_start, &mut reply);
    keys.local.header.protect(written.number_offset, &mut reply);
    reply
}
