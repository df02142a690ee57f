//! Runs a script against an endpoint.

mod steps;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use weir_quic::crypto::seeded::{SeededClient, SeededServer};
use weir_quic::{
    ClientConfig, Code, ConnectionError, ConnectionHandle, DatagramConfig, Direction, Endpoint,
    EndpointConfig, EndpointSecret, Level, RetryPolicy, ServerConfig, Side, StreamId,
    TransportConfig,
};
use weir_units::{ByteSize, Duration, Time};

use super::host::Host;
use super::peer::{Disguise, Peer};
use super::script::Script;

/// The victim's memory besides its connections: the endpoint's tables at full size.
const ENDPOINT_MEMORY: i64 = 64 * 1024;
/// The most memory of one connection with [`transport`]: `docs/security.md` derives it.
pub(crate) const CONNECTION_MEMORY: i64 = 640 * 1024;
/// The most allocations per datagram: this many, plus one per this many bytes. The smallest frame
/// that needs some, a piece of a stream behind a gap, has six bytes and makes two.
const MOST_ALLOCATIONS: u64 = 300;
const BYTES_PER_ALLOCATION: u64 = 2;
/// The most rounds of mutual answers after one of the attacker's datagrams.
const MOST_ROUNDS: usize = 2_000;
/// The most timers due in one step of time: more means that one stays due.
const MOST_TIMERS: usize = 20_000;
/// The half-open handshakes from which on the victim validates addresses.
const HALF_OPEN: usize = 8;
/// The most connections of the victim.
const MAX_CONNECTIONS: usize = 24;
/// The stored datagrams that may be sent again.
const REMEMBERED: usize = 64;
/// The most active connections of the attacker.
const MAX_ATTACKERS: usize = 4;
/// The length of the honest client's request.
const REQUEST: usize = 3_000;

/// A connection of the attacker.
struct Attacker {
    peer: Peer,
    /// The victim's handle of it.
    handle: Option<ConnectionHandle>,
    /// Whether data was sent that allows the victim to close.
    provoked: bool,
    /// Whether the victim's side of the handshake is complete.
    established: bool,
}

pub(crate) struct Arena {
    pub(crate) now: Time,
    role: Side,
    pub(crate) victim: Host,
    honest: Host,
    /// The handles of the honest connection, at the client and the server.
    honest_pair: [ConnectionHandle; 2],
    attackers: Vec<Attacker>,
    client_crypto: Arc<SeededClient>,
    server_crypto: Arc<SeededServer>,
    sent: VecDeque<Vec<u8>>,
    /// Bytes received from and sent to each address.
    bytes_by_address: BTreeMap<SocketAddr, (u64, u64)>,
    validated: BTreeSet<SocketAddr>,
    reads: bool,
    /// The victim's last stream, for the application's actions.
    stream: Option<StreamId>,
    names: u64,
    addresses: u32,
    copies: u8,
    flips: bool,
    closed_seen: usize,
    /// The victim's peak memory.
    pub(crate) peak: i64,
}

/// Plays a script against a server or a client.
pub(crate) fn run(role: Side, script: &Script) {
    let mut arena = Arena::new(role, script.seed, script.reads);
    for step in &script.steps {
        arena.play(step);
    }
    arena.finish();
}

