//! The endpoint: routes datagrams to connections and creates connections.
//!
//! The caller owns the connections; the endpoint knows their socket ids. A socket id contains the
//! connection's index, so that routing needs no search. A server keeps no state for a client until
//! the client has returned a cookie.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use siphasher::sip::SipHasher24;
use weir_units::Time;

use crate::config::{ConfigError, DataKind, ServerConfig, TransportConfig};
use crate::connection::{Connection, EndpointEvent, Setup, handshake};
use crate::cookie::Cookies;
use crate::packet::{
    Control, ControlHeader, ControlKind, Handshake, HandshakeKind, Header, Refusal, SocketId,
};
use crate::random::Random;
use crate::sequence::SequenceNumber;

/// The low bits of a socket id are an index. The others are random, so that old or guessed ids
/// rarely match.
const INDEX_BITS: u32 = 20;
const MOST_CONNECTIONS: usize = (1 << INDEX_BITS) - 1;

/// Identifies a connection at its endpoint: a small index, reused once the connection is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(pub usize);

/// The destination of a datagram.
#[derive(Debug)]
pub enum Route {
    /// A known connection: pass the datagram to [`Connection::handle_datagram`].
    Connection(ConnectionHandle),
    /// A new connection, which has processed the datagram already.
    New(ConnectionHandle, Box<Connection>),
    /// A reply to send, no longer than the datagram itself.
    Reply(Vec<u8>),
    /// None: the datagram is dropped.
    Drop,
}

/// An error when starting a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The transport's settings are out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The peer's address cannot be connected to.
    #[error("cannot connect to {0}: the address or the port is unspecified")]
    InvalidAddress(SocketAddr),
    /// The endpoint has used up its socket ids.
    #[error("the endpoint has as many connections as it can name")]
    TooMany,
}

/// Counters of the endpoint for datagrams without a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Cookies sent to clients.
    pub challenges: u64,
    /// Clients refused.
    pub refusals: u64,
    /// Datagrams without a destination.
    pub dropped: u64,
}

struct Slot {
    socket: SocketId,
    /// On servers: the client's address and its socket id.
    client: Option<(SocketAddr, u32)>,
}

/// The state shared by all connections over one UDP socket.
pub struct Endpoint {
    server: Option<ServerConfig>,
    cookies: Option<Cookies>,
    cookie_key: SipHasher24,
    random: Random,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    clients: BTreeMap<(SocketAddr, u32), ConnectionHandle>,
    counters: EndpointCounters,
}

