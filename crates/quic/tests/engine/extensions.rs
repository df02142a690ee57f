//! DATAGRAM (RFC 9221), ACK frequency (draft-ietf-quic-ack-frequency-14) and greasing (RFC 9287)
//! between two endpoints over various networks.

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use bytes::Bytes;
use weir_fabric::{FaultSettings, Probability, Reordering, Rule};
use weir_quic::packet::{Header, supported_versions};
use weir_quic::{
    ConnectionHandle, DatagramConfig, Direction, Event, Route, SendDatagramError, TransportConfig,
};
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::Ecn;

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn impaired_link() -> FaultSettings {
    FaultSettings {
        loss: probability(0.02),
        duplication: probability(0.02),
        reordering: Reordering {
            probability: probability(0.05),
            delay: Duration::from_micros(150),
        },
        ..Default::default()
    }
}

fn with_datagrams() -> Plan {
    let mut plan = Plan::default();
    plan.client.datagrams = Some(DatagramConfig::default());
    plan.server.datagrams = Some(DatagramConfig::default());
    plan
}

fn read_all(world: &mut World, host: usize, handle: ConnectionHandle) -> Vec<Bytes> {
    let connection = world.connection(host, handle);
    std::iter::from_fn(|| connection.read_datagram()).collect()
}

fn numbered(number: u32, length: usize) -> Bytes {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(length.max(4), number as u8);
    data.into()
}

fn number_of(datagram: &Bytes) -> u32 {
    u32::from_be_bytes(datagram[..4].try_into().unwrap())
}

#[test]
fn datagrams_arrive_in_both_directions() {
    let mut world = World::new(with_datagrams());
    let ends = world.connected();
    for (from, to) in [
        ((CLIENT, ends.0), (SERVER, ends.1)),
        ((SERVER, ends.1), (CLIENT, ends.0)),
    ] {
        let connection = world.connection(from.0, from.1);
        let max = connection.max_datagram_size().unwrap();
        assert!((1400..1452).contains(&max), "{max}");
        let sent: Vec<_> = [0, 1, 100, max, 7, max - 1, max]
            .map(|length| {
                let data = Bytes::from(pattern(length));
                connection.send_datagram(data.clone()).unwrap();
                data
            })
            .into();
        world.run_for(Duration::from_millis(1));
        let readable = (to.1, Event::DatagramsReadable);
        assert!(world.hosts[to.0].events.contains(&readable));
        assert_eq!(read_all(&mut world, to.0, to.1), sent);
        let sender = world.connection(from.0, from.1).stats().datagrams;
        let receiver = world.connection(to.0, to.1).stats().datagrams;
        assert_eq!((sender.sent, receiver.received), (7, 7));
        assert_eq!(sender.dropped_before_sending, 0);
    }
}

#[test]
fn an_unsendable_datagram_is_rejected_with_the_reason() {
    let mut world = World::new(with_datagrams());
    let client = world.connect();
    let connection = world.connection(CLIENT, client);
    let early = connection.send_datagram(Bytes::new());
    assert_eq!(early, Err(SendDatagramError::NotConnected));
    let (client, _) = world.connected();
    let connection = world.connection(CLIENT, client);
    let max = connection.max_datagram_size().unwrap();
    assert_eq!(
        connection.send_datagram(vec![0; max + 1].into()),
        Err(SendDatagramError::TooLarge { size: max + 1, max })
    );
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    connection.close(now, 0, b"");
    let closed = connection.send_datagram(Bytes::new());
    assert_eq!(closed, Err(SendDatagramError::Closed));

    for (host, error) in [
        (CLIENT, SendDatagramError::Disabled),
        (SERVER, SendDatagramError::UnsupportedByPeer),
    ] {
        let mut plan = with_datagrams();
        plan.client.datagrams = None;
        let mut world = World::new(plan);
        let (client, server) = world.connected();
        let handle = [client, server][host];
        let connection = world.connection(host, handle);
        assert_eq!(connection.max_datagram_size(), None);
        assert_eq!(connection.send_datagram(Bytes::new()), Err(error));
    }
}

#[test]
fn the_peers_maximum_datagram_size_is_respected() {
    let mut plan = with_datagrams();
    plan.server.datagrams = Some(DatagramConfig {
        max_frame_size: ByteSize::from_bytes(103),
        ..DatagramConfig::default()
    });
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let connection = world.connection(CLIENT, client);
    assert_eq!(connection.max_datagram_size(), Some(100));
    connection.send_datagram(vec![1; 100].into()).unwrap();
    world.run_for(Duration::from_millis(1));
    assert_eq!(read_all(&mut world, SERVER, server).len(), 1);
    assert!(world.connection(SERVER, server).is_established());
}

