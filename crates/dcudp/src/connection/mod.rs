//! The connection state machine: datagrams, time and application calls in, datagrams and events
//! out.
//!
//! | file | content |
//! |---|---|
//! | `handshake` | the start of a connection |
//! | `receive` | processing of datagrams |
//! | `transmit` | outgoing datagrams |
//! | `timers` | timers and their expiry |
//! | `close` | the end of a connection |
//! | `application` | the application's reads and writes |
//! | `stats` | statistics |

mod application;
mod close;
pub(crate) mod handshake;
mod receive;
mod stats;
mod timers;
mod transmit;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use weir_units::{ByteSize, Time};

pub use stats::ConnectionStats;

use crate::channel::Channel;
use crate::config::{DataKind, TransportConfig};
use crate::error::{ConnectionError, Violation};
use crate::mode::Mode;
use crate::packet::{Handshake, SocketId};
use crate::receiver::Receiver;
use crate::rtt::Rtt;
use crate::sender::Sender;
use crate::sequence::SequenceNumber;
use close::LifeCycle;
use handshake::{ClientHandshake, ServerResponse};
use stats::Counters;
use timers::Timers;
use transmit::PacketInPlace;

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Data is available after a blocked read, or the data has ended.
    Readable,
    /// The send buffer has room after a blocked write.
    Writable,
    /// The sender has switched its mode.
    Mode(Mode),
    /// The connection has ended: in order, or with this error. Received data can still be read.
    Closed(Option<ConnectionError>),
}

/// An event for the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The connection is drained; its handle may be reused.
    Drained,
}

/// One end of a DCUDP connection.
///
/// The caller passes arriving datagrams to [`Connection::handle_datagram`], takes events from
/// [`Connection::poll_event`], sends the datagrams of [`Connection::poll_transmit`] until it
/// returns `None`, and calls [`Connection::handle_timeout`] at [`Connection::timeout`], in this
/// order.
#[derive(Debug)]
pub struct Connection {
    config: Arc<TransportConfig>,
    remote: SocketAddr,
    local: Option<SocketAddr>,
    state: LifeCycle,
    /// The handshake of a client, until it is complete.
    client: Option<ClientHandshake>,
    /// The server's answer to the client's handshake.
    response: Option<ServerResponse>,
    channel: Channel,
    rtt: Rtt,
    sender: Sender,
    receiver: Receiver,
    packet_size: ByteSize,
    /// The peer's initial window, which limits the message size.
    peer_window: u32,
    /// Numbers of the ACKs to be answered.
    ack2s: VecDeque<SequenceNumber>,
    /// A keep-alive packet is due, with the number of the request that it answers.
    keep_alive_due: bool,
    answer: Option<SequenceNumber>,
    timers: Timers,
    events: VecDeque<Event>,
    endpoint_events: VecDeque<EndpointEvent>,
    /// The last read or write of the application was blocked, so it waits for an event.
    read_blocked: bool,
    write_blocked: bool,
    /// A violation found while reading the peer's messages, to be handled at once.
    broken: Option<Violation>,
    counters: Counters,
    /// Buffer for lists of lost ranges.
    scratch: Vec<u8>,
    /// The packets of the batch that is sent in place.
    in_place: Vec<PacketInPlace>,
}

/// The parameters of a connection that its endpoint chooses.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) socket: SocketId,
    pub(crate) first: SequenceNumber,
    pub(crate) random: [u8; 16],
}

impl Connection {
    /// Creates a client's connection.
    pub(crate) fn connect(now: Time, setup: Setup) -> Self {
        let client = ClientHandshake::new(now, &setup);
        Self::new(now, setup, Some(client))
    }

    /// Creates a server's connection for a `request` with a valid cookie.
    pub(crate) fn accept(now: Time, setup: Setup, request: &Handshake) -> Self {
        let (first, random) = (setup.first, setup.random);
        let mut connection = Self::new(now, setup, None);
        connection.response = Some(ServerResponse::new(request, first, random));
        if !request.rtt.is_zero() {
            connection.rtt.on_sample(request.rtt);
        }
        connection.establish(now, request, random, request.random);
        connection
    }

    fn new(now: Time, setup: Setup, client: Option<ClientHandshake>) -> Self {
        let Setup {
            config,
            remote,
            local,
            socket,
            first,
            ..
        } = setup;
        let messages = config.data == DataKind::Messages;
        Self {
            remote,
            local,
            state: LifeCycle::Open,
            client,
            response: None,
            channel: Channel::new(now, socket, SocketId::NONE),
            rtt: Rtt::new(config.initial_rtt),
            sender: Sender::new(&config, first.first_count()),
            // Replaced once the peer's first sequence number is known.
            receiver: Receiver::new(&config, messages, first.first_count(), true),
            packet_size: config.packet_size,
            peer_window: 0,
            ack2s: VecDeque::new(),
            keep_alive_due: false,
            answer: None,
            timers: Timers::new(now, &config),
            events: VecDeque::new(),
            endpoint_events: VecDeque::new(),
            read_blocked: true,
            write_blocked: false,
            broken: None,
            counters: Counters::default(),
            scratch: Vec::new(),
            in_place: Vec::new(),
            config,
        }
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the next event for the endpoint.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.endpoint_events.pop_front()
    }

    /// Returns the peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Returns the local address, if the caller has set it.
    pub fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Returns whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.client.is_none()
    }

    /// Returns whether the connection is drained.
    pub fn is_drained(&self) -> bool {
        matches!(self.state, LifeCycle::Closed)
    }
}
