//! A server that goes away (GOAWAY): what has begun is answered, what begins later is refused, and
//! nothing that the client takes for refused is executed.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{CLIENT, Plan, SERVER, World};
use proptest::prelude::*;
use weir_fabric::{FaultSettings, Probability, Reordering, Script, Verdict};
use weir_quic::{
    ConnectionError, ConnectionHandle, Direction, Event, Executed, GoAway, ReadError, Route,
    StreamId, WriteError,
};
use weir_units::{Duration, Time};

const CODE: u64 = 0x77;
const REASON: &[u8] = b"restart";

fn leaving() -> GoAway {
    GoAway {
        refusal_code: CODE,
        close_code: CODE,
        reason: REASON.to_vec(),
    }
}

/// How the client sees a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    Refused,
    /// The connection ended without a word about it.
    Unknown,
}

/// Calls of one client on one connection, and the server that answers them.
struct Calls {
    client: ConnectionHandle,
    server: ConnectionHandle,
    /// How long the server works on a call.
    work: Duration,
    open: BTreeSet<StreamId>,
    outcomes: BTreeMap<StreamId, Outcome>,
    /// When the server answers the calls that it executes.
    running: BTreeMap<StreamId, Time>,
    executed: BTreeSet<StreamId>,
}

impl Calls {
    fn new(client: ConnectionHandle, server: ConnectionHandle, work: Duration) -> Self {
        Self {
            client,
            server,
            work,
            open: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            running: BTreeMap::new(),
            executed: BTreeSet::new(),
        }
    }

    /// Begins a call; `false` where the client may not open a stream.
    fn begin(&mut self, world: &mut World, length: usize) -> bool {
        let Some(client) = world.hosts[CLIENT].connections.get_mut(&self.client) else {
            return false;
        };
        let Some(id) = client.open(Direction::Bidirectional) else {
            return false;
        };
        assert_eq!(client.write(id, &vec![1; length]), Ok(length));
        client.finish(id).unwrap();
        self.open.insert(id);
        true
    }

    /// Executes and answers calls.
    fn serve(&mut self, world: &mut World) {
        let now = world.now;
        let Some(server) = world.hosts[SERVER].connections.get_mut(&self.server) else {
            return;
        };
        while let Some(id) = server.accept(Direction::Bidirectional) {
            self.executed.insert(id);
            self.running.insert(id, now + self.work);
        }
        self.running.retain(|id, until| {
            if now < *until {
                return true;
            }
            match server.read(*id, usize::MAX) {
                Ok(Some(_)) | Err(ReadError::Blocked) => true,
                Ok(None) => {
                    assert_eq!(server.write(*id, b"answer"), Ok(6));
                    server.finish(*id).unwrap();
                    false
                }
                Err(error) => panic!("{id}: {error}"),
            }
        });
    }

    /// Records the outcomes of calls.
    fn collect(&mut self, world: &mut World) {
        let is_over = world.closed(self.client).is_some();
        let host = &mut world.hosts[CLIENT];
        let open = host.connections.get_mut(&self.client);
        let mut client = open.or_else(|| host.ended.get_mut(&self.client));
        let outcomes = &mut self.outcomes;
        self.open.retain(|id| {
            let outcome = match client.as_mut().map(|client| client.read(*id, usize::MAX)) {
                Some(Ok(Some(_))) => return true,
                Some(Ok(None)) => Outcome::Answered,
                Some(Err(ReadError::Refused | ReadError::Reset(CODE))) => Outcome::Refused,
                Some(Err(ReadError::Blocked)) if !is_over => return true,
                _ if is_over => Outcome::Unknown,
                other => panic!("{id}: {other:?}"),
            };
            outcomes.insert(*id, outcome);
            false
        });
    }

    /// Lets both applications run for `span`.
    fn run_for(&mut self, world: &mut World, span: Duration) {
        let end = world.now + span;
        while world.now < end {
            let step = Duration::from_micros(20).min(end.since(world.now));
            world.run_until(step, |world| {
                self.serve(world);
                world.transmit();
                self.collect(world);
                false
            });
            world.now = world.now.max(end.min(world.now + step));
        }
    }

