//! The size of packets over a simulated network: probes, black holes, negotiation, policies.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod world;

use weir_fabric::{FaultSettings, Probability, Rule};
use weir_quic::{
    ConnectionHandle, Direction, MtuPhase, PacketSizePolicy, PathSnapshot, StreamId,
    TransportConfig,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use world::{CLIENT, Plan, SERVER, World, pattern};

/// IPv4 and UDP headers.
const HEADERS: u64 = 28;

fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

fn data_center(packet_size: u64) -> TransportConfig {
    TransportConfig {
        packet_size: bytes(packet_size),
        ..TransportConfig::data_center()
    }
}

fn plan(transport: TransportConfig) -> Plan {
    Plan {
        client: transport.clone(),
        server: transport,
        ..Plan::default()
    }
}

fn wan_plan() -> Plan {
    Plan {
        rate: Rate::from_mbps(100),
        delay: Duration::from_millis(20),
        ..plan(TransportConfig::wan())
    }
}

/// Both directions carry IP packets of this size.
fn set_path_mtu(world: &mut World, mtu: u64) {
    for pipe in &mut world.pipes {
        pipe.set_mtu(bytes(mtu));
    }
}

fn path(world: &mut World, host: usize, handle: ConnectionHandle) -> PathSnapshot {
    world.connection(host, handle).stats().paths.swap_remove(0)
}

fn probe_timeout(path: &PathSnapshot, transport: &TransportConfig) -> Duration {
    path.smoothed_rtt
        + (path.rtt_variation * 4).max(transport.granularity)
        + transport.max_ack_delay
}

/// A stream from one host to the other, and when its data arrived.
struct Flow {
    from: (usize, ConnectionHandle),
    to: (usize, ConnectionHandle),
    id: StreamId,
    accepted: Option<StreamId>,
    data: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    ended: bool,
    heard: Time,
    longest_silence: Duration,
}

impl Flow {
    fn new(
        world: &mut World,
        from: (usize, ConnectionHandle),
        to: (usize, ConnectionHandle),
        length: usize,
    ) -> Self {
        let direction = Direction::Unidirectional;
        let id = world.connection(from.0, from.1).open(direction).unwrap();
        Self {
            from,
            to,
            id,
            accepted: None,
            data: pattern(length),
            written: 0,
            received: Vec::new(),
            ended: false,
            heard: world.now,
            longest_silence: Duration::ZERO,
        }
    }

    /// Writes and reads what can be; `true` at the end.
    fn poll(&mut self, world: &mut World) -> bool {
        let sender = world.connection(self.from.0, self.from.1);
        while self.written < self.data.len() {
            match sender.write(self.id, &self.data[self.written..]) {
                Ok(count) => self.written += count,
                Err(_) => break,
            }
            if self.written == self.data.len() {
                sender.finish(self.id).unwrap();
            }
        }
        world.transmit();
        let now = world.now;
        let receiver = world.connection(self.to.0, self.to.1);
        self.accepted = self
            .accepted
            .or_else(|| receiver.accept(Direction::Unidirectional));
        let Some(id) = self.accepted else {
            return false;
        };
        while !self.ended {
            match receiver.read(id, usize::MAX) {
                Ok(Some(bytes)) => {
                    self.received.extend_from_slice(&bytes);
                    self.longest_silence = self.longest_silence.max(now.since(self.heard));
                    self.heard = now;
                }
                Ok(None) => self.ended = true,
                Err(_) => break,
            }
        }
        // Limits that reading raised.
        world.transmit();
        self.ended
    }

    /// Runs until `received` bytes have arrived.
    fn run_to(&mut self, world: &mut World, received: usize, limit: Duration) {
        let arrived = world.run_until(limit, |world| {
            self.poll(world);
            self.received.len() >= received
        });
        assert!(arrived, "{} of {received} bytes", self.received.len());
        assert_eq!(self.received, self.data[..self.received.len()]);
    }
}

/// The path shrinks to 1,400 bytes in the middle of a transfer: the longest silence after that, the
/// probe timeout before it, and what the sender's path is like in the end.
fn shrink_in_transfer(plan: Plan, sender: usize) -> (Duration, Duration, PathSnapshot) {
    let transport = plan.client.clone();
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let ends = [(CLIENT, client), (SERVER, server)];
    let (from, to) = (ends[sender], ends[1 - sender]);
    let mut flow = Flow::new(&mut world, from, to, 3_000_000);
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(60));
    let before = path(&mut world, from.0, from.1);
    assert!(before.mtu.bytes() >= 1452, "{}", before.mtu);
    set_path_mtu(&mut world, 1400);
    flow.longest_silence = Duration::ZERO;
    flow.run_to(&mut world, 3_000_000, Duration::from_secs(60));
    world.run_for(Duration::from_secs(1));
    let after = path(&mut world, from.0, from.1);
    assert_eq!(after.black_holes, 1);
    assert!(after.mtu.bytes() + HEADERS <= 1400, "{}", after.mtu);
    (
        flow.longest_silence,
        probe_timeout(&before, &transport),
        after,
    )
}

