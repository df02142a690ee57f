//! Proactive migration end to end: requests over a client's two paths, one of which fails (DCQUIC
//! paper, section 4.3).
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod world;

use weir_fabric::{FaultSettings, Probability};
use weir_quic::{ConnectionHandle, Direction, Event, StreamId};
use weir_units::{Duration, Time};
use world::{CLIENT, Plan, SERVER, World, pattern};

/// A request is this long.
const REQUEST: usize = 100;

/// An RPC client with two interfaces, and a server that answers.
struct Rpc {
    world: World,
    client: ConnectionHandle,
    server: ConnectionHandle,
    response: Vec<u8>,
}

impl Rpc {
    fn new(plan: Plan, response: usize) -> Self {
        let mut world = World::new(plan);
        let (client, server) = world.connected();
        let first = world.hosts[CLIENT].addresses[0];
        let spare = world.add_interface();
        let now = world.now;
        let connection = world.connection(CLIENT, client);
        connection.add_local_address(now, first);
        connection.add_local_address(now, spare);
        let mut rpc = Self {
            world,
            client,
            server,
            response: pattern(response),
        };
        rpc.world.run_for(Duration::from_millis(5));
        for _ in 0..60 {
            rpc.call();
        }
        rpc
    }

    /// One request and its response: how long that took.
    fn call(&mut self) -> Duration {
        let begin = self.world.now;
        let client = self.world.connection(CLIENT, self.client);
        let id = client.open(Direction::Bidirectional).unwrap();
        client.write(id, &pattern(REQUEST)).unwrap();
        client.finish(id).unwrap();
        self.wait_for(id);
        self.world.now.since(begin)
    }

    fn wait_for(&mut self, id: StreamId) {
        let (client, server) = (self.client, self.server);
        let response = self.response.clone();
        let mut got = 0;
        let mut answering: Option<(StreamId, usize)> = None;
        let answered = self.world.run_until(Duration::from_secs(60), |world| {
            let connection = world.connection(SERVER, server);
            if let Some(id) = connection.accept(Direction::Bidirectional) {
                answering = Some((id, 0));
            }
            if let Some((id, sent)) = &mut answering {
                while let Ok(Some(_)) = connection.read(*id, usize::MAX) {}
                while *sent < response.len()
                    && let Ok(count) = connection.write(*id, &response[*sent..])
                {
                    *sent += count;
                }
                if *sent == response.len() {
                    connection.finish(*id).unwrap();
                    answering = None;
                }
                world.transmit();
            }
            let connection = world.connection(CLIENT, client);
            loop {
                match connection.read(id, usize::MAX) {
                    Ok(Some(bytes)) => got += bytes.len(),
                    Ok(None) => return true,
                    Err(weir_quic::ReadError::Blocked) => return false,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert!(answered, "a request was lost");
        assert_eq!(got, self.response.len());
    }

    fn first_path(&mut self, faults: FaultSettings) {
        let now = self.world.now;
        for pipe in &mut self.world.pipes {
            pipe.set_faults(now, faults);
        }
    }

    fn moves(&self) -> Vec<String> {
        let events = &self.world.hosts[CLIENT].events;
        events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Moving(decision) => Some(decision.cause.name().to_owned()),
                _ => None,
            })
            .collect()
    }

    fn closed(&self) -> bool {
        let events = self.world.hosts.iter().flat_map(|host| &host.events);
        events
            .map(|(_, event)| event)
            .any(|event| matches!(event, Event::Closed(_)))
    }
}

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        // Two paths with a round trip of 100 µs.
        delay: Duration::from_micros(50),
        ..Plan::default()
    }
}

fn dark() -> FaultSettings {
    FaultSettings {
        loss: Probability::new(1.0).unwrap(),
        ..FaultSettings::default()
    }
}

