//! The default detector raises no false alarm: 200 requests per second, 20 % jitter, 0.1 % loss.
//! The model does trigger simpler detectors.

use weir_units::{Duration, Time};

use super::super::{Cause, MigrationConfig};
use super::model::{Model, Outcome};
use super::{ms, paper, size_class};

/// Equal sizes, the web-search mix, and a server that computes for up to 50 ms.
fn workloads(seed: u64) -> [Model; 3] {
    let fabric = Model {
        seed,
        ..Model::fabric()
    };
    let mix = Model {
        sizes: &[100, 10_000],
        ..fabric.clone()
    };
    let thinking = Model {
        think: ms(50),
        ..mix.clone()
    };
    [fabric, mix, thinking]
}

fn assert_no_alarm(model: Model, span: Duration) -> Outcome {
    let label = (model.seed, model.sizes, model.think, model.rtt);
    let outcome = model.run(size_class(), Time::ZERO + span);
    if let Some(decision) = outcome.decision {
        panic!("{label:?}, at {}: {decision}", decision.at);
    }
    let expected = span.as_millis() / 5;
    assert!(outcome.started as u64 >= expected);
    assert!(outcome.finished + 20 >= expected, "{label:?}: {outcome:?}");
    outcome
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn equal_sizes_raise_no_alarm_in_an_hour() {
    let [equal, _, _] = workloads(1);
    assert_no_alarm(equal, HOUR);
}

#[test]
fn the_web_search_mix_raises_no_alarm_in_an_hour() {
    let [_, mix, _] = workloads(1);
    assert_no_alarm(mix, HOUR);
}

#[test]
fn server_think_time_raises_no_alarm_in_an_hour() {
    let [_, _, thinking] = workloads(1);
    assert_no_alarm(thinking, HOUR);
}

#[test]
fn mixed_sizes_and_think_time_alarm_the_papers_detector() {
    for model in &workloads(1)[1..] {
        let outcome = model.clone().run(paper(), Time::ZERO + HOUR);
        let cause = outcome.decision.unwrap().cause;
        assert!(matches!(cause, Cause::Equation4(_)), "{cause}");
    }
}

#[test]
fn a_zero_minimum_increase_raises_no_alarm() {
    let sensitive = MigrationConfig {
        min_increase: Duration::ZERO,
        ..size_class()
    };
    for model in workloads(5) {
        let outcome = model.run(sensitive, Time::ZERO + Duration::from_secs(300));
        assert_eq!(outcome.decision, None);
    }
}

#[test]
fn partly_removed_ack_delay_raises_no_alarm() {
    for model in workloads(2) {
        let model = Model {
            whole_ack_delay: false,
            ..model
        };
        assert_no_alarm(model, Duration::from_secs(120));
    }
}

#[test]
fn a_wide_area_path_raises_no_alarm() {
    for model in workloads(3) {
        let model = Model {
            rtt: ms(40),
            max_ack_delay: ms(25),
            granularity: ms(1),
            ..model
        };
        assert_no_alarm(model, Duration::from_secs(120));
    }
}

#[test]
fn server_think_time_costs_few_pings() {
    let [.., thinking] = workloads(4);
    let sequential = Model {
        interval: Some(ms(100)),
        ..thinking
    };
    let outcome = sequential.run(size_class(), Time::ZERO + Duration::from_secs(60));
    let per_request = outcome.pings as f64 / outcome.finished as f64;
    assert!((5.0..25.0).contains(&per_request), "{per_request}");
}

#[test]
#[ignore = "an hour of simulated time for ten seeds takes a minute: make long"]
fn ten_hours_raise_no_alarm() {
    for seed in 10..20 {
        for model in workloads(seed) {
            assert_no_alarm(model, HOUR);
        }
    }
}

#[test]
fn losses_alone_raise_an_alarm_at_two_probe_timeouts() {
    let hasty = MigrationConfig {
        probe_timeouts: 2,
        ..size_class()
    };
    let [equal, ..] = workloads(6);
    let decision = equal.run(hasty, Time::ZERO + HOUR).decision.unwrap();
    assert_eq!(decision.cause.name(), "interruption");
}
