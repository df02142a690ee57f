//! A connection: datagrams, time and the application's wishes go in; datagrams and events come out.
//!
//! | file | what it does |
//! |---|---|
//! | `handshake` | how it begins |
//! | `receive` | from a datagram to what it changes |
//! | `transmit` | from what is due to datagrams |
//! | `timers` | when to come back, and what to do then |
//! | `close` | how it ends |
//! | `application` | data as the application reads and writes them |
//! | `stats` | what an onlooker may know |

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
use close::State;
use handshake::{ClientHandshake, ServerResponse};
use stats::Counters;
use timers::Timers;

/// Something the application should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// There is something to read, where a read found nothing before; or the data have ended.
    Readable,
    /// There is room to write, where there was none before.
    Writable,
    /// The sender has changed its mode.
    Mode(Mode),
    /// The connection is over: in order, or for this reason. What has come can still be read.
    Closed(Option<ConnectionError>),
}

/// What the endpoint must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The connection is over and done with; its handle may be used again.
    Drained,
}

/// One end of a DCUDP connection.
///
/// The caller keeps the order: hand in what arrived with [`Connection::handle_datagram`], take events
/// with [`Connection::poll_event`], send what [`Connection::poll_transmit`] gives until it gives
/// nothing, and call [`Connection::handle_timeout`] when [`Connection::timeout`] is reached.
#[derive(Debug)]
pub struct Connection {
    config: Arc<TransportConfig>,
    remote: SocketAddr,
    local: Option<SocketAddr>,
    state: State,
    /// The handshake of a client, until it is complete.
    client: Option<ClientHandshake>,
    /// What a server answers to its client's handshake.
    response: Option<ServerResponse>,
    channel: Channel,
    rtt: Rtt,
    sender: Sender,
    receiver: Receiver,
    packet_size: ByteSize,
    /// The peer's window when the connection began: no larger message fits.
    peer_window: u32,
    /// ACKs to be answered, by their numbers.
    ack2s: VecDeque<SequenceNumber>,
    /// A keep-alive packet is due, and the request that it answers.
    keep_alive_due: bool,
    answer: Option<SequenceNumber>,
    timers: Timers,
    events: VecDeque<Event>,
    endpoint_events: VecDeque<EndpointEvent>,
    /// The application found nothing to read, or no room to write, and waits to be told.
    read_blocked: bool,
    write_blocked: bool,
    /// What reading has shown to be wrong with the peer's messages, to be dealt with at once.
    broken: Option<Violation>,
    counters: Counters,
    /// For lists of lost ranges.
    scratch: Vec<u8>,
}

/// What an endpoint decides for a connection.
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
    /// A connection that a client begins.
    pub(crate) fn connect(now: Time, setup: Setup) -> Self {
        let client = ClientHandshake::new(now, &setup);
        Self::new(now, setup, Some(client))
    }

    /// A connection that a server has taken: `request` brought a good cookie.
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
            state: State::Open,
            client,
            response: None,
            channel: Channel::new(now, socket, SocketId::NONE),
            rtt: Rtt::new(config.initial_rtt),
            sender: Sender::new(&config, first.first_count()),
            // Another one takes its place once the peer's first number is known.
            receiver: Receiver::new(&config, messages, first.first_count()),
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
            config,
        }
    }

    /// What the application should know next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What the endpoint must know next.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.endpoint_events.pop_front()
    }

    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Our address, where the caller has said it.
    pub fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.client.is_none()
    }

    /// Whether nothing more will happen.
    pub fn is_drained(&self) -> bool {
        matches!(self.state, State::Closed)
    }
}
