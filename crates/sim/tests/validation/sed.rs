//! SED against the claims of its paper, where they hold: `docs/sed.md` has the tables.

use std::path::Path;

use weir_results::{DeadlineSummary, RunSummary};
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;

/// Runs a shipped scenario's variant under these settings.
fn run(file: &str, variant: &str, settings: &[&str]) -> RunSummary {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let loaded = Scenario::load(&folder.join(file), &settings).unwrap();
    let scenario = match variant {
        "" => loaded.scenario,
        name => {
            let mut variants = loaded.variants.into_iter();
            variants
                .find(|variant| variant.name == name)
                .unwrap()
                .scenario
        }
    };
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.advance(simulation.end(), &mut ()).unwrap();
    simulation.finish(&mut ()).unwrap()
}

/// Runs two rounds with this many senders of each of the five applications.
fn large(variant: &str, senders: u32) -> (DeadlineSummary, f64) {
    let senders = format!("parameters.senders={senders}");
    let settings = [&senders, "parameters.rounds=2", "duration=2s"];
    let run = run("sed-large.toml", variant, &settings);
    let deadlines = run.deadlines.clone().unwrap();
    let most = 1e9 * 1460.0 / 1538.0;
    let goodput = deadlines.goodput.bits_per_second() as f64;
    (deadlines, goodput / most)
}

/// Returns the groups that missed a deadline at the small scale.
fn late(run: &RunSummary) -> Vec<&str> {
    let groups = run.groups.iter();
    let late = groups.filter(|(_, group)| group.deadlines_missed.is_some_and(|missed| missed > 0));
    late.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn five_deadlines_are_met_and_the_endless_flow_goes_on() {
    let sed = run("sed-small.toml", "sed", &[]);
    assert_eq!(late(&sed), [""; 0]);
    assert!(sed.groups["endless"].goodput > "100Mbps".parse().unwrap());
    assert_eq!(
        late(&run("sed-small.toml", "dctcp", &[])),
        ["flow1", "flow3"]
    );
    // Flows that assume the empty network's round trip get too little.
    assert!(late(&run("sed-small.toml", "base-reading", &[])).len() >= 3);
}

#[test]
fn forty_senders_meet_their_deadlines_at_nine_tenths_of_the_link() {
    for senders in [1, 4, 8] {
        let (sed, goodput) = large("sed", senders);
        assert_eq!(sed.missed, 0, "{senders}");
        assert!(goodput >= 0.9, "{senders}: {goodput}");
    }
}

#[test]
fn a_hundred_senders_with_retransmission() {
    for variant in ["rsed", "rsed-planned"] {
        let (rsed, goodput) = large(variant, 20);
        assert!(
            rsed.missed * 100 <= rsed.transfers,
            "{variant}: {}",
            rsed.missed
        );
        assert!(goodput >= 0.85, "{variant}: {goodput}");
    }
}

#[test]
fn sed_misses_fewest_deadlines_when_not_all_can_be_met() {
    let missed = |variant| large(variant, 20).0.missed;
    let (planned, goodput) = large("short-sed-planned", 20);
    assert_eq!(
        large("short-dctcp", 20).0.fewest_missed,
        planned.fewest_missed
    );
    assert!(goodput > 0.9);
    let least = planned.fewest_missed.unwrap();
    assert_eq!(least, 2 * 18);
    assert!(
        planned.missed <= least * 4 / 3,
        "{} of {least}",
        planned.missed
    );
    assert!(planned.missed < missed("short-dctcp"));
    assert!(missed("short-rsed") < missed("short-d2tcp"));
}

/// Windows come too late to be of use, but no flow is stopped for good.
#[test]
fn a_distant_controller_stops_no_flow_permanently() {
    let settings = [
        "parameters.rounds=2",
        "duration=2s",
        "parameters.latency=10ms",
    ];
    let run = run("sed-latency.toml", "", &settings);
    let deadlines = run.deadlines.clone().unwrap();
    let completed: u64 = run.groups.values().map(|group| group.completed).sum();
    assert_eq!(completed, deadlines.transfers);
}
