//! Spurious losses, and special kinds of losses.

use weir_fabric::{FaultSettings, Rule, Script, Verdict};
use weir_tcp::{Config, LossDetection};
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::tcp::Sequence;

use crate::world::{Datagram, Opening, Path, Side, World};

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

/// The path delay grows by half a second at once: everything is delayed, nothing lost.
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
fn a_spurious_timeout_is_undone() {
    // By F-RTO; by timestamps with short ticks; with both kinds of loss detection.
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
fn without_frto_a_spurious_timeout_passes_for_a_loss() {
    let config = Config {
        timestamps: None,
        sack: false,
        frto: false,
        ..Config::default()
    };
    let mut world = after_a_delay_spike(&config);
    world.run_for(Duration::from_millis(700));
    let counters = world.client.counters();
    assert_eq!(counters.spurious_recoveries, 0, "{}", world.summary());
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
fn a_lost_retransmission_is_detected_by_time() {
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
fn tolerated_reordering_causes_few_retransmissions() {
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
    // 80,000 segments, 800 of them late by at most the tolerated quarter of a round trip.
    assert!(world.server.counters().out_of_order_segments > 500);
    assert!(counters.retransmitted_segments < 20, "{counters:?}");
}

/// One segment arrives after five later ones: fast retransmit was spurious. A D-SACK or a timestamp
/// echo reports it, and the window is restored.
#[test]
fn a_spurious_fast_retransmit_is_undone() {
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
        let late = world
            .to_server
            .faults()
            .unwrap()
            .fault_counters()
            .reordered
            .packets;
        world.to_server.set_faults(world.now, faults);
        world.run_until(1_000, |world| {
            world
                .to_server
                .faults()
                .unwrap()
                .fault_counters()
                .reordered
                .packets
                > late
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

fn down(down: bool) -> FaultSettings {
    FaultSettings {
        down,
        ..FaultSettings::default()
    }
}

/// Drops the next packet on the path.
fn drop_next(world: &mut World) {
    let dropped = world.to_server.counters().dropped.total().packets;
    world.to_server.set_faults(world.now, down(true));
    assert!(world.run_until(1_000, |world| {
        world.to_server.counters().dropped.total().packets > dropped
    }));
    world.to_server.set_faults(world.now, down(false));
}

/// RFC 5681, section 3.1: ssthresh is halved once, even if the same data times out repeatedly.
#[test]
fn repeated_time_outs_hold_the_threshold() {
    let mut world = steady(&Config::default(), "newreno,max_window=60KB");
    world.to_server.set_faults(world.now, down(true));
    let ssthresh = |world: &World| world.client.snapshot().controller.ssthresh;
    assert!(world.run_until(10_000, |world| world.client.counters().timeouts == 1));
    let first = ssthresh(&world);
    assert!(first > Some(ByteSize::from_bytes(25_000)), "{first:?}");
    assert!(world.run_until(10_000, |world| world.client.counters().timeouts == 4));
    assert_eq!(ssthresh(&world), first);
}

/// A lost retransmission belongs to the recovery in which it was sent.
#[test]
fn a_lost_retransmission_does_not_reduce_the_window_again() {
    let mut world = steady(&Config::default(), "newreno,max_window=60KB");
    let before = world.client.snapshot().congestion_window;
    drop_next(&mut world);
    assert!(world.run_until(1_000, |world| world.client.snapshot().recovering));
    // The peer waits for the lost segment; its retransmission is in flight.
    let first = world.to_server.counters().dropped.total().packets;
    let lost = Sequence::new(1_001) + world.client.acknowledged().bytes() as u32;
    let script = Script::new(move |_, packet: &Datagram| {
        (packet.segment.sequence == lost).then_some(Verdict::Drop)
    });
    world.to_server.set_script(world.now, Some(script));
    assert!(world.run_until(1_000, |world| {
        world.to_server.counters().dropped.total().packets > first
    }));
    world.to_server.set_script(world.now, None);
    assert!(world.run_until(1_000, |world| !world.client.snapshot().recovering));
    let counters = world.client.counters();
    assert_eq!((counters.timeouts, counters.fast_recoveries), (0, 1));
    assert!(counters.retransmitted_segments >= 2);
    let after = world.client.snapshot().congestion_window;
    assert!(after.bytes() * 10 >= before.bytes() * 4, "{before} {after}");
}

/// RFC 6675, section 5: until the data outstanding at its start has been acknowledged, further
/// losses belong to the same recovery. Earlier retransmissions do not prove that the new loss was
/// spurious.
#[test]
fn a_loss_during_recovery_does_not_reduce_the_window_again() {
    let config = Config {
        timestamps: Some(Duration::from_micros(10)),
        ..Config::default()
    };
    let mut world = steady(&config, "newreno,max_window=60KB");
    drop_next(&mut world);
    let first = world.to_server.counters().dropped.total().packets;
    assert!(world.run_until(1_000, |world| world.client.snapshot().recovering));
    let threshold = world.client.snapshot().controller.ssthresh;
    // The retransmission is lost, which prolongs recovery, and so is the second new segment.
    let lost = Sequence::new(1_001) + world.client.acknowledged().bytes() as u32;
    let sent = world
        .sent
        .iter()
        .filter(|(_, side, _)| *side == Side::Client);
    let last = sent.max_by_key(|(_, _, datagram)| datagram.segment.sequence.distance_from(lost));
    let new = last.unwrap().2.segment.sequence + 2 * 1448;
    let mut due = vec![lost, new];
    let script = Script::new(move |_, packet: &Datagram| {
        let found = due.iter().position(|&due| due == packet.segment.sequence);
        found.map(|index| {
            due.swap_remove(index);
            Verdict::Drop
        })
    });
    world.to_server.set_script(world.now, Some(script));
    assert!(world.run_until(1_000, |world| !world.client.snapshot().recovering));
    let dropped = world.to_server.counters().dropped.total().packets;
    assert_eq!(dropped, first + 2);
    let counters = world.client.counters();
    assert_eq!((counters.timeouts, counters.fast_recoveries), (0, 1));
    assert_eq!(counters.spurious_recoveries, 0, "{}", world.summary());
    assert_eq!(world.client.snapshot().controller.ssthresh, threshold);
}

/// RFC 8985, section 7.4: a loss repaired by a probe is still a loss.
#[test]
fn a_loss_repaired_by_a_tail_probe_is_reported_to_the_controller() {
    let mut world = World::new(
        &Config::default(),
        "newreno",
        Opening::Established,
        &Path::default(),
    );
    world.client.write(ByteSize::from_bytes(1448 * 10));
    world.run_for(Duration::from_millis(100));
    world.client.write(ByteSize::from_bytes(1448));
    drop_next(&mut world);
    assert!(world.run_until(1_000, |world| world.client.remaining().is_zero()));
    assert_eq!(world.client.counters().tail_loss_probes, 1);
    world.client.write(ByteSize::from_bytes(1448));
    world.run_for(Duration::from_millis(100));
    let counters = world.client.counters();
    assert_eq!((counters.timeouts, counters.lost.bytes()), (0, 1448));
    assert!(world.client.snapshot().controller.ssthresh.is_some());
}
