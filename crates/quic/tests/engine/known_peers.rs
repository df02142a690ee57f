//! Known peers: connections without a handshake, refusals, replays (`docs/known-peers.md`).

mod attacks;
mod foreign;
mod renewal;
mod replays;

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
use weir_units::{ByteSize, Duration};
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

#[test]
fn a_share_of_the_receive_buffer_is_remembered_and_not_sent_again() {
    let lengths = [None, Some(ByteSize::from_mib(1))].map(|receive_burst| {
        let mut world = known_world(Plan {
            receive_burst,
            ..Plan::default()
        });
        (1..5)
            .map(|number| first_datagram(&mut world, number).1.len())
            .collect::<Vec<_>>()
    });
    assert_eq!(lengths[0], lengths[1]);
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

/// Takes the first datagram of a call and its address.
fn first_datagram(world: &mut World, number: u32) -> (Call, Vec<u8>, SocketAddr) {
    let call = Call::begin(world, number);
    let datagram = world.datagram(call.connection);
    (call, datagram, world.hosts[CLIENT].addresses[0])
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
fn a_client_with_nothing_to_send_sends_a_ping() {
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

#[test]
fn a_silent_server_is_asked_for_a_handshake() {
    let mut world = known_world(Plan::default());
    let now = world.now;
    // Something on the path drops the unknown version.
    let script = Script::nth((0..5).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[CLIENT].set_script(now, Some(script));
    let mut executions = Executions::default();
    let mut call = Call::begin(&mut world, 1);
    assert!(answered(&mut world, &mut executions, &mut call));
    assert_eq!(client_counters(&world).hints, 1);
}

#[test]
fn a_server_that_answered_lately_is_not_asked_for_a_handshake() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let mut first = Call::begin(&mut world, 1);
    assert!(answered(&mut world, &mut executions, &mut first));
    world.hosts[CLIENT].connections.remove(&first.connection);
    // Then it is overloaded for some seconds.
    let now = world.now;
    let script = Script::nth((0..7).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[CLIENT].set_script(now, Some(script));
    let mut second = Call::begin(&mut world, 2);
    assert!(answered(&mut world, &mut executions, &mut second));
    // Seven probe timeouts instead of five.
    let took = world.now.since(now);
    assert!(took > Duration::from_millis(400), "{took}");
    let counters = client_counters(&world);
    assert_eq!((counters.hints, counters.proved_refusals), (0, 0));
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
    assert!((1..=2).contains(&most), "{most} handshakes at once");
    // The others go on with the secret that these have made.
    assert!(server_counters(&world).accepted >= 196);
}

#[test]
fn an_open_connection_goes_on_where_no_further_ones_are_accepted() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    let (mut call, first, source) = first_datagram(&mut world, 1);
    let Route::New(handle, connection) = world.route(source, &first) else {
        panic!("no connection");
    };
    world.hosts[SERVER].connections.insert(handle, *connection);
    world.hosts[SERVER].endpoint.set_server(None);
    assert!(matches!(world.route(source, &first), Route::Connection(of) if of == handle));
    assert!(answered(&mut world, &mut executions, &mut call));
}

#[test]
fn a_request_that_was_executed_before_its_secret_was_removed_fails_with_maybe() {
    let mut world = known_world(Plan::default());
    let mut executions = Executions::default();
    world.run_for(Duration::from_secs(1));
    let mut call = Call::begin(&mut world, 1);
    // The server executes the request, and all of its packets are lost.
    let now = world.now;
    let all = Script::nth((0..1000).collect::<Vec<_>>(), Verdict::Drop);
    world.egress_ports[SERVER].set_script(now, Some(all));
    world.run_until(Duration::from_millis(1), |world| {
        executions.serve(world);
        false
    });
    assert_eq!(executions.counts.len(), 1);
    let clients = world.server_config().known_clients.unwrap();
    clients.clear(world.now);
    let now = world.now;
    world.egress_ports[CLIENT].set_script(now, Some(Script::nth(vec![0, 1, 2], Verdict::Drop)));
    world.run_for(Duration::from_millis(1500));
    let now = world.now;
    world.egress_ports[SERVER].set_script(now, None);
    assert!(!answered(&mut world, &mut executions, &mut call));
    assert_eq!(executions.counts.values().sum::<u32>(), 1);
}

#[test]
fn connections_wait_for_the_next_secret_where_the_last_one_is_known_to_be_lost() {
    let mut world = known_world(Plan::default());
    world.restart_server(9, true);
    world.run_for(Duration::from_millis(1));
    let mut executions = Executions::default();
    let first = Call::begin(&mut world, 0);
    let is_told = |world: &mut World| {
        let connection = world.connection(CLIENT, first.connection);
        !connection.is_known_peer() && connection.is_established()
    };
    assert!(world.run_until(Duration::from_secs(1), is_told));
    // The new secret is under way.
    let before = world.hosts[SERVER].endpoint.counters().known_peer_refusals;
    let mut calls = vec![first];
    calls.extend((1..100).map(|number| Call::begin(&mut world, number)));
    let mut most = 0;
    let all = world.run_until(Duration::from_secs(5), |world| {
        executions.serve(world);
        world.transmit();
        most = most.max(world.hosts[SERVER].endpoint.half_open());
        let waiting = calls
            .iter_mut()
            .filter_map(|call| (!call.poll(world)).then_some(()));
        waiting.count() == 0
    });
    assert!(all && calls.iter().all(|call| call.is_answered));
    assert!(executions.counts.values().all(|count| *count == 1));
    assert!(most <= 2, "{most} handshakes at once");
    let refusals = world.hosts[SERVER].endpoint.counters().known_peer_refusals;
    assert_eq!(refusals, before);
}
