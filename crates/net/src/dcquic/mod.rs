//! DCQUIC as the driver's protocol, and the state shared by its handles.

mod state;

use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use tokio::runtime::Handle;
use weir_quic::{
    Connection as Engine, ConnectionHandle, EndpointEvent, IncomingInfo, KnownClients, StreamId,
    TransportConfig,
};
use weir_sed::Allocator;
use weir_units::Time;
use weir_wire::{BatchContents, Transmit};

use crate::allocation::Allocation;
use crate::buffers::ReusedBuffers;
use crate::clock::LazyNow;
use crate::endpoint::SHUT_DOWN;
use crate::error::ConnectionError;
use crate::lost_events::LostEvents;
use crate::path_updates::PathEventSender;
use crate::protocol::{DatagramMeta, Protocol, Route};
use crate::sockets::SocketGuard;
use crate::tls::{ClientCredentials, ReloadCounters, ServerCredentials};
use crate::undecided::{Undecided, UndecidedQueue};
use crate::waiters::Waiters;

/// The length of the connection IDs that an endpoint issues, in bytes.
pub(crate) const CONNECTION_ID_LENGTH: usize = 8;

/// A DCQUIC connection behind its lock.
pub(crate) type SharedDcquicConnection =
    crate::shared_connection::SharedConnection<ConnectionState>;
/// The state shared by an endpoint's handles, connections and driver.
pub(crate) type Shared = crate::shared::SharedEndpoint<ConnectionState, SharedDcquicConnection>;
/// A write lock on a connection.
pub(crate) type Locked<'l> = crate::shared_connection::WriteGuard<'l, ConnectionState>;

/// A connection's engine and the state around it.
pub(crate) struct ConnectionState {
    pub(crate) engine: Box<Engine>,
    pub(crate) waiting: Waiters,
    /// Its deadlines, and the cwnd cap that follows from them.
    pub(crate) allocation: Allocation,
    /// Sends path events to subscribers.
    pub(crate) path_events: PathEventSender,
    /// Why the connection is over.
    pub(crate) error: Option<ConnectionError>,
    /// The codes with which a draining connection refuses streams, and closes.
    pub(crate) drain_codes: (u64, u64),
    /// Streams with new data, and new streams, that the driver has not seen yet.
    arrived: u64,
    /// The handshake is complete, but the driver has not seen it yet.
    connected: bool,
    /// The driver has seen that the client sends early data.
    early_data_seen: bool,
    /// Whether the server refused early data.
    pub(crate) early_data_rejected: bool,
    /// The local address to move to as soon as that is allowed; until then the old one's socket is
    /// held.
    rebind_to: Option<(SocketAddr, SocketGuard)>,
}

/// A stream that has been opened, and whether early data may have opened it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedStream {
    pub(crate) id: StreamId,
    pub(crate) early: bool,
}

/// Adds the statistics of an endpoint to its metrics.
pub(crate) type AddStats = Box<dyn Fn(&Shared) + Send + Sync>;

/// Settings shared by all connections of an engine.
pub(crate) struct EndpointSettings {
    /// The runtime of the driver.
    pub(crate) runtime: Handle,
    /// Whether the endpoint accepts connections.
    pub(crate) is_server: bool,
    /// Whether the endpoint watches the machine's addresses.
    pub(crate) is_watched: bool,
    /// The transport of connections.
    pub(crate) transport: Arc<TransportConfig>,
    /// Clients that wait for a decision, of all engines, where the application asked for that.
    pub(crate) undecided: Option<Arc<UndecidedQueue>>,
    /// Caps the cwnd of connections with deadlines.
    pub(crate) allocator: Option<Arc<dyn Allocator>>,
    /// Counts events missing from qlog files, where such files are written. Set for the first engine
    /// only, as all write the same files.
    pub(crate) lost_events: Option<Arc<LostEvents>>,
    /// The clients that share a secret with this server. Set for the first engine only, as all have the
    /// same.
    pub(crate) known_clients: Option<Arc<KnownClients>>,
    /// The credentials of server and client. Set for the first engine only, as all have the same.
    pub(crate) credentials: (Option<ServerCredentials>, Option<ClientCredentials>),
    /// Adds the endpoint's last statistics to its metrics when it ends.
    pub(crate) add_last_stats: OnceLock<AddStats>,
}

impl EndpointSettings {
    /// Returns how often credentials were read from their files again.
    pub(crate) fn tls_reloads(&self) -> ReloadCounters {
        let (server, client) = &self.credentials;
        let server = server.as_ref().map(ServerCredentials::reloads);
        let client = client.as_ref().map(ClientCredentials::reloads);
        server.unwrap_or_default() + client.unwrap_or_default()
    }
}

impl From<weir_quic::Route> for Route<Engine, IncomingInfo> {
    fn from(route: weir_quic::Route) -> Self {
        match route {
            weir_quic::Route::Connection(handle) => Self::Connection(handle.0),
            weir_quic::Route::New(handle, engine) => Self::New(handle.0, engine),
            weir_quic::Route::Incoming(info) => Self::Undecided(info),
            weir_quic::Route::Kept => Self::Kept,
            weir_quic::Route::Reply(reply) => Self::Reply(reply),
            weir_quic::Route::Engine(engine) => Self::Engine(engine),
            weir_quic::Route::EveryEngine(reply) => Self::EveryEngine(reply),
            weir_quic::Route::Draining => Self::Draining,
            weir_quic::Route::Drop => Self::Drop,
        }
    }
}

impl Protocol for ConnectionState {
    type Endpoint = weir_quic::Endpoint;
    type Engine = Engine;
    type Undecided = IncomingInfo;
    type EndpointEvent = EndpointEvent;
    type Settings = EndpointSettings;
    type Buffers = ReusedBuffers;
    type Key = [u8; CONNECTION_ID_LENGTH];