impl Endpoint {
    /// Creates an endpoint; without a server configuration it accepts no connections. All its
    /// random values derive from `seed`.
    ///
    /// # Errors
    /// [`ConfigError`] if the server's settings are out of range.
    pub fn new(server: Option<ServerConfig>, seed: [u8; 32]) -> Result<Self, ConfigError> {
        let mut words = seed.chunks_exact(8).map(|word| {
            word.iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte))
        });
        let mut key =
            || SipHasher24::new_with_keys(words.next().unwrap_or(0), words.next().unwrap_or(0));
        let mut endpoint = Self {
            server: None,
            cookies: None,
            cookie_key: key(),
            random: Random::new(key()),
            slots: Vec::new(),
            free: Vec::new(),
            clients: BTreeMap::new(),
            counters: EndpointCounters::default(),
        };
        endpoint.set_server(server)?;
        Ok(endpoint)
    }

    /// Replaces the configuration of new incoming connections; `None` accepts no more of them.
    ///
    /// # Errors
    /// [`ConfigError`] if the settings are out of range; the old configuration stays.
    pub fn set_server(&mut self, server: Option<ServerConfig>) -> Result<(), ConfigError> {
        if let Some(server) = &server {
            server.transport.validate()?;
        }
        let cookies = |server: &ServerConfig| Cookies::new(self.cookie_key, server.cookie_lifetime);
        self.cookies = server.as_ref().map(cookies);
        self.server = server;
        Ok(())
    }

    /// Returns the counters of datagrams without a connection.
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }

    /// Returns the number of connections, including closed ones that are not drained.
    pub fn connections(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Opens a connection to a server.
    ///
    /// # Errors
    /// [`ConnectError`] if settings or address are invalid.
    pub fn connect(
        &mut self,
        now: Time,
        config: Arc<TransportConfig>,
        remote: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        config.validate()?;
        if remote.port() == 0 || remote.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress(remote));
        }
        let handle = self.reserve(None).ok_or(ConnectError::TooMany)?;
        let setup = self.setup(handle, config, remote, local);
        Ok((handle, Connection::connect(now, setup)))
    }

    /// Returns the destination of a datagram. Creates a connection for a client's request with a
    /// valid cookie.
    pub fn route(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        datagram: &[u8],
    ) -> Route {
        let route = self.find(now, remote, local, datagram);
        self.counters.dropped += u64::from(matches!(route, Route::Drop));
        route
    }

    fn find(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        datagram: &[u8],
    ) -> Route {
        let Ok((header, body)) = Header::decode(datagram) else {
            return Route::Drop;
        };
        let destination = header.destination();
        if destination != SocketId::NONE {
            let index = index_of(destination);
            let slot = self.slots.get(index).and_then(Option::as_ref);
            if slot.is_some_and(|slot| slot.socket == destination) {
                return Route::Connection(ConnectionHandle(index));
            }
            // A client that does not know our socket id yet sends data under its own.
            let client = self.clients.get(&(remote, destination.0));
            return client.map_or(Route::Drop, |handle| Route::Connection(*handle));
        }
        let Header::Control(ControlHeader {
            kind: ControlKind::Handshake,
            ..
        }) = header
        else {
            return Route::Drop;
        };
        match Control::decode(ControlKind::Handshake, body) {
            Ok(Control::Handshake(request)) if request.kind == HandshakeKind::Request => {
                self.on_request(now, remote, local, datagram, &request)
            }
            _ => Route::Drop,
        }
    }

    fn on_request(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        datagram: &[u8],
        request: &Handshake,
    ) -> Route {
        if let Some(handle) = self.clients.get(&(remote, request.socket.0)) {
            return Route::Connection(*handle);
        }
        // No answer is possible to port 0 or without a socket id.
        if remote.port() == 0 || request.socket == SocketId::NONE {
            return Route::Drop;
        }
        let (Some(server), Some(cookies)) = (&self.server, &self.cookies) else {
            return Route::Drop;
        };
        let transport = server.transport.clone();
        let key = transport.shared_key.as_deref();
        if key.is_some() == request.tag.is_some()
            && !handshake::is_signed(key, datagram, request.tag)
        {
            return Route::Drop;
        }
        let answer = |kind, cookie| {
            let first = SequenceNumber::default();
            let said = handshake::handshake(
                &transport,
                kind,
                SocketId::NONE,
                first,
                request.random,
                cookie,
            );
            // A reply is never longer than its request: no tag for a request without one.
            let said = Handshake {
                tag: said.tag.filter(|_| request.tag.is_some()),
                ..said
            };
            Route::Reply(handshake::reply(key, request.socket, said))
        };
        let messages = transport.data == DataKind::Messages;
        let refusal = if request.version != Handshake::VERSION {
            Some(Refusal::Version)
        } else if key.is_some() != request.tag.is_some() {
            Some(Refusal::Authentication)
        } else if request.messages != messages {
            Some(Refusal::Mode)
        } else if self.connections() >= server.max_connections.min(MOST_CONNECTIONS) {
            Some(Refusal::Busy)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.counters.refusals += 1;
            return answer(HandshakeKind::Refused(refusal), 0);
        }
        if !cookies.is_good(now, remote, request) {
            self.counters.challenges += 1;
            return answer(
                HandshakeKind::Challenge,
                cookies.create(now, remote, request),
            );
        }
        let client = (remote, request.socket.0);
        let Some(handle) = self.reserve(Some(client)) else {
            return Route::Drop;
        };
        let setup = self.setup(handle, transport, remote, local);
        let connection = Connection::accept(now, setup, request);
        Route::New(handle, Box::new(connection))
    }

    fn setup(
        &mut self,
        handle: ConnectionHandle,
        config: Arc<TransportConfig>,
        remote: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Setup {
        let slot = self.slots.get(handle.0).and_then(Option::as_ref);
        let socket = slot.map_or(SocketId::NONE, |slot| slot.socket);
        let drawn = SequenceNumber::new(self.random.draw() as u32);
        Setup {
            first: config.first_sequence.unwrap_or(drawn),
            random: self.random.draw_bytes(),
            config,
            remote,
            local,
            socket,
        }
    }

    fn reserve(&mut self, client: Option<(SocketAddr, u32)>) -> Option<ConnectionHandle> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < MOST_CONNECTIONS => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => return None,
        };
        let random = (self.random.draw() as u32) << INDEX_BITS;
        // Zero is the empty socket id, so the index counts from one.
        let socket = SocketId(random | (index as u32 + 1));
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(Slot { socket, client });
        }
        let handle = ConnectionHandle(index);
        if let Some(client) = client {
            self.clients.insert(client, handle);
        }
        Some(handle)
    }

    /// Processes an event of a connection.
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        let EndpointEvent::Drained = event;
        let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::take) else {
            return;
        };
        if let Some(client) = slot.client {
            self.clients.remove(&client);
        }
        self.free.push(handle.0);
    }
}

/// Returns the index in a socket id; out of range for an invalid one.
fn index_of(socket: SocketId) -> usize {
    let index = socket.0 & ((1 << INDEX_BITS) - 1);
    (index as usize).wrapping_sub(1)
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
