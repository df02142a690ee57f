//! Path faults are detected in time.

use weir_units::{Duration, Time};

use super::super::{Cause, MigrationConfig, Wakeup};
use super::model::{Model, Outcome};
use super::{armed, at_ms, ms, paper, size_class, stream, us};
use crate::PathId;

/// Sequential requests, without losses.
fn sequential(rtt: Duration, seed: u64) -> Model {
    Model {
        seed,
        rtt,
        loss: 0.0,
        sizes: &[10_000],
        interval: None,
        ..Model::fabric()
    }
}

/// Uses the timers of the WAN profile.
fn wide_area(rtt: Duration, seed: u64) -> Model {
    Model {
        max_ack_delay: ms(25),
        granularity: ms(1),
        jitter: 0.05,
        ..sequential(rtt, seed)
    }
}

fn with_delay(model: Model, config: MigrationConfig) -> Outcome {
    let from = Time::ZERO + model.rtt * 100;
    Model {
        slow: Some((from, ms(100))),
        ..model
    }
    .run(config, from + Duration::from_secs(10))
}

#[test]
fn an_added_100_ms_affects_at_most_two_requests() {
    for seed in 0..20 {
        let fabrics = [us(20), us(100), ms(1), ms(5), ms(10), ms(50)];
        let models = fabrics
            .map(|rtt| sequential(rtt, seed))
            .into_iter()
            .chain([ms(10), ms(30), ms(80)].map(|rtt| wide_area(rtt, seed)));
        for model in models {
            let rtt = model.rtt;
            let outcome = with_delay(model, size_class());
            assert!(outcome.decision.is_some(), "{rtt}");
            assert!(outcome.slow_since_fault <= 2, "{rtt}: {outcome:?}");
        }
    }
}

#[test]
fn added_delay_is_an_interruption_in_a_fabric_and_slow_rtts_in_a_wan() {
    let cause = |model| with_delay(model, size_class()).decision.unwrap().cause;
    let in_fabric = cause(sequential(us(100), 1));
    assert!(matches!(in_fabric, Cause::Interruption(_)), "{in_fabric}");
    let elsewhere = cause(wide_area(ms(80), 1));
    let Cause::RoundTrips(figures) = elsewhere else {
        panic!("{elsewhere}");
    };
    assert!(ms(75) < figures.long_term && figures.long_term < ms(85));
    assert!(figures.short_term > ms(170) && figures.ratio > 2.0);
    assert!(figures.slow_streams + figures.overdue_streams > 0);
}

#[test]
fn the_papers_detector_detects_added_delay() {
    let outcome = with_delay(wide_area(ms(80), 1), paper());
    let cause = outcome.decision.unwrap().cause;
    assert!(matches!(cause, Cause::Equation4(_)), "{cause}");
    // The short-term average covers eleven streams: a few slow ones are enough for 1.86.
    assert!((3..=8).contains(&outcome.slow_since_fault), "{outcome:?}");
}

#[test]
fn a_dark_path_is_left_after_three_probe_timeouts() {
    for config in [size_class(), paper()] {
        for seed in 0..200 {
            let dark = at_ms(100) + us(seed * 13);
            let model = Model {
                dark: Some(dark),
                ..sequential(us(100), seed)
            };
            let outcome = model.run(config, at_ms(200));
            let decision = outcome.decision.unwrap();
            let Cause::Interruption(figures) = decision.cause else {
                panic!("{decision}");
            };
            let after = decision.at - dark;
            let limit = outcome.pto * 3 + us(30);
            assert!(after <= limit, "{after} for {limit}: {decision}");
            assert!(figures.probe_timeouts <= 3 && figures.streams_due == 1);
            assert!(figures.silence >= outcome.pto * 2, "{decision}");
        }
    }
}

#[test]
fn a_dark_path_is_detected_while_the_server_is_thinking() {
    for seed in 0..50 {
        let dark = at_ms(1_000) + ms(seed);
        let model = Model {
            dark: Some(dark),
            think: ms(50),
            ..sequential(us(100), seed)
        };
        let outcome = model.run(size_class(), at_ms(2_000));
        // An eighth of the wait so far, plus three probe timeouts.
        let after = outcome.decision.unwrap().at - dark;
        assert!(after < ms(50) / 8 + outcome.pto * 3, "{after}");
    }
}

/// A packet arrives, and one is sent, every 10 µs until `dark` plus half an RTT.
fn transfer(dark: Time, sends: bool) -> Duration {
    let (rtt, pto) = (us(100), us(650));
    let mut monitor = armed(size_class());
    monitor.on_rtt_sample(Time::ZERO, PathId::FIRST, rtt, pto);
    monitor.on_stream_opened(Time::ZERO, stream(0));
    if !sends {
        monitor.on_request_sent(Time::ZERO, stream(0));
    }
    let mut now = Time::ZERO;
    while now < dark + rtt / 2 {
        monitor.on_packet_received(now, PathId::FIRST);
        if sends {
            monitor.on_packet_sent(now, PathId::FIRST)
        } else {
            monitor.on_response(now, stream(0))
        }
        now += us(10);
    }
    while !monitor.wants_decision() {
        now = monitor.timeout().unwrap();
        if monitor.handle_timeout(now) == Wakeup::SendPing {
            monitor.on_packet_sent(now, PathId::FIRST);
        }
    }
    now - dark
}

#[test]
fn a_transfer_resumes_within_three_probe_timeouts_both_ways() {
    // Half an RTT later the first packet over the other path reaches the server, and after another
    // half its data arrives: at most three probe timeouts and one RTT in total.
    for sends in [false, true] {
        let after = transfer(at_ms(20), sends);
        assert!(after <= us(3 * 650), "{after}");
        assert!(after >= us(2 * 650), "{after}");
    }
}
