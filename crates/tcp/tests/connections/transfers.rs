//! On any path, every byte arrives and both ends close.

use proptest::prelude::*;
use weir_fabric::{FaultSettings, Probability, Reordering, Rule};
use weir_tcp::{
    Config, DelayedAcks, EcnMode, Ending, LossDetection, Pacing, PartialAckTimer, RtoFloor, State,
};
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::tcp::Sequence;

use crate::world::{Opening, Path, World};

#[test]
fn a_transfer_over_a_clean_path_completes() {
    for opening in [Opening::Handshake, Opening::Established] {
        let mut world = World::new(&Config::default(), "cubic", opening, &Path::default());
        let size = ByteSize::from_bytes(3_000_000);
        world.client.write(size);
        world.client.close();
        assert!(world.run_until(100_000, |world| world.server.state() == State::CloseWait));
        world.server.close();
        assert!(
            world.run_until(10_000, |world| world.server.state() == State::Closed),
            "{}",
            world.summary()
        );
        assert_eq!(world.client.state(), State::TimeWait);
        assert_eq!(world.server.received(), size);
        assert_eq!(world.client.counters().retransmitted_segments, 0);
        assert_eq!(world.client.counters().timeouts, 0);
    }
}

prop_compose! {
    fn path()(
        rate in prop::sample::select(vec![1u64, 10, 100, 1_000, 10_000]),
        delay in 0u64..20_000,
        loss in 0.0..0.15f64,
        duplication in 0.0..0.1f64,
        reordering in 0.0..0.1f64,
        held_back in 0u64..5_000,
        jitter in 0u64..2_000,
        faults in any::<[bool; 4]>(),
        mark in prop::option::of(0.0..0.5f64),
        seed: u64,
    ) -> Path {
        let probability = |on: bool, value: f64| Probability::new(if on { value } else { 0.0 }).unwrap();
        Path {
            rate: Rate::from_mbps(rate),
            delay: Duration::from_micros(delay),
            rules: mark
                .map(|mark| Rule::mark_randomly(Probability::new(mark).unwrap()))
                .into_iter()
                .chain([Rule::tail_drop(ByteSize::from_bytes(100_000))])
                .collect(),
            faults: FaultSettings {
                loss: probability(faults[0], loss),
                duplication: probability(faults[1], duplication),
                reordering: Reordering {
                    probability: probability(faults[2], reordering),
                    delay: Duration::from_micros(held_back),
                },
                jitter: Duration::from_micros(if faults[3] { jitter } else { 0 }),
                ..FaultSettings::default()
            },
            seed: seed >> 1,
        }
    }
}

prop_compose! {
    fn config()(
        sack: bool,
        timestamps in prop::option::of(1u64..2_000),
        ecn in prop::sample::select(vec![EcnMode::Off, EcnMode::Classic, EcnMode::Dctcp]),
        send_buffer in prop::option::of(1u64..200_000),
        receive_buffer in prop::option::of(1u64..200_000),
        window_scale in prop::option::of(0u8..=14),
        delayed in prop::option::of((1u32..4, 0u32..20)),
        nagle: bool,
        burst_segments in 1u32..20,
        paced: bool,
        rack: bool,
        switches in any::<[bool; 7]>(),
    ) -> Config {
        Config {
            sack,
            timestamps: timestamps.map(Duration::from_micros),
            ecn,
            send_buffer: send_buffer.map(ByteSize::from_bytes),
            receive_buffer: receive_buffer.map(ByteSize::from_bytes),
            window_scale,
            delayed_acks: delayed.map(|(segments, quick_segments)| DelayedAcks {
                segments,
                quick_segments,
                ..DelayedAcks::default()
            }),
            nagle,
            burst_segments,
            pacing: if paced {
                Pacing::Window { slow_start: 2.0, avoidance: 1.2 }
            } else {
                Pacing::Controller
            },
            loss_detection: if rack { LossDetection::RackTlp } else { LossDetection::DuplicateThreshold },
            limited_transmit: switches[0],
            proportional_rate_reduction: switches[1],
            idle_restart: switches[2],
            frto: switches[3],
            push_small_windows: switches[6],
            early_timer_margin: Duration::from_millis(if switches[2] { 2 } else { 0 }),
            rto_floor: if switches[4] { RtoFloor::Whole } else { RtoFloor::Variation },
            partial_ack_timer: if switches[5] { PartialAckTimer::First } else { PartialAckTimer::Each },
            max_retries: 100,
            max_syn_retries: 30,
            min_rto: Duration::from_millis(20),
            max_rto: Duration::from_secs(2),
            // Longer than any pacing delay.
            time_wait: Duration::from_secs(100_000),
            ..Config::default()
        }
    }
}

