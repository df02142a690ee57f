//! The trait of a protocol for the driver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use weir_units::Time;
use weir_wire::{BatchContents, Ecn, Transmit};

use crate::buffers::RecvBuffers;
use crate::clock::LazyNow;
use crate::shared::SharedEndpoint;
use crate::shared_connection::SharedConnection;

/// Metadata of a received datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramMeta {
    pub(crate) remote: SocketAddr,
    /// The local address that it was sent to, where that is known.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) ecn: Ecn,
}

/// The destination of a datagram; a connection is named by its index.
pub(crate) enum Route<E, U> {
    Connection(usize),
    /// It starts this connection, which has processed it already.
    New(usize, Box<E>),
    /// It comes from a client that waits for the application's decision.
    Undecided(U),
    /// It was kept until such a decision.
    Kept,
    /// Answer it with this datagram.
    Reply(Vec<u8>),
    /// It belongs to the engine with this index.
    Engine(usize),
    /// Answer it with this datagram, and offer it to all other engines as a stateless reset.
    EveryEngine(Vec<u8>),
    /// It belongs to a connection in its draining period: drop it.
    Draining,
    /// It belongs to no connection: drop it.
    Drop,
}

/// The state behind a connection's lock: the engine and the waiting tasks. Driver, sockets and
/// timers are the same for every protocol.
pub(crate) trait Protocol: Sized + Send + 'static {
    /// The engine's part that routes datagrams to connections.
    type Endpoint: Send;
    /// The engine's part for one connection.
    type Engine;
    /// A client that waits for a decision.
    type Undecided;
    /// An event from a connection's engine for the endpoint's.
    type EndpointEvent: Copy;
    /// Settings shared by all connections of an endpoint.
    type Settings: Send + Sync;
    /// The receive buffers.
    type Buffers: RecvBuffers + Default + Send + Unpin;
    /// The routing key: consecutive datagrams with the same key belong to the same connection.
    type Key: Copy + PartialEq;

    fn new(engine: Box<Self::Engine>) -> Self;

    /// Returns the key of a datagram, where it has one.
    fn key(arrival: &DatagramMeta, datagram: &[u8]) -> Option<Self::Key>;

    /// Returns the destination of a datagram.
    fn route(
        endpoint: &mut Self::Endpoint,
        now: Time,
        arrival: &DatagramMeta,
        datagram: &mut [u8],
    ) -> Route<Self::Engine, Self::Undecided>;

    /// Returns the destination of a datagram that another engine offers as a stateless reset.
    fn route_reset(
        _: &mut Self::Endpoint,
        _: Time,
        _: &DatagramMeta,
        _: &mut [u8],
    ) -> Route<Self::Engine, Self::Undecided> {
        Route::Drop
    }

    /// Passes a client that waits for a decision to the application.
    fn on_undecided(
        shared: &Arc<SharedEndpoint<Self, SharedConnection<Self>>>,
        undecided: Self::Undecided,
    );

    /// Refuses connections from now on.
    fn stop_serving(endpoint: &mut Self::Endpoint);

    /// Handles an event of a connection's engine.
    fn on_endpoint_event(endpoint: &mut Self::Endpoint, index: usize, event: Self::EndpointEvent);

    /// Whether the connection is gone after this event, and its index free for another one.
    fn is_last(event: Self::EndpointEvent) -> bool;

    fn poll_endpoint_event(&mut self) -> Option<Self::EndpointEvent>;

    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: &DatagramMeta,
        datagram: <Self::Buffers as RecvBuffers>::ReceivedBatch<'_>,
    );

    /// Ends a receive batch, whose datagrams have all been handled.
    fn end_batch(&mut self, now: Time);

    /// Returns a batch to be sent now; it may be built in `buffer`, which is empty.
    fn poll_transmit<'b>(
        &'b mut self,
        now: Time,
        buffer: &'b mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<(Transmit, BatchContents<'b>)>;

    /// Returns whether to keep a batch that found the socket full.
    fn is_worth_keeping(&self, transmit: &Transmit) -> bool;

    /// Whether its datagrams must leave apart from those of other connections to the same address: two endpoints
    /// may share that address, and the kernel there looks at the first of several datagrams only.
    fn travels_alone(&self) -> bool {
        false
    }

    /// Handles a batch whose datagrams are too large for the interface.
    fn on_too_large(&mut self, now: Time, transmit: &Transmit);

    /// Handles ICMP's message that nobody listens at `remote`, about a datagram that begins like this.
    /// Returns whether the datagram was this connection's.
    fn handle_unreachable(&mut self, _now: Time, _remote: SocketAddr, _quoted: &[u8]) -> bool {
        false
    }

    /// Returns when [`Self::handle_timeout`] is due; `is_blocked` while a batch waits for socket
    /// buffer space.
    fn timeout(&self, now: &mut LazyNow<'_>, is_blocked: bool) -> Option<Time>;

    fn handle_timeout(&mut self, now: Time, woken: &mut Vec<Waker>);

    /// Passes the engine's events to the waiting tasks. Returns whether, since the last call, the
    /// handshake has completed or a client's early data have begun: then the application runs before
    /// the driver, so that its data leave with the handshake's.
    fn take_events(&mut self, now: &mut LazyNow<'_>, woken: &mut Vec<Waker>) -> bool;

    /// The engine has removed the connection.
    fn on_removed(&mut self, woken: &mut Vec<Waker>);

    /// The driver has ended: the connection makes no progress any more.
    fn on_driver_ended(&mut self, woken: &mut Vec<Waker>);

    /// The driver has ended, with all connections of the endpoint.
    fn on_endpoint_ended(_shared: &SharedEndpoint<Self, SharedConnection<Self>>) {}

    /// Closes a connection that was not accepted; returns whether that changes anything.
    fn close_unused(&mut self, now: Time) -> bool;

    /// Returns how many messages, or parts of them, have arrived since the last call: there may be as
    /// many answers.
    fn take_arrived(&mut self) -> u64 {
        0
    }

    /// Returns whether a reply of the peer is expected soon.
    fn is_reply_due(&self) -> bool;
}
