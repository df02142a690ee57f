//! Two endpoints in one process over a simulated network, in virtual time.
//!
//! Each direction is a `weir_fabric` pipe: queue, link, faults. Nothing here reads a clock or draws
//! from a generator without a seed, so that a run repeats byte for byte.
#![allow(dead_code, reason = "each test file uses its part of it")]

pub(crate) mod flow;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weir_fabric::{FaultSettings, Faults, Link, Packet, Pipe, Queue, Rule, flip_byte};
use weir_quic::crypto::ClientCrypto;
use weir_quic::crypto::seeded::{SeededClient, SeededServer};
use weir_quic::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, Route,
    ServerConfig, StreamId, TransportConfig,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

/// IPv4 and UDP headers.
const HEADERS: u64 = 28;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: Ecn,
}

impl Packet for Datagram {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(self.bytes.len() as u64 + HEADERS)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn corrupt(&mut self, entropy: u64) -> bool {
        flip_byte(&mut self.bytes, entropy)
    }
}

/// One end: an endpoint with its connections.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) connections: BTreeMap<ConnectionHandle, Connection>,
    pub(crate) events: Vec<(ConnectionHandle, Event)>,
    pub(crate) address: SocketAddr,
    /// Datagrams with each codepoint that arrived here.
    pub(crate) arrived: BTreeMap<u8, u64>,
    /// The interface refuses larger UDP payloads (EMSGSIZE).
    pub(crate) largest_sent: usize,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// What to build.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) rate: Rate,
    /// One way.
    pub(crate) delay: Duration,
    pub(crate) faults: FaultSettings,
    pub(crate) rules: Vec<Rule>,
    pub(crate) client: TransportConfig,
    pub(crate) server: TransportConfig,
    pub(crate) early_data: bool,
    pub(crate) max_connections: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            rate: Rate::from_gbps(10),
            delay: Duration::from_micros(25),
            faults: FaultSettings::default(),
            rules: Vec::new(),
            client: TransportConfig::data_center(),
            server: TransportConfig::data_center(),
            early_data: false,
            max_connections: 1000,
        }
    }
}

