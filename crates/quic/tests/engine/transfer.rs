//! Transfers over networks that lose, reorder, duplicate, corrupt, delay and mark packets.

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use weir_fabric::{FaultSettings, Probability, Reordering, Rule};
use weir_quic::{ConnectionError, Direction, Event, Executed};
use weir_units::{ByteSize, Duration, Rate};

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn transfers(plan: Plan, length: usize) -> World {
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let data = pattern(length);
    let ends = [(CLIENT, client), (SERVER, server)];
    let limit = Duration::from_secs(60);
    assert!(world.transfer(ends[0], ends[1], &data, limit).as_deref() == Some(&data[..]));
    assert!(world.transfer(ends[1], ends[0], &data, limit).as_deref() == Some(&data[..]));
    world
}

#[test]
fn a_transfer_over_a_clean_network_completes() {
    let mut plan = Plan::default();
    // A window of a few RTTs: slow start into an endless queue doubles the RTT within one RTT,
    // which no probe timeout can anticipate.
    plan.client.stream_window = ByteSize::from_kib(256);
    plan.server.stream_window = ByteSize::from_kib(256);
    let world = transfers(plan, 3_000_000);
    for host in &world.hosts {
        for connection in host.connections.values() {
            let stats = connection.stats();
            assert_eq!(stats.paths[0].packets_lost, 0, "{stats:?}");
            assert_eq!(stats.probe_timeouts, 0, "{stats:?}");
        }
    }
}

#[test]
fn transfers_of_every_size_complete() {
    for length in [0, 1, 2, 1199, 1200, 1201, 10_000, 65_536] {
        transfers(Plan::default(), length);
    }
}

#[test]
fn loss() {
    for seed in 0..5 {
        let faults = FaultSettings {
            loss: probability(0.05),
            ..Default::default()
        };
        transfers(
            Plan {
                seed,
                faults,
                ..Plan::default()
            },
            300_000,
        );
    }
}

#[test]
fn a_transfer_survives_all_faults_combined() {
    for seed in 0..5 {
        let faults = FaultSettings {
            loss: probability(0.03),
            duplication: probability(0.03),
            corruption: probability(0.02),
            reordering: Reordering {
                probability: probability(0.1),
                delay: Duration::from_micros(200),
            },
            jitter: Duration::from_micros(20),
            ..Default::default()
        };
        transfers(
            Plan {
                seed,
                faults,
                ..Plan::default()
            },
            200_000,
        );
    }
}

#[test]
fn a_transfer_through_a_shallow_queue_completes() {
    let plan = Plan {
        rate: Rate::from_bits_per_second(100_000_000),
        rules: vec![Rule::tail_drop(ByteSize::from_bytes(30_000))],
        ..Plan::default()
    };
    transfers(plan, 1_000_000);
}

#[test]
fn transfers_complete_at_any_packet_size() {
    for size in [1200, 1452, 8972, 16_383, 16_384, 65_000, 65_527] {
        let mut plan = Plan::default();
        plan.client.packet_size = Some(ByteSize::from_bytes(size));
        plan.server.packet_size = Some(ByteSize::from_bytes(size));
        transfers(plan, 500_000);
    }
}

#[test]
fn the_peers_maximum_packet_size_is_respected() {
    let mut plan = Plan::default();
    plan.client.packet_size = Some(ByteSize::from_bytes(9000));
    plan.server.max_udp_payload_size = ByteSize::from_bytes(1300);
    let world = transfers(plan, 100_000);
    for host in &world.hosts {
        for connection in host.connections.values() {
            assert!(connection.stats().paths[0].mtu.bytes() <= 1452);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let faults = FaultSettings {
            loss: probability(0.02),
            jitter: Duration::from_micros(30),
            ..Default::default()
        };
        let world = transfers(
            Plan {
                seed: 9,
                faults,
                ..Plan::default()
            },
            200_000,
        );
        (world.now, format!("{:?}", world.egress_ports[0].counters()))
    };
    assert_eq!(run(), run());
}

#[test]
fn the_application_closes_with_its_code() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let now = world.now;
    world.connection(CLIENT, client).close(now, 42, b"done");
    world.run_for(Duration::from_secs(1));
    let closed = Event::Closed(ConnectionError::PeerApplication {
        code: 42,
        reason: "done".into(),
    });
    assert!(world.hosts[SERVER].events.contains(&(server, closed)));
    assert!(world.hosts.iter().all(|host| host.connections.is_empty()));
    assert!(
        world
            .hosts
            .iter()
            .all(|host| host.endpoint.connections() == 0)
    );
}

#[test]
fn an_idle_connection_times_out() {
    let mut plan = Plan::default();
    plan.client.idle_timeout = Duration::from_millis(100);
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    world.run_for(Duration::from_secs(1));
    let idle = Event::Closed(ConnectionError::IdleTimeout(Duration::from_millis(100)));
    assert!(world.hosts[CLIENT].events.contains(&(client, idle.clone())));
    assert!(world.hosts[SERVER].events.contains(&(server, idle)));
}

#[test]
fn keep_alive_prevents_the_idle_timeout() {
    let mut plan = Plan::default();
    plan.client.idle_timeout = Duration::from_millis(100);
    plan.client.keep_alive = Duration::from_millis(30);
    let mut world = World::new(plan);
    world.connected();
    world.run_for(Duration::from_secs(1));
    assert!(world.hosts.iter().all(|host| host.connections.len() == 1));
}

#[test]
fn an_absent_server_times_the_handshake_out() {
    let mut plan = Plan::default();
    plan.faults.down = true;
    plan.client.handshake_timeout = Duration::from_millis(500);
    let mut world = World::new(plan);
    let client = world.connect();
    world.run_for(Duration::from_secs(1));
    let gone = Event::Closed(ConnectionError::HandshakeTimeout(Duration::from_millis(
        500,
    )));
    assert!(world.hosts[CLIENT].events.contains(&(client, gone)));
    assert_eq!(world.hosts[CLIENT].endpoint.connections(), 0);
}

#[test]
fn a_full_server_refuses_connections() {
    let mut world = World::new(Plan {
        max_connections: 0,
        ..Plan::default()
    });
    let client = world.connect();
    world.run_for(Duration::from_millis(1));
    assert!(world.hosts[SERVER].connections.is_empty());
    let refused = ConnectionError::Refused {
        reason: String::new(),
    };
    assert_eq!(refused.executed(), Executed::No);
    assert_eq!(world.closed(client), Some(refused));
}

#[test]
fn many_concurrent_streams_complete() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let ids: Vec<_> = (0..500)
        .map(|_| {
            world
                .connection(CLIENT, client)
                .open(Direction::Bidirectional)
                .unwrap()
        })
        .collect();
    for id in &ids {
        let connection = world.connection(CLIENT, client);
        connection.write(*id, &id.as_u64().to_be_bytes()).unwrap();
        connection.finish(*id).unwrap();
    }
    world.run_for(Duration::from_millis(10));
    let connection = world.connection(SERVER, server);
    let mut seen = 0;
    while let Some(id) = connection.accept(Direction::Bidirectional) {
        assert_eq!(
            connection.read(id, 100).unwrap().unwrap(),
            id.as_u64().to_be_bytes()[..]
        );
        assert_eq!(connection.read(id, 100).unwrap(), None);
        seen += 1;
    }
    assert_eq!(seen, ids.len());
}
