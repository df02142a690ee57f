//! Congestion control in a connection: windows, reductions, timeouts, marks.

use weir_fabric::{FaultSettings, Probability, Rule};
use weir_tcp::{Config, EcnMode, LossDetection};
use weir_units::{ByteSize, Duration, Rate};

use crate::world::{Opening, Path, World};

const MSS: u64 = 1448;

fn without_delayed_acks() -> Config {
    Config {
        delayed_acks: None,
        ..Config::default()
    }
}

fn window(world: &World) -> u64 {
    world.client.snapshot().congestion_window.bytes() / MSS
}

#[test]
fn slow_start_doubles_per_round_trip() {
    for config in [without_delayed_acks(), Config::default()] {
        let mut world = World::new(
            &config,
            "newreno",
            Opening::Established,
            &Path {
                rate: Rate::MAX,
                ..Path::default()
            },
        );
        world.client.write_endlessly();
        world.run_for(Duration::from_micros(10));
        for round in 1..=5 {
            world.run_for(Duration::from_millis(1));
            assert_eq!(window(&world), 10 << round);
        }
    }
}

/// Drops exactly one data segment of a long flow. Returns the windows before and after.
fn after_one_loss(spec: &str, config: &Config) -> (u64, u64, World) {
    let path = Path {
        rate: Rate::from_gbps(1),
        ..Path::default()
    };
    let mut world = World::new(config, spec, Opening::Established, &path);
    world.client.write_endlessly();
    world.run_until(100_000, |world| window(world) >= 60);
    let before = window(&world);
    world.to_server.set_rules([Rule::tail_drop(ByteSize::ZERO)]);
    let dropped = world.to_server.queue().counters().dropped.total().packets;
    world.run_until(100_000, |world| {
        world.to_server.queue().counters().dropped.total().packets > dropped
    });
    world.to_server.set_rules([]);
    world.run_until(100_000, |world| world.client.snapshot().recovering);
    world.run_until(100_000, |world| !world.client.snapshot().recovering);
    (before, window(&world), world)
}

