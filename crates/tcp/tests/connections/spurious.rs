//! Losses that are none, and losses of a special kind.

use weir_fabric::{FaultSettings, Rule};
use weir_tcp::{Config, LossDetection};
use weir_units::{ByteSize, Duration, Rate};

use crate::world::{Opening, Path, World};

fn steady(config: &Config, spec: &str) -> World {
    let path = Path {
        rate: Rate::from_mbps(100),
        ..Path::default()
    };
    let mut world = World::new(config, spec, Opening::Established, &path);
    world.record = true;
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(500));
    world
}

/// The path gets longer by half a second at once: everything is delayed, nothing lost.
fn after_a_delay_spike(config: &Config) -> World {
    let mut world = steady(config, "newreno,max_window=60KB");
    let before = world.client.counters().timeouts;
    world
        .to_server
        .set_delay(world.now, Duration::from_millis(500));
    world.run_for(Duration::from_millis(400));
    assert!(
        world.client.counters().timeouts > before,
        "{}",
        world.summary()
    );
    world
}

#[test]
fn a_spurious_time_out_is_taken_back() {
    // By F-RTO; by time stamps that tick fast enough; with either way of finding losses.
    for (timestamps, loss_detection) in [
        (None, LossDetection::RackTlp),
        (None, LossDetection::DuplicateThreshold),
        (Some(Duration::from_micros(10)), LossDetection::RackTlp),
    ] {
        let config = Config {
            timestamps,
            loss_detection,
            ..Config::default()
        };
        let mut world = after_a_delay_spike(&config);
        let collapsed = world.client.snapshot().congestion_window;
        world.run_for(Duration::from_millis(700));
        let restored = world.client.snapshot().congestion_window;
        let counters = world.client.counters();
        assert!(counters.spurious_recoveries > 0, "{}", world.summary());
        assert!(
            restored > collapsed * 3,
            "{collapsed} {restored} {}",
            world.summary()
        );
        // The flight was not sent again.
        assert!(counters.retransmitted_segments < 200, "{}", world.summary());
    }
}

#[test]
fn a_lost_tail_is_probed_before_the_time_out() {
    for (detection, most) in [
        (LossDetection::RackTlp, 20),
        (LossDetection::DuplicateThreshold, 250),
    ] {
        let config = Config {
            loss_detection: detection,
            ..Config::default()
        };
        let mut world = World::new(&config, "cubic", Opening::Established, &Path::default());
        world.client.write(ByteSize::from_bytes(1448 * 10));
        world.run_for(Duration::from_millis(100));
        // Of ten segments, the last two are lost.
        world.client.write(ByteSize::from_bytes(1448 * 8));
        world.flush();
        world.run_for(Duration::from_micros(100));
        world.to_server.set_rules([Rule::tail_drop(ByteSize::ZERO)]);
        world.to_server.set_faults(
            world.now,
            FaultSettings {
                down: true,
                ..FaultSettings::default()
            },
        );
        world.run_for(Duration::ZERO);
        world
            .to_server
            .set_faults(world.now, FaultSettings::default());
        world.client.write(ByteSize::from_bytes(1448 * 2));
        world.flush();
        world.to_server.set_rules([]);
        let start = world.now;
        assert!(world.run_until(10_000, |world| world.client.remaining().is_zero()));
        let took = world.now.since(start).as_millis();
        assert!(took <= most, "{detection:?}: {took} ms");
        let timeouts = world.client.counters().timeouts;
        assert_eq!(timeouts == 0, detection == LossDetection::RackTlp);
    }
}

#[test]
fn a_lost_retransmission_is_found_by_time() {
    let config = Config::default();
    let mut world = World::new(
        &config,
        "cubic,initial_window=40",
        Opening::Established,
        &Path::default(),
    );
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(3));
    let down = |down| FaultSettings {
        down,
        ..FaultSettings::default()
    };
    // A segment is lost, and so is its retransmission.
    world.to_server.set_faults(world.now, down(true));
    world.run_until(100_000, |world| {
        world.to_server.counters().dropped.total().packets >= 1
    });
    world.to_server.set_faults(world.now, down(false));
    assert!(world.run_until(
        100_000,
        |world| world.client.counters().retransmitted_segments >= 1
    ));
    world.run_for(Duration::from_micros(480));
    world.to_server.set_faults(world.now, down(true));
    world.run_for(Duration::from_micros(40));
    world.to_server.set_faults(world.now, down(false));
    world.run_for(Duration::from_millis(30));
    let counters = world.client.counters();
    assert_eq!(counters.timeouts, 0, "{}", world.summary());
    assert!(!world.client.snapshot().recovering, "{}", world.summary());
}

#[test]
fn reordering_widens_the_window_instead_of_reducing() {
    use weir_fabric::{Probability, Reordering};
    let mut world = World::new(
        &Config {
            delayed_acks: None,
            ..Config::default()
        },
        "newreno",
        Opening::Established,
        &Path {
            rate: Rate::from_mbps(500),
            faults: FaultSettings {
                reordering: Reordering {
                    probability: Probability::new(0.01).unwrap(),
                    delay: Duration::from_micros(200),
                },
                ..FaultSettings::default()
            },
            ..Path::default()
        },
    );
    world.client.write_endlessly();
    world.run_for(Duration::from_secs(2));
    let counters = world.client.counters();
    // 80,000 segments, 800 of them late: a quarter of a round trip is allowed.
    assert!(world.server.counters().out_of_order_segments > 500);
    assert!(counters.retransmitted_segments < 20, "{counters:?}");
}

/// One segment falls behind five others: fast retransmit was not needed. The peer says so by a
/// duplicate SACK, or the echo of a time stamp does, and the window comes back.
#[test]
fn a_spurious_fast_retransmit_is_taken_back() {
    use weir_fabric::{Probability, Reordering};
    for timestamps in [None, Some(Duration::from_micros(1))] {
        let config = Config {
            timestamps,
            loss_detection: LossDetection::DuplicateThreshold,
            delayed_acks: None,
            ..Config::default()
        };
        let mut world = steady(&config, "newreno,max_window=60KB");
        let before = world.client.snapshot().controller.ssthresh;
        let faults = FaultSettings {
            reordering: Reordering {
                probability: Probability::ALWAYS,
                delay: Duration::from_micros(600),
            },
            ..FaultSettings::default()
        };
        let late = world.to_server.faults().disturbances().reordered.packets;
        world.to_server.set_faults(world.now, faults);
        world.run_until(1_000, |world| {
            world.to_server.faults().disturbances().reordered.packets > late
        });
        world
            .to_server
            .set_faults(world.now, FaultSettings::default());
        world.run_for(Duration::from_millis(50));
        let counters = world.client.counters();
        assert_eq!(counters.fast_recoveries, 1, "{}", world.summary());
        assert_eq!(counters.spurious_recoveries, 1, "{}", world.summary());
        assert_eq!(counters.retransmitted_segments, 1, "{}", world.summary());
        assert_eq!(world.client.snapshot().controller.ssthresh, before);
    }
}
