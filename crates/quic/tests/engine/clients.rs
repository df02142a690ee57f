//! Limits of connections per client, and clients that wait for a decision.

use std::net::{Ipv4Addr, SocketAddr};

use crate::world::{CLIENT, Plan, SERVER, World};
use weir_quic::packet::{Header, Kind};
use weir_quic::{ClientLimits, ConnectionHandle, Decision, IncomingInfo, RetryPolicy, Route};
use weir_units::Duration;

fn spoofed(number: u32) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from_bits(0x0b00_0000 + (number << 8)).into(), 9)
}

/// Returns the first datagram of a client that is gone then.
fn first_datagram(world: &mut World) -> Vec<u8> {
    let client = world.connect();
    let first = world.datagram(client);
    world.hosts[CLIENT].connections.remove(&client);
    first
}

fn is_retry(route: &Route) -> bool {
    let kind = |reply: &[u8]| Header::decode(reply, 8).unwrap().kind;
    matches!(route, Route::Reply(reply) if kind(reply) == Kind::Retry)
}

fn incoming(route: Route) -> IncomingInfo {
    match route {
        Route::Incoming(info) => info,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_spoofed_address_uses_up_half_of_its_connections_at_most() {
    let mut world = World::new(Plan {
        clients: Some(ClientLimits {
            per_address: 8,
            per_network: 8,
        }),
        retry: RetryPolicy::UnderLoad { half_open: 1000 },
        ..Plan::default()
    });
    let victim = world.hosts[CLIENT].addresses[0];
    for port in 1..=100 {
        let first = first_datagram(&mut world);
        let route = world.route(SocketAddr::new(victim.ip(), port), &first);
        match route {
            Route::New(handle, connection) => {
                assert!(port <= 4);
                world.hosts[SERVER].connections.insert(handle, *connection);
            }
            other => assert!(port > 4 && is_retry(&other), "{other:?}"),
        }
    }
    // The host itself can show that it is there.
    for _ in 0..4 {
        let (client, server) = world.connected();
        assert!(world.moves_data(client, server));
    }
    let first = first_datagram(&mut world);
    let route = world.route(SocketAddr::new(victim.ip(), 200), &first);
    assert!(matches!(&route, Route::Reply(_)) && !is_retry(&route));
    assert_eq!(
        world.hosts[SERVER]
            .endpoint
            .counters()
            .client_limit_refusals,
        1
    );
    // Another network is not concerned.
    assert!(matches!(world.route(spoofed(1), &first), Route::New(..)));
}

#[test]
fn thousands_of_spoofed_addresses_take_bounded_memory() {
    for max_undecided in [0, 100] {
        let mut world = World::new(Plan {
            clients: Some(ClientLimits::for_capacity(1000)),
            retry: RetryPolicy::UnderLoad { half_open: 256 },
            max_undecided,
            ..Plan::default()
        });
        let first = first_datagram(&mut world);
        for number in 0..5000 {
            if let Route::New(handle, connection) = world.route(spoofed(number), &first) {
                world.hosts[SERVER].connections.insert(handle, *connection);
            }
        }
        let server = &world.hosts[SERVER].endpoint;
        let counters = server.counters();
        if max_undecided == 0 {
            assert_eq!((server.connections(), server.undecided()), (256, 0));
            assert_eq!((counters.retries, counters.refusals), (5000 - 256, 0));
        } else {
            assert_eq!((server.connections(), server.undecided()), (0, 100));
            assert_eq!((counters.retries, counters.refusals), (0, 4900));
        }
    }
}

/// A world whose server waits for decisions, and a client's first datagram.
fn deciding() -> (World, ConnectionHandle, Vec<u8>) {
    let mut world = World::new(Plan {
        max_undecided: 10,
        ..Plan::default()
    });
    let client = world.connect();
    let first = world.datagram(client);
    (world, client, first)
}

#[test]
fn a_client_that_waits_is_accepted_with_all_it_has_sent() {
    let (mut world, _, first) = deciding();
    let remote = world.hosts[CLIENT].addresses[0];
    let info = incoming(world.route(remote, &first));
    assert_eq!(info.remote, remote);
    assert!(!info.validated && !info.known_peer && info.may_retry);
    // What follows is kept, and no more than that; from elsewhere it is another client.
    for _ in 0..100 {
        assert!(matches!(world.route(remote, &first), Route::Kept));
    }
    incoming(world.route(spoofed(1), &first));
    let now = world.now;
    let server = &mut world.hosts[SERVER].endpoint;
    assert_eq!((server.half_open(), server.undecided()), (2, 2));
    let Route::New(_, connection) = server.decide(now, info.id, Decision::Accept) else {
        panic!("a connection expected");
    };
    assert_eq!(connection.stats().totals.packets_received, 1);
    assert_eq!(connection.stats().totals.datagrams_received, 16);
    assert!(matches!(
        server.decide(now, info.id, Decision::Accept),
        Route::Drop
    ));
}

#[test]
fn a_client_that_waits_can_be_refused_retried_and_ignored() {
    let (mut world, client, first) = deciding();
    let remote = world.hosts[CLIENT].addresses[0];
    let now = world.now;
    for decision in [Decision::Ignore, Decision::Refuse, Decision::Retry] {
        let info = incoming(world.route(remote, &first));
        let retries = matches!(decision, Decision::Retry);
        let ignores = matches!(decision, Decision::Ignore);
        let route = world.hosts[SERVER].endpoint.decide(now, info.id, decision);
        assert_eq!(is_retry(&route), retries);
        assert_eq!(matches!(route, Route::Drop), ignores);
        assert_eq!(world.hosts[SERVER].endpoint.undecided(), 0);
        if let (true, Route::Reply(retry)) = (retries, route) {
            world.inject(client, retry);
        }
    }
    assert_eq!(world.hosts[SERVER].endpoint.counters().refusals, 1);
    let second = world.datagram(client);
    let info = incoming(world.route(remote, &second));
    assert!(info.validated && !info.may_retry);
    // A second Retry packet is no answer to a token: the client is refused instead.
    let server = &mut world.hosts[SERVER].endpoint;
    let route = server.decide(now, info.id, Decision::Retry);
    assert!(matches!(&route, Route::Reply(_)) && !is_retry(&route));
}

#[test]
fn nobody_is_accepted_after_the_server_has_stopped() {
    let (mut world, _, first) = deciding();
    let remote = world.hosts[CLIENT].addresses[0];
    let info = incoming(world.route(remote, &first));
    let now = world.now + Duration::from_secs(1);
    let server = &mut world.hosts[SERVER].endpoint;
    server.set_server(None);
    let route = server.decide(now, info.id, Decision::Accept);
    assert!(matches!(route, Route::Reply(_)), "{route:?}");
    assert_eq!(server.connections(), 0);
}