    fn new(engine: Box<Engine>) -> Self {
        Self {
            engine,
            waiting: Waiters::default(),
            allocation: Allocation::default(),
            path_events: PathEventSender::default(),
            error: None,
            drain_codes: (SHUT_DOWN, SHUT_DOWN),
            arrived: 0,
            connected: false,
            early_data_seen: false,
            early_data_rejected: false,
            rebind_to: None,
        }
    }

    /// The connection ID of a packet with a short header.
    fn key(_: &DatagramMeta, datagram: &[u8]) -> Option<Self::Key> {
        let (first, rest) = datagram.split_first()?;
        if first & 0x80 != 0 {
            return None;
        }
        rest.first_chunk().copied()
    }

    fn route(
        endpoint: &mut Self::Endpoint,
        now: Time,
        arrival: &DatagramMeta,
        datagram: &mut [u8],
    ) -> Route<Engine, IncomingInfo> {
        let DatagramMeta { remote, local, ecn } = *arrival;
        endpoint.route(now, remote, local, ecn, datagram).into()
    }

    fn route_reset(
        endpoint: &mut Self::Endpoint,
        now: Time,
        _: &DatagramMeta,
        datagram: &mut [u8],
    ) -> Route<Engine, IncomingInfo> {
        let route = endpoint.route_reset(now, datagram);
        route.map_or(Route::Drop, Route::from)
    }

    fn on_undecided(shared: &Arc<Shared>, info: IncomingInfo) {
        let undecided = Undecided::new(shared.clone(), info);
        // The engine lets clients wait only where there is a queue.
        if let Some(queue) = &shared.settings.undecided {
            // Dropping it refuses it.
            drop(queue.push(undecided));
        }
    }

    fn stop_serving(endpoint: &mut Self::Endpoint) {
        endpoint.refuse_new();
    }

    fn on_endpoint_ended(shared: &Shared) {
        if let Some(queue) = &shared.settings.undecided {
            queue.end();
        }
        if let Some(add) = shared.settings.add_last_stats.get() {
            add(shared);
        }
    }

    fn on_endpoint_event(endpoint: &mut Self::Endpoint, index: usize, event: EndpointEvent) {
        endpoint.handle_event(ConnectionHandle(index), event);
    }

    fn is_last(event: EndpointEvent) -> bool {
        matches!(event, EndpointEvent::Drained { .. })
    }

    fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.engine.poll_endpoint_event()
    }

    fn handle_datagram(&mut self, now: Time, arrival: &DatagramMeta, datagram: &mut [u8]) {
        let DatagramMeta { remote, local, ecn } = *arrival;
        (self.engine).handle_datagram(now, remote, local, ecn, datagram);
    }

    fn end_batch(&mut self, now: Time) {
        self.engine.end_batch(now);
        if let Some((local, hold)) = self.rebind_to.take() {
            self.rebind(now, local, hold);
        }
    }

    fn poll_transmit<'b>(
        &'b mut self,
        now: Time,
        buffer: &'b mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<(Transmit, BatchContents<'b>)> {
        let transmit = self.engine.poll_transmit(now, buffer, max_datagrams)?;
        Some((transmit, BatchContents::Whole(buffer)))
    }

    /// Whether the batch is for the path in use.
    fn is_worth_keeping(&self, transmit: &Transmit) -> bool {
        transmit.local == self.engine.local() && transmit.remote == self.engine.remote()
    }

    /// A server that goes away may have a successor at its port.
    fn travels_alone(&self) -> bool {
        self.is_draining()
    }

    fn on_too_large(&mut self, now: Time, transmit: &Transmit) {
        self.engine.handle_too_large(now, transmit);
    }

    fn handle_unreachable(&mut self, now: Time, remote: SocketAddr, quoted: &[u8]) -> bool {
        self.engine.handle_unreachable(now, remote, quoted)
    }

    fn timeout(&self, _: &mut LazyNow<'_>, _is_blocked: bool) -> Option<Time> {
        let times = [
            self.engine.timeout(),
            self.waiting.next_deadline(),
            self.allocation.timeout(),
        ];
        times.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time, woken: &mut Vec<Waker>) {
        self.waiting.handle_timeout(now, woken);
        self.allocation.handle_timeout(now, &mut self.engine);
        if self.engine.timeout().is_some_and(|timeout| timeout <= now) {
            self.engine.handle_timeout(now);
        }
    }

    fn take_events(&mut self, now: &mut LazyNow<'_>, woken: &mut Vec<Waker>) -> bool {
        self.wake_waiting(woken);
        if self.error.is_some() {
            self.allocation = Allocation::default();
        }
        // The allocator receives the streams' progress.
        if self.allocation.is_needed() {
            self.allocation.update_progress(now.get(), &mut self.engine);
        }
        mem::take(&mut self.connected) || self.is_early_request_new()
    }

    fn on_removed(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.waiting.closing);
    }

    fn on_driver_ended(&mut self, woken: &mut Vec<Waker>) {
        self.error.get_or_insert(ConnectionError::EndpointGone);
        self.path_events.end();
        self.waiting.wake_all(woken);
        woken.append(&mut self.waiting.closing);
    }

    fn close_unused(&mut self, now: Time) -> bool {
        if self.error.is_some() {
            return false;
        }
        self.engine.refuse(now);
        true
    }

    fn take_arrived(&mut self) -> u64 {
        mem::take(&mut self.arrived)
    }

    fn is_reply_due(&self) -> bool {
        self.engine.reply_due()
    }
}