#[test]
fn one_loss_is_one_reduction() {
    for detection in [LossDetection::RackTlp, LossDetection::DuplicateThreshold] {
        for sack in [true, false] {
            for (spec, factor) in [("newreno", 0.5), ("cubic", 0.7), ("dctcp", 0.5)] {
                let config = Config {
                    sack,
                    loss_detection: detection,
                    ..without_delayed_acks()
                };
                let (before, after, world) = after_one_loss(spec, &config);
                let counters = world.client.counters();
                let context =
                    format!("{spec} {detection:?} sack {sack}: {before} {after} {counters:?}");
                assert_eq!(counters.fast_recoveries, 1, "{context}");
                assert_eq!(counters.timeouts, 0, "{context}");
                // The window kept growing until the loss was detected.
                assert!(after as f64 >= before as f64 * factor, "{context}");
                assert!(
                    after as f64 <= before as f64 * 2.0 * factor + 2.0,
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn the_sender_learns_the_true_marked_byte_count() {
    for delayed in [false, true] {
        let config = Config {
            ecn: EcnMode::Dctcp,
            ..if delayed {
                Config::default()
            } else {
                without_delayed_acks()
            }
        };
        let path = Path {
            rate: Rate::from_gbps(1),
            rules: vec![Rule::mark_randomly(Probability::new(0.2).unwrap())],
            ..Path::default()
        };
        let mut world = World::new(&config, "dctcp", Opening::Established, &path);
        world.client.write_endlessly();
        world.run_for(Duration::from_millis(500));
        let (sender, receiver) = (world.client.counters(), world.server.counters());
        let told = sender.ece_acknowledged.bytes() as f64;
        let truth = (receiver.ce_received * MSS) as f64;
        assert!(truth > 1e5, "delayed {delayed}: {truth}");
        // The difference is still in flight.
        assert!(
            (told - truth).abs() < 10_000.0,
            "delayed {delayed}: {told} of {truth}"
        );
        assert_eq!(sender.retransmitted_segments, 0);
    }
}

#[test]
fn timeouts_back_off_while_the_peer_is_silent() {
    let path = Path {
        faults: FaultSettings::default(),
        ..Path::default()
    };
    let mut world = World::new(
        &without_delayed_acks(),
        "cubic",
        Opening::Established,
        &path,
    );
    world.client.write(ByteSize::from_bytes(100 * MSS));
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.client.remaining(), ByteSize::ZERO);
    world.to_server.set_faults(
        world.now,
        FaultSettings {
            down: true,
            ..FaultSettings::default()
        },
    );
    world.record = true;
    let start = world.now;
    world.client.write(ByteSize::from_bytes(MSS));
    world.run_for(Duration::from_secs(1_200));
    let times: Vec<u64> = world
        .sent
        .iter()
        .map(|(at, ..)| at.since(start).as_nanos())
        .collect();
    // The segment, a probe when the RTO was due, then timeouts: 200 ms beyond the RTT.
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((200_000_000..205_000_000).contains(&gaps[0]), "{gaps:?}");
    assert!(
        gaps[1..]
            .windows(2)
            .all(|pair| pair[1] == (2 * pair[0]).min(120_000_000_000)),
        "{gaps:?}"
    );
    assert_eq!(world.client.counters().tail_loss_probes, 1);
    assert_eq!(world.client.counters().timeouts, 15);
    assert_eq!(world.client.ending(), Some(weir_tcp::Ending::TimedOut));
}

/// After a timeout slow start repairs the losses: a completely lost window takes a number of round
/// trips logarithmic in its size, not linear.
#[test]
fn a_lost_window_is_retransmitted_in_slow_start_after_a_timeout() {
    for detection in [LossDetection::RackTlp, LossDetection::DuplicateThreshold] {
        let config = Config {
            loss_detection: detection,
            ..without_delayed_acks()
        };
        let path = Path {
            rate: Rate::MAX,
            ..Path::default()
        };
        let spec = "newreno,initial_window=200";
        let mut world = World::new(&config, spec, Opening::Established, &path);
        let down = |down| FaultSettings {
            down,
            ..FaultSettings::default()
        };
        world.to_server.set_faults(world.now, down(true));
        world.client.write(ByteSize::from_bytes(200 * MSS));
        world.run_for(Duration::from_millis(10));
        world.to_server.set_faults(world.now, down(false));
        world.run_until(100_000, |world| !world.server.received().is_zero());
        let start = world.now;
        assert!(world.run_until(100_000, |world| world.client.remaining().is_zero()));
        let round_trips = world.now.since(start).as_millis();
        assert!(round_trips <= 12, "{detection:?}: {round_trips}");
    }
}

/// A segment sent at the time of a reduction belongs to the next window: an unmarked round trip of
/// one segment grows the window again.
#[test]
fn segments_sent_before_a_reduction_cause_no_further_one() {
    let config = Config {
        ecn: EcnMode::Dctcp,
        ..without_delayed_acks()
    };
    let path = Path {
        rate: Rate::MAX,
        rules: vec![Rule::mark_randomly(Probability::ALWAYS)],
        ..Path::default()
    };
    let spec = "dctcp,initial_window=1,min_window=1";
    for marked in [4, 5] {
        let mut world = World::new(&config, spec, Opening::Established, &path);
        world.client.write_endlessly();
        world.run_for(Duration::from_micros(1_000 * marked + 100));
        assert_eq!(window(&world), 1);
        world.to_server.set_rules([]);
        // One marked segment is in flight and is acknowledged after this millisecond; the first
        // unmarked one after the next.
        world.run_for(Duration::from_millis(1));
        assert_eq!(window(&world), 1);
        world.run_for(Duration::from_millis(1));
        assert_eq!(window(&world), 2, "{marked}");
    }
}
