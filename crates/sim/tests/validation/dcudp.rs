//! DCUDP where the paper's assumptions do not hold: networks that do not mark, and unequal round trips.
//!
//! `cargo test -p weir-sim --test validation dcudp -- --ignored --nocapture` prints the full tables of
//! docs/dcudp.md.

use std::fmt;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use weir_results::RunSummary;
use weir_scenario::Scenario;
use weir_sim::Simulation;
use weir_units::Time;

use crate::observe::bottleneck;

/// The share of the link that each of two flows has to get.
const QUARTER: f64 = 0.25;

/// Runs a shipped scenario.
fn run(name: &str, settings: &[String]) -> RunSummary {
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let file = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let loaded = Scenario::load(Path::new(&file), &settings);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new(loaded.scenario).unwrap();
    simulation.advance(Time::MAX, &mut ()).unwrap();
    simulation.finish(&mut ()).unwrap()
}

/// A bottleneck without marking.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    rate: &'static str,
    rtt: &'static str,
    buffer: &'static str,
}

/// What the flows of a run achieve: in Mbps, and packets dropped by the queue in percent.
struct Achieved {
    dcudp: f64,
    cubic: f64,
    dropped: f64,
}

/// What DCUDP and CUBIC achieve alone, and their shares of the link beside each other, by seed.
struct Comparison {
    bottleneck: Bottleneck,
    dcudp: Achieved,
    cubic: Achieved,
    shares: Vec<(f64, f64)>,
}

impl Bottleneck {
    fn run(self, settings: &[String]) -> Achieved {
        let Self { rate, rtt, buffer } = self;
        let mut all = vec![
            format!("parameters.rate={rate}"),
            format!("parameters.rtt={rtt}"),
            format!("parameters.buffer={buffer}"),
        ];
        all.extend_from_slice(settings);
        let summary = run("dcudp-unmarked", &all);
        let port = bottleneck(&summary);
        let goodput = |group: &str| summary.groups[group].goodput.bits_per_second() as f64 / 1e6;
        let offered = port.packets + port.drops.total();
        Achieved {
            dcudp: goodput("dcudp"),
            cubic: goodput("cubic"),
            dropped: 100.0 * port.drops.total() as f64 / offered.max(1) as f64,
        }
    }

    /// Returns the smallest share of the link that each has to get beside the other: in the median run, and in
    /// the worst one.
    fn required_shares(self) -> (f64, f64) {
        match (self.rate, self.rtt, self.buffer) {
            // A CUBIC flow has 0.16 and 0.23 of these links alone, and less beside another one.
            ("1Gbps", "20ms", "32KB" | "128KB") => (0.14, 0.14),
            _ => (QUARTER, 0.2),
        }
    }

    /// Runs one flow while the other one is absent.
    fn without(self, absent: &str) -> Achieved {
        self.run(&[format!("parameters.{absent}_start=9.999s")])
    }

    /// Runs DCUDP alone, CUBIC alone, and both with each seed: they start up to 10 ms apart.
    fn compare(self, seeds: RangeInclusive<u64>) -> Comparison {
        let rate: weir_units::Rate = self.rate.parse().unwrap();
        let link = rate.bits_per_second() as f64 / 1e6;
        let shares = seeds.map(|seed| {
            let spread = "parameters.spread=10ms".to_owned();
            let both = self.run(&[format!("seed={seed}"), spread]);
            (both.dcudp / link, both.cubic / link)
        });
        Comparison {
            bottleneck: self,
            dcudp: self.without("cubic"),
            cubic: self.without("dcudp"),
            shares: shares.collect(),
        }
    }
}

/// Returns the median and the smallest value.
fn median_and_least(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0])
}

impl Comparison {
    fn shares_of_dcudp(&self) -> (f64, f64) {
        median_and_least(self.shares.iter().map(|(dcudp, _)| *dcudp))
    }

    fn shares_of_cubic(&self) -> (f64, f64) {
        median_and_least(self.shares.iter().map(|(_, cubic)| *cubic))
    }

    /// Returns how many seeds leave one of them less than a quarter of the link.
    fn too_small(&self) -> usize {
        let shares = self.shares.iter();
        shares
            .filter(|(dcudp, cubic)| dcudp.min(*cubic) < QUARTER)
            .count()
    }

    /// Returns what is wrong.
    fn faults(&self) -> Vec<String> {
        let Self { dcudp, cubic, .. } = self;
        let mut faults = Vec::new();
        if dcudp.dcudp < 0.9 * cubic.cubic {
            faults.push(format!("goodput {} of {}", dcudp.dcudp, cubic.cubic));
        }
        if dcudp.dropped > (2.0 * cubic.dropped).max(1.0) {
            faults.push(format!("dropped {} %", dcudp.dropped));
        }
        let (median, least) = self.bottleneck.required_shares();
        for (name, shares) in [
            ("DCUDP", self.shares_of_dcudp()),
            ("CUBIC", self.shares_of_cubic()),
        ] {
            if shares.0 < median || shares.1 < least {
                faults.push(format!("{name} has a share of {shares:?}"));
            }
        }
        faults
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bottleneck { rate, rtt, buffer } = self.bottleneck;
        let ((dcudp, least_dcudp), (cubic, least_cubic)) =
            (self.shares_of_dcudp(), self.shares_of_cubic());
        write!(
            f,
            "| {rate} | {rtt} | {buffer} | {:.2} | {:.2} | {:.2} | {:.2} | {dcudp:.2}, {least_dcudp:.2} | \
             {cubic:.2}, {least_cubic:.2} | {} |",
            self.dcudp.dcudp,
            self.cubic.cubic,
            self.dcudp.dropped,
            self.cubic.dropped,
            self.too_small(),
        )
    }
}

