//! Guards fire when a condition has held for its duration, once, and not on noise.

use proptest::prelude::*;
use weir_policy::GuardCondition;

use super::*;
use crate::{Estimate, Evidence, Guard, LEAST_CONNECTIONS, Summary, figure_text};

fn guard(condition: &str) -> Guard {
    Guard::new(condition.parse().unwrap())
}

fn second(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn estimate(value: f64, half: f64, connections: u64) -> Option<Estimate> {
    Some(Estimate {
        value,
        low: value - half,
        high: value + half,
        connections,
    })
}

/// A group with this part of retransmissions.
fn group(retransmits: f64, half: f64, connections: u64) -> Summary {
    Summary {
        retransmits: estimate(retransmits, half, connections),
        ..Summary::default()
    }
}

/// Evaluates once a second, and returns when the guard fires.
fn fires(guard: &mut Guard, seconds: u64, treated: &Summary, control: &Summary) -> Vec<u64> {
    let evaluate = |now: &u64| guard.evaluate(second(*now), treated, control).is_some();
    (1..=seconds).filter(evaluate).collect()
}

#[test]
fn a_guard_fires_once_with_the_figures() {
    let (bad, good) = (group(0.05, 0.01, 830), group(0.004, 0.001, 7510));
    let mut once = guard("retransmits > 2x for 30s");
    assert_eq!(fires(&mut once, 200, &bad, &good), [31]);
    let mut told = guard("retransmits > 2x for 1s");
    let evidence: Vec<Evidence> = (1..9)
        .filter_map(|now| told.evaluate(second(now), &bad, &good))
        .collect();
    assert_eq!(
        evidence[0].to_string(),
        "retransmits > 2x for 1s: 5% (4% to 6%) of 830 connections, control group 0.4% (0.3% to 0.5%) of 7510"
    );
}

#[test]
fn overlapping_intervals_few_connections_and_missing_groups_decide_nothing() {
    let (bad, good) = (group(0.05, 0.01, 830), group(0.004, 0.001, 7510));
    let few = LEAST_CONNECTIONS - 1;
    for (treated, control) in [
        (group(0.05, 0.045, 830), good.clone()),
        (group(0.05, 0.01, few), good.clone()),
        (bad.clone(), group(0.004, 0.001, few)),
        (bad.clone(), group(0.004, 0.03, 7510)),
        (bad.clone(), Summary::default()),
        (Summary::default(), good),
    ] {
        let mut relative = guard("retransmits > 2x for 1s");
        assert_eq!(
            fires(&mut relative, 60, &treated, &control),
            [0_u64; 0],
            "{treated:?} {control:?}"
        );
    }
    let mut absolute = guard("retransmits > 3% for 1s");
    assert_eq!(fires(&mut absolute, 9, &bad, &Summary::default()), [2]);
    let mut absolute = guard("retransmits > 4% for 1s");
    assert_eq!(
        fires(&mut absolute, 9, &bad, &Summary::default()),
        [0_u64; 0],
        "4 % is in the interval"
    );
}

#[test]
fn the_other_metrics_are_compared_in_their_units() {
    let of = |factor: f64| Summary {
        rtt: estimate(0.02 * factor, 0.001, 100),
        delivery_rate: estimate(1e8 * factor, 1e6, 100),
        completion: estimate(0.1 * factor, 0.001, 100),
        completion_p99: estimate(1.0 * factor, 0.1, 400),
        ..Summary::default()
    };
    for (condition, factor) in [
        ("rtt > 20ms for 1s", 1.5),
        ("rtt > 2x for 1s", 2.5),
        ("delivery_rate < 50Mbps for 1s", 0.4),
        ("delivery_rate < 0.5x for 1s", 0.4),
        ("completion > 100ms for 1s", 1.5),
        ("completion_p99 > 1.5x for 1s", 2.5),
    ] {
        assert_eq!(
            fires(&mut guard(condition), 9, &of(factor), &of(1.0)),
            [2],
            "{condition}"
        );
        assert_eq!(
            fires(&mut guard(condition), 9, &of(1.0), &of(1.0)),
            [0_u64; 0],
            "{condition}"
        );
    }
}

#[test]
fn a_pause_without_evaluations_interrupts_the_duration() {
    let (bad, good) = (group(0.05, 0.01, 830), group(0.004, 0.001, 7510));
    let mut paused = guard("retransmits > 2x for 10s");
    let times = (1..=8).chain(60..80);
    let fired: Vec<_> = times
        .filter(|now| paused.evaluate(second(*now), &bad, &good).is_some())
        .collect();
    assert_eq!(fired, [70]);
}

#[test]
fn figures_have_three_digits() {
    use weir_policy::GuardMetric::{DeliveryRate, Retransmits, Rtt};
    for (metric, value, text) in [
        (Retransmits, 0.0, "0%"),
        (Retransmits, 0.051_23, "5.12%"),
        (Retransmits, 1.0, "100%"),
        (Retransmits, 0.000_012, "0.0012%"),
        (Rtt, 0.001_234_5, "1.23ms"),
        (Rtt, 0.000_05, "50us"),
        (Rtt, 12.0, "12s"),
        (Rtt, f64::INFINITY, "unlimited"),
        (DeliveryRate, 98.76e6, "98.8Mbps"),
        (DeliveryRate, -98.76e6, "-98.8Mbps"),
        (DeliveryRate, 12_345e9, "12345Gbps"),
    ] {
        assert_eq!(figure_text(metric, value), text);
    }
}

proptest! {
    /// A guard fires exactly if the condition holds at all evaluations of its duration.
    #[test]
    fn a_guard_fires_after_its_duration_only(
        holds in proptest::collection::vec(proptest::bool::weighted(0.9), 1..80), duration in 1_u64..20,
    ) {
        let condition = GuardCondition {
            duration: Duration::from_secs(duration),
            ..guard_condition()
        };
        let mut guard = Guard::new(condition);
        let (bad, good) = (group(0.05, 0.01, 830), group(0.004, 0.001, 7510));
        let mut expected = None;
        let mut run = 0;
        for (now, holds) in holds.iter().enumerate() {
            run = if *holds { run + 1 } else { 0 };
            if run > duration && expected.is_none() {
                expected = Some(now);
            }
            let treated = if *holds { &bad } else { &good };
            let fired = guard.evaluate(second(now as u64 + 1), treated, &good).is_some();
            prop_assert_eq!(fired, expected == Some(now));
        }
    }

    /// Whatever the figures, a guard that has fired was certain: on both sides of the interval.
    #[test]
    fn a_guard_fires_only_beyond_the_interval(
        treated in (0.0_f64..0.2, 0.0_f64..0.05, 0_u64..60), control in (0.0_f64..0.2, 0.0_f64..0.05, 0_u64..60),
    ) {
        let (treated, control) = (group(treated.0, treated.1, treated.2), group(control.0, control.1, control.2));
        let fired = fires(&mut guard("retransmits > 2x for 2s"), 5, &treated, &control);
        if !fired.is_empty() {
            let (treated, control) = (treated.retransmits.unwrap(), control.retransmits.unwrap());
            prop_assert!(treated.low > 2.0 * control.value && treated.value > 2.0 * control.high);
            prop_assert!(treated.connections >= 20 && control.connections >= 20);
        }
    }
}

fn guard_condition() -> GuardCondition {
    "retransmits > 2x for 1s".parse().unwrap()
}