fn transport() -> TransportConfig {
    TransportConfig {
        stream_window: ByteSize::from_kib(64),
        connection_window: ByteSize::from_kib(128),
        send_buffer: ByteSize::from_kib(32),
        max_bidirectional_streams: 8,
        max_unidirectional_streams: 8,
        idle_timeout: Duration::from_secs(10),
        handshake_timeout: Duration::from_secs(5),
        datagrams: Some(DatagramConfig {
            receive_buffer: ByteSize::from_kib(16),
            send_buffer: ByteSize::from_kib(16),
            ..DatagramConfig::default()
        }),
        ..TransportConfig::data_center()
    }
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

impl Arena {
    pub(crate) fn new(role: Side, seed: u8, reads: bool) -> Self {
        let client_crypto = Arc::new(SeededClient::new(seed.into()));
        let server_crypto = Arc::new(SeededServer::new(seed.into()));
        let server = ServerConfig {
            max_connections: MAX_CONNECTIONS,
            retry: RetryPolicy::UnderLoad {
                half_open: HALF_OPEN,
            },
            ..ServerConfig::new(server_crypto.clone(), Arc::new(transport()))
        };
        let endpoint = |server, name| {
            let config = EndpointConfig {
                secret: Some(EndpointSecret::new([name; 32])),
                ..EndpointConfig::default()
            };
            Endpoint::new(config, server, [name; 32])
        };
        let (of_victim, of_honest) = match role {
            Side::Server => (Some(server), None),
            Side::Client => (None, Some(server)),
        };
        let victim = Host::new(endpoint(of_victim, 1), address(1, 1), true);
        let honest = Host::new(endpoint(of_honest, 2), address(2, 2), role == Side::Client);
        let mut arena = Self {
            now: Time::from_nanos(1_000_000_000),
            role,
            victim,
            honest,
            honest_pair: [ConnectionHandle(0); 2],
            attackers: Vec::new(),
            client_crypto,
            server_crypto,
            sent: VecDeque::new(),
            bytes_by_address: BTreeMap::new(),
            validated: BTreeSet::new(),
            reads,
            stream: None,
            names: u64::from(seed),
            addresses: 0,
            copies: 0,
            flips: false,
            closed_seen: 0,
            peak: 0,
        };
        arena.connect_honest();
        let stalls = seed & 0x80 != 0;
        arena.begin(false, stalls);
        arena
    }

    /// Whether the attacker's newest connection is open and its handshake complete.
    pub(crate) fn is_established(&self) -> bool {
        let newest = self.attackers.last();
        newest.is_some_and(|attacker| attacker.established && attacker.handle.is_some())
    }

    fn connect_honest(&mut self) {
        let config = ClientConfig::new(
            Arc::new(SeededClient::new(77)),
            Arc::new(TransportConfig {
                keep_alive: Duration::from_secs(3),
                ..transport()
            }),
        );
        let (client, server) = match self.role {
            Side::Server => (&mut self.honest, self.victim.address),
            Side::Client => (&mut self.victim, self.honest.address),
        };
        let local = Some(client.address);
        let now = self.now;
        let (handle, _) = client.measured(|host| {
            let (handle, connection) = host
                .endpoint
                .connect(now, config, server, local, "honest.test")
                .unwrap();
            host.connections.insert(handle, *connection);
            handle
        });
        self.collect();
        let at_server = match self.role {
            Side::Server => &self.victim,
            Side::Client => &self.honest,
        };
        let server = *at_server.connections.keys().next().unwrap();
        self.honest_pair = [handle, server];
        self.elapse(Duration::from_millis(10));
        assert!(self.honest_client().connections[&handle].is_established());
    }

    fn honest_client(&mut self) -> &mut Host {
        match self.role {
            Side::Server => &mut self.honest,
            Side::Client => &mut self.victim,
        }
    }

    /// Returns the victim's handle of the honest connection.
    fn honest_handle(&self) -> ConnectionHandle {
        match self.role {
            Side::Server => self.honest_pair[1],
            Side::Client => self.honest_pair[0],
        }
    }

    fn attacker_address(&self, index: u8) -> SocketAddr {
        address(9, 1000 + u16::from(index % 16))
    }

    fn new_address(&mut self) -> SocketAddr {
        self.addresses += 1;
        let [_, a, b, c] = self.addresses.to_be_bytes();
        SocketAddr::from(([11, a, b, c], 4433))
    }

    /// Starts a connection between the attacker and the victim.
    fn begin(&mut self, early: bool, stalls: bool) {
        self.names += 1;
        match self.role {
            Side::Server => self.begin_as_client(early, stalls),
            Side::Client => self.begin_as_server(stalls),
        }
        if self.attackers.len() > MAX_ATTACKERS {
            self.attackers.remove(0);
        }
        if !stalls {
            for _ in 0..4 {
                self.behave(0);
            }
            self.elapse(Duration::from_millis(2));
        }
    }

    fn begin_as_client(&mut self, early: bool, stalls: bool) {
        let mut peer = Peer::client(&self.client_crypto, self.names, early);
        let before: BTreeSet<_> = self.victim.connections.keys().copied().collect();
        let first = peer.behave();
        let early_packet = peer.packet(
            Level::ZeroRtt,
            0,
            // A request on the first stream.
            &[0x0a, 0, 3, 1, 2, 3],
            Disguise::default(),
        );
        self.attackers.push(Attacker {
            peer,
            handle: None,
            provoked: stalls,
            established: false,
        });
        let from = self.attacker_address(0);
        for datagram in first.into_iter().chain(early_packet) {
            self.deliver(from, datagram);
            let mut keys = self.victim.connections.keys();
            let new = keys.find(|handle| !before.contains(handle)).copied();
            if let Some(attacker) = self.attackers.last_mut() {
                attacker.handle = attacker.handle.or(new);
            }
            self.collect();
        }
    }

    fn begin_as_server(&mut self, stalls: bool) {
        if self.victim.connections.len() >= MAX_CONNECTIONS {
            return;
        }
        let config = ClientConfig::new(self.client_crypto.clone(), Arc::new(transport()));
        let (now, remote) = (self.now, self.attacker_address(0));
        let (handle, _) = self.victim.measured(|host| {
            let local = Some(host.address);
            let (handle, connection) = host
                .endpoint
                .connect(now, config, remote, local, "victim.test")
                .unwrap();
            host.connections.insert(handle, *connection);
            handle
        });
        let first = self.victim.transmit(now);
        let peer = first
            .iter()
            .find_map(|(_, bytes)| Peer::server(&self.server_crypto, self.names, bytes));
        let Some(peer) = peer else { return };
        self.attackers.push(Attacker {
            peer,
            handle: Some(handle),
            provoked: stalls,
            established: false,
        });
        for (to, bytes) in first {
            self.hand_over(to, &bytes);
        }
        self.collect();
    }

    /// Delivers a datagram of a hostile or honest peer to the victim.
    fn deliver(&mut self, from: SocketAddr, datagram: Vec<u8>) {
        let length = datagram.len() as u64;
        self.bytes_by_address.entry(from).or_default().0 += length;
        let (reply, work) = self.victim.receive(self.now, from, &datagram);
        assert!(
            work.allocations <= MOST_ALLOCATIONS + length / BYTES_PER_ALLOCATION,
            "{} allocations for {length} bytes",
            work.allocations
        );
        if let Some(reply) = reply {
            self.hand_over(from, &reply);
        }
        if !datagram.is_empty() {
            self.sent.push_back(datagram);
        }
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
    }

    /// Delivers a datagram of the victim to its destination.
    fn hand_over(&mut self, to: SocketAddr, datagram: &[u8]) {
        let (received, sent) = self.bytes_by_address.entry(to).or_default();
        *sent += datagram.len() as u64;
        // RFC 9000, section 8.1.
        let bounded = self.role == Side::Server && !self.validated.contains(&to);
        assert!(
            !bounded || to == self.honest.address || *sent <= 3 * *received,
            "{sent} bytes to {to}, from which {received} came"
        );
        if to == self.honest.address {
            let (reply, _) = self.honest.receive(self.now, self.victim.address, datagram);
            if let Some(reply) = reply {
                self.deliver(to, reply);
            }
            return;
        }
        for attacker in self.attackers.iter_mut().rev() {
            if attacker.peer.receive(to, datagram) {
                break;
            }
        }
    }

    /// Lets all peers send until none has anything to send.
    fn collect(&mut self) {
        for _ in 0..MOST_ROUNDS {
            self.serve();
            let from_victim = self.victim.transmit(self.now);
            let from_honest = self.honest.transmit(self.now);
            if from_victim.is_empty() && from_honest.is_empty() {
                return self.check();
            }
            for (to, bytes) in from_victim {
                self.hand_over(to, &bytes);
            }
            for (_, bytes) in from_honest {
                self.send_honest(bytes);
            }
            self.now += Duration::from_micros(1);
        }
        panic!("the victim does not come to rest");
    }

    /// Sends a datagram of the honest peer, after an attacker's copies of it.
    fn send_honest(&mut self, bytes: Vec<u8>) {
        for copy in 0..self.copies {
            let from = self.new_address();
            let mut bytes = bytes.clone();
            if self.flips {
                let index = usize::from(copy) * 37 % bytes.len();
                bytes[index] ^= 1 << (copy % 8);
            }
            self.deliver(from, bytes);
        }
        let honest = self.honest.address;
        self.deliver(honest, bytes);
    }

    fn serve(&mut self) {
        let honest = self.honest_handle();
        self.honest.serve(None);
        if self.role == Side::Server || self.reads {
            let only = (!self.reads).then_some(honest);
            self.victim.serve(only);
        }
    }

    /// Checks the invariants.
    fn check(&mut self) {
        let honest = self.honest_handle();
        while let Some((handle, error)) = self.victim.closed.get(self.closed_seen) {
            self.closed_seen += 1;
            assert!(*handle != honest, "the honest connection ended: {error}");
            let attacker = self
                .attackers
                .iter_mut()
                .find(|attacker| attacker.handle == Some(*handle));
            if let ConnectionError::Transport(error) = error {
                assert!(error.code != Code::INTERNAL_ERROR, "{error}");
                assert!(
                    attacker.as_ref().is_none_or(|attacker| attacker.provoked),
                    "closed without a reason: {error}"
                );
            }
            if let Some(attacker) = attacker {
                attacker.handle = None;
            }
        }
        let connections = self.victim.connections.len() as i64;
        let bound = ENDPOINT_MEMORY + connections * CONNECTION_MEMORY;
        self.peak = self.peak.max(self.victim.memory);
        assert!(
            self.victim.memory <= bound,
            "{} bytes for {connections} connections",
            self.victim.memory
        );
    }

    pub(crate) fn elapse(&mut self, span: Duration) {
        let end = self.now + span;
        self.collect();
        for _ in 0..MOST_TIMERS {
            let next = [self.victim.timeout(), self.honest.timeout()];
            match next.into_iter().flatten().min() {
                Some(next) if next <= end => {
                    self.now = self.now.max(next);
                    self.victim.handle_timeouts(self.now);
                    self.honest.handle_timeouts(self.now);
                    self.collect();
                }
                _ => {
                    self.now = self.now.max(end);
                    return;
                }
            }
        }
        panic!("a timer does not go away");
    }

    /// Sends a datagram from one of the attacker's addresses.
    fn attack(&mut self, from: u8, datagram: Vec<u8>) {
        let from = self.attacker_address(from);
        self.deliver(from, datagram);
        self.collect();
    }

    fn behave(&mut self, from: u8) {
        let Some(attacker) = self.attackers.last_mut() else {
            return;
        };
        let peer = &mut attacker.peer;
        let answered: Vec<_> = peer.challenges.iter().map(|(_, at)| *at).collect();
        let mut datagrams = peer.behave();
        let finished = peer.complete && !attacker.established;
        if finished && self.role == Side::Client {
            let number = peer.next_number(Level::OneRtt);
            datagrams.extend(peer.packet(Level::OneRtt, number, &[0x1e], Disguise::default()));
        }
        self.validated.extend(answered);
        if peer.has_keys(Level::Handshake) {
            let address = self.attacker_address(from);
            self.validated.insert(address);
        }
        for datagram in datagrams {
            self.attack(from, datagram);
        }
        if let Some(attacker) = self.attackers.last_mut() {
            attacker.established |= finished;
        }
    }

    /// Returns the close code of the attacker's connection that the victim closed last.
    pub(crate) fn closed_with(&self) -> Option<Code> {
        let closed = self.victim.closed.iter().rev();
        closed
            .filter_map(|(_, error)| match error {
                ConnectionError::Transport(error) => Some(error.code),
                _ => None,
            })
            .next()
    }

    /// Sends a request of the honest client, which must be answered.
    fn ask(&mut self) {
        let client = self.honest_pair[0];
        let host = self.honest_client();
        let (id, _) = host.measured(|host| {
            let connection = host.connections.get_mut(&client).unwrap();
            let id = connection.open(Direction::Bidirectional).unwrap();
            assert_eq!(connection.write(id, &[6; REQUEST]), Ok(REQUEST));
            connection.finish(id).unwrap();
            id
        });
        let mut got = 0;
        for _ in 0..400 {
            self.elapse(Duration::from_millis(50));
            let host = self.honest_client();
            let (ended, _) = host.measured(|host| {
                let connection = host.connections.get_mut(&client).unwrap();
                loop {
                    match connection.read(id, usize::MAX) {
                        Ok(Some(bytes)) => got += bytes.len(),
                        Ok(None) => return true,
                        Err(_) => return false,
                    }
                }
            });
            if ended {
                assert_eq!(got, REQUEST);
                return;
            }
        }
        panic!("no answer for the honest client");
    }

    /// Stops the attackers: the honest connection must work, and no other state must remain.
    pub(crate) fn finish(&mut self) {
        self.ask();
        self.elapse(Duration::from_secs(60));
        self.ask();
        let left = self.victim.connections.len();
        assert_eq!(left, 1, "connections of silent peers are left");
        assert_eq!(self.victim.endpoint.connections(), 1);
        assert!(self.victim.memory <= ENDPOINT_MEMORY + CONNECTION_MEMORY);
    }
}