fn algorithm() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "newreno",
        "cubic",
        "dctcp",
        "dctcp,min_window=1",
        "swift",
        "bbr",
        "bbr3",
    ])
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_both_ends_close(
        path in path(),
        client in config(),
        server in config(),
        spec in algorithm(),
        handshake: bool,
        isn in prop_oneof![any::<u32>(), (u32::MAX - 200_000)..=u32::MAX],
        request in 0u64..300_000,
        response in 0u64..300_000,
        cut in prop::option::weighted(0.2, 100u32..1_448),
    ) {
        let opening = if handshake { Opening::Handshake } else { Opening::Established };
        let mut world = World::with(&client, &server, spec, opening, &path, Sequence::new(isn));
        world.cut = cut;
        world.client.write(ByteSize::from_bytes(request));
        world.client.close();
        world.server.write(ByteSize::from_bytes(response));
        let done = world.run_until(3_000_000, |world| {
            world.server.remaining().is_zero() && world.server.state() == State::CloseWait
        });
        prop_assert!(done, "{}", world.summary());
        world.server.close();
        let done = world.run_until(3_000_000, |world| {
            world.client.state() == State::Closed && world.server.state() == State::Closed
        });
        prop_assert!(done, "{}", world.summary());
        prop_assert_eq!(world.client.ending(), Some(Ending::Closed));
        prop_assert_eq!(world.server.ending(), Some(Ending::Closed));
        prop_assert_eq!(world.server.received().bytes(), request);
        prop_assert_eq!(world.client.received().bytes(), response);
        prop_assert_eq!(world.client.acknowledged().bytes(), request);
        prop_assert_eq!(world.server.acknowledged().bytes(), response);
        for end in [&world.client, &world.server] {
            let snapshot = end.snapshot();
            prop_assert!(snapshot.in_flight.is_zero(), "{:?}", end);
            prop_assert_eq!(end.timeout(), None);
        }
        let clean = path.faults == FaultSettings::default();
        if clean && world.to_server.queue().counters().dropped.total().packets == 0
            && world.to_client.queue().counters().dropped.total().packets == 0
        {
            prop_assert_eq!(world.client.counters().lost, ByteSize::ZERO);
        }
    }
}

/// Found by the property above: the SACKed bytes counted against the window, and nothing was in flight.
#[test]
fn losses_left_by_a_recovery_are_repaired_without_limited_transmit() {
    let path = Path {
        rate: Rate::from_mbps(10),
        delay: Duration::from_micros(91),
        rules: vec![Rule::tail_drop(ByteSize::from_bytes(100_000))],
        faults: FaultSettings {
            loss: Probability::new(1244378136988766464.0 / (1u64 << 63) as f64).unwrap(),
            duplication: Probability::new(253283245769770560.0 / (1u64 << 63) as f64).unwrap(),
            ..FaultSettings::default()
        },
        seed: 9120699371735426378,
    };
    let base = Config {
        window_scale: None,
        timestamps: None,
        send_buffer: None,
        receive_buffer: None,
        delayed_acks: None,
        push_small_windows: false,
        limited_transmit: false,
        idle_restart: false,
        min_rto: Duration::from_millis(20),
        early_timer_margin: Duration::ZERO,
        max_rto: Duration::from_secs(2),
        frto: false,
        max_retries: 100,
        time_wait: Duration::from_secs(100_000),
        ..Config::default()
    };
    let client = Config {
        burst_segments: 5,
        loss_detection: LossDetection::DuplicateThreshold,
        proportional_rate_reduction: false,
        rto_floor: RtoFloor::Whole,
        ..base.clone()
    };
    let server = Config {
        burst_segments: 10,
        ..base
    };
    let mut world = World::with(
        &client,
        &server,
        "swift",
        Opening::Established,
        &path,
        Sequence::new(0),
    );
    world.cut = Some(609);
    world.client.write(ByteSize::from_bytes(35832));
    world.client.close();
    world.server.write(ByteSize::from_bytes(27648));
    let done = world.run_until(100_000, |world| {
        world.server.remaining().is_zero() && world.server.state() == State::CloseWait
    });
    assert!(done, "{}", world.summary());
}