/// Lost datagrams are not sent again, others arrive once, and concurrent streams are complete.
#[test]
fn lost_datagrams_are_not_retransmitted() {
    for seed in 0..5 {
        let mut world = World::new(Plan {
            seed,
            ..with_datagrams()
        });
        let (client, server) = world.connected();
        world.run_for(Duration::from_millis(5));
        let now = world.now;
        world
            .egress_ports
            .iter_mut()
            .for_each(|pipe| pipe.set_faults(now, impaired_link()));
        let mut got = Vec::new();
        for round in 0..200 {
            let connection = world.connection(CLIENT, client);
            for index in 0..5 {
                let data = numbered(round * 5 + index, 600);
                connection.send_datagram(data).unwrap();
            }
            world.run_for(Duration::from_micros(200));
            got.extend(read_all(&mut world, SERVER, server));
        }
        let data = pattern(200_000);
        let limit = Duration::from_secs(10);
        let (from, to) = ((CLIENT, client), (SERVER, server));
        assert!(world.transfer(from, to, &data, limit) == Some(data));
        got.extend(read_all(&mut world, SERVER, server));
        let mut numbers: Vec<_> = got.iter().map(number_of).collect();
        assert!((900..1000).contains(&numbers.len()), "{}", numbers.len());
        numbers.sort_unstable();
        assert!(
            numbers.windows(2).all(|pair| pair[0] < pair[1]),
            "one came twice"
        );
        assert!(
            got.iter()
                .all(|data| *data == numbered(number_of(data), 600))
        );
        let stats = world.connection(CLIENT, client).stats().datagrams;
        assert_eq!((stats.sent, stats.dropped_before_sending), (1000, 0));
    }
}

#[test]
fn datagrams_wait_for_the_window_and_the_oldest_are_dropped() {
    let mut plan = with_datagrams();
    plan.rate = Rate::from_bits_per_second(100_000_000);
    plan.rules = vec![Rule::tail_drop(ByteSize::from_bytes(60_000))];
    plan.client.datagrams = Some(DatagramConfig {
        send_buffer: ByteSize::from_kib(64),
        ..DatagramConfig::default()
    });
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let mut got = Vec::new();
    let mut window = ByteSize::ZERO;
    for number in 0..2_000 {
        let connection = world.connection(CLIENT, client);
        connection.send_datagram(numbered(number, 1_000)).unwrap();
        world.transmit();
        let path = &world.connection(CLIENT, client).stats().paths[0];
        // Packets in flight when the window is reduced stay in flight.
        window = window.max(path.window);
        assert!(path.in_flight <= window, "{path:?}");
        // 400 Mbit/s into 100.
        world.run_for(Duration::from_micros(20));
        got.extend(read_all(&mut world, SERVER, server));
    }
    world.run_for(Duration::from_millis(50));
    got.extend(read_all(&mut world, SERVER, server));
    let stats = world.connection(CLIENT, client).stats().datagrams;
    assert_eq!(stats.sent + stats.dropped_before_sending, 2_000);
    assert!(stats.dropped_before_sending > 1_000, "{stats:?}");
    assert!(got.len() > 300, "{}", got.len());
    assert_eq!(got.last().map(number_of), Some(1_999), "the newest is sent");
}

#[test]
fn unread_datagrams_are_bounded() {
    let mut plan = with_datagrams();
    plan.server.datagrams = Some(DatagramConfig {
        receive_buffer: ByteSize::from_bytes(10 * (500 + 64)),
        ..DatagramConfig::default()
    });
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    for number in 0..100 {
        let connection = world.connection(CLIENT, client);
        connection.send_datagram(numbered(number, 500)).unwrap();
    }
    world.run_for(Duration::from_millis(5));
    let got: Vec<_> = read_all(&mut world, SERVER, server)
        .iter()
        .map(number_of)
        .collect();
    assert_eq!(got, (90..100).collect::<Vec<_>>());
    let stats = world.connection(SERVER, server).stats().datagrams;
    assert_eq!((stats.received, stats.dropped_before_reading), (100, 90));
    let events = &world.hosts[SERVER].events;
    let readable = events
        .iter()
        .filter(|(_, event)| *event == Event::DatagramsReadable);
    assert_eq!(readable.count(), 1, "one event stands for all that wait");
}

/// Returns the receiver's ACK-only packets and the duration of a transfer of so many bytes.
fn ack_packets(plan: Plan, length: usize) -> (u64, u64, Duration) {
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let begun = world.now;
    let data = pattern(length);
    let limit = Duration::from_secs(120);
    let (from, to) = ((CLIENT, client), (SERVER, server));
    assert!(
        world
            .transfer(from, to, &data, limit)
            .is_some_and(|got| got == data)
    );
    let took = world.now.since(begun);
    let stats = world.connection(SERVER, server).stats();
    (stats.ack_packets_sent, stats.ack_requests, took)
}

