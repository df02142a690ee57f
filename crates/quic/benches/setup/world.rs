//! A client's and a server's endpoint, connected in virtual time, and the life of a connection with one
//! call.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use weir_quic::{
    ClientConfig, Connection, ConnectionHandle, Direction, Endpoint, EndpointConfig, EndpointEvent,
    KnownClients, KnownClientsConfig, KnownServers, Route, ServerConfig, StreamId, TransportConfig,
};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::{Ecn, Transmit};

use crate::credentials::credentials;
use crate::meter::{Meter, Operation};

/// The time of a batch on its way.
const DELAY: Duration = Duration::from_micros(20);
/// The flights of the longest life, and some more.
const FLIGHTS: usize = 12;
const REQUEST: &[u8] = &[1; 64];
const REPLY: usize = 10_000;
/// The reply fits one packet, as on loopback.
const PACKET: ByteSize = ByteSize::from_bytes(16_000);

/// One side: its endpoint, the connection, and what its application has done.
struct Side {
    address: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Box<Connection>)>,
    stream: Option<StreamId>,
    received: usize,
    is_done: bool,
    buffer: Vec<u8>,
    meter: Meter,
}

impl Side {
    fn new(host: u8, server: Option<ServerConfig>) -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 4433),
            endpoint: Endpoint::new(EndpointConfig::default(), server, [host; 32]),
            connection: None,
            stream: None,
            received: 0,
            is_done: false,
            buffer: Vec::with_capacity(64 * 1024),
            meter: Meter::default(),
        }
    }

    /// Handles one datagram.
    fn receive(&mut self, now: Time, remote: SocketAddr, datagram: &mut [u8]) {
        let operation = match self.connection {
            None => Operation::Begin,
            Some(_) => Operation::Receive,
        };
        let Self {
            endpoint,
            connection,
            meter,
            ..
        } = self;
        let local = Some(self.address);
        meter.measure(operation, || {
            match endpoint.route(now, remote, local, Ecn::Ect0, datagram) {
                Route::New(handle, new) => *connection = Some((handle, new)),
                Route::Connection(_) => {
                    if let Some((_, connection)) = connection {
                        connection.handle_datagram(now, remote, local, Ecn::Ect0, datagram);
                    }
                }
                _ => {}
            }
        });
    }

    /// Ends a batch of received datagrams, and passes events on; returns whether the connection lives.
    fn settle(&mut self, now: Time, operation: Operation) -> bool {
        let Self {
            endpoint,
            connection,
            meter,
            ..
        } = self;
        meter.measure(operation, || {
            let Some((handle, live)) = connection else {
                return false;
            };
            live.end_batch(now);
            while live.poll_event().is_some() {}
            let mut is_over = false;
            while let Some(event) = live.poll_endpoint_event() {
                is_over |= matches!(event, EndpointEvent::Drained { .. });
                endpoint.handle_event(*handle, event);
            }
            if is_over {
                *connection = None;
            }
            !is_over
        })
    }

    /// Lets the client's application ask, and read the reply.
    fn ask(&mut self) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let (stream, received, is_done) = (&mut self.stream, &mut self.received, &mut self.is_done);
        self.meter.measure(Operation::Stream, || {
            if !connection.is_established() || *is_done {
                return;
            }
            let Some(stream) = *stream else {
                let id = connection.open(Direction::Bidirectional).unwrap();
                connection.write(id, REQUEST).unwrap();
                connection.finish(id).unwrap();
                *stream = Some(id);
                return;
            };
            *is_done = read(connection, stream, received);
        });
    }

    /// Lets the server's application read the request, and reply.
    fn reply(&mut self, reply: &Bytes) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let (stream, received, is_done) = (&mut self.stream, &mut self.received, &mut self.is_done);
        self.meter.measure(Operation::Stream, || {
            if *is_done {
                return;
            }
            *stream = stream.or_else(|| connection.accept(Direction::Bidirectional));
            let Some(stream) = *stream else { return };
            *is_done = read(connection, stream, received);
            if *is_done {
                let mut reply = reply.clone();
                while !reply.is_empty() {
                    connection.write_bytes(stream, &mut reply).unwrap();
                }
                connection.finish(stream).unwrap();
            }
        });
    }

    /// Writes a batch of datagrams, as long as there is something to send.
    fn send(&mut self, now: Time, operation: Operation) -> Option<Transmit> {
        let (_, connection) = self.connection.as_mut()?;
        let buffer = &mut self.buffer;
        self.meter.measure(operation, || {
            buffer.clear();
            connection.poll_transmit(now, buffer, 64)
        })
    }

    /// Lets the timers of a closed connection run until it is gone; returns when.
    fn drain(&mut self, mut now: Time) -> Time {
        while self.settle(now, Operation::End) {
            let Some((_, connection)) = &mut self.connection else {
                break;
            };
            now = now.max(connection.timeout().unwrap());
            let meter = &mut self.meter;
            meter.measure(Operation::End, || connection.handle_timeout(now));
        }
        now
    }
}

