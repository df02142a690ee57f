//! Deadlines rounded up to the kernel's tick: what they cost where packets get lost, and what not.

use proptest::prelude::*;

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use weir_fabric::{FaultSettings, Probability};
use weir_quic::{ConnectionHandle, Direction, Event};
use weir_units::{Duration, Rate};

const TICK: Duration = Duration::from_millis(4);

/// Hosts with this tick, whose packets get lost with this probability.
fn world(tick: Duration, loss: f64) -> (World, ConnectionHandle, ConnectionHandle) {
    let mut world = World::new(Plan {
        timer_tick: tick,
        rate: Rate::from_gbps(1),
        ..Plan::default()
    });
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(20));
    let faults = FaultSettings {
        loss: Probability::new(loss).unwrap(),
        ..FaultSettings::default()
    };
    world.set_faults(faults);
    (world, client, server)
}

/// Returns the durations of this many transfers of 10 KB from the server, ascending.
fn durations(tick: Duration, loss: f64, count: usize) -> Vec<Duration> {
    let (mut world, client, server) = world(tick, loss);
    let data = pattern(10_000);
    let mut all: Vec<_> = (0..count)
        .map(|_| {
            let begun = world.now;
            let ends = ((SERVER, server), (CLIENT, client));
            let arrived = world.transfer(ends.0, ends.1, &data, Duration::from_secs(5));
            assert_eq!(arrived.as_deref(), Some(&data[..]));
            let duration = world.now.since(begun);
            world.run_for(Duration::from_micros(300));
            duration
        })
        .collect();
    all.sort_unstable();
    all
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// Returns the mean of the slowest two in a hundred. The 99th percentile itself is on an edge: the last
/// packet of about one transfer in a hundred is lost.
fn slowest(sorted: &[Duration]) -> Duration {
    let slow = &sorted[sorted.len() * 98 / 100..];
    let sum = slow
        .iter()
        .fold(Duration::ZERO, |sum, duration| sum + *duration);
    sum / slow.len() as u64
}

#[test]
fn ticks_do_not_delay_the_tail_where_one_packet_in_a_hundred_is_lost() {
    let exact = durations(Duration::ZERO, 0.01, 4_000);
    let ticked = durations(TICK, 0.01, 4_000);
    for percent in [50, 90] {
        let (exact, ticked) = (percentile(&exact, percent), percentile(&ticked, percent));
        assert!(
            ticked <= exact * 11 / 10,
            "p{percent}: {exact} and {ticked}"
        );
    }
    assert!(
        slowest(&ticked) <= slowest(&exact) * 11 / 10,
        "{} and {}",
        slowest(&exact),
        slowest(&ticked)
    );
    // The tail does wait for timers, or the comparison says nothing.
    assert!(slowest(&exact) > percentile(&exact, 50) * 2);
}

#[test]
fn the_first_lost_tail_waits_for_the_tick_and_the_next_does_not() {
    let (mut world, client, server) = world(TICK, 0.0);
    let data = pattern(1_000);
    let mut lose_one = || {
        world.set_faults(FaultSettings {
            loss: Probability::new(1.0).unwrap(),
            ..FaultSettings::default()
        });
        let begun = world.now;
        let id = world
            .connection(SERVER, server)
            .open(Direction::Unidirectional)
            .unwrap();
        let sender = world.connection(SERVER, server);
        sender.write(id, &data).unwrap();
        sender.finish(id).unwrap();
        world.run_for(Duration::from_micros(100));
        world.set_faults(FaultSettings::default());
        assert!(world.run_until(Duration::from_secs(1), |world| {
            let receiver = world.connection(CLIENT, client);
            receiver.accept(Direction::Unidirectional).is_some()
        }));
        let waited = world.now.since(begun);
        world.run_for(Duration::from_millis(10));
        waited
    };
    let (first, second) = (lose_one(), lose_one());
    assert!(first > second && first < TICK * 4, "{first}");
    assert!(second < Duration::from_millis(2), "{second}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn without_losses_timeouts_are_ticks(pause in 1..200_u64) {
        let (mut world, client, server) = world(TICK, 0.0);
        let ends = ((SERVER, server), (CLIENT, client));
        for _ in 0..3 {
            let arrived = world.transfer(ends.0, ends.1, &[7; 500], Duration::from_secs(1));
            prop_assert!(arrived.is_some());
            for (host, handle) in [(CLIENT, client), (SERVER, server)] {
                let timeout = world.connection(host, handle).timeout().unwrap();
                prop_assert_eq!(timeout.as_nanos() % TICK.as_nanos(), 0, "{:?}", timeout);
            }
            world.run_for(Duration::from_micros(pause));
        }
    }
}

#[test]
fn a_sender_that_waits_for_acks_waits_once() {
    let (mut world, client, server) = world(TICK, 0.0);
    let ends = ((SERVER, server), (CLIENT, client));
    let mut acked_after = || {
        let arrived = world.transfer(ends.0, ends.1, &[7; 500], Duration::from_secs(1));
        assert!(arrived.is_some());
        let begun = world.now;
        assert!(world.run_until(Duration::from_secs(1), |world| {
            !world.connection(SERVER, server).reply_due()
        }));
        let waited = world.now.since(begun);
        world.run_for(Duration::from_millis(1));
        waited
    };
    let (first, second) = (acked_after(), acked_after());
    assert!(first > TICK && first <= TICK * 3, "{first}");
    assert!(second < Duration::from_micros(100), "{second}");
}

/// The timers of a client with a standby path are exact, those of its server may not be.
#[test]
fn a_slow_answer_looks_like_no_failure_of_the_path() {
    let (mut world, client, server) = world(TICK, 0.0);
    world.add_standby(client);
    world.run_for(Duration::from_millis(50));
    let before = world.connection(CLIENT, client).stats().probe_timeouts;
    for _ in 0..100 {
        let connection = world.connection(CLIENT, client);
        let id = connection.open(Direction::Bidirectional).unwrap();
        connection.write(id, &[7; 100]).unwrap();
        connection.finish(id).unwrap();
        world.run_for(Duration::from_millis(6));
        let connection = world.connection(SERVER, server);
        let id = connection.accept(Direction::Bidirectional).unwrap();
        while let Ok(Some(_)) = connection.read(id, usize::MAX) {}
        connection.write(id, &[7; 100]).unwrap();
        connection.finish(id).unwrap();
        world.run_for(Duration::from_millis(1));
        let connection = world.connection(CLIENT, client);
        while let Ok(Some(_)) = connection.read(id, usize::MAX) {}
    }
    let probes = world.connection(CLIENT, client).stats().probe_timeouts - before;
    let moves = world.hosts[CLIENT].events.iter();
    let moves = moves.filter(|(_, event)| matches!(event, Event::Moving(_)));
    assert_eq!(moves.count(), 0);
    assert!(probes <= 1, "{probes}");
}
