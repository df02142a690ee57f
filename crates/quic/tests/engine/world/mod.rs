//! Two endpoints in one process over a simulated network, in virtual time.
//!
//! Each direction is a `weir_fabric` egress port: queue, link, faults. No code here reads a clock
//! or uses an unseeded generator, so a run repeats byte for byte.
#![allow(dead_code, reason = "each test file uses its part of it")]

pub(crate) mod attackers;
pub(crate) mod flow;
mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weir_fabric::{EgressPort, FaultSettings, Faults, Link, Packet, Queue, Rule, flip_byte};
use weir_quic::crypto::ClientCrypto;
use weir_quic::crypto::seeded::{SeededClient, SeededServer};
use weir_quic::{
    ClientConfig, ClientLimits, ClientTable, Connection, ConnectionHandle, Endpoint,
    EndpointConfig, EndpointSecret, Event, Interface, InterfaceAddress, Interfaces, KnownClients,
    KnownClientsConfig, KnownServers, PreferredAddresses, RetryPolicy, Route, ServerConfig,
    StreamId, TokenStore, TransportConfig, Version, Versions,
};
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
    /// Those that have ended, which an application may still ask; the last one of each handle.
    pub(crate) ended: BTreeMap<ConnectionHandle, Connection>,
    pub(crate) events: Vec<(ConnectionHandle, Event)>,
    /// The addresses of its interfaces, the first one first.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Datagrams received with each codepoint.
    pub(crate) arrived: BTreeMap<u8, u64>,
    /// The interface refuses larger UDP payloads (EMSGSIZE).
    pub(crate) largest_sent: usize,
    /// The local addresses with standby paths from the start.
    pub(crate) standby: Vec<SocketAddr>,
    /// Datagrams received with a zero fixed bit.
    pub(crate) arrived_greased: u64,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// The setup of a test network.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) rate: Rate,
    /// The one-way delay.
    pub(crate) delay: Duration,
    pub(crate) faults: FaultSettings,
    pub(crate) rules: Vec<Rule>,
    pub(crate) client: TransportConfig,
    pub(crate) server: TransportConfig,
    /// The kernel's tick of both hosts.
    pub(crate) timer_tick: Duration,
    pub(crate) early_data: bool,
    pub(crate) max_connections: usize,
    pub(crate) retry: RetryPolicy,
    pub(crate) token_lifetime: Duration,
    pub(crate) version: Version,
    pub(crate) client_versions: Versions,
    pub(crate) server_versions: Versions,
    pub(crate) preferred: PreferredAddresses,
    pub(crate) clients: Option<ClientLimits>,
    pub(crate) max_undecided: usize,
    /// What the receive buffer of both hosts takes.
    pub(crate) receive_burst: Option<ByteSize>,
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
            timer_tick: Duration::ZERO,
            early_data: false,
            max_connections: 1000,
            retry: RetryPolicy::default(),
            token_lifetime: Duration::from_secs(3600),
            version: Version::V1,
            client_versions: Versions::V1,
            server_versions: Versions::V1_AND_V2,
            preferred: PreferredAddresses::default(),
            clients: None,
            max_undecided: 0,
            receive_burst: None,
        }
    }
}