/// The whole of it.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) hosts: [Host; 2],
    /// `pipes[i]` carries what host `i` sends.
    pub(crate) pipes: [Pipe<Datagram>; 2],
    pub(crate) client_crypto: Arc<dyn ClientCrypto>,
    plan: Plan,
    buffer: Vec<u8>,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        Self::with_server(plan.clone(), SeededServer::new(plan.seed))
    }

    pub(crate) fn with_server(plan: Plan, server: SeededServer) -> Self {
        let server = ServerConfig {
            crypto: Arc::new(server),
            transport: Arc::new(plan.server.clone()),
            max_connections: plan.max_connections,
        };
        let host = |index: u8, server| Host {
            endpoint: Endpoint::new(
                EndpointConfig::default(),
                server,
                [index ^ plan.seed as u8; 32],
            ),
            connections: BTreeMap::new(),
            events: Vec::new(),
            address: SocketAddr::from((Ipv4Addr::new(10, 0, 0, index), 4000 + u16::from(index))),
            arrived: BTreeMap::new(),
            largest_sent: usize::MAX,
        };
        let pipe = |seed| {
            Pipe::new(
                Queue::new(plan.rules.clone(), seed),
                Link::new(plan.rate, plan.delay),
                Faults::new(plan.faults, seed ^ 0x5eed),
            )
        };
        Self {
            now: Time::from_nanos(1_000_000_000),
            hosts: [host(1, None), host(2, Some(server))],
            pipes: [pipe(plan.seed), pipe(plan.seed + 1)],
            client_crypto: Arc::new(SeededClient::new(plan.seed)),
            plan,
            buffer: Vec::new(),
        }
    }

    /// The client begins a connection.
    pub(crate) fn connect(&mut self) -> ConnectionHandle {
        let client = ClientConfig {
            crypto: self.client_crypto.clone(),
            transport: Arc::new(self.plan.client.clone()),
            early_data: self.plan.early_data,
        };
        let remote = self.hosts[SERVER].address;
        let host = &mut self.hosts[CLIENT];
        let (handle, connection) = host
            .endpoint
            .connect(self.now, client, remote, None, "server.test")
            .unwrap();
        host.connections.insert(handle, connection);
        handle
    }

    /// A connection whose handshake is complete on both sides: the client's and the server's
    /// handle.
    pub(crate) fn connected(&mut self) -> (ConnectionHandle, ConnectionHandle) {
        let client = self.connect();
        let before: Vec<_> = self.hosts[SERVER].connections.keys().copied().collect();
        assert!(self.run_until(Duration::from_secs(20), |world| {
            world.hosts[CLIENT].connections[&client].is_established()
                && world.hosts[SERVER]
                    .connections
                    .iter()
                    .any(|(handle, connection)| {
                        !before.contains(handle) && connection.is_established()
                    })
        }));
        let server = *self.hosts[SERVER]
            .connections
            .keys()
            .find(|handle| !before.contains(handle))
            .unwrap();
        (client, server)
    }

    pub(crate) fn connection(&mut self, host: usize, handle: ConnectionHandle) -> &mut Connection {
        self.hosts[host].connections.get_mut(&handle).unwrap()
    }

    /// Sends all that may be sent now.
    pub(crate) fn transmit(&mut self) {
        for (host, pipe) in self.hosts.iter_mut().zip(&mut self.pipes) {
            for connection in host.connections.values_mut() {
                loop {
                    self.buffer.clear();
                    let Some(transmit) = connection.poll_transmit(self.now, &mut self.buffer, 64)
                    else {
                        break;
                    };
                    assert_eq!(transmit.size, self.buffer.len());
                    if transmit.segment_size.is_some() {
                        assert!(transmit.size <= 65_507, "a batch above 64 KB");
                    }
                    let segment = transmit.segment_size.unwrap_or(transmit.size);
                    if segment > host.largest_sent {
                        connection.handle_too_large(self.now, &transmit);
                        continue;
                    }
                    for bytes in self.buffer.chunks(segment) {
                        let datagram = Datagram {
                            bytes: bytes.to_vec(),
                            ecn: transmit.ecn,
                        };
                        pipe.send(self.now, datagram);
                    }
                }
            }
        }
        self.take_events();
    }

    fn take_events(&mut self) {
        for host in &mut self.hosts {
            let mut drained = Vec::new();
            for (handle, connection) in &mut host.connections {
                while let Some(event) = connection.poll_event() {
                    host.events.push((*handle, event));
                }
                while let Some(event) = connection.poll_endpoint_event() {
                    host.endpoint.handle_event(*handle, event);
                }
                if connection.is_drained() {
                    drained.push(*handle);
                }
            }
            for handle in drained {
                host.connections.remove(&handle);
            }
        }
    }

    /// When something happens next.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let pipes = self.pipes.iter().filter_map(Pipe::next_time);
        let timers = self
            .hosts
            .iter()
            .flat_map(|host| host.connections.values())
            .filter_map(Connection::timeout);
        pipes.chain(timers).min()
    }

    /// Moves time on to `time` and does what is due by then.
    pub(crate) fn advance_to(&mut self, time: Time) {
        self.now = self.now.max(time);
        self.deliver();
        for host in &mut self.hosts {
            for connection in host.connections.values_mut() {
                if connection.timeout().is_some_and(|due| due <= self.now) {
                    connection.handle_timeout(self.now);
                }
            }
        }
        self.transmit();
    }

    fn deliver(&mut self) {
        let mut replies = Vec::new();
        for (from, pipe) in self.pipes.iter_mut().enumerate() {
            let remote = self.hosts[from].address;
            let host = &mut self.hosts[1 - from];
            let mut touched = Vec::new();
            while let Some(mut datagram) = pipe.receive(self.now) {
                *host.arrived.entry(datagram.ecn.bits()).or_default() += 1;
                let bytes = &mut datagram.bytes;
                match host
                    .endpoint
                    .route(self.now, remote, None, datagram.ecn, bytes)
                {
                    Route::Connection(handle) => {
                        if let Some(connection) = host.connections.get_mut(&handle) {
                            connection.handle_datagram(self.now, remote, None, datagram.ecn, bytes);
                            touched.push(handle);
                        }
                    }
                    Route::New(handle, connection) => {
                        host.connections.insert(handle, *connection);
                        touched.push(handle);
                    }
                    Route::Reply(bytes) => {
                        replies.push((
                            1 - from,
                            Datagram {
                                bytes,
                                ecn: Ecn::NotEct,
                            },
                        ));
                    }
                    Route::Drop => {}
                }
            }
            for handle in touched {
                if let Some(connection) = host.connections.get_mut(&handle) {
                    connection.end_batch(self.now);
                }
            }
        }
        for (from, datagram) in replies {
            self.pipes[from].send(self.now, datagram);
        }
    }

    /// One step: on to the next thing that happens. `false` where nothing ever will.
    pub(crate) fn step(&mut self) -> bool {
        self.transmit();
        let Some(next) = self.next_time() else {
            return false;
        };
        self.advance_to(next);
        true
    }

    /// Runs until `done` or until `limit` of virtual time has passed; tells which.
    pub(crate) fn run_until(
        &mut self,
        limit: Duration,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let end = self.now + limit;
        loop {
            self.transmit();
            if done(self) {
                return true;
            }
            match self.next_time() {
                Some(next) if next <= end => self.advance_to(next),
                _ => return false,
            }
        }
    }

    /// Runs for `span` of virtual time.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.run_until(span, |_| false);
        self.now = end;
    }

    /// Moves `data` over a new bidirectional stream from one host to the other while the network
    /// does its worst; what arrived by the stream's end, or `None` where it did not end in time.
    pub(crate) fn transfer(
        &mut self,
        from: (usize, ConnectionHandle),
        to: (usize, ConnectionHandle),
        data: &[u8],
        limit: Duration,
    ) -> Option<Vec<u8>> {
        let direction = weir_quic::Direction::Unidirectional;
        let id = self
            .connection(from.0, from.1)
            .open(direction)
            .expect("a stream");
        let mut written = 0;
        let mut finished = false;
        let mut accepted: Option<StreamId> = None;
        let mut got = Vec::new();
        let mut ended = false;
        self.run_until(limit, |world| {
            let sender = world.connection(from.0, from.1);
            while written < data.len() {
                match sender.write(id, &data[written..]) {
                    Ok(count) => written += count,
                    Err(_) => break,
                }
            }
            if written == data.len() && !finished {
                sender.finish(id).unwrap();
                finished = true;
            }
            let Some(receiver) = world.hosts[to.0].connections.get_mut(&to.1) else {
                return true;
            };
            accepted = accepted.or_else(|| receiver.accept(direction));
            if let Some(id) = accepted {
                loop {
                    match receiver.read(id, usize::MAX) {
                        Ok(Some(bytes)) => got.extend_from_slice(&bytes),
                        Ok(None) => {
                            ended = true;
                            return true;
                        }
                        Err(_) => break,
                    }
                }
            }
            world.transmit();
            false
        });
        ended.then_some(got)
    }
}

/// Bytes that tell where they belong.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index as u64).wrapping_mul(0x9e37_79b9).to_be_bytes()[4])
        .collect()
}
