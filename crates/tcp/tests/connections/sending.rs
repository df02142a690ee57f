//! Transmission: bursts, pacing, small segments, pauses, recovery.

use weir_fabric::{FaultSettings, Probability, Rule};
use weir_tcp::{Config, EcnMode, LossDetection, Pacing, PartialAckTimer};
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::world::{Opening, Path, Side, World};

const MSS: u64 = 1448;

fn world(config: &Config, spec: &str) -> World {
    let mut world = World::new(config, spec, Opening::Established, &Path::default());
    world.record = true;
    world
}

/// Returns the times and sizes of the client's data segments.
fn data(world: &World) -> Vec<(Time, u32)> {
    world
        .sent
        .iter()
        .filter(|(_, side, datagram)| *side == Side::Client && datagram.segment.payload > 0)
        .map(|(at, _, datagram)| (*at, datagram.segment.payload))
        .collect()
}

#[test]
fn bursts_are_whole_segments_within_the_window() {
    let config = Config {
        burst_segments: 4,
        ..Config::default()
    };
    let mut world = world(&config, "cubic");
    world.client.write_endlessly();
    let mut sizes = Vec::new();
    while let Some((segment, _)) = world.client.next_segment(world.now) {
        sizes.push(u64::from(segment.payload) / MSS);
        assert_eq!(u64::from(segment.payload) % MSS, 0);
    }
    assert_eq!(sizes, [4, 4, 2]);
    assert_eq!(world.client.counters().segments_sent, 10);
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let config = Config {
        pacing: Pacing::Window {
            slow_start: 2.0,
            avoidance: 1.0,
        },
        delayed_acks: None,
        ..Config::default()
    };
    let mut world = world(&config, "newreno,max_window=15KB");
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(100));
    let sent = data(&world);
    let last = &sent[sent.len() - 100..];
    let gaps: Vec<u64> = last
        .windows(2)
        .map(|pair| pair[1].0.since(pair[0].0).as_micros())
        .collect();
    // Slow start paces at twice the window of 10 segments per millisecond.
    assert!(gaps.iter().all(|&gap| gap >= 47), "{gaps:?}");
}

#[test]
fn segments_are_paced_at_the_controllers_rate() {
    let mut world = world(&Config::default(), "cubic,max_rate=11.584Mbps");
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(500));
    // One segment per millisecond.
    let sent = data(&world);
    assert!((499..=501).contains(&sent.len()), "{}", sent.len());
    assert!(
        sent.windows(2)
            .all(|pair| pair[1].0.since(pair[0].0) == Duration::from_millis(1))
    );
}

#[test]
fn nagle_delays_small_segments_while_data_is_outstanding() {
    for nagle in [false, true] {
        let config = Config {
            nagle,
            delayed_acks: None,
            ..Config::default()
        };
        let mut world = world(&config, "cubic");
        for _ in 0..20 {
            world.client.write(ByteSize::from_bytes(10));
            world.run_for(Duration::from_micros(100));
        }
        world.run_for(Duration::from_millis(5));
        assert_eq!(world.server.received(), ByteSize::from_bytes(200));
        let count = data(&world).len();
        assert_eq!(count, if nagle { 3 } else { 20 });
    }
}

#[test]
fn an_idle_restart_resets_the_window() {
    for (idle_restart, flight) in [(true, 10), (false, 100)] {
        let config = Config {
            idle_restart,
            ..Config::default()
        };
        let mut world = world(&config, "newreno");
        world.client.write(ByteSize::from_bytes(MSS * 400));
        world.run_for(Duration::from_secs(1));
        assert!(world.client.remaining().is_zero());
        world.sent.clear();
        world.client.write(ByteSize::from_bytes(MSS * 100));
        world.flush();
        assert_eq!(data(&world).len(), flight);
    }
}

/// A loss in a small flight: without limited transmit there are not enough duplicate ACKs.
#[test]
fn limited_transmit_keeps_the_acknowledgments_coming() {
    for (limited_transmit, sack) in [(true, true), (true, false), (false, true), (false, false)] {
        let config = Config {
            limited_transmit,
            sack,
            loss_detection: LossDetection::DuplicateThreshold,
            delayed_acks: None,
            ..Config::default()
        };
        let mut world = world(&config, "newreno,max_window=4344B,initial_window=3");
        world.client.write(ByteSize::from_bytes(MSS * 20));
        world.flush();
        // The first of three segments is lost.
        world.run_until(1_000, |world| world.to_server.in_flight().packets == 3);
        let down = |down| FaultSettings {
            down,
            ..FaultSettings::default()
        };
        world.to_server.set_faults(world.now, down(true));
        world.run_until(1_000, |world| {
            world.to_server.counters().dropped.total().packets == 1
        });
        world.to_server.set_faults(world.now, down(false));
        assert!(world.run_until(10_000, |world| world.client.remaining().is_zero()));
        let counters = world.client.counters();
        let repaired = (counters.fast_recoveries, counters.timeouts);
        let expected = if limited_transmit { (1, 0) } else { (0, 1) };
        assert_eq!(repaired, expected, "{limited_transmit} {sack} {counters:?}");
    }
}