/// The test network.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) hosts: [Host; 2],
    /// `pipes[i]` carries the packets of host `i`.
    pub(crate) egress_ports: [EgressPort<Datagram>; 2],
    /// The same for the client's further interfaces.
    pub(crate) spare_pipes: Vec<[EgressPort<Datagram>; 2]>,
    pub(crate) client_crypto: Arc<dyn ClientCrypto>,
    pub(crate) tokens: Arc<TokenStore>,
    /// The client's path secrets, where known peers are on.
    pub(crate) known_servers: Option<Arc<KnownServers>>,
    /// The address of the client's first interface behind a NAT.
    pub(crate) nat: Option<SocketAddr>,
    /// An attacker's address: it sends copies of the client's packets ahead of the originals.
    pub(crate) copies_from: Option<SocketAddr>,
    plan: Plan,
    server: ServerConfig,
    buffer: Vec<u8>,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        Self::with_server(plan.clone(), SeededServer::new(plan.seed))
    }

    pub(crate) fn with_server(plan: Plan, server: SeededServer) -> Self {
        let server = ServerConfig {
            max_connections: plan.max_connections,
            retry: plan.retry,
            token_lifetime: plan.token_lifetime,
            versions: plan.server_versions,
            preferred: plan.preferred,
            clients: plan
                .clients
                .map(|limits| Arc::new(ClientTable::new(limits))),
            max_undecided: plan.max_undecided,
            ..ServerConfig::new(Arc::new(server), Arc::new(plan.server.clone()))
        };
        let server_config = server.clone();
        let host = |index: u8, server| Host {
            endpoint: Endpoint::new(
                EndpointConfig {
                    secret: Some(EndpointSecret::new([index; 32])),
                    timer_tick: plan.timer_tick,
                    receive_burst: plan.receive_burst,
                    ..EndpointConfig::default()
                },
                server,
                [index ^ plan.seed as u8; 32],
            ),
            connections: BTreeMap::new(),
            ended: BTreeMap::new(),
            events: Vec::new(),
            addresses: vec![address(0, index)],
            arrived: BTreeMap::new(),
            largest_sent: usize::MAX,
            standby: Vec::new(),
            arrived_greased: 0,
        };
        let pipe = |seed| new_egress_port(&plan, seed);
        Self {
            now: Time::from_nanos(1_000_000_000),
            hosts: [host(1, None), host(2, Some(server))],
            egress_ports: [pipe(plan.seed), pipe(plan.seed + 1)],
            spare_pipes: Vec::new(),
            client_crypto: Arc::new(SeededClient::new(plan.seed)),
            tokens: Arc::new(TokenStore::new(100)),
            known_servers: None,
            nat: None,
            copies_from: None,
            plan,
            server: server_config,
            buffer: Vec::new(),
        }
    }

    /// Returns the server's configuration.
    pub(crate) fn server_config(&self) -> ServerConfig {
        self.server.clone()
    }

    /// Switches known peers on, on both sides.
    pub(crate) fn with_known_peers(mut self, config: KnownClientsConfig) -> Self {
        self.known_servers = Some(Arc::new(KnownServers::new(100)));
        self.server.known_clients = Some(Arc::new(KnownClients::new(config, self.now)));
        let server = Some(self.server.clone());
        self.hosts[SERVER].endpoint.set_server(server);
        self
    }

    /// Replaces the server's endpoint with a new one, which has no path secrets. `has_known_peers`
    /// says whether it offers any.
    pub(crate) fn restart_server(&mut self, secret: u8, has_known_peers: bool) {
        let table = || Arc::new(KnownClients::new(KnownClientsConfig::default(), self.now));
        self.server.known_clients = has_known_peers.then(table);
        let config = EndpointConfig {
            secret: Some(EndpointSecret::new([secret; 32])),
            timer_tick: self.plan.timer_tick,
            ..EndpointConfig::default()
        };
        let server = Some(self.server.clone());
        self.hosts[SERVER].endpoint = Endpoint::new(config, server, [secret ^ 0x77; 32]);
        self.hosts[SERVER].connections.clear();
    }

    /// Sets the versions of the client's next connections.
    pub(crate) fn set_client_versions(&mut self, versions: Versions) {
        self.plan.client_versions = versions;
    }

    /// Adds an interface with its own path to the server to the client; returns its address.
    pub(crate) fn add_interface(&mut self) -> SocketAddr {
        let interface = self.spare_pipes.len() as u8 + 1;
        let seed = self.plan.seed + 100 * u64::from(interface);
        self.spare_pipes.push([
            new_egress_port(&self.plan, seed),
            new_egress_port(&self.plan, seed + 1),
        ]);
        let address = address(interface, 1);
        self.hosts[CLIENT].addresses.push(address);
        address
    }

    /// Gives a client's connection a second interface besides its first one: a standby path.
    pub(crate) fn add_standby(&mut self, client: ConnectionHandle) {
        let addresses = [self.hosts[CLIENT].addresses[0], self.add_interface()];
        let now = self.now;
        let connection = self.connection(CLIENT, client);
        for address in addresses {
            connection.add_local_address(now, address);
        }
    }

    /// Replaces the faults of the first path, in both directions.
    pub(crate) fn set_faults(&mut self, faults: FaultSettings) {
        for port in &mut self.egress_ports {
            port.set_faults(self.now, faults);
        }
    }

    /// Lets a host know that its first interface, with this MTU, reaches the other host without a
    /// router.
    pub(crate) fn set_on_link_mtu(&mut self, host: usize, mtu: u64) {
        let host = &mut self.hosts[host];
        let ip = host.addresses[0].ip();
        let address = InterfaceAddress {
            prefix_length: 24,
            ..InterfaceAddress::from(ip)
        };
        let interface = Interface {
            mtu: ByteSize::from_bytes(mtu),
            is_loopback: false,
            addresses: vec![address],
        };
        host.largest_sent = (mtu - HEADERS) as usize;
        host.endpoint
            .set_interfaces(Arc::new([interface].into_iter().collect()));
    }

    /// Sets the MTU of all interfaces of a host, for existing connections too.
    pub(crate) fn set_interface_mtu(&mut self, host: usize, mtu: u64) {
        let host = &mut self.hosts[host];
        let all: Vec<_> = host.addresses.iter().map(|ip| (*ip, mtu)).collect();
        let interfaces = interfaces(&all);
        host.largest_sent = (mtu - HEADERS) as usize;
        host.endpoint.set_interfaces(interfaces.clone());
        for connection in host.connections.values_mut() {
            connection.set_interfaces(self.now, interfaces.clone());
        }
    }

    /// Returns the egress port for `datagram` from host `from`: the client's interface decides.
    fn pipe(&mut self, from: usize, datagram: &Datagram) -> &mut EgressPort<Datagram> {
        let client = match from {
            CLIENT => datagram.source,
            _ => datagram.destination,
        };
        match client.ip() {
            IpAddr::V4(ip) if ip.octets()[2] > 0 => {
                &mut self.spare_pipes[usize::from(ip.octets()[2]) - 1][from]
            }
            _ => &mut self.egress_ports[from],
        }
    }

    /// Starts a connection from the client.
    pub(crate) fn connect(&mut self) -> ConnectionHandle {
        let transport = Arc::new(self.plan.client.clone());
        let client = ClientConfig {
            early_data: self.plan.early_data,
            version: self.plan.version,
            versions: self.plan.client_versions,
            tokens: Some(self.tokens.clone()),
            known_servers: self.known_servers.clone(),
            local_addresses: self.hosts[CLIENT].standby.clone(),
            ..ClientConfig::new(self.client_crypto.clone(), transport)
        };
        let remote = self.hosts[SERVER].addresses[0];
        let host = &mut self.hosts[CLIENT];
        let (handle, connection) = host
            .endpoint
            .connect(
                self.now,
                client,
                remote,
                Some(host.addresses[0]),
                "server.test",
            )
            .unwrap();
        host.connections.insert(handle, *connection);
        handle
    }

    /// Creates a connection whose handshake is complete on both sides; returns the client's and the
    /// server's handle.
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

    /// Sends everything that may be sent now.
    pub(crate) fn transmit(&mut self) {
        let mut sent = Vec::new();
        for (from, host) in self.hosts.iter_mut().enumerate() {
            for connection in host.connections.values_mut() {
                let mut may_send_more = true;
                loop {
                    self.buffer.clear();
                    let due = connection.timeout();
                    let Some(transmit) = connection.poll_transmit(self.now, &mut self.buffer, 64)
                    else {
                        assert!(may_send_more || due == connection.timeout());
                        break;
                    };
                    assert!(may_send_more, "a batch after the last one");
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
                            source: transmit.local.unwrap_or(host.addresses[0]),
                            destination: transmit.remote,
                            bytes: bytes.to_vec(),
                            ecn: transmit.ecn,
                        };
                        sent.push((from, datagram));
                    }
                    may_send_more = connection.may_transmit_more(self.now);
                }
            }
        }
        let now = self.now;
        for (from, mut datagram) in sent {
            if from == CLIENT && datagram.source == address(0, 1) {
                datagram.source = self.nat.unwrap_or(datagram.source);
                if let Some(source) = self.copies_from {
                    let copy = Datagram {
                        source,
                        ..datagram.clone()
                    };
                    self.pipe(from, &copy).send(now, copy);
                }
            }
            self.pipe(from, &datagram).send(now, datagram);
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
                if let Some(connection) = host.connections.remove(&handle) {
                    host.ended.insert(handle, connection);
                }
            }
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let spare = self.spare_pipes.iter().flatten();
        let pipes = self
            .egress_ports
            .iter()
            .chain(spare)
            .filter_map(EgressPort::timeout);
        let timers = self
            .hosts
            .iter()
            .flat_map(|host| host.connections.values())
            .filter_map(Connection::timeout);
        pipes.chain(timers).min()
    }

    /// Advances to `time` and handles the events due by then.
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
        let ways = std::iter::once(&mut self.egress_ports).chain(&mut self.spare_pipes);
        let arriving = ways.flat_map(|pipes| pipes.iter_mut().enumerate());
        let mut touched = Vec::new();
        for (from, pipe) in arriving {
            let host = &mut self.hosts[1 - from];
            while let Some(mut datagram) = pipe.poll_delivered(self.now) {
                if Some(datagram.destination) == self.nat {
                    datagram.destination = address(0, 1);
                }
                *host.arrived.entry(datagram.ecn.bits()).or_default() += 1;
                let Datagram {
                    source,
                    destination,
                    ecn,
                    ref mut bytes,
                } = datagram;
                if !host.addresses.contains(&destination) {
                    continue;
                }
                host.arrived_greased += u64::from(bytes[0] & 0x40 == 0);
                let local = Some(destination);
                match host.endpoint.route(self.now, source, local, ecn, bytes) {
                    Route::Connection(handle) => {
                        if let Some(connection) = host.connections.get_mut(&handle) {
                            connection.handle_datagram(self.now, source, local, ecn, bytes);
                            touched.push((1 - from, handle));
                        }
                    }
                    Route::New(handle, connection) => {
                        host.connections.insert(handle, *connection);
                        touched.push((1 - from, handle));
                    }
                    Route::Reply(bytes) => {
                        let reply = Datagram {
                            source: destination,
                            destination: source,
                            bytes,
                            ecn: Ecn::NotEct,
                        };
                        replies.push((1 - from, reply));
                    }
                    Route::Draining | Route::Drop => {}
                    Route::Engine(_) | Route::EveryEngine(_) => panic!("there is one engine"),
                    Route::Incoming(_) | Route::Kept => panic!("clients are accepted at once"),
                }
            }
        }
        for (host, handle) in touched {
            if let Some(connection) = self.hosts[host].connections.get_mut(&handle) {
                connection.end_batch(self.now);
            }
        }
        for (from, datagram) in replies {
            let now = self.now;
            self.pipe(from, &datagram).send(now, datagram);
        }
    }

    /// Advances to the next event. `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.transmit();
        let Some(next) = self.timeout() else {
            return false;
        };
        self.advance_to(next);
        true
    }

    /// Runs until `done` or until `limit` of virtual time has passed; returns whether it is done.
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
            match self.timeout() {
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

    /// Transfers `data` over a new bidirectional stream from one host to the other over the faulty
    /// network. Returns the received data, or `None` if the stream did not end in time.
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

/// Returns a machine with an interface at each of these addresses.
pub(crate) fn interfaces(all: &[(SocketAddr, u64)]) -> Arc<Interfaces> {
    let each = all.iter().map(|(address, mtu)| Interface {
        mtu: ByteSize::from_bytes(*mtu),
        is_loopback: false,
        addresses: vec![address.ip().into()],
    });
    Arc::new(each.collect())
}

fn address(interface: u8, host: u8) -> SocketAddr {
    SocketAddr::from((
        Ipv4Addr::new(10, 0, interface, host),
        4000 + u16::from(host),
    ))
}

fn new_egress_port(plan: &Plan, seed: u64) -> EgressPort<Datagram> {
    EgressPort::new(
        Queue::new(plan.rules.clone(), seed),
        Link::new(plan.rate, plan.delay),
        Faults::new(plan.faults, seed ^ 0x5eed),
    )
}

/// Returns bytes that depend on their position.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index as u64).wrapping_mul(0x9e37_79b9).to_be_bytes()[4])
        .collect()
}