fn wide_area(ack_frequency: bool) -> Plan {
    let mut plan = Plan {
        rate: Rate::from_bits_per_second(200_000_000),
        delay: Duration::from_millis(10),
        rules: vec![Rule::tail_drop(ByteSize::from_bytes(500_000))],
        client: TransportConfig::wan(),
        server: TransportConfig::wan(),
        ..Plan::default()
    };
    plan.client.ack_frequency = ack_frequency;
    plan
}

#[test]
fn a_peer_follows_the_requested_ack_frequency() {
    let (before, asked, took_before) = ack_packets(wide_area(false), 20_000_000);
    assert_eq!(asked, 0);
    let (after, asked, took_after) = ack_packets(wide_area(true), 20_000_000);
    assert!((1..100).contains(&asked), "{asked}");
    assert!(after * 4 < before, "{after} of {before}");
    assert!(
        took_after < took_before + took_before / 40,
        "{took_after} {took_before}"
    );
}

/// Nor much good: receive batches and gathering make few ACKs there already, so requests are off.
#[test]
fn ack_frequency_requests_do_not_slow_data_center_transfers() {
    let plan = |ack_frequency| {
        let mut plan = Plan::default();
        plan.client.ack_frequency = ack_frequency;
        plan
    };
    let (_, _, took_before) = ack_packets(plan(false), 20_000_000);
    let (_, asked, took_after) = ack_packets(plan(true), 20_000_000);
    assert!(asked > 0);
    assert!(
        took_after < took_before + took_before / 20,
        "{took_after} {took_before}"
    );
}

#[test]
fn ack_frequency_requests_survive_loss_and_reordering() {
    for seed in 0..5 {
        let mut plan = Plan {
            seed,
            faults: impaired_link(),
            ..Plan::default()
        };
        plan.client.ack_frequency = true;
        plan.server.ack_frequency = true;
        let (_, asked, _) = ack_packets(plan, 300_000);
        assert!(asked > 0);
    }
}

/// A probe requests its ACK at once: the ACK is not delayed.
#[test]
fn a_probe_is_acknowledged_without_delay() {
    let mut plan = Plan::default();
    plan.server.max_ack_delay = Duration::from_millis(100);
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(500));
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.write(id, b"lost").unwrap();
    let now = world.now;
    let down = FaultSettings {
        down: true,
        ..Default::default()
    };
    world.egress_ports[CLIENT].set_faults(now, down);
    world.run_for(Duration::from_micros(200));
    let now = world.now;
    world.egress_ports[CLIENT].set_faults(now, FaultSettings::default());
    let probes = world.connection(CLIENT, client).stats().probe_timeouts;
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.connection(CLIENT, client).stats().probe_timeouts > probes
    }));
    let probed = world.now;
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.connection(CLIENT, client).stats().paths[0]
            .in_flight
            .is_zero()
    }));
    let took = world.now.since(probed);
    assert!(took < Duration::from_millis(1), "acknowledged after {took}");
    assert!(world.connection(SERVER, server).is_established());
}

#[test]
fn the_fixed_bit_is_greased_only_if_both_sides_allow_it() {
    for (client, server, greased) in [
        (true, true, true),
        (true, false, false),
        (false, true, false),
    ] {
        let mut plan = Plan::default();
        plan.client.grease_quic_bit = client;
        plan.server.grease_quic_bit = server;
        let mut world = World::new(plan);
        let (client, server) = world.connected();
        let data = pattern(500_000);
        let ends = [(CLIENT, client), (SERVER, server)];
        let limit = Duration::from_secs(1);
        assert!(world.transfer(ends[0], ends[1], &data, limit).as_deref() == Some(&data[..]));
        assert!(world.transfer(ends[1], ends[0], &data, limit).as_deref() == Some(&data[..]));
        for host in &world.hosts {
            let all: u64 = host.arrived.values().sum();
            let share = host.arrived_greased as f64 / all as f64;
            if greased {
                assert!((0.4..0.6).contains(&share), "{share}");
            } else {
                assert_eq!(host.arrived_greased, 0);
            }
        }
    }
}

#[test]
fn version_negotiation_lists_a_reserved_version() {
    let mut world = World::new(Plan::default());
    let remote = world.hosts[CLIENT].addresses[0];
    let mut datagram = vec![0xc0, 0xba, 0xbe, 0, 0, 8, 1, 1, 1, 1, 1, 1, 1, 1, 0];
    datagram.resize(1200, 0);
    let now = world.now;
    let endpoint = &mut world.hosts[SERVER].endpoint;
    let route = endpoint.route(now, remote, None, Ecn::NotEct, &mut datagram);
    let Route::Reply(reply) = route else {
        panic!("{route:?}");
    };
    let header = Header::decode(&reply, 0).unwrap();
    let versions: Vec<_> = supported_versions(&reply, &header).collect();
    assert!(versions.contains(&1));
    let reserved = versions
        .iter()
        .filter(|version| **version & 0x0f0f_0f0f == 0x0a0a_0a0a);
    assert_eq!(reserved.count(), 1, "{versions:x?}");
}
