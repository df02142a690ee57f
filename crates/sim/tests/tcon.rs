//! The guarantees of transparent congestion control in virtual time: `scenarios/tcon-wan.toml` with fewer
//! files, and `scenarios/tcon-dctcp.toml`.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::collections::HashMap;
use std::path::Path;

use weir_results::RunSummary;
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;
use weir_units::Time;

fn run(scenario: Scenario) -> RunSummary {
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.advance(Time::MAX, &mut ()).unwrap();
    simulation.finish(&mut ()).unwrap()
}

/// Runs the file's own values under the name `base`, and its variants.
fn run_all(file: &str, settings: &[&str]) -> HashMap<String, RunSummary> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(file);
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let loaded = Scenario::load(&path, &settings).unwrap();
    let own = ("base".to_owned(), loaded.scenario);
    let variants = loaded.variants.into_iter();
    let variants = variants.map(|variant| (variant.name, variant.scenario));
    let runs = std::iter::once(own).chain(variants);
    runs.map(|(name, scenario)| (name, run(scenario))).collect()
}

fn mean_time(run: &RunSummary) -> f64 {
    run.groups["files"].completion.unwrap().mean.as_secs_f64()
}

#[test]
fn tcon_with_bbr_beats_cubic_over_lossy_paths() {
    let runs = run_all("tcon-wan.toml", &["parameters.files=20", "duration=1000s"]);
    for (slot, cubic, most) in [
        ("shanghai", "base", 0.9),
        ("oregon", "oregon-cubic", 0.9),
        ("lan", "lan-cubic", 1.02),
    ] {
        let of = |name: String| mean_time(&runs[&name]);
        let (cubic, bbr) = (of(cubic.to_owned()), of(format!("{slot}-bbr")));
        let tcon = of(format!("{slot}-tcon"));
        println!("{slot}: CUBIC {cubic:.4} BBR {bbr:.4} TCon {tcon:.4}");
        assert!(tcon <= 1.05 * bbr, "{slot}: {tcon} s against BBR's {bbr} s");
        assert!(
            tcon <= most * cubic,
            "{slot}: {tcon} s against CUBIC's {cubic} s"
        );
    }
}

#[test]
fn tcon_with_dctcp_replaces_cubic_at_a_marking_port() {
    let runs = run_all("tcon-dctcp.toml", &[]);
    let queue = |name: &str| runs[name].ports["spine->client"].queue_mean.bytes() as f64;
    let goodput = |name: &str| runs[name].groups["flows"].goodput.bits_per_second() as f64;
    assert!((queue("tcon") / queue("dctcp") - 1.0).abs() <= 0.25);
    assert!((goodput("tcon") / goodput("dctcp") - 1.0).abs() <= 0.05);
    assert!(
        queue("without-ecn") > 1.5 * queue("dctcp"),
        "CUBIC's own queue is longer where nobody speaks ECN"
    );
}
