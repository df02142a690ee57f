//! A protocol as the one driver sees it.

use std::net::SocketAddr;
use std::task::Waker;

use weir_units::Time;
use weir_wire::{Ecn, Transmit};

use crate::buffers::RecvBuffers;
use crate::clock::LazyNow;

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramMeta {
    pub(crate) remote: SocketAddr,
    /// Which of our addresses it was sent to, where that is known.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) ecn: Ecn,
}

/// Where a datagram belongs; connections are told apart by an index.
pub(crate) enum Route<E> {
    Connection(usize),
    /// It began this connection, which has taken it in already.
    New(usize, Box<E>),
    /// It is to be answered with this datagram.
    Reply(Vec<u8>),
    Drop,
}

/// What a connection's lock protects: the engine's state, and who waits for what. The driver, the
/// sockets and the timers are the same for every protocol.
pub(crate) trait Protocol: Sized + Send + 'static {
    /// The engine's part that knows which connection a datagram belongs to.
    type Endpoint: Send;
    /// The engine's part for one connection.
    type Engine;
    /// What a connection's engine tells the endpoint's.
    type EndpointEvent: Copy;
    /// What else all connections of an endpoint share.
    type Settings: Send + Sync;
    /// Where datagrams are received.
    type Buffers: RecvBuffers + Default + Send + Unpin;
    /// What datagrams that follow each other have in common where they belong to one connection.
    type Key: Copy + PartialEq;

    fn new(engine: Self::Engine) -> Self;

    /// The key of a datagram, where it has one.
    fn key(arrival: &DatagramMeta, datagram: &[u8]) -> Option<Self::Key>;

    /// Which connection a datagram belongs to.
    fn route(
        endpoint: &mut Self::Endpoint,
        now: Time,
        arrival: &DatagramMeta,
        datagram: &mut [u8],
    ) -> Route<Self::Engine>;

    /// Takes no connections any more.
    fn stop_serving(endpoint: &mut Self::Endpoint);

    /// Passes on what a connection's engine has told; whether the connection is gone with it.
    fn on_endpoint_event(
        endpoint: &mut Self::Endpoint,
        index: usize,
        event: Self::EndpointEvent,
    ) -> bool;

    fn poll_endpoint_event(&mut self) -> Option<Self::EndpointEvent>;

    fn handle_datagram(
        &mut self,
        now: Time,
        arrival: &DatagramMeta,
        datagram: <Self::Buffers as RecvBuffers>::ReceivedBatch<'_>,
    );

    /// All datagrams of a receive batch have been handled.
    fn end_batch(&mut self, now: Time);

    /// A batch that is to be sent now; it may be built in `buffer`, which is empty.
    fn poll_transmit<'b>(
        &'b mut self,
        now: Time,
        buffer: &'b mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<(Transmit, &'b [u8])>;

    /// Whether a batch that the socket has no room for is worth keeping.
    fn is_worth_keeping(&self, transmit: &Transmit) -> bool;

    /// The interface cannot carry datagrams as large as a batch's.
    fn on_too_large(&mut self, now: Time, transmit: &Transmit);

    /// When [`Self::handle_timeout`] has something to do; `is_blocked` while a batch waits for room in the
    /// socket.
    fn timeout(&self, now: &mut LazyNow<'_>, is_blocked: bool) -> Option<Time>;

    fn handle_timeout(&mut self, now: Time, woken: &mut Vec<Waker>);

    /// Passes the engine's events on to those who wait for them. Whether the handshake is complete since
    /// the last call: then the application goes before the driver.
    fn take_events(&mut self, now: &mut LazyNow<'_>, woken: &mut Vec<Waker>) -> bool;

    /// The engine has let go of the connection.
    fn on_gone(&mut self, woken: &mut Vec<Waker>);

    /// The driver is gone: nothing will ever happen on this connection again.
    fn abandon(&mut self, woken: &mut Vec<Waker>);

    /// Nobody wants the connection; whether that changes anything.
    fn give_up(&mut self, now: Time) -> bool;

    /// Whether a reply of the peer's is to be expected soon.
    fn is_reply_due(&self) -> bool;
}
