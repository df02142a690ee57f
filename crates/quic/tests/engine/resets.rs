//! Stateless resets: peers that have lost a connection's state.

use std::net::SocketAddr;

use crate::world::{CLIENT, Plan, SERVER, World};
use proptest::prelude::*;
use weir_quic::{
    ConnectionError, ConnectionHandle, Direction, Endpoint, EndpointConfig, EndpointSecret,
    MoveCause, Route,
};
use weir_units::{Duration, Time};
use weir_wire::Ecn;

const ROUND_TRIP: Duration = Duration::from_micros(50);

/// Replaces the server's endpoint with a new one.
pub(crate) fn restart(world: &mut World, secret: u8) {
    let server = world.server_config();
    let config = EndpointConfig {
        secret: Some(EndpointSecret::new([secret; 32])),
        ..EndpointConfig::default()
    };
    world.hosts[SERVER].endpoint = Endpoint::new(config, Some(server), [55; 32]);
    world.hosts[SERVER].connections.clear();
}

fn send_something(world: &mut World, client: ConnectionHandle) {
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.write(id, &[1; 5000]).unwrap();
}

#[test]
fn a_restarted_server_resets_old_connections_at_once() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    world.run_for(Duration::from_millis(5));
    restart(&mut world, 2);
    send_something(&mut world, client);
    let begun = world.now;
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.closed(client).is_some()
    }));
    assert!(world.now.since(begun) < ROUND_TRIP * 2);
    assert_eq!(world.closed(client), Some(ConnectionError::StatelessReset));
    // Draining: nothing more is sent, then the connection is gone.
    let sent = |world: &World| world.hosts[SERVER].arrived.values().sum::<u64>();
    let before = sent(&world);
    world.run_for(Duration::from_secs(1));
    assert!(sent(&world) <= before + 5, "the packets under way");
    assert_eq!(world.hosts[CLIENT].endpoint.connections(), 0);
    world.connected();
}

#[test]
fn a_stateless_reset_is_recognized_on_any_path() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    let spare = world.add_interface();
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    connection.add_local_address(now, spare);
    world.run_for(Duration::from_millis(5));
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    let paths = connection.stats().paths;
    let path = paths.iter().find(|path| path.local == Some(spare)).unwrap();
    connection
        .move_to(now, path.id, MoveCause::Requested)
        .unwrap();
    world.run_for(Duration::from_millis(5));
    restart(&mut world, 2);
    send_something(&mut world, client);
    world.run_for(Duration::from_millis(5));
    assert_eq!(world.closed(client), Some(ConnectionError::StatelessReset));
}

#[test]
fn a_connection_that_the_peer_closed_is_freed_and_its_late_packets_are_dropped() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    world.run_for(Duration::from_millis(5));
    send_something(&mut world, client);
    let late = world.datagram(client);
    let now = world.now;
    world.connection(CLIENT, client).close(now, 0, b"");
    world.run_for(Duration::from_micros(100));
    assert_eq!(
        world.hosts[SERVER].endpoint.connections(),
        0,
        "freed at once"
    );
    let remote = world.hosts[CLIENT].addresses[0];
    assert!(matches!(world.route(remote, &late), Route::Draining));
    world.run_for(Duration::from_secs(1));
    assert!(
        matches!(world.route(remote, &late), Route::Reply(_)),
        "a stateless reset"
    );
}

#[test]
fn a_server_with_another_secret_cannot_end_connections() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    world.run_for(Duration::from_millis(5));
    restart(&mut world, 3);
    send_something(&mut world, client);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.closed(client), None);
    assert!(world.connection(CLIENT, client).is_established());
}

#[test]
fn resets_between_two_endpoints_do_not_loop() {
    let endpoint = |seed| Endpoint::new(EndpointConfig::default(), None, [seed; 32]);
    let mut endpoints = [endpoint(1), endpoint(2)];
    let remote = SocketAddr::from(([10, 0, 0, 1], 1));
    let mut datagram = vec![0x45; 1200];
    let mut exchanged = 0;
    let now = Time::from_nanos(1_000_000_000);
    while let Route::Reply(reply) =
        endpoints[exchanged % 2].route(now, remote, None, Ecn::NotEct, &mut datagram)
    {
        assert!(reply.len() < datagram.len());
        datagram = reply;
        exchanged += 1;
    }
    assert!((1..50).contains(&exchanged), "{exchanged}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_reset_that_differs_by_a_bit_does_nothing(bit in 0..128_usize, length in 21..100_usize) {
        let mut world = World::new(Plan::default());
        let (client, _) = world.connected();
        world.run_for(Duration::from_millis(5));
        send_something(&mut world, client);
        let packet = world.datagram(client);
        restart(&mut world, 2);
        let remote = world.hosts[CLIENT].addresses[0];
        let Route::Reply(reset) = world.route(remote, &packet) else {
            panic!("a reset expected");
        };
        // Any datagram that ends with the token is a reset, whatever its start.
        let token = reset.last_chunk::<16>().unwrap();
        let mut with_token = vec![0x5a; length - 16];
        with_token.extend_from_slice(token);
        let mut wrong = with_token.clone();
        let at = wrong.len() - 16 + bit / 8;
        wrong[at] ^= 1 << (bit % 8);
        world.inject(client, wrong);
        prop_assert!(!world.connection(CLIENT, client).is_closed());
        world.inject(client, with_token);
        prop_assert!(world.connection(CLIENT, client).is_closed());
    }
}