/// Compares on all bottlenecks, one on each core at a time, and prints the table.
fn compare_all(bottlenecks: &[Bottleneck], seeds: &RangeInclusive<u64>) -> Vec<Comparison> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(bottleneck) = bottlenecks.get(number)
                {
                    let comparison = bottleneck.compare(seeds.clone());
                    done.lock().unwrap().push((number, comparison));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, _)| *number);
    println!(
        "| link | RTT | buffer | DCUDP | TCP | lost | TCP's | share: median, least | TCP's | below |"
    );
    let rows = done.into_iter().map(|(_, comparison)| comparison);
    rows.inspect(|comparison| println!("{comparison}"))
        .collect()
}

/// Some of what `unmarked_networks_in_full` prints; docs/dcudp.md has the whole table.
#[test]
fn without_marks_dcudp_is_as_fast_as_cubic_loses_as_little_and_shares() {
    let bottlenecks = [
        ("10Mbps", "200us", "32KB"),
        ("10Mbps", "20ms", "128KB"),
        ("100Mbps", "5ms", "128KB"),
        ("100Mbps", "20ms", "512KB"),
    ];
    let bottlenecks = bottlenecks.map(|(rate, rtt, buffer)| Bottleneck { rate, rtt, buffer });
    assert_no_faults(&compare_all(&bottlenecks, &(1..=1)));
}

#[test]
#[ignore = "252 runs of 10 s"]
fn unmarked_networks_in_full() {
    let mut bottlenecks = Vec::new();
    for rate in ["10Mbps", "100Mbps", "1Gbps"] {
        for rtt in ["200us", "5ms", "20ms"] {
            for buffer in ["32KB", "128KB", "512KB", "1MB"] {
                bottlenecks.push(Bottleneck { rate, rtt, buffer });
            }
        }
    }
    assert_no_faults(&compare_all(&bottlenecks, &(1..=5)));
}

fn assert_no_faults(comparisons: &[Comparison]) {
    let faults = comparisons.iter().flat_map(|comparison| {
        let what = comparison.bottleneck;
        let faults = comparison.faults().into_iter();
        faults.map(move |fault| format!("{what:?}: {fault}"))
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The paper's sender floods the same networks: it is there by name.
#[test]
fn the_papers_sender_floods_a_network_that_does_not_mark() {
    let paper = [
        "groups.dcudp.dcudp.udp_mode=true",
        "groups.dcudp.dcudp.rate=1Gbps",
        "parameters.cubic_start=999ms",
        "duration=1s",
    ];
    let summary = run("dcudp-unmarked", &paper.map(str::to_owned));
    let port = bottleneck(&summary);
    assert!(port.drops.total() > port.packets, "{port:?}");
}

/// Returns Jain's index of the five flows, and their share of the link.
fn unequal_round_trips(congestion: &str, more: &[&str]) -> (f64, f64) {
    let mut settings = vec![format!("parameters.congestion=\"{congestion}\"")];
    settings.extend(more.iter().map(|setting| (*setting).to_owned()));
    let flows = &run("dcudp-rtts", &settings).groups["flows"];
    let (fairness, share) = (flows.fairness.unwrap(), flows.link_share.unwrap());
    println!(
        "{congestion:60} {:.3} {:.3}",
        fairness.value(),
        share.value()
    );
    (fairness.value(), share.value())
}

#[test]
fn round_trips_of_50_to_800_microseconds_share_equally_by_name() {
    let (fairness, share) = unequal_round_trips("dcudp-rtt-fair", &[]);
    assert!(fairness >= 0.9 && share >= 0.97, "{fairness} {share}");
    let (unfair, _) = unequal_round_trips("dcudp-proportional", &[]);
    assert!(unfair < 0.6, "{unfair}");
}

/// The table of docs/dcudp.md, but DCTCP; and what the environment variable `CONGESTION` names, separated by
/// semicolons.
#[test]
#[ignore = "prints a table"]
fn unequal_round_trips_in_full() {
    for congestion in std::env::var("CONGESTION").unwrap_or_default().split(';') {
        if !congestion.is_empty() {
            unequal_round_trips(congestion, &[]);
        }
    }
    let (fair, _) = unequal_round_trips("dcudp-rtt-fair", &[]);
    let (proportional, _) = unequal_round_trips("dcudp-proportional", &[]);
    let (paper, _) = unequal_round_trips("dcudp", &["parameters.window=8"]);
    assert!(
        fair >= 0.9 && proportional < 0.6 && paper < 0.6,
        "{fair} {proportional} {paper}"
    );
}
