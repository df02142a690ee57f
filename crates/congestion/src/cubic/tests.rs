use weir_units::{Duration, Time};

use super::*;
use crate::samples::{CONTEXT, PACKET, ack, build, loss, packets, spurious};
use crate::{AlgorithmSpec, Context, LossCause};

const MILLI: u64 = 1_000;

fn in_packets(window: ByteSize) -> f64 {
    window.bytes() as f64 / PACKET.bytes() as f64
}

/// A CUBIC sender at `cwnd` packets before a loss at time 1 s.
fn after_loss(cwnd: u64) -> Box<dyn Controller> {
    let mut cubic = build(&format!("cubic,initial_window={cwnd},hystart=false"));
    cubic.on_loss(&loss(1_000 * MILLI, 900 * MILLI, 1, LossCause::Acks));
    cubic
}

#[test]
fn the_window_follows_the_cubic_function() {
    let mut cubic = after_loss(1_000);
    assert_eq!(cubic.window(), packets(700));
    // K = cbrt(300 / 0.4) = 9.0856 s.
    let k = (300.0_f64 / 0.4).cbrt();
    assert!((k - 9.0856).abs() < 1e-4);
    // A long round trip keeps Reno's estimate below the curve. Each millisecond acknowledges a
    // hundredth of a window.
    let start = 1_200 * MILLI;
    let mut now = start;
    while now < start + 20_000 * MILLI {
        let mut sample = ack(now, now - 100 * MILLI, 1);
        sample.acked = cubic.window() / 100;
        cubic.on_ack(&sample);
        now += MILLI;
        let t = (now - start) as f64 / 1e6;
        let ahead = 0.4 * (t + 0.1 - k).powi(3) + 1_000.0;
        let behind = 0.4 * (t - 0.2 - k).powi(3) + 1_000.0;
        let window = in_packets(cubic.window());
        if t > 1.0 {
            assert!(window <= ahead + 0.01, "{t}: {window} above {ahead}");
            assert!(window >= behind - 0.01, "{t}: {window} below {behind}");
        }
    }
}

#[test]
fn the_curve_has_its_plateau_at_k() {
    let curve = CubicEpoch::new(0.4, 700.0, 1_000.0, 1_000.0);
    assert!((curve.w_cubic(0.0) - 700.0).abs() < 1e-9);
    assert!((curve.w_cubic((300.0_f64 / 0.4).cbrt()) - 1_000.0).abs() < 1e-9);
    let flat = CubicEpoch::new(0.4, 700.0, 500.0, 500.0);
    assert!((flat.w_cubic(2.0) - (700.0 + 0.4 * 8.0)).abs() < 1e-9);
}

#[test]
fn the_window_follows_reno_at_short_round_trips() {
    let mut cubic = after_loss(100);
    assert_eq!(cubic.window(), packets(70));
    // 3 (1 − β) / (1 + β) packets per window below the prior window, then one.
    let (mut reno, alpha) = (70.0, 3.0 * 0.3 / 1.7);
    let mut now = 1_010 * MILLI;
    for _ in 0..100 {
        let cwnd = in_packets(cubic.window());
        let mut sample = ack(now, now - 50, 1);
        sample.acked = cubic.window();
        cubic.on_ack(&sample);
        reno += if reno < 100.0 { alpha } else { 1.0 };
        let window = in_packets(cubic.window());
        assert!(
            (window - reno).abs() < 0.01,
            "{window} is not {reno} after {cwnd}"
        );
        now += 50;
    }
    assert!(reno > 140.0);
}