#[test]
fn a_data_center_path_that_shrinks_is_survived_within_ten_probe_timeouts() {
    for size in [1452, 8972, 65_000] {
        for sender in [CLIENT, SERVER] {
            let (silence, pto, after) = shrink_in_transfer(plan(data_center(size)), sender);
            assert!(silence < pto * 10, "{size}: {silence}, PTO {pto}");
            assert!(after.mtu.bytes() > 1300, "{}", after.mtu);
        }
    }
}

#[test]
fn loss_on_top_of_it_changes_nothing() {
    for seed in 0..30 {
        let faults = FaultSettings {
            loss: Probability::new(0.02).unwrap(),
            jitter: Duration::from_micros(20),
            ..FaultSettings::default()
        };
        let size = [1452, 8972][seed as usize % 2];
        let plan = Plan {
            seed,
            faults,
            ..plan(data_center(size))
        };
        let (silence, pto, _) = shrink_in_transfer(plan, seed as usize / 2 % 2);
        assert!(silence < pto * 10, "seed {seed}: {silence}, PTO {pto}");
    }
}

#[test]
fn a_wide_area_path_that_shrinks_is_survived_within_two_seconds() {
    for sender in [CLIENT, SERVER] {
        let (silence, _, _) = shrink_in_transfer(wan_plan(), sender);
        assert!(silence < Duration::from_secs(2), "{silence}");
    }
}

/// Single full packets back and forth, until the path shrinks to 1,400 bytes: how long the next one
/// takes, and the probe timeout before it.
fn shrink_between_packets(plan: Plan) -> (Duration, Duration) {
    let transport = plan.client.clone();
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let (from, to) = ((CLIENT, client), (SERVER, server));
    let transfer = |world: &mut World| {
        let mut flow = Flow::new(world, from, to, 1400);
        flow.run_to(world, 1400, Duration::from_secs(10));
        flow.longest_silence
    };
    (0..20).for_each(|_| {
        transfer(&mut world);
    });
    let before = path(&mut world, CLIENT, client);
    assert_eq!(before.mtu, bytes(1452));
    set_path_mtu(&mut world, 1400);
    let silence = transfer(&mut world);
    assert_eq!(path(&mut world, CLIENT, client).black_holes, 1);
    (silence, probe_timeout(&before, &transport))
}

#[test]
fn a_path_that_shrinks_between_single_packets_is_survived() {
    let (silence, pto) = shrink_between_packets(plan(data_center(1452)));
    assert!(silence < pto * 10, "{silence}, PTO {pto}");
    for millis in [5, 20, 75] {
        let (silence, _) = shrink_between_packets(Plan {
            delay: Duration::from_millis(millis),
            ..wan_plan()
        });
        assert!(silence < Duration::from_secs(2), "{millis} ms: {silence}");
    }
}

#[test]
fn a_handshake_over_a_small_path_ends_whatever_the_operator_says() {
    for size in [1452, 8972, 65_000] {
        for sender in [CLIENT, SERVER] {
            let mut world = World::new(plan(data_center(size)));
            set_path_mtu(&mut world, 1400);
            let (client, server) = world.connected();
            // The first data leave in large packets.
            let ends = [(CLIENT, client), (SERVER, server)];
            let mut flow = Flow::new(&mut world, ends[sender], ends[1 - sender], 200_000);
            flow.run_to(&mut world, 200_000, Duration::from_secs(10));
            let pto = Duration::from_millis(1);
            assert!(
                flow.longest_silence < pto * 10,
                "{size}: {}",
                flow.longest_silence
            );
            assert!(world.now < Time::from_nanos(1_000_000_000) + Duration::from_millis(100));
        }
    }
}

#[test]
fn a_size_that_the_peer_accepts_and_the_path_does_not_carry_is_left() {
    let mut world = World::new(plan(data_center(8972)));
    set_path_mtu(&mut world, 1500);
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 1_000_000);
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(10));
    world.run_for(Duration::from_millis(100));
    let path = path(&mut world, CLIENT, client);
    assert_eq!(path.mtu, bytes(1472));
    assert_eq!(path.carried, bytes(1472));
    assert_eq!(path.mtu_limit, bytes(8972));
    assert_eq!(path.black_holes, 1);
}

