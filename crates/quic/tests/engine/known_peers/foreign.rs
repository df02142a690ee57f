//! Servers without known peers at the address of one with them, and impostors
//! (`docs/known-peers.md`, sections 5 and 6).

use super::*;
use crate::world::attackers::{Impostor, negotiation};

/// A client that knew a server, which was replaced by one without known peers.
fn replaced_world() -> World {
    let mut world = known_world(Plan::default());
    world.restart_server(9, false);
    world.run_for(Duration::from_secs(2));
    world
}

/// Executes a call whose answers are all lost.
fn executed(world: &mut World, executions: &mut Executions, number: u32) -> Call {
    let before = executions.counts.len();
    let call = Call::begin(world, number);
    let now = world.now;
    let all = Script::nth((0..1000).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[SERVER].set_script(now, Some(all));
    world.run_until(Duration::from_millis(1), |world| {
        executions.serve(world);
        executions.counts.len() > before
    });
    let now = world.now;
    world.egress_ports[SERVER].set_script(now, None);
    assert_eq!(executions.counts.len(), before + 1);
    call
}

/// Tells the client of a call that its server has only QUIC version 1, as an observer can.
fn deny(world: &mut World, call: &Call, first: &[u8]) {
    world.inject(call.connection, negotiation(first, &[1]));
}

#[test]
fn a_server_without_known_peers_costs_one_round_trip_once() {
    let mut world = replaced_world();
    // Nothing was sent yet, so the connection may go on.
    let begun = world.now;
    let (client, server) = world.connected();
    // A PING after 1 ms, the answer to it, and a handshake, which the server completes last.
    let took = world.now.since(begun);
    assert!(took < Duration::from_millis(1) + ROUND_TRIP * 3, "{took}");
    assert!(world.moves_data(client, server));
    assert_eq!(client_counters(&world).held, 0);
    let mut executions = Executions::default();
    let (client, _) = world.connected();
    let mut second = Call::on(&mut world, client, 2);
    assert!(answered(&mut world, &mut executions, &mut second));
    let counters = client_counters(&world);
    assert_eq!((counters.begun, counters.hints), (1, 1));
}

#[test]
fn a_call_to_a_server_without_known_peers_fails_with_maybe_once() {
    let mut world = replaced_world();
    let mut executions = Executions::default();
    let begun = world.now;
    let mut first = Call::begin(&mut world, 1);
    let is_over = world.run_until(Duration::from_secs(1), |world| first.poll(world));
    let took = world.now.since(begun);
    assert!(is_over && took < ROUND_TRIP * 3, "{took}");
    assert!(!answered(&mut world, &mut executions, &mut first));
    let executed = Executed::Maybe;
    let error = Some(ConnectionError::KnownPeerRefused { executed });
    assert_eq!(world.closed(first.connection), error);
    // The server is remembered as one without known peers.
    assert_eq!(client_counters(&world).held, 0);
    for number in 2..5 {
        let (client, _) = world.connected();
        // The handle of an earlier connection.
        world.hosts[CLIENT].events.retain(|(of, _)| *of != client);
        let mut later = Call::on(&mut world, client, number);
        assert!(answered(&mut world, &mut executions, &mut later));
    }
    let counters = client_counters(&world);
    assert_eq!((counters.begun, counters.hints), (1, 1));
    assert_eq!(executions.counts.values().sum::<u32>(), 3);
}

#[test]
fn only_one_connection_asks_for_the_version() {
    let mut world = known_world(Plan::default());
    let lengths = |world: &mut World| {
        let lengths = [1, 2, 3].map(|number| first_datagram(world, number).1.len());
        lengths.map(|length| length >= 1200)
    };
    assert_eq!(lengths(&mut world), [false; 3]);
    world.run_for(Duration::from_secs(2));
    assert_eq!(lengths(&mut world), [true, false, false]);
}

#[test]
fn first_packets_have_the_fixed_bit() {
    let mut world = known_world(Plan::default());
    for number in 0..50 {
        let (_, first, _) = first_datagram(&mut world, number);
        assert!(Header::decode(&first, 8).unwrap().fixed_bit);
    }
}

#[test]
fn a_server_without_known_peers_gets_no_token_of_the_one_before_it() {
    let mut world = known_world(Plan::default());
    assert!(!world.tokens.is_empty());
    let connection = world.connect();
    let stream = world
        .connection(CLIENT, connection)
        .open(Direction::Unidirectional)
        .unwrap();
    world
        .connection(CLIENT, connection)
        .write(stream, b"data")
        .unwrap();
    let first = world.datagram(connection);
    world.inject(connection, negotiation(&first, &[1]));
    let initial = world.datagram(connection);
    let header = Header::decode(&initial, 8).unwrap();
    assert_eq!(header.kind, Kind::Initial);
    assert!(header.token.is_empty());
    // Nor do later ones, when the server is authenticated.
    let mut world = replaced_world();
    assert!(!world.tokens.is_empty());
    let client = world.connect();
    assert!(world.run_until(Duration::from_secs(1), |world| {
        let client = world.connection(CLIENT, client);
        client.is_established() && !client.is_known_peer()
    }));
    assert!(world.tokens.is_empty());
}

#[test]
fn connections_that_have_ended_let_others_begin_their_handshakes() {
    let mut world = replaced_world();
    let mut executions = Executions::default();
    let mut calls: Vec<_> = (0..10)
        .map(|number| Call::begin(&mut world, number))
        .collect();
    let all = world.run_until(Duration::from_secs(2), |world| {
        executions.serve(world);
        world.transmit();
        let open = calls
            .iter_mut()
            .filter_map(|call| (!call.poll(world)).then_some(()));
        open.count() == 0
    });
    // The ended connections still exist.
    assert!(all && world.hosts[CLIENT].ended.len() >= 10);
    assert!(calls.iter().all(|call| call.is_over));
    assert!(executions.counts.is_empty());
}

#[test]
fn the_parameters_of_an_impostor_decide_nothing() {
    for reduced in [false, true] {
        let mut world = known_world(Plan::default());
        let mut executions = Executions::default();
        let call = executed(&mut world, &mut executions, 1);
        // It says that the secret was unknown at its address all the time, and allows nothing.
        let server = Impostor::begin(&mut world, reduced);
        let ended = world.run_until(Duration::from_secs(5), |world| {
            world.closed(call.connection).is_some()
        });
        assert!(ended);
        let error = world.closed(call.connection).unwrap();
        assert_eq!(error.executed(), Executed::Maybe, "{error}");
        assert_eq!(
            client_counters(&world).held,
            1,
            "an impostor ended a secret"
        );
        server.end(&mut world);
        // The secret still counts.
        let before = client_counters(&world);
        self::call(&mut world, &mut executions, 2);
        assert_eq!(client_counters(&world).hints, before.hints);
        assert_eq!(executions.counts.values().sum::<u32>(), 2);
    }
}

#[test]
fn an_impostor_does_not_let_another_call_be_sent_again() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let (mut victim, first, source) = first_datagram(&mut world, 1);
    let Route::New(handle, connection) = world.route(source, &first) else {
        panic!("no connection");
    };
    world.hosts[SERVER].connections.insert(handle, *connection);
    executions.serve(&mut world);
    assert_eq!(executions.counts.len(), 1);
    world.hosts[SERVER].connections.clear();
    // The client hears from an impostor, in another connection, that the secret was always unknown.
    let server = Impostor::begin(&mut world, false);
    let (deceived, first_of_deceived, _) = first_datagram(&mut world, 2);
    deny(&mut world, &deceived, &first_of_deceived);
    world.run_until(Duration::from_secs(1), |world| {
        world.closed(deceived.connection).is_some()
    });
    server.end(&mut world);
    // A third connection, which has sent nothing, makes another secret.
    let third = world.connect();
    let ping = loop {
        let mut buffer = Vec::new();
        let now = world.now;
        if world
            .connection(CLIENT, third)
            .poll_transmit(now, &mut buffer, 1)
            .is_some()
        {
            break buffer;
        }
        let due = world.connection(CLIENT, third).timeout().unwrap();
        world.now = due;
        world.connection(CLIENT, third).handle_timeout(due);
    };
    world.inject(third, negotiation(&ping, &[1]));
    world.run_for(Duration::from_millis(1));
    // The first one must not go on with it.
    if world.closed(victim.connection).is_none() {
        deny(&mut world, &victim, &first);
    }
    assert!(!answered(&mut world, &mut executions, &mut victim));
    assert!(executions.counts.values().all(|count| *count == 1));
}