#[test]
fn only_the_cubic_curve_applies_without_the_reno_friendly_region() {
    let grown = |spec: &str| {
        let mut cubic = build(spec);
        cubic.on_loss(&loss(1_000 * MILLI, 900 * MILLI, 1, LossCause::Acks));
        for n in 0..1_000 {
            let now = 1_010 * MILLI + 50 * n;
            let mut sample = ack(now, now - 50, 1);
            sample.acked = cubic.window();
            cubic.on_ack(&sample);
        }
        in_packets(cubic.window())
    };
    // In 1000 round trips of 50 us Reno's window passes the old one; the curve in 50 ms does not.
    assert!(grown("cubic,initial_window=100,hystart=false") > 500.0);
    let curve = CubicEpoch::new(0.4, 70.0, 100.0, 100.0);
    let alone = grown("cubic,initial_window=100,hystart=false,reno_friendly=false");
    assert!((alone - curve.w_cubic(0.05)).abs() < 0.1, "{alone}");
}

#[test]
fn whole_packets_follow_a_truncated_curve_and_grow_on_the_plateau() {
    let mut cubic =
        build("cubic,initial_window=9,hystart=false,reno_friendly=false,whole_packets=true");
    cubic.on_loss(&loss(1_000 * MILLI, 900 * MILLI, 1, LossCause::Acks));
    // 6.3 packets, rounded down.
    assert_eq!(cubic.window(), packets(6));
    // K = cbrt(3 / 0.4) = 1.957 s: within C^-1/3 = 1.357 s of it, less than a packet is missing.
    let mut reached = Vec::new();
    let mut window = cubic.window();
    for n in 0..4_500 {
        let now = 1_001 * MILLI + n * MILLI;
        cubic.on_ack(&ack(now, now - 10, 1));
        if cubic.window() > window {
            window = cubic.window();
            reached.push((window / PACKET, n));
        }
    }
    let at = |packets| reached.iter().find(|step| step.0 == packets).unwrap().1;
    assert!(at(9) > 600 && at(9) < 620, "{reached:?}");
    // One packet more a hundred windows of 9 packets later, though the curve reaches it at 3.31 s.
    assert!(at(10) > 1_450 && at(10) < 1_550, "{reached:?}");
}

#[test]
fn growth_is_at_most_half_a_window_per_round_trip() {
    let mut curve = CubicEpoch::new(0.4, 10.0, 0.0, 0.0);
    assert_eq!(curve.grow(1_000.0, 0.1, 10.0, 10.0), 15.0);
    assert_eq!(curve.grow(1_000.0, 0.1, 10.0, 1_000.0).min(15.0), 15.0);
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    for (spec, w_max) in [
        ("cubic,initial_window=100,hystart=false", 70.0 * 1.7 / 2.0),
        (
            "cubic,initial_window=100,hystart=false,fast_convergence=false",
            70.0,
        ),
    ] {
        let mut cubic = build(spec);
        cubic.on_loss(&loss(1_000 * MILLI, 900 * MILLI, 1, LossCause::Acks));
        cubic.on_loss(&loss(1_200 * MILLI, 1_100 * MILLI, 1, LossCause::Acks));
        assert_eq!(cubic.window(), packets(49));
        // K = cbrt((w_max − 49) / 0.4). The stage begins with the first acknowledgment; one window
        // acknowledged at 0.8 K with a round-trip time of 0.2 K reaches the plateau.
        let k = ((w_max - 49.0) / 0.4_f64).cbrt();
        cubic.on_ack(&ack(20_000 * MILLI, 19_000 * MILLI, 1));
        let later = 20_000 * MILLI + (0.8 * k * 1e6) as u64;
        let mut sample = ack(later, 20_000 * MILLI, 60);
        sample.smoothed_rtt = Duration::from_secs_f64(0.2 * k);
        cubic.on_ack(&sample);
        assert!(
            (in_packets(cubic.window()) - w_max).abs() < 0.01,
            "{spec}: {cubic:?}"
        );
    }
}

