//! Two endpoints driven by random lists of operations.
//!
//! Whatever the applications and the network do: no panic; read data equals written data, in order;
//! once the network is reliable again, every stream that was finished and not abandoned is
//! delivered completely, and a closed connection ends on both sides.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4};

use crate::world::{CLIENT, Plan, SERVER, World};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use weir_fabric::{FaultSettings, Probability, Reordering, Rule};
use weir_quic::{
    ConnectionHandle, DatagramConfig, Direction, MoveCause, PacketSizePolicy, StreamId,
};
use weir_units::{ByteSize, Duration};

#[derive(Clone, Debug)]
enum Operation {
    Advance {
        micros: u64,
    },
    Step {
        times: u8,
    },
    Open {
        host: usize,
        unidirectional: bool,
    },
    Write {
        host: usize,
        stream: usize,
        length: usize,
    },
    Finish {
        host: usize,
        stream: usize,
    },
    Reset {
        host: usize,
        stream: usize,
    },
    Stop {
        host: usize,
        stream: usize,
    },
    Prioritize {
        host: usize,
        stream: usize,
        priority: i8,
    },
    Read {
        host: usize,
    },
    Faults {
        loss: u8,
        duplication: u8,
        corruption: u8,
        reordering: u8,
    },
    Mark {
        percent: u8,
    },
    Blackout {
        micros: u64,
    },
    PathMtu {
        direction: usize,
        bytes: u64,
    },
    /// A host's own interfaces carry IP packets of this size.
    InterfaceMtu {
        host: usize,
        bytes: u64,
    },
    PacketSize {
        host: usize,
        bytes: u64,
    },
    /// Another standby interface of the client.
    Interface,
    /// The interface is removed.
    NoInterface {
        index: usize,
    },
    Move {
        path: usize,
    },
    /// The local address of the path in use gets another port.
    Rebind {
        port: u16,
    },
    /// The NAT in front of the client's first interface gets another port.
    Nat {
        port: u16,
    },
    /// An attacker sends copies from another address, ahead of the originals.
    Copies {
        micros: u64,
    },
    /// One path goes dark for a while.
    Dark {
        way: usize,
        micros: u64,
    },
    UpdateKeys {
        host: usize,
    },
    Datagram {
        host: usize,
        length: usize,
    },
    Close {
        host: usize,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let host = 0..2usize;
    let stream = 0..8usize;
    prop_oneof![
        4 => (0..5_000u64).prop_map(|micros| Operation::Advance { micros }),
        4 => (1..20u8).prop_map(|times| Operation::Step { times }),
        4 => (host.clone(), any::<bool>())
            .prop_map(|(host, unidirectional)| Operation::Open { host, unidirectional }),
        8 => (host.clone(), stream.clone(), 0..60_000usize)
            .prop_map(|(host, stream, length)| Operation::Write { host, stream, length }),
        4 => (host.clone(), stream.clone())
            .prop_map(|(host, stream)| Operation::Finish { host, stream }),
        1 => (host.clone(), stream.clone())
            .prop_map(|(host, stream)| Operation::Reset { host, stream }),
        1 => (host.clone(), stream.clone())
            .prop_map(|(host, stream)| Operation::Stop { host, stream }),
        1 => (host.clone(), stream, any::<i8>())
            .prop_map(|(host, stream, priority)| Operation::Prioritize { host, stream, priority }),
        6 => host.clone().prop_map(|host| Operation::Read { host }),
        2 => (0..30u8, 0..30u8, 0..20u8, 0..30u8).prop_map(
            |(loss, duplication, corruption, reordering)| Operation::Faults {
                loss, duplication, corruption, reordering,
            }),
        1 => (0..60u8).prop_map(|percent| Operation::Mark { percent }),
        1 => (0..20_000u64).prop_map(|micros| Operation::Blackout { micros }),
        2 => (host.clone(), prop_oneof![1228..1500u64, 1500..10_000u64])
            .prop_map(|(direction, bytes)| Operation::PathMtu { direction, bytes }),
        1 => (host.clone(), prop_oneof![1228..1500u64, 1500..10_000u64])
            .prop_map(|(host, bytes)| Operation::InterfaceMtu { host, bytes }),
        1 => (host.clone(), 1200..10_000u64)
            .prop_map(|(host, bytes)| Operation::PacketSize { host, bytes }),
        1 => Just(Operation::Interface),
        1 => (0..3usize).prop_map(|index| Operation::NoInterface { index }),
        2 => (0..4usize).prop_map(|path| Operation::Move { path }),
        1 => (1024..2048u16).prop_map(|port| Operation::Rebind { port }),
        1 => (1024..2048u16).prop_map(|port| Operation::Nat { port }),
        1 => (0..20_000u64).prop_map(|micros| Operation::Copies { micros }),
        2 => (0..3usize, 0..20_000u64).prop_map(|(way, micros)| Operation::Dark { way, micros }),
        2 => host.clone().prop_map(|host| Operation::UpdateKeys { host }),
        3 => (host.clone(), 0..1_300usize)
            .prop_map(|(host, length)| Operation::Datagram { host, length }),
        1 => host.prop_map(|host| Operation::Close { host }),
    ]
}

/// The expected data of one direction of one stream.
#[derive(Default)]
struct Flow {
    written: u64,
    finished: bool,
    abandoned: bool,
    read: u64,
    ended: bool,
}

/// The longest time until all data has arrived, in steps of 5 ms, and the time after that when
/// nothing is expected any more.
const SETTLING_ROUNDS: usize = 2_000;
const QUIET_ROUNDS: usize = 10;
/// One in this many seeds always waits the full time, to find late faults.
const PATIENT: u64 = 16;

struct Scene {
    world: World,
    handles: [ConnectionHandle; 2],
    streams: Vec<StreamId>,
    /// By stream and sending host.
    flows: BTreeMap<(StreamId, usize), Flow>,
    closed: bool,
    /// Whether to wait although all data has arrived.
    waits_long: bool,
}

/// Returns the byte at `offset` of `host`'s data on a stream.
fn byte_at(id: StreamId, host: usize, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ offset >> 8 ^ id.as_u64() << 3 ^ host as u64) as u8
}

