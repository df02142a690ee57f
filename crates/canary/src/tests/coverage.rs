//! The intervals contain the truth about as often as they say.

use weir_units::Duration;

use super::*;
use crate::{Difference, Estimate, GroupStatistics, Summary};

const RTT: Duration = Duration::from_millis(2);
/// With 95 % the standard deviation of the count is 4.4, so that 18 too few are four of them.
const REPEATS: u64 = 400;
const LEAST: u64 = 362;

fn summary(seed: u64, connections: u64, loss: f64) -> Summary {
    let mut population = Population::new(seed, loss, RTT);
    let mut statistics = GroupStatistics::new(Duration::from_secs(30));
    for number in 0..connections {
        statistics.record(at(number % 20_000), &population.connection(number));
    }
    statistics.summary_of_last(at(20_000), Duration::from_secs(30))
}

fn contains(estimate: Option<Estimate>, truth: f64) -> bool {
    estimate.is_some_and(|estimate| {
        assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        estimate.low <= truth && truth <= estimate.high
    })
}

/// Returns how many of the repeats hold.
fn count(holds: impl Fn(u64) -> bool) -> u64 {
    (0..REPEATS).filter(|seed| holds(*seed)).count() as u64
}

#[test]
fn the_interval_of_retransmits_holds_for_losses_that_cluster() {
    for (connections, loss) in [(40, 0.05), (200, 0.05), (200, 0.005), (1000, 0.001)] {
        let covered = count(|seed| contains(summary(seed, connections, loss).retransmits, loss));
        assert!(
            covered >= LEAST,
            "{connections} connections, {loss}: {covered}"
        );
    }
}

#[test]
fn intervals_of_retransmits_are_no_wider_than_needed() {
    // Loss rates have a standard deviation of 3.5 %, and sizes one of some 60 of 65 segments: that of the part
    // of 200 connections is 0.4 %, by which an interval is 1.6 % wide.
    let width = |seed| {
        let estimate = summary(seed, 200, 0.05).retransmits.unwrap();
        estimate.high - estimate.low
    };
    let mean = (0..50).map(width).sum::<f64>() / 50.0;
    assert!(mean > 0.014 && mean < 0.02, "{mean}");
}

#[test]
fn the_intervals_of_quantiles_hold_for_skewed_distributions() {
    for connections in [20, 300] {
        let rtt = RTT.as_secs_f64();
        let covered = count(|seed| contains(summary(seed, connections, 0.0).rtt, rtt));
        assert!(covered >= LEAST, "RTT of {connections}: {covered}");
    }
    // Durations are exponential with a mean of a millisecond.
    let p99 = 100_f64.ln() * 1e-3;
    let covered = count(|seed| contains(summary(seed, 1000, 0.0).completion_p99, p99));
    assert!(covered >= LEAST, "99th percentile: {covered}");
}

#[test]
fn the_interval_of_a_difference_holds() {
    let contains =
        |difference: Difference, truth: f64| difference.low <= truth && truth <= difference.high;
    let covered = count(|seed| {
        let (treated, control) = (summary(seed, 40, 0.04), summary(seed + REPEATS, 400, 0.01));
        let (treated, control) = (treated.retransmits.unwrap(), control.retransmits.unwrap());
        contains(treated.minus(2.0, &control), 0.02)
    });
    assert!(covered >= LEAST, "retransmits: {covered}");
    let covered = count(|seed| {
        let (treated, control) = (summary(seed, 40, 0.0), summary(seed + REPEATS, 400, 0.0));
        contains(treated.rtt.unwrap().minus(1.0, &control.rtt.unwrap()), 0.0)
    });
    assert!(covered >= LEAST, "RTT: {covered}");
}

/// A connection is one observation, however often it is reported.
#[test]
fn reports_of_open_connections_do_not_narrow_the_intervals() {
    let mut population = Population::new(3, 0.02, RTT);
    let mut once = GroupStatistics::new(Duration::from_secs(30));
    let mut often = GroupStatistics::new(Duration::from_secs(30));
    for number in 0..100 {
        let last = ConnectionRecord {
            state: ConnectionState::Open,
            ..population.connection(number)
        };
        for part in 1..=10 {
            let so_far = ConnectionRecord {
                segments_sent: last.segments_sent * part / 10,
                segments_retransmitted: last.segments_retransmitted * part / 10,
                ..last.clone()
            };
            often.record(at(part * 1000), &so_far);
        }
        once.record(at(10_000), &last);
    }
    let span = Duration::from_secs(30);
    let of = |statistics: &GroupStatistics| statistics.summary_of_last(at(10_000), span);
    assert_eq!(of(&once), of(&often));
    assert_eq!(once.summary_of_all().connections, 100);
}
