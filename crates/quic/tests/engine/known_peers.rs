//! Known peers: connections without a handshake, refusals, replays (`docs/known-peers.md`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use proptest::prelude::*;
use weir_fabric::{FaultSettings, Probability, Reordering, Script, Verdict};
use weir_quic::packet::{Header, Kind};
use weir_quic::{
    ConnectionError, ConnectionHandle, Direction, Event, Executed, KnownClientsConfig,
    KnownClientsCounters, KnownServers, KnownServersCounters, Route, StreamId, UpdateKeysError,
};
use weir_units::Duration;
use weir_wire::Ecn;

const ROUND_TRIP: Duration = Duration::from_micros(50);

fn known_world(plan: Plan) -> World {
    let mut world = World::new(plan).with_known_peers(KnownClientsConfig::default());
    meet(&mut world);
    world
}

/// Establishes a path secret.
fn meet(world: &mut World) {
    world.connected();
    world.run_for(Duration::from_millis(5));
    assert_eq!(client_counters(world).held, 1);
}

fn client_counters(world: &World) -> KnownServersCounters {
    world.known_servers.as_ref().unwrap().counters()
}

fn server_counters(world: &World) -> KnownClientsCounters {
    world.server_config().known_clients.unwrap().counters()
}

/// Answers requests, and counts how often each was executed, over all servers at the address.
#[derive(Default)]
struct Executions {
    counts: BTreeMap<Vec<u8>, u32>,
    requests: BTreeMap<(ConnectionHandle, StreamId), Vec<u8>>,
}

impl Executions {
    fn serve(&mut self, world: &mut World) {
        for (handle, connection) in &mut world.hosts[SERVER].connections {
            while let Some(id) = connection.accept(Direction::Bidirectional) {
                self.requests.insert((*handle, id), Vec::new());
            }
            self.requests.retain(|(of, id), request| {
                if of != handle {
                    return true;
                }
                loop {
                    match connection.read(*id, usize::MAX) {
                        Ok(Some(bytes)) => request.extend_from_slice(&bytes),
                        Ok(None) => break,
                        Err(weir_quic::ReadError::Blocked) => return true,
                        Err(_) => return false,
                    }
                }
                *self.counts.entry(request.clone()).or_default() += 1;
                let response: Vec<u8> = request.iter().map(|byte| !byte).collect();
                // A stream that the client has reset needs no response.
                if connection.write(*id, &response).is_ok() {
                    let _ = connection.finish(*id);
                }
                false
            });
        }
    }

    fn restart(&mut self) {
        self.requests.clear();
    }
}

/// A client's call on a connection of its own.
struct Call {
    connection: ConnectionHandle,
    stream: StreamId,
    request: Vec<u8>,
    response: Vec<u8>,
    is_answered: bool,
    /// Whether its connection is over. Another one may have the handle then.
    is_over: bool,
}

impl Call {
    fn begin(world: &mut World, number: u32) -> Self {
        let connection = world.connect();
        let mut call = Self::on(world, connection, number);
        // A connection with a handshake has no stream yet.
        call.poll(world);
        call
    }

    fn on(world: &mut World, connection: ConnectionHandle, number: u32) -> Self {
        let request = [&number.to_be_bytes()[..], &pattern(200)].concat();
        let client = world.connection(CLIENT, connection);
        let stream = client.open(Direction::Bidirectional).expect("a stream");
        assert_eq!(client.write(stream, &request), Ok(request.len()));
        client.finish(stream).unwrap();
        Self {
            connection,
            stream,
            request,
            response: Vec::new(),
            is_answered: false,
            is_over: false,
        }
    }

    /// Reads the response; returns whether the call is answered or lost.
    fn poll(&mut self, world: &mut World) -> bool {
        if self.is_answered || self.is_over {
            return true;
        }
        self.is_over = world.closed(self.connection).is_some();
        let Some(client) = world.hosts[CLIENT].connections.get_mut(&self.connection) else {
            return self.is_over;
        };
        loop {
            match client.read(self.stream, usize::MAX) {
                Ok(Some(bytes)) => self.response.extend_from_slice(&bytes),
                Ok(None) => {
                    self.is_answered = true;
                    let expected: Vec<u8> = self.request.iter().map(|byte| !byte).collect();
                    assert_eq!(self.response, expected);
                    return true;
                }
                Err(_) => return self.is_over,
            }
        }
    }
}

