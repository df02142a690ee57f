//! What Vargas, Balasubramanian and Sundaresan observe of DCTCP and CUBIC in one queue (sections 6.3
//! and 6.4), one by one, where it holds and where it does not: docs/validation.md has the map.
//!
//! The scenario that ships, at 1 Gbps instead of 5 to 25 and with 6 s of warm-up in 16 s instead of two
//! minutes from the start. With 100 DCTCP flows of at least two segments, DCTCP has a floor of
//! 100 · 2 · 1500 B = 300 KB in flight that no mark takes from it. `full_size` has the paper's own
//! size: `cargo test --release -p weir-sim --test validation sharing -- --ignored --nocapture`.

use std::path::Path;

use weir_results::RunSummary;
use weir_scenario::Scenario;
use weir_sim::Simulation;
use weir_units::Time;

use crate::observe::bottleneck;

/// What one setting led to.
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

/// Runs the scenario that ships.
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
    "duration=16s",
    "warm_up=6s",
];

fn small(thresholds: Thresholds, more: &[&str]) -> Shared {
    share(thresholds, &[&SMALL, more].concat())
}
