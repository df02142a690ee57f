//! Peers that are gone, slow or out of reach: keep-alive, unanswered probes, ICMP.

use crate::world::{CLIENT, Plan, SERVER, World};
use weir_fabric::{Script, Verdict};
use weir_quic::{ConnectionError, ConnectionHandle, Direction, Executed, StreamId};
use weir_units::Duration;

const ROUND_TRIP: Duration = Duration::from_micros(50);

/// Opens a stream with a short request.
fn request(world: &mut World, client: ConnectionHandle) -> StreamId {
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"request").unwrap();
    connection.finish(id).unwrap();
    id
}

/// Runs until the client's connection is over; returns how long that took and why it is.
fn end_of(world: &mut World, client: ConnectionHandle) -> (Duration, ConnectionError) {
    let begun = world.now;
    let limit = Duration::from_secs(100);
    assert!(world.run_until(limit, |world| world.closed(client).is_some()));
    (world.now.since(begun), world.closed(client).unwrap())
}

/// Drops everything that the client sends from now on.
fn cut_off(world: &mut World) {
    let all = Script::nth((0..10_000).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[CLIENT].set_script(world.now, Some(all));
}

/// A datagram of the client that came back.
fn undelivered(world: &mut World, client: ConnectionHandle) -> Vec<u8> {
    let mut datagram = world.datagram(client);
    // What ICMP quotes may be cut off.
    datagram.truncate(28);
    datagram
}

#[test]
fn a_call_outlives_the_idle_timeout() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let id = request(&mut world, client);
    world.run_for(Duration::from_secs(300));
    assert_eq!(world.closed(client), None);
    let connection = world.connection(SERVER, server);
    assert_eq!(connection.accept(Direction::Bidirectional), Some(id));
    connection.write(id, b"response").unwrap();
    connection.finish(id).unwrap();
    world.run_for(Duration::from_millis(1));
    let read = world.connection(CLIENT, client).read(id, 100).unwrap();
    assert_eq!(read.as_deref(), Some(&b"response"[..]));
}

#[test]
fn a_connection_without_streams_still_ends_at_the_idle_timeout() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let id = request(&mut world, client);
    world.run_for(Duration::from_secs(100));
    let connection = world.connection(SERVER, server);
    assert_eq!(connection.accept(Direction::Bidirectional), Some(id));
    connection.finish(id).unwrap();
    while connection.read(id, 100).unwrap().is_some() {}
    world.run_for(Duration::from_millis(1));
    while (world.connection(CLIENT, client).read(id, 100).unwrap()).is_some() {}
    let (_, error) = end_of(&mut world, client);
    assert!(matches!(error, ConnectionError::IdleTimeout(_)), "{error}");
}

#[test]
fn a_stream_that_lasts_with_the_connection_keeps_it_not_alive() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    let id = request(&mut world, client);
    world.connection(CLIENT, client).set_lasting(id);
    let (_, error) = end_of(&mut world, client);
    assert!(matches!(error, ConnectionError::IdleTimeout(_)), "{error}");
}

#[test]
fn a_short_idle_timeout_of_the_server_does_not_end_a_call() {
    let mut plan = Plan::default();
    plan.server.idle_timeout = Duration::from_millis(300);
    let mut world = World::new(plan);
    let (client, _) = world.connected();
    request(&mut world, client);
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.closed(client), None);
}

#[test]
fn a_server_that_acknowledges_nothing_is_given_up_after_about_a_second() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    cut_off(&mut world);
    request(&mut world, client);
    let (took, error) = end_of(&mut world, client);
    assert_eq!(error, ConnectionError::PeerSilent { probes: 17 });
    assert_eq!(error.executed(), Executed::Maybe);
    let range = Duration::from_millis(800)..Duration::from_millis(1600);
    assert!(range.contains(&took), "{took}");
}

#[test]
fn a_server_that_crashes_under_a_call_is_given_up_after_its_next_question() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    request(&mut world, client);
    world.run_for(Duration::from_millis(100));
    cut_off(&mut world);
    let (took, error) = end_of(&mut world, client);
    assert!(
        matches!(error, ConnectionError::PeerSilent { .. }),
        "{error}"
    );
    assert!(took < Duration::from_millis(2600), "{took}");
}