fn answered(world: &mut World, executions: &mut Executions, call: &mut Call) -> bool {
    world.run_until(Duration::from_secs(2), |world| {
        executions.serve(world);
        world.transmit();
        call.poll(world)
    });
    call.is_answered
}

/// Calls once and returns how long it took; panics without an answer.
fn call(world: &mut World, executions: &mut Executions, number: u32) -> Duration {
    let begun = world.now;
    let mut call = Call::begin(world, number);
    assert!(
        answered(world, executions, &mut call),
        "{:?}",
        world.closed(call.connection)
    );
    world.now.since(begun)
}

#[test]
fn the_second_connection_has_no_handshake_and_takes_one_round_trip() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    for number in 0..5 {
        let took = call(&mut world, &mut executions, number);
        assert!(took < ROUND_TRIP + Duration::from_micros(10), "{took}");
    }
    assert!(executions.counts.values().all(|count| *count == 1));
    assert_eq!(server_counters(&world).accepted, 5);
    assert_eq!(client_counters(&world).begun, 5);
}

#[test]
fn the_first_datagram_carries_the_request_and_later_ones_have_short_headers() {
    let mut world = known_world(Plan::default());
    let call = Call::begin(&mut world, 1);
    let first = world.datagram(call.connection);
    let header = Header::decode(&first, 8).unwrap();
    assert_eq!(header.kind, Kind::KnownFirst);
    assert!(first.len() > 200 && first.len() < 300, "{}", first.len());
    let source = world.hosts[CLIENT].addresses[0];
    let Route::New(handle, connection) = world.route(source, &first) else {
        panic!("no connection");
    };
    world.hosts[SERVER].connections.insert(handle, *connection);
    let server = world.connection(SERVER, handle);
    assert!(server.is_known_peer());
    assert!(server.accept(Direction::Bidirectional).is_some());
    assert!(world.moves_data(call.connection, handle));
    let client = world.connection(CLIENT, call.connection);
    let id = client.open(Direction::Unidirectional).unwrap();
    client.write(id, &[0; 100]).unwrap();
    let later = world.datagram(call.connection);
    assert_eq!(Header::decode(&later, 8).unwrap().kind, Kind::OneRtt);
}

#[test]
fn a_silent_client_says_hello() {
    let mut world = known_world(Plan::default());
    let (client, server) = world.connected();
    assert!(world.connection(CLIENT, client).is_known_peer());
    assert!(world.moves_data(client, server));
}

#[test]
fn any_packet_may_be_lost_or_doubled() {
    for verdict in [Verdict::Drop, Verdict::Duplicate] {
        for host in [CLIENT, SERVER] {
            for number in 0..6 {
                let mut world = known_world(Plan::default());
                let now = world.now;
                world.egress_ports[host].set_script(now, Some(Script::nth([number], verdict)));
                let (client, server) = world.connected();
                assert!(
                    world.moves_data(client, server),
                    "{verdict:?} of packet {number} of host {host}"
                );
                let mut executions = Executions::default();
                call(&mut world, &mut executions, 1);
                assert_eq!(executions.counts.len(), 1);
            }
        }
    }
}

#[test]
fn keys_are_updated_and_the_connection_moves() {
    let mut world = known_world(Plan::default());
    let (client, server) = world.connected();
    for _ in 0..3 {
        assert!(world.moves_data(client, server));
        world.run_for(Duration::from_secs(1));
        let now = world.now;
        let updated = world.connection(CLIENT, client).update_keys(now);
        assert_eq!(updated, Ok::<(), UpdateKeysError>(()));
    }
    world.nat = Some(SocketAddr::from(([10, 0, 0, 77], 999)));
    assert!(world.moves_data(client, server));
    assert_eq!(world.connection(SERVER, server).remote().port(), 999);
}

#[test]
fn changed_parameters_are_exchanged() {
    let plan = Plan::default();
    let mut world = known_world(plan);
    let mut larger = world.server_config();
    let mut transport = (*larger.transport).clone();
    transport.max_bidirectional_streams *= 2;
    larger.transport = transport.into();
    world.hosts[SERVER].endpoint.set_server(Some(larger));
    let (client, server) = world.connected();
    assert!(world.connection(CLIENT, client).is_known_peer());
    assert!(world.moves_data(client, server));
    let client = world.connection(CLIENT, client);
    let opened = std::iter::from_fn(|| client.open(Direction::Bidirectional)).count();
    assert_eq!(
        opened as u64,
        2 * Plan::default().server.max_bidirectional_streams
    );
}