#[test]
fn the_wide_area_profile_probes_for_ethernet() {
    let mut world = World::new(wan_plan());
    let (client, server) = world.connected();
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(1200));
    world.run_for(Duration::from_secs(2));
    for (host, handle) in [(CLIENT, client), (SERVER, server)] {
        let path = path(&mut world, host, handle);
        assert_eq!(path.mtu, bytes(1452));
        assert_eq!(path.mtu_phase, MtuPhase::SearchComplete);
        assert_eq!((path.mtu_probes_sent, path.mtu_probes_lost), (2, 0));
    }
}

#[test]
fn the_data_center_profile_probes_only_if_asked() {
    let mut world = World::new(plan(TransportConfig::data_center()));
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 1_000_000);
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(10));
    let path = path(&mut world, CLIENT, client);
    assert_eq!((path.mtu, path.mtu_probes_sent), (bytes(1452), 0));
}

fn probing_to(limit: u64) -> TransportConfig {
    TransportConfig {
        probe_up_to: Some(bytes(limit)),
        ..TransportConfig::data_center()
    }
}

#[test]
fn probes_find_jumbo_frames_beside_a_full_window() {
    let mut world = World::new(Plan {
        rate: Rate::from_gbps(1),
        rules: vec![Rule::tail_drop(bytes(200_000))],
        ..plan(probing_to(8972))
    });
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 2_000_000);
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(10));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));
}

#[test]
fn lost_probes_do_not_touch_the_window() {
    let mut world = World::new(plan(probing_to(8972)));
    set_path_mtu(&mut world, 1500);
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 3_000_000);
    flow.run_to(&mut world, 3_000_000, Duration::from_secs(10));
    let path = path(&mut world, CLIENT, client);
    assert!(path.mtu_probes_lost >= 3, "{}", path.mtu_probes_lost);
    assert_eq!(path.mtu, bytes(1472));
    assert_eq!((path.congestion_events, path.black_holes), (0, 0));
}

#[test]
fn packets_grow_when_the_path_heals() {
    let transport = TransportConfig {
        probe_interval: Duration::from_secs(1),
        ..TransportConfig::data_center()
    };
    let mut world = World::new(plan(transport));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    set_path_mtu(&mut world, 1300);
    let mut flow = Flow::new(&mut world, ends.0, ends.1, 500_000);
    flow.run_to(&mut world, 500_000, Duration::from_secs(10));
    world.run_for(Duration::from_millis(100));
    assert!(path(&mut world, CLIENT, client).mtu.bytes() <= 1272);
    set_path_mtu(&mut world, 1500);
    world.run_for(Duration::from_secs(2));
    // An idle connection is not woken for it; one in use sends probes.
    assert!(path(&mut world, CLIENT, client).mtu.bytes() <= 1272);
    let mut flow = Flow::new(&mut world, ends.0, ends.1, 500_000);
    flow.run_to(&mut world, 500_000, Duration::from_secs(10));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(1452));
}

#[test]
fn an_interface_that_refuses_large_packets_costs_no_time() {
    let mut world = World::new(plan(data_center(8972)));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    let mut flow = Flow::new(&mut world, ends.0, ends.1, 5_000_000);
    flow.run_to(&mut world, 500_000, Duration::from_secs(10));
    flow.longest_silence = Duration::ZERO;
    world.hosts[CLIENT].largest_sent = 1472;
    flow.run_to(&mut world, 5_000_000, Duration::from_secs(10));
    world.run_for(Duration::from_millis(100));
    let path = path(&mut world, CLIENT, client);
    assert!((1400..=1472).contains(&path.mtu.bytes()), "{}", path.mtu);
    assert_eq!(path.probe_timeouts, 0);
    assert!(flow.longest_silence < Duration::from_millis(1));
}

#[test]
fn congestion_is_no_black_hole() {
    for seed in 0..20 {
        for queue in [20_000, 60_000] {
            let mut world = World::new(Plan {
                seed,
                rate: Rate::from_mbps(500),
                rules: vec![Rule::tail_drop(bytes(queue))],
                faults: FaultSettings {
                    loss: Probability::new(0.01).unwrap(),
                    ..FaultSettings::default()
                },
                ..plan(data_center(1452))
            });
            let (client, server) = world.connected();
            let ends = ((CLIENT, client), (SERVER, server));
            for length in [2_000_000, 20_000, 5_000, 20_000, 1_500, 50_000] {
                let mut flow = Flow::new(&mut world, ends.0, ends.1, length);
                flow.run_to(&mut world, length, Duration::from_secs(10));
            }
            let path = path(&mut world, CLIENT, client);
            assert!(path.packets_lost > 0);
            assert_eq!(path.black_holes, 0, "seed {seed}, queue {queue}");
        }
    }
}