#[test]
fn a_spurious_loss_restores_window_and_plateau() {
    let mut cubic = build("cubic,initial_window=100,hystart=false");
    cubic.on_loss(&loss(1_000 * MILLI, 900 * MILLI, 3, LossCause::Acks));
    assert_eq!(cubic.window(), packets(70));
    cubic.on_spurious_loss(&spurious(1_010 * MILLI, 900 * MILLI, 3));
    assert_eq!(cubic.window(), packets(100));
    assert_eq!(cubic.snapshot().ssthresh, None);
}

#[test]
fn application_limited_time_does_not_advance_the_curve() {
    let grown = |idle: u64| {
        let mut cubic = after_loss(1_000);
        cubic.on_ack(&ack(1_200 * MILLI, 1_100 * MILLI, 10));
        let mut limited = ack((1_200 + idle) * MILLI, (1_100 + idle) * MILLI, 10);
        limited.app_limited = true;
        cubic.on_ack(&limited);
        cubic.on_ack(&ack((1_300 + idle) * MILLI, (1_200 + idle) * MILLI, 700));
        cubic.window()
    };
    assert_eq!(grown(0), grown(8_000));
}

#[test]
fn a_timeout_restarts_slow_start() {
    let mut cubic = build("cubic,initial_window=100");
    cubic.on_loss(&loss(1_000 * MILLI, 900 * MILLI, 100, LossCause::Timeout));
    assert_eq!(cubic.window(), packets(2));
    assert_eq!(cubic.snapshot().ssthresh, Some(packets(70)));
    cubic.on_ack(&ack(1_100 * MILLI, 1_050 * MILLI, 2));
    assert_eq!(cubic.window(), packets(4));
}

/// Rounds of ten acknowledgments each with the same round-trip time.
fn round(cubic: &mut dyn Controller, start: Time, rtt: Duration) {
    for index in 0..10 {
        let mut sample = ack(1_000_000, 999_000, 1);
        sample.now = start + rtt;
        sample.newest_sent = start;
        sample.rtt = Some(rtt);
        sample.smoothed_rtt = rtt;
        sample.round_ended = index == 9;
        cubic.on_ack(&sample);
    }
}

#[test]
fn hystart_plus_plus_slows_growth_when_the_rtt_rises_then_exits_slow_start() {
    let mut cubic = build("cubic,hystart_plus_plus=true");
    let at = |n: u64| Time::ZERO + Duration::from_millis(200 * n);
    let (short, long) = (Duration::from_millis(40), Duration::from_millis(45));
    round(&mut *cubic, at(1), short);
    round(&mut *cubic, at(2), short);
    assert_eq!(cubic.window(), packets(30));
    // The eighth sample of this round, 5 ms = 40 ms / 8 above the last one, slows growth to a
    // quarter: 7 packets, then 3 quarters.
    round(&mut *cubic, at(3), long);
    assert_eq!(cubic.snapshot().phase, "conservative-slow-start");
    assert_eq!(cubic.window(), packets(37) + PACKET * 3 / 4);
    for n in 4..8 {
        round(&mut *cubic, at(n), long);
    }
    assert_eq!(cubic.window(), packets(47) + PACKET * 3 / 4);
    assert_eq!(cubic.snapshot().ssthresh, None);
    round(&mut *cubic, at(8), long);
    assert_eq!(cubic.snapshot().phase, "congestion-avoidance");
}

#[test]
fn hystart_plus_plus_resumes_slow_start_when_the_rise_was_noise() {
    let mut cubic = build("cubic,hystart_plus_plus=true");
    let at = |n: u64| Time::ZERO + Duration::from_millis(200 * n);
    round(&mut *cubic, at(1), Duration::from_millis(40));
    round(&mut *cubic, at(2), Duration::from_millis(45));
    assert_eq!(cubic.snapshot().phase, "conservative-slow-start");
    round(&mut *cubic, at(3), Duration::from_millis(41));
    assert_eq!(cubic.snapshot().phase, "slow-start");
}