#[test]
fn a_server_that_promises_less_than_before_refuses() {
    let mut world = known_world(Plan::default());
    let mut smaller = world.server_config();
    let mut transport = (*smaller.transport).clone();
    transport.max_bidirectional_streams /= 2;
    smaller.transport = transport.into();
    world.hosts[SERVER].endpoint.set_server(Some(smaller));
    let (client, server) = world.connected();
    assert!(!world.connection(CLIENT, client).is_known_peer());
    assert!(world.moves_data(client, server));
}

#[test]
fn a_restarted_server_refuses_and_the_call_goes_on() {
    for (secret, proved) in [(2, 1), (9, 0)] {
        let mut world = known_world(Plan::default());
        let mut executions = Executions::default();
        world.restart_server(secret, true);
        world.run_for(Duration::from_millis(1));
        let took = call(&mut world, &mut executions, 1);
        assert!(took < ROUND_TRIP * 4, "{took}");
        let counters = client_counters(&world);
        assert_eq!(
            (counters.proved_refusals, counters.hints),
            (proved, 1 - proved)
        );
        assert_eq!(executions.counts.values().sum::<u32>(), 1);
        // The handshake has made another secret.
        world.run_for(Duration::from_millis(1));
        let took = call(&mut world, &mut executions, 2);
        assert!(took < ROUND_TRIP + Duration::from_micros(10), "{took}");
    }
}

#[test]
fn a_server_without_known_peers_costs_one_round_trip_once() {
    let mut world = known_world(Plan::default());
    world.restart_server(9, false);
    world.run_for(Duration::from_millis(1));
    // Nothing was sent yet, so the connection may go on.
    let (client, server) = world.connected();
    assert!(world.moves_data(client, server));
    assert_eq!(client_counters(&world).held, 0);
    let mut executions = Executions::default();
    let (client, _) = world.connected();
    let mut second = Call::on(&mut world, client, 2);
    assert!(answered(&mut world, &mut executions, &mut second));
}

#[test]
fn a_request_that_an_older_server_may_have_executed_fails_with_maybe() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let mut call = Call::begin(&mut world, 1);
    // The server executes the request; all of its packets are lost, and it restarts.
    let now = world.now;
    let all = Script::nth((0..1000).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[SERVER].set_script(now, Some(all));
    world.run_until(Duration::from_millis(1), |world| {
        executions.serve(world);
        false
    });
    assert_eq!(executions.counts.len(), 1);
    world.restart_server(2, true);
    executions.restart();
    let now = world.now;
    world.egress_ports[SERVER].set_script(now, None);
    assert!(!answered(&mut world, &mut executions, &mut call));
    assert_eq!(
        world.closed(call.connection),
        Some(ConnectionError::KnownPeerRefused {
            executed: Executed::Maybe
        })
    );
    assert_eq!(executions.counts.values().sum::<u32>(), 1);
}