/// Reads what there is; returns whether that was the end of the stream.
fn read(connection: &mut Connection, stream: StreamId, received: &mut usize) -> bool {
    loop {
        match connection.read(stream, usize::MAX) {
            Ok(Some(data)) => *received += data.len(),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Both sides.
pub(crate) struct World {
    now: Time,
    client: Side,
    server: Side,
    config: ClientConfig,
    reply: Bytes,
}

impl World {
    /// Creates the endpoints; with known peers, all connections but the first one have no handshake.
    pub(crate) fn new(has_known_peers: bool) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let (client_tls, server_tls) = credentials();
        let transport = Arc::new(TransportConfig {
            packet_size: Some(PACKET),
            ..TransportConfig::data_center()
        });
        let mut server = ServerConfig::new(server_tls, Arc::clone(&transport));
        let mut config = ClientConfig::new(client_tls, transport);
        if has_known_peers {
            let table = KnownClients::new(KnownClientsConfig::default(), now);
            server.known_clients = Some(Arc::new(table));
            config.known_servers = Some(Arc::new(KnownServers::new(100)));
        }
        Self {
            now,
            client: Side::new(1, None),
            server: Side::new(2, Some(server)),
            config,
            reply: Bytes::from(vec![7; REPLY]),
        }
    }

    /// Returns the costs of client and server since the last call.
    pub(crate) fn take_costs(&mut self) -> [Meter; 2] {
        [&mut self.client, &mut self.server].map(|side| std::mem::take(&mut side.meter))
    }

    /// Measures nothing from now on, so that connections cost what they cost.
    pub(crate) fn stop_measuring(&mut self) {
        for side in [&mut self.client, &mut self.server] {
            side.meter.is_off = true;
        }
    }

    /// Lets a connection live: it begins, carries one call, and ends.
    pub(crate) fn live(&mut self) {
        self.connect();
        for _ in 0..FLIGHTS {
            self.client.ask();
            self.exchange(Operation::Send, Operation::Receive);
            self.server.reply(&self.reply);
            self.answer();
            if self.client.is_done {
                break;
            }
        }
        assert_eq!(self.client.received, REPLY);
        self.close();
    }

    fn connect(&mut self) {
        let Self {
            now,
            client,
            server,
            config,
            ..
        } = self;
        for side in [&mut *client, &mut *server] {
            (side.stream, side.received, side.is_done) = (None, 0, false);
        }
        let (local, remote) = (Some(client.address), server.address);
        let endpoint = &mut client.endpoint;
        let config = config.clone();
        client.connection = client.meter.measure(Operation::Begin, || {
            let begun = endpoint.connect(*now, config, remote, local, "localhost");
            let (handle, connection) = begun.unwrap();
            Some((handle, connection))
        });
    }

    /// Passes what the client sends to the server.
    fn exchange(&mut self, sending: Operation, receiving: Operation) {
        pass(
            &mut self.now,
            (&mut self.client, sending),
            (&mut self.server, receiving),
        );
    }

    /// Passes what the server sends to the client.
    fn answer(&mut self) {
        pass(
            &mut self.now,
            (&mut self.server, Operation::Send),
            (&mut self.client, Operation::Receive),
        );
        self.client.ask();
    }

    fn close(&mut self) {
        let now = self.now;
        if let Some((_, connection)) = &mut self.client.connection {
            let meter = &mut self.client.meter;
            meter.measure(Operation::End, || connection.close(now, 0, b""));
        }
        self.exchange(Operation::End, Operation::End);
        assert!(self.server.connection.is_none());
        self.now = self.client.drain(self.now);
    }
}

/// Passes datagrams from one side to the other.
fn pass(now: &mut Time, from: (&mut Side, Operation), to: (&mut Side, Operation)) {
    let (from, sending) = from;
    let (to, receiving) = to;
    *now += DELAY;
    while let Some(sent) = from.send(*now, sending) {
        let size = sent.segment_size.unwrap_or(sent.size).max(1);
        let mut buffer = std::mem::take(&mut from.buffer);
        for datagram in buffer.chunks_mut(size) {
            to.receive(*now, from.address, datagram);
        }
        from.buffer = buffer;
    }
    to.settle(*now, receiving);
}
