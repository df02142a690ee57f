//! Two endpoints in one process over a simulated network, in virtual time.
//!
//! Each direction is a `weir_fabric` egress port: queue, link, faults. Damaged datagrams are
//! dropped as by the UDP checksum. Nothing here reads a clock or uses an unseeded generator, so
//! every run is reproducible byte for byte.
#![allow(dead_code, reason = "each test file uses its part of it")]
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod flow;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
pub(crate) use flow::Flow;
use weir_dcudp::packet::{Header, Packet as Dcudp};
use weir_dcudp::{
    Connection, ConnectionError, ConnectionHandle, DataKind, Endpoint, Event, Route, ServerConfig,
    TransportConfig,
};
use weir_fabric::{EgressPort, FaultSettings, Faults, Link, Packet, Queue, Rule};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

/// IPv4 and UDP headers.
const HEADERS: u64 = 28;

/// A datagram in flight.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: Ecn,
    damaged: bool,
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
        self.damaged = true;
        weir_fabric::flip_byte(&mut self.bytes, entropy)
    }
}

/// One end: an endpoint, one connection, and its application.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Option<(ConnectionHandle, Connection)>,
    pub(crate) flow: Flow,
    pub(crate) events: Vec<Event>,
    pub(crate) address: SocketAddr,
    /// Datagrams received, by kind.
    pub(crate) kinds: BTreeMap<&'static str, u64>,
}

impl Host {
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("a connection").1
    }

    pub(crate) fn closed(&self) -> Option<Option<ConnectionError>> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(error) => Some(*error),
            _ => None,
        })
    }
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// The configuration of a world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) rate: Rate,
    /// One-way delay.
    pub(crate) delay: Duration,
    pub(crate) faults: FaultSettings,
    pub(crate) rules: Vec<Rule>,
    pub(crate) client: TransportConfig,
    pub(crate) server: TransportConfig,
    /// Maximum number of datagrams per batch.
    pub(crate) batch: usize,
}

impl Default for Plan {
    fn default() -> Self {
        let config = TransportConfig::new(Rate::from_gbps(1));
        Self {
            seed: 1,
            rate: Rate::from_gbps(1),
            delay: Duration::from_micros(25),
            faults: FaultSettings::default(),
            rules: Vec::new(),
            client: config.clone(),
            server: config,
            batch: 1,
        }
    }
}

impl Plan {
    /// Applies a change to the configuration of both ends.
    pub(crate) fn both(mut self, change: impl Fn(&mut TransportConfig)) -> Self {
        change(&mut self.client);
        change(&mut self.server);
        self
    }
}

/// The simulated world.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) hosts: [Host; 2],
    /// `pipes[i]` carries the datagrams sent by host `i`.
    pub(crate) pipes: [EgressPort<Datagram>; 2],
    /// Inspects, and may change or drop, each datagram about to arrive at a host.
    pub(crate) tap: Option<Tap>,
    batch: usize,
    buffer: Vec<u8>,
}