/// The start of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduction {
    Loss,
    Mark,
}

/// Returns the longest time between two segments around a reduction, in microseconds.
fn longest_gap(proportional_rate_reduction: bool, reduction: Reduction) -> u64 {
    let config = Config {
        proportional_rate_reduction,
        delayed_acks: None,
        ecn: EcnMode::Classic,
        ..Config::default()
    };
    let path = Path {
        rate: Rate::from_mbps(500),
        ..Path::default()
    };
    let mut world = World::new(
        &config,
        "newreno,max_window=100KB",
        Opening::Established,
        &path,
    );
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(50));
    if reduction == Reduction::Loss {
        let dropped = world.to_server.counters().dropped.total().packets;
        world.to_server.set_faults(
            world.now,
            FaultSettings {
                down: true,
                ..FaultSettings::default()
            },
        );
        world.run_until(1_000, |world| {
            world.to_server.counters().dropped.total().packets > dropped
        });
        world
            .to_server
            .set_faults(world.now, FaultSettings::default());
    } else {
        let always = Rule::mark_randomly(Probability::ALWAYS);
        world.to_server.set_rules([always]);
        world.run_until(1_000, |world| world.server.counters().ce_received > 0);
        world.to_server.set_rules([]);
    }
    world.record = true;
    world.run_for(Duration::from_millis(3));
    let counters = world.client.counters();
    let losses = u64::from(reduction == Reduction::Loss);
    assert_eq!(counters.fast_recoveries, losses);
    assert_eq!(counters.cwr_sent, 1 - losses);
    let gaps = data(&world)
        .windows(2)
        .map(|pair| pair[1].0.since(pair[0].0).as_micros())
        .max();
    gaps.unwrap_or(u64::MAX)
}

/// With PRR segments leave throughout a reduction, by a loss or by ECE; without it, none for half a round
/// trip.
#[test]
fn proportional_rate_reduction_avoids_a_sending_gap() {
    for reduction in [Reduction::Loss, Reduction::Mark] {
        let with = longest_gap(true, reduction);
        assert!(with < 150, "{with}");
        let without = longest_gap(false, reduction);
        assert!(without > 400, "{without}");
    }
}

/// RFC 9937, section 7: an acknowledgment that reveals no further loss lets the flight grow by a segment
/// more than it delivered, also while much is left to repair: a recovery from many losses speeds up from
/// round trip to round trip.
#[test]
fn a_recovery_from_many_losses_speeds_up() {
    let path = Path {
        rate: Rate::from_gbps(10),
        ..Path::default()
    };
    let mut world = World::new(
        &Config {
            delayed_acks: None,
            ..Config::default()
        },
        "newreno,max_window=180KB",
        Opening::Established,
        &path,
    );
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(50));
    let down = FaultSettings {
        down: true,
        ..FaultSettings::default()
    };
    let dropped = world.to_server.counters().dropped.total().packets;
    world.to_server.set_faults(world.now, down);
    world.run_until(10_000, |world| {
        world.to_server.counters().dropped.total().packets >= dropped + 110
    });
    world
        .to_server
        .set_faults(world.now, FaultSettings::default());
    let begun = world.now;
    world.run_until(100_000, |world| {
        world.client.counters().retransmitted_segments >= 110
    });
    let round_trips = world.now.since(begun).as_micros() / (2 * path.delay.as_micros());
    let counters = world.client.counters();
    assert_eq!((counters.timeouts, counters.fast_recoveries), (0, 1));
    assert!(round_trips <= 4, "{round_trips}");
}

/// Sends ten segments of which some are lost, by their position from 0, and returns the counters at the end.
fn transfer_with_losses(config: &Config, lost: &[u64]) -> weir_tcp::Counters {
    let mut world = world(config, "newreno,initial_window=10");
    world.client.write(ByteSize::from_bytes(MSS * 10));
    world.flush();
    let passed = |world: &World| {
        let counters = world.to_server.counters();
        counters.departed.packets + counters.dropped.total().packets
    };
    let before = passed(&world);
    for position in 0..10 {
        let down = FaultSettings {
            down: lost.contains(&position),
            ..FaultSettings::default()
        };
        world.to_server.set_faults(world.now, down);
        world.run_until(1_000, |world| passed(world) > before + position);
    }
    world
        .to_server
        .set_faults(world.now, FaultSettings::default());
    assert!(world.run_until(100_000, |world| world.client.remaining().is_zero()));
    world.client.counters()
}