    /// Runs until the connection is gone on both sides.
    fn finish(&mut self, world: &mut World, limit: Duration) {
        let end = world.now + limit;
        while world.now < end && !(self.open.is_empty() && self.is_gone(world)) {
            self.run_for(world, Duration::from_micros(100));
        }
        assert!(self.is_gone(world), "the connection is open");
    }

    fn is_gone(&self, world: &World) -> bool {
        !world.hosts[SERVER].connections.contains_key(&self.server)
            && !world.hosts[CLIENT].connections.contains_key(&self.client)
    }

    /// What holds on any network: executed calls are answered, all others are not executed.
    fn check(&self) {
        for (id, outcome) in &self.outcomes {
            let executed = self.executed.contains(id);
            assert_eq!(executed, *outcome == Outcome::Answered, "{id}: {outcome:?}");
        }
        assert!(self.open.is_empty() && self.running.is_empty());
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.values().filter(|is| **is == outcome).count()
    }
}

fn go_away(world: &mut World, server: ConnectionHandle) {
    let now = world.now;
    world.connection(SERVER, server).go_away(now, leaving());
}

fn has_left(world: &World, client: ConnectionHandle) -> bool {
    let event = (client, Event::GoingAway);
    world.hosts[CLIENT].events.contains(&event)
}

fn closed_by_server() -> Option<ConnectionError> {
    Some(ConnectionError::PeerApplication {
        code: CODE,
        reason: String::from_utf8_lossy(REASON).into_owned(),
    })
}

#[test]
fn an_idle_connection_closes_at_once_and_a_call_that_crosses_is_refused() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(20));
    let mut calls = Calls::new(client, server, Duration::ZERO);
    go_away(&mut world, server);
    assert!(calls.begin(&mut world, 100));
    let begun = world.now;
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.closed(client).is_some()
    }));
    let took = world.now.since(begun);
    assert!(took < Duration::from_micros(60), "{took}");
    assert!(has_left(&world, client));
    assert_eq!(world.closed(client), closed_by_server());
    calls.finish(&mut world, Duration::from_secs(1));
    calls.check();
    assert_eq!(calls.count(Outcome::Refused), 1);
}

#[test]
fn running_calls_are_answered_and_later_ones_are_refused() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let mut calls = Calls::new(client, server, Duration::from_millis(5));
    for _ in 0..20 {
        assert!(calls.begin(&mut world, 1000));
    }
    world.run_for(Duration::from_millis(1));
    calls.serve(&mut world);
    // These cross the GOAWAY.
    for _ in 0..10 {
        assert!(calls.begin(&mut world, 1000));
    }
    go_away(&mut world, server);
    world.run_for(Duration::from_micros(200));
    assert!(has_left(&world, client));
    assert!(world.connection(CLIENT, client).is_peer_going_away());
    assert!(!calls.begin(&mut world, 1000), "the client knows");
    let opened = world
        .connection(CLIENT, client)
        .open(Direction::Unidirectional);
    assert_eq!(opened, None);
    calls.collect(&mut world);
    assert_eq!(calls.count(Outcome::Refused), 10, "refused at once");
    let refused = *calls.outcomes.keys().next().unwrap();
    let connection = world.connection(CLIENT, client);
    assert!(connection.is_refused(refused));
    assert_eq!(connection.write(refused, b"more"), Err(WriteError::Refused));
    calls.finish(&mut world, Duration::from_secs(1));
    calls.check();
    assert_eq!(calls.count(Outcome::Answered), 20);
    assert_eq!(world.closed(client), closed_by_server());
}

#[test]
fn a_lost_go_away_is_repeated() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(20));
    let mut calls = Calls::new(client, server, Duration::from_millis(300));
    assert!(calls.begin(&mut world, 100));
    world.run_for(Duration::from_millis(1));
    calls.serve(&mut world);
    let now = world.now;
    world.egress_ports[SERVER].set_script(now, Some(Script::nth([0], Verdict::Drop)));
    go_away(&mut world, server);
    world.run_for(Duration::from_micros(100));
    assert!(!has_left(&world, client));
    world.run_for(Duration::from_millis(100));
    assert!(has_left(&world, client));
    calls.finish(&mut world, Duration::from_secs(1));
    calls.check();
    assert_eq!(calls.count(Outcome::Answered), 1);
}