/// Delivers a round trip of one ACK per packet, `gap` apart from `start` on; returns the window.
fn train(cubic: &mut dyn Controller, start: Time, count: u64, gap: Duration, rtt: Duration) -> u64 {
    let min_rtt = Duration::from_millis(20);
    for index in 0..count {
        let mut sample = ack(1_000_000, 999_000, 1);
        sample.now = start + gap * index;
        sample.newest_sent = start + gap * index - rtt;
        (sample.rtt, sample.smoothed_rtt, sample.min_rtt) = (Some(rtt), rtt, min_rtt);
        cubic.on_ack(&sample);
    }
    cubic.window() / PACKET
}

#[test]
fn hystart_leaves_slow_start_when_a_train_of_acks_takes_half_of_the_round_trip() {
    let rtt = Duration::from_millis(20);
    let at = |n: u64| Time::ZERO + Duration::from_millis(100) + rtt * n;
    let gap = Duration::from_micros(250);
    let mut cubic = build("cubic");
    assert_eq!(train(&mut *cubic, at(0), 10, gap, rtt), 20);
    assert_eq!(train(&mut *cubic, at(1), 20, gap, rtt), 40);
    assert_eq!(cubic.snapshot().phase, "slow-start");
    // Ten milliseconds, and half of the millisecond for large segments, are 43 ACKs.
    assert_eq!(train(&mut *cubic, at(2), 40, gap, rtt), 80);
    assert_eq!(cubic.snapshot().phase, "slow-start");
    train(&mut *cubic, at(3), 60, gap, rtt);
    assert_eq!(cubic.snapshot().phase, "congestion-avoidance");
    assert_eq!(cubic.snapshot().ssthresh, Some(packets(123)));
    // Gaps of more than two milliseconds make no train.
    let mut sparse = build("cubic");
    train(&mut *sparse, at(0), 10, Duration::from_millis(3), rtt);
    train(&mut *sparse, at(2), 60, Duration::from_millis(3), rtt);
    assert_eq!(sparse.snapshot().phase, "slow-start");
}

#[test]
fn hystart_leaves_slow_start_when_a_paced_train_takes_the_whole_round_trip() {
    let rtt = Duration::from_millis(23);
    let at = |n: u64| Time::ZERO + Duration::from_millis(100) + Duration::from_millis(30) * n;
    let paced = Context {
        is_paced: true,
        ..CONTEXT
    };
    let mut cubic = "cubic,initial_window=60"
        .parse::<AlgorithmSpec>()
        .unwrap()
        .build(&paced);
    let gap = Duration::from_micros(250);
    train(&mut *cubic, at(0), 60, gap, rtt);
    assert_eq!(cubic.snapshot().phase, "slow-start");
    train(&mut *cubic, at(1), 90, gap, rtt);
    assert_eq!(cubic.snapshot().phase, "congestion-avoidance");
}

#[test]
fn hystart_leaves_slow_start_when_the_rtt_rises_by_an_eighth_but_four_milliseconds() {
    let at = |n: u64| Time::ZERO + Duration::from_millis(100) + Duration::from_millis(20 * n);
    let gap = Duration::from_micros(10);
    for (rtt, phase) in [(24, "slow-start"), (25, "congestion-avoidance")] {
        let mut cubic = build("cubic,initial_window=20");
        train(&mut *cubic, at(0), 8, gap, Duration::from_millis(rtt));
        assert_eq!(cubic.snapshot().phase, "slow-start");
        train(&mut *cubic, at(0), 2, gap, Duration::from_millis(rtt));
        assert_eq!(cubic.snapshot().phase, phase);
    }
}

#[test]
fn hystart_leaves_small_windows_alone() {
    let mut cubic = build("cubic,initial_window=4");
    let at = Time::ZERO + Duration::from_millis(100);
    let grown = train(
        &mut *cubic,
        at,
        9,
        Duration::from_micros(10),
        Duration::from_millis(60),
    );
    assert_eq!((grown, cubic.snapshot().phase), (13, "slow-start"));
}
