//! SED against its paper's claims, as far as they hold: `docs/sed.md` has the tables.

use std::path::Path;

use weir_results::{DeadlineSummary, RunSummary};
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;

/// What a shipped scenario's variant gives under these settings.
fn run(file: &str, variant: &str, settings: &[&str]) -> RunSummary {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let loaded = Scenario::load(&folder.join(file), &settings).unwrap();
    let scenario = match variant {
        "" => loaded.scenario,
        name => {
            let mut variants = loaded.variants.into_iter();
            variants.find(|variant| variant.name == name).unwrap().scenario
        }
    };
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.advance(simulation.end(), &mut ()).unwrap();
    simulation.finish(&mut ()).unwrap()
}

/// Two rounds of so many senders of each of the five applications.
fn large(variant: &str, senders: u32) -> (DeadlineSummary, f64) {
    let senders = format!("parameters.senders={senders}");
    let settings = [&senders, "parameters.rounds=2", "duration=2s"];
    let run = run("sed-large.toml", variant, &settings);
    let deadlines = run.deadlines.unwrap();
    let most = 1e9 * 1460.0 / 1538.0;
    (deadlines, deadlines.goodput.bits_per_second() as f64 / most)
}