#[test]
fn a_peer_without_go_away_finishes_its_calls_and_later_ones_are_reset() {
    let mut plan = Plan::default();
    plan.client.go_away = false;
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    let mut calls = Calls::new(client, server, Duration::from_millis(5));
    assert!(calls.begin(&mut world, 1000));
    world.run_for(Duration::from_millis(1));
    calls.serve(&mut world);
    go_away(&mut world, server);
    world.run_for(Duration::from_millis(1));
    assert!(!has_left(&world, client));
    assert!(calls.begin(&mut world, 1000));
    calls.finish(&mut world, Duration::from_secs(1));
    calls.check();
    assert_eq!(calls.count(Outcome::Answered), 1);
    assert_eq!(calls.count(Outcome::Refused), 1);
    assert_eq!(world.closed(client), closed_by_server());
}

#[test]
fn a_forced_close_refuses_what_was_not_accepted() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let mut calls = Calls::new(client, server, Duration::from_secs(100));
    for _ in 0..3 {
        assert!(calls.begin(&mut world, 100));
        world.run_for(Duration::from_millis(1));
    }
    let accepted = world
        .connection(SERVER, server)
        .accept(Direction::Bidirectional)
        .unwrap();
    go_away(&mut world, server);
    world.run_for(Duration::from_millis(1));
    let now = world.now;
    world.connection(SERVER, server).close(now, 9, b"too late");
    world.run_for(Duration::from_millis(1));
    calls.collect(&mut world);
    assert_eq!(calls.outcomes.len(), 3);
    for (id, outcome) in &calls.outcomes {
        let expected = if *id == accepted {
            Outcome::Unknown
        } else {
            Outcome::Refused
        };
        assert_eq!(*outcome, expected, "{id}");
    }
}

#[test]
fn an_unread_stream_keeps_the_connection_open() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Unidirectional).unwrap();
    connection.write(id, b"message").unwrap();
    connection.finish(id).unwrap();
    world.run_for(Duration::from_millis(20));
    go_away(&mut world, server);
    world.run_for(Duration::from_millis(100));
    let connection = world.connection(SERVER, server);
    let id = connection.accept(Direction::Unidirectional).unwrap();
    assert_eq!(connection.read(id, 100).unwrap().unwrap(), &b"message"[..]);
    assert_eq!(connection.read(id, 100).unwrap(), None);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.closed(client), closed_by_server());
}

#[test]
fn a_lasting_stream_does_not_keep_the_connection_open() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    // Each side has one, as in HTTP/3.
    for (host, handle) in [(CLIENT, client), (SERVER, server)] {
        let connection = world.connection(host, handle);
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.write(id, b"settings").unwrap();
        connection.set_lasting(id);
    }
    world.run_for(Duration::from_millis(20));
    go_away(&mut world, server);
    world.run_for(Duration::from_millis(100));
    // The client's is not accepted yet.
    assert_eq!(world.closed(client), None);
    let connection = world.connection(SERVER, server);
    let id = connection.accept(Direction::Unidirectional).unwrap();
    connection.set_lasting(id);
    assert_eq!(connection.read(id, 100).unwrap().unwrap(), &b"settings"[..]);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.closed(client), closed_by_server());
}

#[test]
fn a_client_may_go_away_too() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    let now = world.now;
    world.connection(CLIENT, client).go_away(now, leaving());
    world.run_for(Duration::from_millis(100));
    let events = &world.hosts[SERVER].events;
    assert!(events.contains(&(server, Event::GoingAway)));
    assert!(world.hosts[CLIENT].connections.is_empty());
}

#[test]
fn a_handshake_under_way_is_refused() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    assert!(world.run_until(Duration::from_secs(1), |world| {
        !world.hosts[SERVER].connections.is_empty()
    }));
    let server = *world.hosts[SERVER].connections.keys().next().unwrap();
    go_away(&mut world, server);
    world.run_for(Duration::from_millis(1));
    let error = world.closed(client);
    assert!(
        matches!(error, Some(ConnectionError::Refused { .. })),
        "{error:?}"
    );
}

#[test]
fn newcomers_are_refused_at_once() {
    let mut world = World::new(Plan::default());
    world.hosts[SERVER].endpoint.refuse_new();
    let begun = world.now;
    let client = world.connect();
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.closed(client).is_some()
    }));
    let took = world.now.since(begun);
    assert!(took < Duration::from_micros(60), "{took}");
    let error = world.closed(client);
    assert!(
        matches!(error, Some(ConnectionError::Refused { .. })),
        "{error:?}"
    );
}

