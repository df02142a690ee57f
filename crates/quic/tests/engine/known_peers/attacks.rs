//! Replays, forgeries, garbage.

use super::*;

#[test]
fn a_replayed_first_packet_opens_no_second_connection() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let (mut call, first, source) = first_datagram(&mut world, 1);
    let Route::New(handle, connection) = world.route(source, &first) else {
        panic!("no connection");
    };
    world.hosts[SERVER].connections.insert(handle, *connection);
    // While the connection exists, copies belong to it.
    let elsewhere = SocketAddr::from(([10, 0, 0, 66], 1));
    assert!(matches!(world.route(elsewhere, &first), Route::Connection(of) if of == handle));
    assert!(answered(&mut world, &mut executions, &mut call));
    let now = world.now;
    world.connection(CLIENT, call.connection).close(now, 0, b"");
    world.run_for(Duration::from_secs(2));
    // After it, they are refused.
    let Route::Reply(reply) = world.route(source, &first) else {
        panic!("no refusal");
    };
    assert!(reply.len() <= 64 && reply.len() < first.len());
    assert_eq!(Header::decode(&reply, 8).unwrap().kind, Kind::KnownControl);
    assert_eq!(server_counters(&world).replays, 1);
    assert_eq!(executions.counts.values().sum::<u32>(), 1);
}

#[test]
fn a_copy_that_overtakes_the_original_does_no_harm() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    world.copies_from = Some(SocketAddr::from(([10, 0, 0, 66], 1)));
    for number in 0..5 {
        world.copies_from = Some(SocketAddr::from(([10, 0, 0, 66], 1)));
        let mut call = Call::begin(&mut world, number);
        world.transmit();
        world.copies_from = None;
        assert!(answered(&mut world, &mut executions, &mut call));
    }
    assert!(executions.counts.values().all(|count| *count == 1));
    assert_eq!(client_counters(&world).hints, 0);
}

#[test]
fn mutated_and_truncated_first_packets_begin_nothing() {
    let mut world = known_world(Plan::default());
    let (_, first, source) = first_datagram(&mut world, 1);
    for position in 0..first.len() {
        let mut changed = first.clone();
        changed[position] ^= 1 << (position % 8);
        assert!(
            !matches!(world.route(source, &changed), Route::New(..)),
            "byte {position}"
        );
        let cut = first[..position].to_vec();
        assert!(
            !matches!(world.route(source, &cut), Route::New(..)),
            "{position} bytes"
        );
    }
    // The window was not touched.
    assert!(matches!(world.route(source, &first), Route::New(..)));
}

#[test]
fn forged_refusals_cost_a_handshake_and_execute_nothing_twice() {
    for kind in 1..=4_u8 {
        let mut world = known_world(Plan::default());
        let mut executions = Executions::default();
        let (mut call, first, source) = first_datagram(&mut world, 1);
        let header = Header::decode(&first, 8).unwrap();
        let mut forged = Vec::new();
        weir_quic::packet::write_control_header(
            &mut forged,
            header.source.as_bytes(),
            header.destination.as_bytes(),
        );
        forged.push(kind);
        forged.extend_from_slice(&[7; 16]);
        // The original reaches the server, and so does the handshake that the forgery causes.
        let Route::New(handle, connection) = world.route(source, &first) else {
            panic!("no connection");
        };
        world.hosts[SERVER].connections.insert(handle, *connection);
        world.inject(call.connection, forged);
        let is_answered = answered(&mut world, &mut executions, &mut call);
        world.run_for(Duration::from_millis(50));
        executions.serve(&mut world);
        assert_eq!(executions.counts.values().sum::<u32>(), 1, "kind {kind}");
        // An unknown kind is no refusal.
        assert_eq!(is_answered, kind == 4);
        if kind < 4 {
            let error = world.closed(call.connection);
            let executed = Executed::Maybe;
            assert_eq!(error, Some(ConnectionError::KnownPeerRefused { executed }));
            assert_eq!(client_counters(&world).hints, 1);
        }
    }
}

#[test]
fn a_forged_refusal_before_the_original_arrives_lets_the_call_go_on() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let (mut call, first, source) = first_datagram(&mut world, 1);
    let header = Header::decode(&first, 8).unwrap();
    let mut forged = Vec::new();
    weir_quic::packet::write_control_header(
        &mut forged,
        header.source.as_bytes(),
        header.destination.as_bytes(),
    );
    forged.extend_from_slice(&[1; 17]);
    world.inject(call.connection, forged);
    assert!(answered(&mut world, &mut executions, &mut call));
    // The original arrives late: the client has abandoned its key.
    assert!(matches!(world.route(source, &first), Route::Reply(_)));
    assert_eq!(executions.counts.values().sum::<u32>(), 1);
}

#[test]
fn key_ids_that_arrive_late_are_refused_as_too_old() {
    let config = KnownClientsConfig {
        window: 64,
        ..KnownClientsConfig::default()
    };
    let mut world = World::new(Plan::default()).with_known_peers(config);
    meet(&mut world);
    let mut executions = Executions::default();
    let (mut late, first, source) = first_datagram(&mut world, 1000);
    for number in 0..64 {
        call(&mut world, &mut executions, number);
    }
    let Route::Reply(refusal) = world.route(source, &first) else {
        panic!("no refusal");
    };
    world.inject(late.connection, refusal);
    assert_eq!(client_counters(&world).proved_refusals, 1);
    assert!(!answered(&mut world, &mut executions, &mut late));
    assert!(world.closed(late.connection).is_some());
    assert_eq!(executions.counts.len(), 64);
}

#[test]
fn an_unknown_address_gets_at_most_three_times_what_came_from_it() {
    let mut world = known_world(Plan::default());
    let call = Call::begin(&mut world, 1);
    let first = world.datagram(call.connection);
    let elsewhere = SocketAddr::from(([10, 0, 0, 66], 1));
    let Route::New(handle, connection) = world.route(elsewhere, &first) else {
        panic!("no connection");
    };
    world.hosts[SERVER].connections.insert(handle, *connection);
    let now = world.now;
    let server = world.connection(SERVER, handle);
    let id = server.accept(Direction::Bidirectional).unwrap();
    server.write(id, &pattern(100_000)).unwrap();
    let mut sent = Vec::new();
    while server.poll_transmit(now, &mut sent, 64).is_some() {}
    assert!(
        sent.len() <= 3 * first.len() && !sent.is_empty(),
        "{}",
        sent.len()
    );
}

#[test]
fn answers_to_garbage_are_rate_limited() {
    let mut world = known_world(Plan::default());
    let (_, mut first, source) = first_datagram(&mut world, 1);
    let header = Header::decode(&first, 8).unwrap();
    let mut replies = 0;
    for number in 0..30_000_u32 {
        first[header.token.start..header.token.start + 4].copy_from_slice(&number.to_be_bytes());
        replies += u32::from(matches!(world.route(source, &first), Route::Reply(_)));
    }
    assert!(replies <= 10_000, "{replies}");
}