/// A queue with room for a small packet and none for a full one looks like a black hole now and
/// then; it must be rare, and must not last.
#[test]
fn incast_is_hardly_ever_a_black_hole() {
    for size in [1452, 8972] {
        let mut world = World::new(Plan {
            rate: Rate::from_gbps(1),
            rules: vec![Rule::tail_drop(bytes(100_000))],
            ..plan(data_center(size))
        });
        let connections: Vec<_> = (0..16).map(|_| world.connected()).collect();
        let mut flows: Vec<_> = connections
            .iter()
            .map(|&(client, server)| {
                Flow::new(&mut world, (SERVER, server), (CLIENT, client), 300_000)
            })
            .collect();
        assert!(world.run_until(Duration::from_secs(10), |world| {
            flows
                .iter_mut()
                .fold(true, |ended, flow| flow.poll(world) && ended)
        }));
        let paths: Vec<_> = connections
            .iter()
            .map(|&(_, server)| path(&mut world, SERVER, server))
            .collect();
        let lost: u64 = paths.iter().map(|path| path.packets_lost).sum();
        let alarms: u64 = paths.iter().map(|path| path.black_holes).sum();
        assert!(lost > 300, "{size}: {lost}");
        assert!(
            alarms * 100 < lost,
            "{size}: {alarms} alarms at {lost} losses"
        );
        // One that was false has healed soon after.
        world.run_for(Duration::from_millis(100));
        for &(_, server) in &connections {
            let carried = path(&mut world, SERVER, server).carried.bytes();
            assert!(carried * 10 >= size * 9, "{carried} of {size}");
        }
    }
}

#[test]
fn the_papers_rule_follows_the_size_of_the_task() {
    let transport = TransportConfig {
        packet_size_policy: PacketSizePolicy::ByTask,
        ..data_center(9000)
    };
    let mut world = World::new(plan(transport));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    let mut small = Flow::new(&mut world, ends.0, ends.1, 100_000);
    small.run_to(&mut world, 100_000, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));
    let mut large = Flow::new(&mut world, ends.0, ends.1, 3_000_000);
    large.run_to(&mut world, 500_000, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(5000));
    large.run_to(&mut world, 3_000_000, Duration::from_secs(1));
    world.run_for(Duration::from_millis(2));
    let mut small = Flow::new(&mut world, ends.0, ends.1, 100_000);
    small.run_to(&mut world, 100_000, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));

    // Declared, a large task has its packets from the first byte on.
    world
        .connection(CLIENT, client)
        .set_task_size(Some(bytes(1_000_000)));
    let mut large = Flow::new(&mut world, ends.0, ends.1, 1_000_000);
    large.run_to(&mut world, 100, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(5000));
}

#[test]
fn a_fixed_size_holds_as_far_as_the_path_goes() {
    let mut world = World::new(plan(data_center(8972)));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    for (size, expected) in [(5000, 5000), (20_000, 8972)] {
        world
            .connection(CLIENT, client)
            .set_packet_size_policy(PacketSizePolicy::Fixed(bytes(size)))
            .unwrap();
        let mut flow = Flow::new(&mut world, ends.0, ends.1, 100_000);
        flow.run_to(&mut world, 100_000, Duration::from_secs(1));
        assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(expected));
    }
    let wrong = PacketSizePolicy::Fixed(bytes(1199));
    let connection = world.connection(CLIENT, client);
    assert!(connection.set_packet_size_policy(wrong).is_err());
}

#[test]
fn sizes_that_no_packet_may_have_are_refused() {
    let probing = |size| TransportConfig {
        probe_up_to: Some(bytes(size)),
        ..TransportConfig::wan()
    };
    let error = probing(1199).validate().unwrap_err().to_string();
    assert!(error.contains("probe_up_to is 1.199KB"), "{error}");
    assert!(probing(65_528).validate().is_err());
    assert_eq!(probing(9000).validate(), Ok(()));
    let fixed = TransportConfig {
        packet_size_policy: PacketSizePolicy::Fixed(bytes(100)),
        ..TransportConfig::wan()
    };
    let error = fixed.validate().unwrap_err().to_string();
    assert!(error.contains("packet_size_policy"), "{error}");
}