#[test]
fn a_second_version_negotiation_packet_does_not_say_that_nothing_was_executed() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let (call, first, source) = first_datagram(&mut world, 1);
    let Route::New(handle, connection) = world.route(source, &first) else {
        panic!("no connection");
    };
    world.hosts[SERVER].connections.insert(handle, *connection);
    executions.serve(&mut world);
    assert_eq!(executions.counts.len(), 1);
    deny(&mut world, &call, &first);
    let initial = world.datagram(call.connection);
    assert_eq!(Header::decode(&initial, 8).unwrap().kind, Kind::Initial);
    world.inject(call.connection, negotiation(&initial, &[0xff00_001d]));
    world.run_for(Duration::from_micros(1));
    let error = world.closed(call.connection).unwrap();
    assert!(
        matches!(error, ConnectionError::NoCommonVersion { .. }),
        "{error}"
    );
    assert_eq!(error.executed(), Executed::Maybe);
}

#[test]
fn an_empty_request_is_a_request_too() {
    let mut world = replaced_world();
    let connection = world.connect();
    let client = world.connection(CLIENT, connection);
    let stream = client.open(Direction::Bidirectional).unwrap();
    client.finish(stream).unwrap();
    world.run_for(Duration::from_millis(5));
    let error = world.closed(connection).unwrap();
    assert_eq!(error.executed(), Executed::Maybe, "{error}");
}