fn percent(value: u8) -> Probability {
    Probability::new(f64::from(value) / 100.0).unwrap()
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut plan = Plan {
            seed,
            ..Plan::default()
        };
        plan.client.stream_window = ByteSize::from_kib(64);
        plan.server.stream_window = ByteSize::from_kib(64);
        plan.server.connection_window = ByteSize::from_kib(100);
        plan.server.max_bidirectional_streams = 5;
        if seed.is_multiple_of(2) {
            plan.server.packet_size = Some(ByteSize::from_bytes(8972));
            plan.client.probe_up_to = Some(ByteSize::from_bytes(9000));
            plan.client.probe_interval = Duration::from_millis(50);
        }
        // `Step` advances to the next timer, however late.
        plan.client.keep_alive = Duration::from_secs(2);
        // A peer that missed the close while the network was down must time out.
        plan.client.idle_timeout = Duration::from_secs(6);
        plan.client.datagrams = Some(DatagramConfig::default());
        plan.server.datagrams = Some(DatagramConfig::default());
        plan.client.ack_frequency = seed & 1 == 0;
        plan.server.ack_frequency = seed & 2 == 0;
        let preferred = SocketAddrV4::new([10, 0, 0, 7].into(), 4443);
        plan.preferred.ipv4 = seed.is_multiple_of(3).then_some(preferred);
        let mut world = World::new(plan);
        world.hosts[SERVER].addresses.push(preferred.into());
        let (client, server) = world.connected();
        Self {
            world,
            handles: [client, server],
            streams: Vec::new(),
            flows: BTreeMap::new(),
            closed: false,
            waits_long: seed.is_multiple_of(PATIENT),
        }
    }

    fn connection(&mut self, host: usize) -> Option<&mut weir_quic::Connection> {
        self.world.hosts[host]
            .connections
            .get_mut(&self.handles[host])
    }

    fn stream(&self, index: usize) -> Option<StreamId> {
        (!self.streams.is_empty()).then(|| self.streams[index % self.streams.len()])
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Advance { micros } => self.world.run_for(Duration::from_micros(micros)),
            Operation::Step { times } => {
                for _ in 0..times {
                    self.world.step();
                }
            }
            Operation::Open {
                host,
                unidirectional,
            } => self.open(host, unidirectional),
            Operation::Write {
                host,
                stream,
                length,
            } => self.write(host, stream, length),
            Operation::Finish { host, stream } => {
                let Some(id) = self.stream(stream) else {
                    return;
                };
                let Some(connection) = self.connection(host) else {
                    return;
                };
                if connection.finish(id).is_ok() {
                    self.flows.entry((id, host)).or_default().finished = true;
                }
            }
            Operation::Reset { host, stream } => {
                let Some(id) = self.stream(stream) else {
                    return;
                };
                let Some(connection) = self.connection(host) else {
                    return;
                };
                if connection.reset(id, 7).is_ok() {
                    self.flows.entry((id, host)).or_default().abandoned = true;
                }
            }
            Operation::Stop { host, stream } => {
                let Some(id) = self.stream(stream) else {
                    return;
                };
                let Some(connection) = self.connection(host) else {
                    return;
                };
                if connection.stop_sending(id, 8).is_ok() {
                    self.flows.entry((id, 1 - host)).or_default().abandoned = true;
                }
            }
            Operation::Prioritize {
                host,
                stream,
                priority,
            } => {
                let Some(id) = self.stream(stream) else {
                    return;
                };
                let Some(connection) = self.connection(host) else {
                    return;
                };
                connection.set_priority(id, priority.into());
            }
            Operation::Read { host } => self.read(host),
            Operation::Faults {
                loss,
                duplication,
                corruption,
                reordering,
            } => {
                self.set_faults(FaultSettings {
                    loss: percent(loss),
                    duplication: percent(duplication),
                    corruption: percent(corruption),
                    reordering: Reordering {
                        probability: percent(reordering),
                        delay: Duration::from_micros(300),
                    },
                    ..Default::default()
                });
            }
            Operation::Mark { percent: value } => {
                for pipe in &mut self.world.egress_ports {
                    pipe.set_rules(vec![Rule::mark_randomly(percent(value))]);
                }
            }
            Operation::Blackout { micros } => {
                let before = self.world.egress_ports[0].faults().unwrap().settings();
                self.set_faults(FaultSettings {
                    down: true,
                    ..before
                });
                self.world.run_for(Duration::from_micros(micros));
                self.set_faults(before);
            }
            // It stays so to the end: a path MTU with 1200 bytes of payload must be enough.
            Operation::PathMtu { direction, bytes } => {
                self.world.egress_ports[direction].set_mtu(ByteSize::from_bytes(bytes));
            }
            Operation::InterfaceMtu { host, bytes } => self.world.set_interface_mtu(host, bytes),
            Operation::PacketSize { host, bytes } => {
                if let Some(connection) = self.connection(host) {
                    let policy = PacketSizePolicy::Fixed(ByteSize::from_bytes(bytes));
                    connection.set_packet_size_policy(policy).unwrap();
                }
            }
            Operation::Interface => self.add_interface(),
            Operation::NoInterface { index } => self.remove_interface(index),
            Operation::Move { path } => {
                let now = self.world.now;
                if let Some(connection) = self.connection(CLIENT) {
                    let paths = connection.stats().paths;
                    let path = paths[path % paths.len()].id;
                    // Not every path is validated.
                    let _ = connection.move_to(now, path, MoveCause::Requested);
                }
            }
            Operation::Rebind { port } => self.rebind(port),
            Operation::Nat { port } => {
                self.world.nat = Some(SocketAddr::from(([10, 0, 0, 1], port)));
            }
            Operation::Copies { micros } => {
                let elsewhere = SocketAddr::from(([10, 0, 0, 66], 6666));
                self.world.copies_from = Some(elsewhere);
                self.world.run_for(Duration::from_micros(micros));
                self.world.copies_from = None;
            }
            Operation::Dark { way, micros } => {
                let before = self.world.egress_ports[0].faults().unwrap().settings();
                let down = FaultSettings {
                    down: true,
                    ..before
                };
                self.set_way(way, down);
                self.world.run_for(Duration::from_micros(micros));
                self.set_way(way, before);
            }
            Operation::UpdateKeys { host } => {
                let now = self.world.now;
                if let Some(connection) = self.connection(host) {
                    // Most come too soon after the last one.
                    let _ = connection.update_keys(now);
                }
            }
            Operation::Datagram { host, length } => {
                if let Some(connection) = self.connection(host)
                    && !connection.is_closed()
                {
                    // Fewer bytes fit while the path carries only the smallest packets.
                    let length = length.min(connection.max_datagram_size().unwrap());
                    let data = vec![length as u8; length];
                    connection.send_datagram(data.into()).unwrap();
                }
            }
            Operation::Close { host } => {
                let now = self.world.now;
                if let Some(connection) = self.connection(host) {
                    connection.close(now, 1, b"");
                    self.closed = true;
                }
            }
        }
    }

    fn set_faults(&mut self, settings: FaultSettings) {
        let now = self.world.now;
        let spare = self.world.spare_pipes.iter_mut().flatten();
        for pipe in self.world.egress_ports.iter_mut().chain(spare) {
            pipe.set_faults(now, settings);
        }
    }

    fn set_way(&mut self, way: usize, settings: FaultSettings) {
        let now = self.world.now;
        let ways = std::iter::once(&mut self.world.egress_ports).chain(&mut self.world.spare_pipes);
        for pipe in ways.skip(way).take(1).flatten() {
            pipe.set_faults(now, settings);
        }
    }

    fn add_interface(&mut self) {
        if self.world.spare_pipes.len() < 2 {
            let address = self.world.add_interface();
            let now = self.world.now;
            if let Some(connection) = self.connection(CLIENT) {
                connection.add_local_address(now, address);
            }
        }
    }

    /// Removes one of the client's addresses, but not the last one, and not one without an
    /// alternative path.
    fn remove_interface(&mut self, index: usize) {
        let now = self.world.now;
        let addresses = &self.world.hosts[CLIENT].addresses;
        let Some(&address) = addresses.get(index).filter(|_| addresses.len() > 1) else {
            return;
        };
        let Some(connection) = self.connection(CLIENT) else {
            return;
        };
        connection.remove_local_address(now, address);
        if connection.stats().paths[0].local != Some(address) {
            self.world.hosts[CLIENT].addresses.remove(index);
        }
    }

    fn rebind(&mut self, port: u16) {
        let now = self.world.now;
        let Some(connection) = self.connection(CLIENT) else {
            return;
        };
        let Some(old) = connection.stats().paths[0].local else {
            return;
        };
        let new = SocketAddr::new(old.ip(), port);
        if connection.rebind(now, new).is_ok() {
            for address in &mut self.world.hosts[CLIENT].addresses {
                if *address == old {
                    *address = new;
                }
            }
        }
    }

    fn open(&mut self, host: usize, unidirectional: bool) {
        let direction = if unidirectional {
            Direction::Unidirectional
        } else {
            Direction::Bidirectional
        };
        if let Some(id) = self
            .connection(host)
            .and_then(|connection| connection.open(direction))
        {
            self.streams.push(id);
            if self.streams.len() > 8 {
                self.streams.remove(0);
            }
        }
    }

    fn write(&mut self, host: usize, stream: usize, length: usize) {
        let Some(id) = self.stream(stream) else {
            return;
        };
        let begin = self.flows.get(&(id, host)).map_or(0, |flow| flow.written);
        let data: Vec<u8> = (begin..begin + length as u64)
            .map(|offset| byte_at(id, host, offset))
            .collect();
        let Some(connection) = self.connection(host) else {
            return;
        };
        if let Ok(count) = connection.write(id, &data) {
            self.flows.entry((id, host)).or_default().written += count as u64;
        }
    }

    fn read(&mut self, host: usize) {
        let Some(connection) = self.world.hosts[host]
            .connections
            .get_mut(&self.handles[host])
        else {
            return;
        };
        while let Some(data) = connection.read_datagram() {
            assert!(data.iter().all(|byte| *byte == data.len() as u8));
        }
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            while let Some(id) = connection.accept(direction) {
                self.flows.entry((id, 1 - host)).or_default();
            }
        }
        for ((id, sender), flow) in &mut self.flows {
            if *sender == host || flow.ended {
                continue;
            }
            loop {
                match connection.read(*id, 10_000) {
                    Ok(Some(bytes)) => {
                        for byte in bytes {
                            assert_eq!(
                                byte,
                                byte_at(*id, *sender, flow.read),
                                "{id} at {}",
                                flow.read
                            );
                            flow.read += 1;
                        }
                        assert!(flow.read <= flow.written);
                    }
                    Ok(None) => {
                        assert!(
                            flow.finished && flow.read == flow.written,
                            "{id} ended at {} of {} (finished: {}, abandoned: {})",
                            flow.read,
                            flow.written,
                            flow.finished,
                            flow.abandoned
                        );
                        flow.ended = true;
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }

    /// Whether the final state is as expected.
    fn is_settled(&self) -> bool {
        if self.closed {
            let mut hosts = self.world.hosts.iter();
            return hosts
                .all(|host| host.connections.is_empty() && host.endpoint.connections() == 0);
        }
        let mut flows = self.flows.values();
        flows.all(|flow| flow.ended || flow.abandoned || !flow.finished)
    }

    /// Makes the network reliable and both applications read: all data must arrive.
    fn settle(&mut self) {
        self.set_faults(FaultSettings::default());
        self.world.copies_from = None;
        for pipe in &mut self.world.egress_ports {
            pipe.set_rules(Vec::new());
        }
        for round in 0..SETTLING_ROUNDS {
            for host in 0..2 {
                self.read(host);
            }
            self.world.run_for(Duration::from_millis(5));
            if !self.waits_long && round >= QUIET_ROUNDS && self.is_settled() {
                break;
            }
        }
        if self.closed {
            assert!(
                self.world
                    .hosts
                    .iter()
                    .all(|host| host.connections.is_empty())
            );
            assert!(
                self.world
                    .hosts
                    .iter()
                    .all(|host| host.endpoint.connections() == 0)
            );
            return;
        }
        let open = |host: usize| {
            self.world.hosts[host]
                .connections
                .contains_key(&self.handles[host])
        };
        assert!(
            open(CLIENT) && open(1),
            "a connection ended by itself: {:?}",
            self.world.hosts.each_ref().map(|host| &host.events)
        );
        for ((id, sender), flow) in &self.flows {
            if flow.finished && !flow.abandoned {
                assert!(
                    flow.ended,
                    "{id} from host {sender}: {} of {}",
                    flow.read, flow.written
                );
            }
        }
    }
}

/// Regression: the path to the server's preferred address stayed at the client's old address, and
/// the connection moved to it later.
#[test]
fn a_rebind_moves_every_path_to_the_new_address() {
    for seed in 0..60 {
        let mut scene = Scene::new(seed);
        scene.apply(&Operation::Step { times: 1 });
        scene.apply(&Operation::Rebind { port: 1024 });
        let connection = scene.connection(CLIENT).unwrap();
        let locals: Vec<_> = connection
            .stats()
            .paths
            .iter()
            .map(|path| path.local)
            .collect();
        assert!(
            locals.windows(2).all(|pair| pair[0] == pair[1]),
            "{locals:?}"
        );
        scene.apply(&Operation::NoInterface { index: 0 });
        scene.settle();
    }
}

/// Regression: a client whose address changed before its handshake was confirmed sent only
/// Handshake packets, for which the server had no keys any more.
#[test]
fn a_client_that_moves_before_handshake_confirmation_is_reached() {
    let mut scene = Scene::new(5_653_005_678_375_339_288);
    let (host, stream, unidirectional) = (CLIENT, 0, false);
    let operations = [
        Operation::Open {
            host,
            unidirectional,
        },
        Operation::Write {
            host,
            stream,
            length: 9_691,
        },
        Operation::Finish { host, stream },
        Operation::Blackout { micros: 4_833 },
        Operation::Nat { port: 1024 },
        Operation::UpdateKeys { host: SERVER },
        Operation::Step { times: 5 },
        Operation::Nat { port: 1025 },
    ];
    for operation in &operations {
        scene.apply(operation);
    }
    scene.settle();
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/interactions.proptest-regressions",
        ))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_operations_settle(
        seed in any::<u64>(),
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        let mut scene = Scene::new(seed);
        for operation in &operations {
            scene.apply(operation);
        }
        scene.settle();
    }
}