/// RFC 6675, section 4, `NextSeg`, rules 3 and 4: too little follows the second loss to prove it, and there is
/// nothing new to send.
#[test]
fn perhaps_lost_segments_are_sent_again_before_the_timer() {
    let config = Config {
        loss_detection: LossDetection::DuplicateThreshold,
        delayed_acks: None,
        ..Config::default()
    };
    for lost in [&[1, 7][..], &[1, 8], &[1, 9]] {
        let counters = transfer_with_losses(&config, lost);
        assert_eq!(counters.timeouts, 0, "{lost:?} {counters:?}");
        // Rule 4 may repeat a last segment that is still on its way.
        let repeated = counters.retransmitted_segments;
        assert!((2..=3).contains(&repeated), "{lost:?} {counters:?}");
    }
    // Alone, a lost tail is the timer's.
    assert_eq!(transfer_with_losses(&config, &[9]).timeouts, 1);
}

/// RFC 6582, section 4: a recovery without SACK repairs one loss per round trip, which the timer cuts short
/// where only the first partial ACK restarts it.
#[test]
fn the_timer_restarts_at_each_partial_ack_or_at_the_first() {
    for (partial_ack_timer, timeouts) in [(PartialAckTimer::Each, 0), (PartialAckTimer::First, 1)] {
        let config = Config {
            sack: false,
            timestamps: None,
            delayed_acks: None,
            initial_rto: Duration::from_millis(3),
            partial_ack_timer,
            ..Config::default()
        };
        let counters = transfer_with_losses(&config, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(counters.fast_recoveries, 1, "{counters:?}");
        assert_eq!(
            counters.timeouts, timeouts,
            "{partial_ack_timer:?} {counters:?}"
        );
    }
}

/// A receiver that waits for a second segment would wait for its timer.
#[test]
fn a_window_of_one_segment_never_waits_for_a_delayed_ack() {
    let config = Config::default();
    for spec in [
        "newreno,initial_window=1,min_window=1,max_window=1448B",
        "newreno,initial_window=1,min_window=1,max_window=2000B",
        "newreno,max_window=500B",
    ] {
        let mut world = world(&config, spec);
        let begun = world.now;
        world.client.write(ByteSize::from_bytes(MSS * 200));
        assert!(world.run_until(100_000, |world| world.client.remaining().is_zero()));
        let round_trip = Path::default().delay * 2;
        let span = world.now.since(begun);
        assert!(span < round_trip * 200 * 2, "{spec}: {span}");
    }
}

/// The first SACK mostly comes with the ACK of a segment that a delayed ACK has held back. That is no
/// reordering, for which RACK would wait from then on.
#[test]
fn an_ack_with_the_first_sack_is_no_reordering() {
    let path = Path {
        rate: Rate::from_mbps(100),
        delay: Duration::from_millis(10),
        rules: vec![Rule::tail_drop(ByteSize::from_bytes(250_000))],
        ..Path::default()
    };
    let mut world = World::new(&Config::default(), "newreno", Opening::Established, &path);
    let begun = world.now;
    world.client.write(ByteSize::from_bytes(1_000_000));
    assert!(world.run_until(100_000, |world| world.client.remaining().is_zero()));
    let counters = world.client.counters();
    assert!(counters.retransmitted_segments > 10, "{}", world.summary());
    // Slow start takes 162 ms; two round trips of 40 ms repair what its end has lost.
    let took = world.now.since(begun);
    assert!(took < Duration::from_millis(210), "{took}");
}

/// Neither does one of a server whose client sends a request after each response: its ACKs mostly wait for the
/// next request.
#[test]
fn responses_over_a_window_of_one_segment_never_wait_for_a_delayed_ack() {
    let spec = "newreno,initial_window=1,min_window=1,max_window=1448B";
    let mut world = world(&Config::default(), spec);
    let round_trip = Path::default().delay * 2;
    for _ in 0..4 {
        let begun = world.now;
        let before = world.server.received();
        world.client.write(ByteSize::from_bytes(100));
        assert!(world.run_until(1_000, |world| world.server.received() > before));
        let before = world.client.received();
        let response = ByteSize::from_bytes(MSS * 20 - 700);
        world.server.write(response);
        assert!(world.run_until(10_000, |world| world.client.received() == before + response));
        let took = world.now.since(begun);
        assert!(took < round_trip * 22, "{took}");
    }
}