/// The path goes dark at some moment of a call: how long until the first byte over the other one
/// arrives, in probe timeouts and a round trip.
fn interruption(seed: u64, response: usize) -> (Duration, Duration) {
    let mut rpc = Rpc::new(plan(seed), response);
    let stats = rpc.world.connection(CLIENT, rpc.client).stats();
    let path = &stats.paths[0];
    // RFC 9002, section 6.2.1, with the granularity and the ACK delay of the data center profile.
    let pto = path.smoothed_rtt
        + (path.rtt_variation * 4).max(Duration::from_micros(50))
        + Duration::from_micros(500);
    let bound = pto * 3 + path.smoothed_rtt;
    let client = rpc.world.connection(CLIENT, rpc.client);
    let id = client.open(Direction::Bidirectional).unwrap();
    client.write(id, &pattern(REQUEST)).unwrap();
    client.finish(id).unwrap();
    rpc.world.transmit();
    rpc.world
        .run_for(Duration::from_nanos((seed * 7_919) % 150_000));
    rpc.first_path(dark());
    let went_dark: Time = rpc.world.now;
    let spare_packets = |rpc: &Rpc| rpc.world.spare_pipes[0][SERVER].counters().departed.packets;
    let before = spare_packets(&rpc);
    rpc.wait_for(id);
    let silence = rpc.world.now.since(went_dark);
    if spare_packets(&rpc) == before {
        // All of it had left the first path before.
        return (Duration::ZERO, bound);
    }
    assert_eq!(rpc.moves(), ["interruption"]);
    assert!(!rpc.closed());
    (silence, bound)
}

#[test]
fn a_dark_path_is_left_within_three_probe_timeouts() {
    let mut longest = Duration::ZERO;
    for seed in 0..100 {
        let (silence, bound) = interruption(seed, 1_000);
        assert!(silence <= bound, "seed {seed}: {silence} > {bound}");
        longest = longest.max(silence);
    }
    assert!(longest > Duration::from_micros(500), "{longest}");
}

#[test]
fn nothing_is_lost_with_long_responses_either() {
    for seed in 0..30 {
        interruption(seed, 100_000);
    }
}

#[test]
fn an_added_delay_is_seen_by_two_requests_at_most() {
    for seed in 0..10 {
        let mut rpc = Rpc::new(plan(seed), 1_000);
        let now = rpc.world.now;
        rpc.world.pipes[CLIENT].set_delay(now, Duration::from_millis(100));
        let slow = (0..30)
            .map(|_| rpc.call())
            .filter(|time| *time > Duration::from_millis(5))
            .count();
        assert!(slow <= 2, "seed {seed}: {slow} slow requests");
        assert_eq!(rpc.moves().len(), 1);
    }
}

#[test]
fn a_path_that_heals_can_be_returned_to() {
    let mut plan = plan(1);
    plan.client.migration.return_after = Some(Duration::from_secs(3));
    let mut rpc = Rpc::new(plan, 1_000);
    rpc.first_path(dark());
    rpc.call();
    rpc.first_path(FaultSettings::default());
    for _ in 0..400 {
        rpc.call();
        rpc.world.run_for(Duration::from_millis(50));
    }
    assert_eq!(rpc.moves(), ["interruption", "return"]);
}

#[test]
fn nobody_moves_who_was_told_to_stay() {
    let mut plan = plan(1);
    plan.client.migration.proactive = false;
    let mut rpc = Rpc::new(plan, 1_000);
    let now = rpc.world.now;
    rpc.world.pipes[CLIENT].set_delay(now, Duration::from_millis(20));
    for _ in 0..10 {
        assert!(rpc.call() > Duration::from_millis(20));
    }
    assert_eq!(rpc.moves().len(), 0);
}

#[test]
fn nothing_that_fails_means_no_move() {
    for seed in 0..5 {
        let mut plan = plan(seed);
        plan.faults.loss = Probability::new(0.001).unwrap();
        let mut rpc = Rpc::new(plan, 10_000);
        for _ in 0..1_000 {
            rpc.call();
        }
        assert_eq!(rpc.moves().len(), 0);
    }
}