#[test]
fn a_known_peer_is_refused_at_once_and_its_request_is_never_executed() {
    let mut world = World::new(Plan::default()).with_known_peers(Default::default());
    world.connected();
    world.run_for(Duration::from_millis(5));
    world.hosts[SERVER].endpoint.refuse_new();
    let begun = world.now;
    let client = world.connect();
    let connection = world.connection(CLIENT, client);
    assert!(connection.is_known_peer());
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"request").unwrap();
    connection.finish(id).unwrap();
    let first = world.datagram(client);
    let source = world.hosts[CLIENT].addresses[0];
    let Route::Reply(refusal) = world.route(source, &first) else {
        panic!("no answer");
    };
    world.inject(client, refusal);
    world.transmit();
    assert_eq!(world.now, begun);
    let error = world.closed(client);
    assert!(
        matches!(error, Some(ConnectionError::Refused { .. })),
        "{error:?}"
    );
    // Its key is used up: no copy of the packet can be executed by another endpoint.
    let clients = world.server_config().known_clients.unwrap();
    assert!(matches!(world.route(source, &first), Route::Reply(_)));
    assert_eq!(clients.counters().replays, 1);
}

#[test]
fn a_known_peer_whose_refusal_is_lost_does_not_know() {
    let mut world = World::new(Plan::default()).with_known_peers(Default::default());
    world.connected();
    world.run_for(Duration::from_millis(5));
    world.hosts[SERVER].endpoint.refuse_new();
    let now = world.now;
    world.egress_ports[SERVER].set_script(now, Some(Script::nth([0], Verdict::Drop)));
    let client = world.connect();
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"request").unwrap();
    connection.finish(id).unwrap();
    assert!(world.run_until(Duration::from_secs(5), |world| {
        world.closed(client).is_some()
    }));
    let error = world.closed(client).unwrap();
    assert_eq!(error.executed(), Executed::Maybe, "{error}");
    assert_eq!(world.hosts[SERVER].connections.len(), 1);
}

#[test]
fn a_full_server_refuses_known_peers_at_once() {
    let plan = Plan {
        max_connections: 1,
        ..Plan::default()
    };
    let mut world = World::new(plan).with_known_peers(Default::default());
    world.connected();
    world.run_for(Duration::from_millis(5));
    let client = world.connect();
    assert!(world.connection(CLIENT, client).is_known_peer());
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"request").unwrap();
    world.run_for(Duration::from_millis(1));
    let error = world.closed(client).unwrap();
    assert!(matches!(error, ConnectionError::Refused { .. }), "{error}");
}

fn percent(value: u8) -> Probability {
    Probability::new(f64::from(value) / 100.0).unwrap()
}

proptest! {
    #[test]
    fn no_call_is_lost_or_executed_unseen_on_any_network(
        seed in 0..1_000_000_u64,
        loss in 0..10_u8,
        duplication in 0..10_u8,
        reordering in 0..20_u8,
        work_micros in 0..2_000_u64,
        interval_micros in 1..100_u64,
        before in 0..60_usize,
        after in 0..60_usize,
        length in 0..5_000_usize,
    ) {
        let plan = Plan { seed, ..Plan::default() };
        let mut world = World::new(plan);
        let (client, server) = world.connected();
        world.set_faults(FaultSettings {
            loss: percent(loss),
            duplication: percent(duplication),
            reordering: Reordering {
                probability: percent(reordering),
                delay: Duration::from_micros(300),
            },
            ..Default::default()
        });
        let mut calls = Calls::new(client, server, Duration::from_micros(work_micros));
        for number in 0..before + after {
            if number == before {
                go_away(&mut world, server);
            }
            calls.begin(&mut world, length);
            calls.run_for(&mut world, Duration::from_micros(interval_micros));
        }
        if after == 0 {
            go_away(&mut world, server);
        }
        calls.finish(&mut world, Duration::from_secs(120));
        calls.check();
        if loss == 0 {
            prop_assert_eq!(calls.count(Outcome::Unknown), 0);
        }
    }
}