/// Returns whether the datagram is delivered at this host.
pub(crate) type Tap = Box<dyn FnMut(Time, usize, &mut Datagram) -> bool>;

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let kind = plan.client.data;
        let host = |index: u8, server| Host {
            endpoint: Endpoint::new(server, [index ^ plan.seed as u8; 32]).unwrap(),
            connection: None,
            flow: Flow::new(kind),
            events: Vec::new(),
            address: SocketAddr::from(([10, 0, 0, index], 9000)),
            kinds: BTreeMap::new(),
        };
        let pipe = |seed| {
            let link = Link::new(plan.rate, plan.delay);
            let queue = Queue::new(plan.rules.clone(), seed);
            EgressPort::new(queue, link, Faults::new(plan.faults, seed))
        };
        let server = ServerConfig::new(Arc::new(plan.server.clone()));
        let mut world = Self {
            now: Time::from_nanos(1_000_000_000),
            hosts: [host(1, None), host(2, Some(server))],
            pipes: [pipe(plan.seed), pipe(plan.seed ^ 0xffff)],
            tap: None,
            batch: plan.batch,
            buffer: Vec::new(),
        };
        let remote = world.hosts[SERVER].address;
        let config = Arc::new(plan.client);
        let client = &mut world.hosts[CLIENT];
        let connected = client.endpoint.connect(world.now, config, remote, None);
        client.connection = Some(connected.unwrap());
        world.service(CLIENT);
        world
    }

    /// Runs until both ends are drained, no event is left, or `limit` has passed.
    pub(crate) fn run(&mut self, limit: Duration) {
        self.run_until(limit, |world| {
            world.hosts.iter().all(|host| match &host.connection {
                Some((_, connection)) => connection.is_drained(),
                None => false,
            })
        });
    }

    /// Runs until `done`. Returns whether the condition was met.
    pub(crate) fn run_until(
        &mut self,
        limit: Duration,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let end = self.now + limit;
        while !done(self) {
            let Some(next) = self.timeout() else {
                return false;
            };
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            self.step();
        }
        true
    }

    pub(crate) fn timeout(&self) -> Option<Time> {
        let pipes = self.pipes.iter().filter_map(EgressPort::timeout);
        let hosts = self.hosts.iter();
        let connections = hosts.filter_map(|host| host.connection.as_ref()?.1.timeout());
        pipes.chain(connections).min()
    }

    fn step(&mut self) {
        for index in 0..2 {
            while let Some(datagram) = self.pipes[1 - index].poll_delivered(self.now) {
                self.arrive(index, datagram);
            }
        }
        for index in 0..2 {
            let now = self.now;
            if let Some((_, connection)) = &mut self.hosts[index].connection
                && connection.timeout().is_some_and(|time| time <= now)
            {
                connection.handle_timeout(now);
            }
            self.service(index);
        }
    }

    fn arrive(&mut self, index: usize, mut datagram: Datagram) {
        if let Some(tap) = &mut self.tap
            && !tap(self.now, index, &mut datagram)
        {
            return;
        }
        if !datagram.damaged {
            self.inject(index, datagram.source, datagram.ecn, &datagram.bytes);
        }
    }

    /// Delivers a datagram from any source.
    pub(crate) fn inject(&mut self, index: usize, source: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        let host = &mut self.hosts[index];
        *host.kinds.entry(kind_of(bytes)).or_default() += 1;
        match host.endpoint.route(self.now, source, None, bytes) {
            Route::Connection(handle) => {
                if let Some((known, connection)) = &mut host.connection
                    && *known == handle
                {
                    connection.handle_datagram(self.now, source, ecn, BytesMut::from(bytes));
                }
            }
            Route::New(handle, connection) => {
                assert!(host.connection.is_none(), "a second connection");
                host.connection = Some((handle, *connection));
            }
            Route::Reply(reply) => {
                assert!(reply.len() <= bytes.len(), "an answer that amplifies");
                self.send(index, source, Ecn::NotEct, reply);
            }
            Route::Drop => {}
        }
    }

    fn send(&mut self, index: usize, destination: SocketAddr, ecn: Ecn, bytes: Vec<u8>) {
        let datagram = Datagram {
            source: self.hosts[index].address,
            destination,
            bytes,
            ecn,
            damaged: false,
        };
        self.pipes[index].send(self.now, datagram);
    }

    /// Runs the application and sends all due datagrams.
    pub(crate) fn service(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let Some((handle, connection)) = &mut host.connection else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            host.events.push(event);
        }
        host.flow.run(connection);
        while let Some(event) = connection.poll_endpoint_event() {
            host.endpoint.handle_event(*handle, event);
        }
        loop {
            self.buffer.clear();
            let Some((_, connection)) = &mut self.hosts[index].connection else {
                return;
            };
            let mut buffer = std::mem::take(&mut self.buffer);
            // One end copies its data, the other sends it in place.
            let batch = match index {
                0 => connection
                    .poll_transmit(self.now, &mut buffer, self.batch)
                    .map(|transmit| (transmit, buffer.clone())),
                _ => connection
                    .poll_transmit_in_place(self.now, &mut buffer, self.batch)
                    .map(|(transmit, contents)| (transmit, contents.to_vec())),
            };
            self.buffer = buffer;
            let Some((transmit, contents)) = batch else {
                return;
            };
            assert_eq!(transmit.size, contents.len());
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for bytes in contents.chunks(segment) {
                self.send(index, transmit.remote, transmit.ecn, bytes.to_vec());
            }
        }
    }
}

/// Returns the kind of a datagram.
pub(crate) fn kind_of(bytes: &[u8]) -> &'static str {
    match Header::decode(bytes) {
        Ok((Header::Data(_), _)) => "data",
        Ok((Header::Control(header), _)) => match header.kind.code() {
            0 => "handshake",
            1 => "keep-alive",
            2 => "ack",
            3 => "nak",
            4 => "obs-change",
            5 => "shutdown",
            _ => "ack2",
        },
        Err(_) => "none",
    }
}

/// Decodes an unprotected packet.
pub(crate) fn decode(bytes: &[u8]) -> Dcudp<'_> {
    Dcudp::decode(bytes).unwrap()
}

/// Switches both ends to messages.
pub(crate) fn messages(plan: Plan) -> Plan {
    plan.both(|config| config.data = DataKind::Messages)
}