/// Takes the first datagram of a call and its address.
fn first_datagram(world: &mut World, number: u32) -> (Call, Vec<u8>, SocketAddr) {
    let call = Call::begin(world, number);
    let datagram = world.datagram(call.connection);
    (call, datagram, world.hosts[CLIENT].addresses[0])
}

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
fn a_silent_server_is_asked_for_a_handshake() {
    let mut world = known_world(Plan::default());
    let now = world.now;
    // Something on the path drops the unknown version: the first four datagrams.
    let script = Script::nth((0..6).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[CLIENT].set_script(now, Some(script));
    let mut executions = Executions::default();
    let mut call = Call::begin(&mut world, 1);
    assert!(answered(&mut world, &mut executions, &mut call));
    assert_eq!(client_counters(&world).hints, 1);
}

#[test]
fn a_dead_server_is_reported_after_the_handshake_timeout() {
    let mut world = known_world(Plan::default());
    let call = Call::begin(&mut world, 1);
    world.hosts[SERVER].addresses.clear();
    assert!(world.run_until(Duration::from_secs(60), |world| {
        world.closed(call.connection).is_some()
    }));
    assert!(matches!(
        world.closed(call.connection),
        Some(ConnectionError::HandshakeTimeout(_))
    ));
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

/// What happens between two calls of the property test.
#[derive(Clone, Debug)]
enum Step {
    Call,
    /// The attacker sends a recorded datagram of the client again, from this address.
    Replay {
        index: prop::sample::Index,
        elsewhere: bool,
    },
    Restart {
        secret: u8,
    },
    Wait {
        millis: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call),
        3 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(index, elsewhere)| Step::Replay { index, elsewhere }),
        1 => (2..5_u8).prop_map(|secret| Step::Restart { secret }),
        2 => (0..40_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

proptest! {
    /// No request is executed twice, and none is lost without an error.
    #[test]
    fn no_request_is_executed_twice_and_none_is_lost_without_an_error(
        steps in prop::collection::vec(step(), 1..25),
        seed in 0..1_000_000_u64,
        loss in 0..20_u32,
        duplication in 0..20_u32,
        reordering in 0..20_u32,
    ) {
        let share = |percent: u32| Probability::new(f64::from(percent) / 100.0).unwrap();
        let mut world = known_world(Plan { seed, ..Plan::default() });
        world.set_faults(FaultSettings {
            loss: share(loss),
            duplication: share(duplication),
            reordering: Reordering {
                probability: share(reordering),
                delay: Duration::from_micros(300),
            },
            ..FaultSettings::default()
        });
        let mut executions = Executions::default();
        let mut calls: Vec<Call> = Vec::new();
        let mut recorded: Vec<Vec<u8>> = Vec::new();
        for step in steps {
            calls.iter_mut().for_each(|call| {
                call.poll(&mut world);
            });
            match step {
                Step::Call => {
                    let connection = world.connect();
                    // The handle of an earlier connection has no events any more.
                    world.hosts[CLIENT].events.retain(|(of, _)| *of != connection);
                    if !world.connection(CLIENT, connection).is_known_peer() {
                        world.run_until(Duration::from_secs(5), |world| {
                            executions.serve(world);
                            let client = world.hosts[CLIENT].connections.get(&connection);
                            client.is_none_or(|client| client.is_established())
                        });
                    }
                    let client = world.hosts[CLIENT].connections.get(&connection);
                    if client.is_some_and(|client| client.is_established()) {
                        let number = calls.len() as u32;
                        calls.push(Call::on(&mut world, connection, number));
                        let mut buffer = Vec::new();
                        let now = world.now;
                        let client = world.connection(CLIENT, connection);
                        if client.poll_transmit(now, &mut buffer, 1).is_some() {
                            // The original may be lost; the attacker has it.
                            if !number.is_multiple_of(3) {
                                let source = world.hosts[CLIENT].addresses[0];
                                deliver(&mut world, source, &buffer);
                            }
                            recorded.push(buffer);
                        }
                    }
                }
                Step::Replay { index, elsewhere } if !recorded.is_empty() => {
                    let datagram = index.get(&recorded).clone();
                    let source = if elsewhere {
                        SocketAddr::from(([10, 0, 0, 66], 1))
                    } else {
                        world.hosts[CLIENT].addresses[0]
                    };
                    deliver(&mut world, source, &datagram);
                }
                Step::Replay { .. } => {}
                Step::Restart { secret } => {
                    world.restart_server(secret, true);
                    executions.restart();
                }
                Step::Wait { millis } => {
                    let end = world.now + Duration::from_millis(millis);
                    world.run_until(Duration::from_millis(millis), |world| {
                        executions.serve(world);
                        world.transmit();
                        calls.iter_mut().for_each(|call| {
                            call.poll(world);
                        });
                        false
                    });
                    world.now = end;
                }
            }
        }
        world.run_until(Duration::from_secs(60), |world| {
            executions.serve(world);
            world.transmit();
            calls.iter_mut().filter_map(|call| (!call.poll(world)).then_some(())).count() == 0
        });
        for (request, count) in &executions.counts {
            prop_assert_eq!(*count, 1, "request {:?}", &request[..4]);
        }
        for call in &calls {
            prop_assert!(
                call.is_answered || call.is_over,
                "a call was lost without an error"
            );
            if call.is_answered {
                prop_assert!(executions.counts.contains_key(&call.request));
            }
        }
    }
}

/// Passes a datagram to the server.
fn deliver(world: &mut World, source: SocketAddr, datagram: &[u8]) {
    let now = world.now;
    let mut bytes = datagram.to_vec();
    let host = &mut world.hosts[SERVER];
    match host.endpoint.route(
        now,
        source,
        Some(host.addresses[0]),
        Ecn::NotEct,
        &mut bytes,
    ) {
        Route::Connection(handle) => {
            if let Some(connection) = host.connections.get_mut(&handle) {
                connection.handle_datagram(
                    now,
                    source,
                    Some(host.addresses[0]),
                    Ecn::NotEct,
                    &mut bytes,
                );
                connection.end_batch(now);
            }
        }
        Route::New(handle, connection) => {
            host.connections.insert(handle, *connection);
        }
        _ => {}
    }
}

#[test]
fn the_application_learns_that_it_may_open_streams_again() {
    let mut world = known_world(Plan::default());
    world.restart_server(9, true);
    world.run_for(Duration::from_millis(1));
    let mut executions = Executions::default();
    let mut call = Call::begin(&mut world, 1);
    assert!(answered(&mut world, &mut executions, &mut call));
    let told = world.hosts[CLIENT].events.iter();
    let told = told.filter(|(of, event)| *of == call.connection && *event == Event::Connected);
    assert_eq!(told.count(), 2);
}

#[test]
fn a_client_with_many_calls_begins_few_handshakes_at_once() {
    let mut world = known_world(Plan::default());
    world.restart_server(9, true);
    world.run_for(Duration::from_millis(1));
    let mut executions = Executions::default();
    let mut calls: Vec<_> = (0..200)
        .map(|number| Call::begin(&mut world, number))
        .collect();
    let mut most = 0;
    let all = world.run_until(Duration::from_secs(5), |world| {
        executions.serve(world);
        world.transmit();
        most = most.max(world.hosts[SERVER].endpoint.half_open());
        calls
            .iter_mut()
            .filter_map(|call| (!call.poll(world)).then_some(()))
            .count()
            == 0
    });
    assert!(all && calls.iter().all(|call| call.is_answered));
    assert!(executions.counts.values().all(|count| *count == 1));
    assert!((1..=32).contains(&most), "{most} handshakes at once");
}

/// A world whose clients renew secrets after a second.
fn renewing_world() -> World {
    let mut world = World::new(Plan::default()).with_known_peers(KnownClientsConfig::default());
    let servers = KnownServers::new(10).with_renewal_interval(Duration::from_secs(1));
    world.known_servers = Some(Arc::new(servers));
    world
}

#[test]
fn an_open_connection_renews_the_secret() {
    let mut world = renewing_world();
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(5));
    let mut executions = Executions::default();
    // Two first packets under the old secret, still under way.
    let late = [1, 2].map(|number| {
        let (call, first, source) = first_datagram(&mut world, number);
        world.hosts[CLIENT].connections.remove(&call.connection);
        (source, first)
    });
    for rounds in 2..5 {
        world.run_for(Duration::from_secs(1));
        assert!(world.moves_data(client, server));
        assert_eq!(server_counters(&world).held, rounds);
    }
    let [(source, soon), (_, later)] = late;
    assert!(matches!(world.route(source, &soon), Route::New(..)));
    let took = call(&mut world, &mut executions, 3);
    assert!(took < ROUND_TRIP + Duration::from_micros(10), "{took}");
    world.run_for(Duration::from_secs(40));
    assert!(matches!(world.route(source, &later), Route::Reply(_)));
}

#[test]
fn a_known_peer_renews_the_secret_too_and_a_lost_key_is_sent_again() {
    for lost in 0..4 {
        let mut world = renewing_world();
        world.connected();
        world.run_for(Duration::from_millis(5));
        let (client, server) = world.connected();
        assert!(world.connection(CLIENT, client).is_known_peer());
        assert!(world.moves_data(client, server));
        world.run_for(Duration::from_millis(890));
        let now = world.now;
        for host in [CLIENT, SERVER] {
            let script = Script::nth([lost], Verdict::Drop);
            world.egress_ports[host].set_script(now, Some(script));
        }
        world.run_for(Duration::from_secs(1));
        assert!(server_counters(&world).held >= 2, "packet {lost}");
        assert!(world.moves_data(client, server));
        let mut executions = Executions::default();
        let took = call(&mut world, &mut executions, 2);
        assert!(took < ROUND_TRIP * 2, "{took}");
    }
}