#[test]
fn a_silent_server_is_not_flooded() {
    let mut plan = Plan::default();
    plan.client.max_probe_timeouts = 0;
    plan.client.keep_alive = Duration::from_millis(10);
    let mut world = World::new(plan);
    let (client, _) = world.connected();
    request(&mut world, client);
    world.run_for(Duration::from_millis(100));
    cut_off(&mut world);
    let sent = |world: &mut World| world.connection(CLIENT, client).stats().totals.packets_sent;
    let before = sent(&mut world);
    world.run_for(Duration::from_secs(10));
    // Two probes every 100 ms, and some more at the beginning.
    let count = sent(&mut world) - before;
    assert!((100..250).contains(&count), "{count} packets");
}

#[test]
fn without_a_limit_of_probes_the_idle_timeout_ends_the_connection() {
    let mut plan = Plan::default();
    plan.client.max_probe_timeouts = 0;
    let mut world = World::new(plan);
    let (client, _) = world.connected();
    cut_off(&mut world);
    request(&mut world, client);
    let (took, error) = end_of(&mut world, client);
    assert!(matches!(error, ConnectionError::IdleTimeout(_)), "{error}");
    assert!(took >= Duration::from_secs(30), "{took}");
}

#[test]
fn after_an_outage_data_arrive_within_the_longest_probe_interval() {
    let mut plan = Plan::default();
    plan.client.max_probe_timeouts = 0;
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    cut_off(&mut world);
    let id = request(&mut world, client);
    world.run_for(Duration::from_secs(7));
    world.egress_ports[CLIENT].set_script(world.now, None);
    let back = world.now;
    assert!(world.run_until(Duration::from_secs(10), |world| {
        let connection = world.connection(SERVER, server);
        connection.accept(Direction::Bidirectional) == Some(id)
    }));
    let took = world.now.since(back);
    assert!(took <= Duration::from_millis(100) + ROUND_TRIP, "{took}");
}

#[test]
fn two_icmp_messages_end_a_call_within_a_round_trip() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    world.run_for(Duration::from_millis(10));
    let id = request(&mut world, client);
    let (now, remote) = (world.now, world.hosts[SERVER].addresses[0]);
    let first = undelivered(&mut world, client);
    assert!(world.connection(CLIENT, client).has_sent(id));
    let connection = world.connection(CLIENT, client);
    assert!(connection.handle_unreachable(now, remote, &first));
    // The same again, before the probe, changes nothing.
    assert!(connection.handle_unreachable(now, remote, &first));
    assert!(!connection.is_closed());
    let probe = undelivered(&mut world, client);
    let connection = world.connection(CLIENT, client);
    assert!(connection.handle_unreachable(now, remote, &probe));
    world.run_for(ROUND_TRIP);
    let executed = Executed::Maybe;
    assert_eq!(
        world.closed(client),
        Some(ConnectionError::PeerUnreachable { executed })
    );
}

#[test]
fn a_peer_that_answers_the_probe_is_not_gone() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    world.run_for(Duration::from_millis(10));
    let remote = world.hosts[SERVER].addresses[0];
    for _ in 0..100 {
        request(&mut world, client);
        let now = world.now;
        let quoted = undelivered(&mut world, client);
        let connection = world.connection(CLIENT, client);
        assert!(connection.handle_unreachable(now, remote, &quoted));
        world.run_for(Duration::from_millis(1));
    }
    assert_eq!(world.closed(client), None);
}

#[test]
fn icmp_about_other_datagrams_is_ignored() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    request(&mut world, client);
    let (now, remote) = (world.now, world.hosts[SERVER].addresses[0]);
    let quoted = undelivered(&mut world, client);
    let elsewhere = "10.9.9.9:1".parse().unwrap();
    let connection = world.connection(CLIENT, client);
    assert!(!connection.handle_unreachable(now, elsewhere, &quoted));
    for length in 0..9 {
        assert!(!connection.handle_unreachable(now, remote, &quoted[..length]));
    }
    for bit in 8..72 {
        let mut other = quoted.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!connection.handle_unreachable(now, remote, &other));
    }
}

#[test]
fn a_handshake_with_nobody_ends_at_once_and_has_executed_nothing() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let (now, remote) = (world.now, world.hosts[SERVER].addresses[0]);
    for _ in 0..2 {
        let quoted = undelivered(&mut world, client);
        let connection = world.connection(CLIENT, client);
        assert!(connection.handle_unreachable(now, remote, &quoted));
    }
    world.run_for(ROUND_TRIP);
    let executed = Executed::No;
    assert_eq!(
        world.closed(client),
        Some(ConnectionError::PeerUnreachable { executed })
    );
}
