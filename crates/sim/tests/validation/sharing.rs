//! The observations of Vargas, Balasubramanian and Sundaresan on DCTCP and CUBIC in one queue (sections 6.3
//! and 6.4), one by one, where they hold and where they do not: docs/validation.md has the map.
//!
//! This is the shipped scenario, at 1 Gbps instead of 5 to 25 and with 4 s of warm-up in 9 s instead of two
//! minutes from the start. With 100 DCTCP flows of at least two segments, DCTCP has a floor of
//! 100 · 2 · 1500 B = 300 KB in flight that no mark reduces. `full_size` has the paper's own size:
//! `cargo test --release -p weir-sim --test validation sharing -- --ignored --nocapture`.

use std::path::Path;

use weir_results::RunSummary;
use weir_scenario::Scenario;
use weir_sim::Simulation;
use weir_units::Time;

use crate::observe::bottleneck;

/// The result of one setting.
struct Shared {
    /// CUBIC's share of the goodput.
    cubic: f64,
    drops: u64,
    /// The mean and the longest queue, in KB.
    queue_mean: f64,
    queue_max: f64,
}

impl Shared {
    fn of(summary: &RunSummary) -> Self {
        let port = bottleneck(summary);
        Self {
            cubic: summary.groups["cubic"].share.value(),
            drops: port.drops.total(),
            queue_mean: port.queue_mean.bytes() as f64 / 1e3,
            queue_max: port.queue_max.bytes() as f64 / 1e3,
        }
    }
}

/// The thresholds in KB: ECN, RED's minimum and its maximum.
#[derive(Clone, Copy)]
struct Thresholds(u32, u32, u32);

/// Runs the shipped scenario.
fn share(thresholds: Thresholds, settings: &[&str]) -> Shared {
    let Thresholds(ecn, min, max) = thresholds;
    let mut all = vec![
        format!("parameters.ecn_threshold={ecn}KB"),
        format!("parameters.red_min={min}KB"),
        format!("parameters.red_max={max}KB"),
    ];
    all.extend(settings.iter().map(|&setting| setting.to_owned()));
    let all: Vec<_> = all.iter().map(|setting| setting.parse().unwrap()).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/buffer-sharing.toml");
    let loaded = Scenario::load(&file, &all).unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new(loaded.scenario).unwrap();
    simulation.advance(Time::MAX, &mut ()).unwrap();
    let shared = Shared::of(&simulation.finish(&mut ()).unwrap());
    println!(
        "{settings:?} ECN {ecn} KB, RED {min} to {max} KB: CUBIC {:.1} %, {} drops, queue {:.0} KB, at most {:.0} KB",
        shared.cubic * 100.0,
        shared.drops,
        shared.queue_mean,
        shared.queue_max,
    );
    shared
}

const SMALL: [&str; 4] = [
    "parameters.line_rate=1Gbps",
    "parameters.cubic_rtt=25ms",
    "duration=9s",
    "warm_up=4s",
];

fn small(thresholds: Thresholds, more: &[&str]) -> Shared {
    share(thresholds, &[&SMALL, more].concat())
}

/// Section 6.3: "a higher drop-tail threshold increases Cubic throughput". It holds throughout.
///
/// "The trade off for increased Cubic throughput is an increase in packet drops": that holds between a
/// threshold that starves CUBIC and one that does not. Above, a longer queue, and with it a longer round
/// trip, means fewer drops.
#[test]
fn a_higher_drop_threshold_raises_cubics_share() {
    let runs = [200, 600, 1000, 1800].map(|drop| small(Thresholds(100, drop, drop), &[]));
    let [starved, some, more, most] = &runs;
    // Below DCTCP's floor CUBIC has no room.
    assert!(starved.cubic < 0.02);
    assert!(
        runs.windows(2)
            .all(|pair| pair[0].cubic + 0.05 < pair[1].cubic)
    );
    // The rest beside DCTCP's floor: 1 - 225 KB / (queue + 6 KB), where 6 KB are DCTCP's C·RTT. Windows of
    // two segments send 1.5 per round trip, as the ACK of the second one waits for the next round trip.
    for run in [some, more, most] {
        let expected = 1.0 - 225.0 / (run.queue_mean + 6.0);
        assert!(
            (run.cubic - expected).abs() < 0.02,
            "{} or {expected}",
            run.cubic
        );
    }
    assert!(starved.drops * 4 < some.drops);
    assert!(most.drops < some.drops);
}

/// Section 6.3: "lower ECN thresholds increase DCTCP throughput". They do not. Far below the drop threshold
/// the ECN threshold changes nothing while DCTCP is at its floor. Near it DCTCP takes the capacity that
/// CUBIC, which is dropped there, cannot use. The paper's own last words on it agree ("top right has higher
/// Cubic throughput"), and so does its reason for showing thresholds above 400 KB.
#[test]
fn a_low_ecn_threshold_does_not_reduce_cubics_share() {
    let [low, middle, high] =
        [20, 400, 1000].map(|ecn| small(Thresholds(ecn, 1000, 1000), &[]).cubic);
    assert!((low - middle).abs() < 0.02, "{low}, {middle}");
    assert!(high < middle / 2.0, "{middle}, {high}");
}

/// Section 6.4: "RED also has lower average buffer utilization while still maintaining similar max
/// buffer utilization", and "slightly lower packet drops". The lower mean holds throughout. Fewer drops
/// occur only where DCTCP's floor leaves the queue below RED's minimum, as with a quarter of a segment as the
/// smallest window.
#[test]
fn red_shortens_the_queue_and_drops_less_with_a_low_dctcp_floor() {
    let (tail, red) = (Thresholds(100, 1000, 1000), Thresholds(100, 200, 1000));
    let [high_floor, low_floor] = ["2", "0.25"].map(|segments| {
        let floor = format!("groups.dctcp.congestion.min_window={segments}");
        [tail, red].map(|thresholds| small(thresholds, &[&floor]))
    });
    for [tail, red] in [&high_floor, &low_floor] {
        assert!(red.queue_mean < 0.7 * tail.queue_mean);
        assert!(red.queue_max <= tail.queue_max);
    }
    let [tail, red] = high_floor;
    assert!(red.drops > tail.drops);
    let [tail, red] = low_floor;
    assert!(red.drops < tail.drops);
}

/// The paper's own size, 25 Gbps and two minutes, over both kinds of thresholds.
#[test]
#[ignore = "minutes of CPU time per line"]
fn full_size() {
    for segments in [2, 1] {
        let floor = format!("groups.dctcp.congestion.min_window={segments}");
        let at = |ecn, min, max| share(Thresholds(ecn, min, max), &[&floor]);
        let by_ecn = [20, 100, 400, 800].map(|ecn| at(ecn, 1000, 1000));
        assert!(
            by_ecn
                .windows(2)
                .all(|pair| pair[1].cubic < pair[0].cubic + 0.02)
        );
        let by_drop = [200, 600, 1000, 1800].map(|drop| at(100, drop, drop));
        assert!(
            by_drop
                .windows(2)
                .all(|pair| pair[0].cubic < pair[1].cubic + 0.02)
        );
        let red = at(100, 200, 1000);
        assert!(red.queue_mean < by_drop[2].queue_mean);
    }
}
