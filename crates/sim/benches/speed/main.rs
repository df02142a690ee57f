//! Simulator speed: packets per CPU second and peak memory, beside another commit, ns-3 and htsim with the
//! same dumbbell; the cost of a packet and the memory against the number of flows and hosts; the cost of a
//! hop in a fat tree.
//!
//! `make bench-sim` runs all rows. `cargo bench -p weir-sim --bench speed -- NAME...` runs those whose names
//! contain one of these words: `dctcp-20`, `dctcp-20-delayed`, `mixed-200`, `mixed-200-delayed`, `dcquic-20`,
//! `buffer-sharing`, `flows-10` to `flows-10000`, `hosts-10` to `hosts-10000`, `fat-tree`. A word that is a
//! whole name means this row alone.
//!
//! Each run has its own process, to measure its own memory. The programs of a row run in turn, and the
//! fastest of five runs of each counts. Time is CPU time of the simulation's thread, without what precedes
//! the first event. Environment variables:
//!
//! - `BASE`: the absolute path of another commit's binary of this benchmark (`target/release/deps/speed-…`). It
//!   runs the same cases. Where it does not know one, there is a dash.
//! - `HTSIM`: the absolute path of htsim's dumbbell (`bench/htsim`). ns-3 is `bench/ns3`, if it has been built.
//! - `RUNS`: the number of runs, instead of five.
//! - `SCALE`: a factor for simulated times, 0.1 for a quick look. Figures of different scales do not compare:
//!   setup of connections counts, too.
//!
//! The row `fat-tree` has a second table: wall-clock times on one thread and on two, which run in turn. They
//! need two idle cores.
//!
//! A hop is a packet, of data or an ACK, that leaves any port of a host or a switch. One more run counts
//! them by the counters of all ports. It is not timed, because measured ports cost time; it must deliver
//! the same bytes as the timed ones.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]

mod cases;
mod peers;
mod table;

use std::error::Error;
use std::path::Path;

use cases::{ALL_PORTS, Case, FAT_TREE_PORT, SpeedFigures, Work};
use peers::{Others, Peers};
use table::{Figures, decimals};

/// The names of all rows.
const ROWS: [&str; 15] = [
    "dctcp-20",
    "dctcp-20-delayed",
    "mixed-200",
    "mixed-200-delayed",
    "dcquic-20",
    "buffer-sharing",
    "flows-10",
    "flows-100",
    "flows-1000",
    "flows-10000",
    "hosts-10",
    "hosts-100",
    "hosts-1000",
    "hosts-10000",
    "fat-tree",
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(figures) = cases::run_arguments(&arguments)? {
        println!("{}", serde_json::to_string(&figures)?);
        return Ok(());
    }
    if let [mode, name, ..] = &arguments[..]
        && mode == cases::PRINT_SCENARIO
    {
        let text = scenario_text(name, 100_000)?;
        println!("{text}");
        return Ok(());
    }
    // `cargo test` builds and runs benchmarks too, to see whether they work.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let words = arguments.into_iter().filter(|word| !word.starts_with("--"));
    let benchmark = Benchmark {
        words: words.collect(),
        scale: number("SCALE", 1.0)?,
        peers: Peers::find(number("RUNS", 5.0)?.max(1.0) as usize)?,
    };
    if !ROWS.iter().any(|name| benchmark.has(name)) {
        return Err(format!("no such row; there are {}", ROWS.join(", ")).into());
    }
    benchmark.speeds()?;
    benchmark.growth("flows", "DCTCP flows of 10 hosts", |flows| (10, flows / 10))?;
    benchmark.growth("hosts", "hosts with one DCTCP flow each", |hosts| {
        (hosts, 1)
    })?;
    benchmark.fat_tree()
}

/// Returns the text of a row that is a scenario of this benchmark.
fn scenario_text(name: &str, duration_us: u64) -> Result<String, String> {
    cases::text(name, duration_us).ok_or_else(|| format!("{name} has no scenario of its own"))
}

/// Returns the positive number in a variable.
fn number(name: &str, default: f64) -> Result<f64, Box<dyn Error>> {
    let Ok(text) = std::env::var(name) else {
        return Ok(default);
    };
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err(format!("{name}={text} is no positive number").into()),
    }
}

/// The wanted rows and the programs that run them.
struct Benchmark {
    words: Vec<String>,
    scale: f64,
    peers: Peers,
}

impl Benchmark {
    /// Returns whether a row is wanted.
    fn has(&self, name: &str) -> bool {
        let wanted = |word: &String| {
            let is_whole = ROWS.contains(&word.as_str());
            word == name || (!is_whole && name.contains(word.as_str()))
        };
        self.words.is_empty() || self.words.iter().any(wanted)
    }

    /// Scales a simulated time, but not below `least`, when all flows have started.
    fn scaled(&self, time: u64, least: u64) -> u64 {
        ((time as f64 * self.scale) as u64).max(least)
    }

    /// Packets per CPU second, beside other programs.
    fn speeds(&self) -> Result<(), Box<dyn Error>> {
        let twenty = Case {
            dctcp_hosts: 20,
            cubic_hosts: 0,
            flows_per_host: 1,
            ack_every: 1,
            buffer_mb: 1.8,
            duration_ms: self.scaled(1000, 50),
        };
        let mixed = Case {
            dctcp_hosts: 10,
            cubic_hosts: 10,
            flows_per_host: 10,
            ..twenty.clone()
        };
        let delayed = |case: &Case| Case {
            ack_every: 2,
            ..case.clone()
        };
        let directory = tempfile::tempdir()?;
        let dcquic = directory.path().join("dcquic.toml");
        std::fs::write(
            &dcquic,
            scenario_text("dcquic-20", twenty.duration_ms * 1000)?,
        )?;
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let scenario = |path: &Path, settings: Vec<String>| Work::Scenario {
            path: path.display().to_string(),
            settings,
        };
        let duration = format!("duration={}ms", self.scaled(5000, 1100));
        let rows = [
            ("dctcp-20", Work::Case(twenty.clone())),
            ("dctcp-20-delayed", Work::Case(delayed(&twenty))),
            ("mixed-200", Work::Case(mixed.clone())),
            ("mixed-200-delayed", Work::Case(delayed(&mixed))),
            ("dcquic-20", scenario(&dcquic, Vec::new())),
            (
                "buffer-sharing",
                scenario(&shipped.join("buffer-sharing.toml"), vec![duration]),
            ),
        ];
        let mut table = Figures::new(&[
            "25 Gbit/s",
            "million packets\nper CPU s",
            "base's",
            "ours ÷\nbase's",
            "ns-3's",
            "ours ÷\nns-3's",
            "htsim's",
            "ours ÷\nhtsim's",
            "CPU s per\nsimulated s",
            "peak\nmemory, MB",
            "base's",
            "ns-3's",
            "htsim's",
        ]);
        for (name, work) in rows {
            if !self.has(name) {
                continue;
            }
            let best = self.peers.best(&work, Others::Join)?;
            let millions = |figures: SpeedFigures| figures.packets_per_cpu_second() / 1e6;
            let rate = |figures: Option<SpeedFigures>| figures.map(millions);
            let ratio = |figures| rate(figures).map(|theirs| millions(best.ours) / theirs);
            let memory = |figures: Option<SpeedFigures>| decimals(figures.map(megabytes), 1);
            table.add([
                name.to_owned(),
                decimals(Some(millions(best.ours)), 2),
                decimals(rate(best.base), 2),
                decimals(ratio(best.base), 3),
                decimals(rate(best.ns3), 4),
                decimals(ratio(best.ns3), 0),
                decimals(rate(best.htsim), 2),
                decimals(ratio(best.htsim), 2),
                decimals(Some(best.ours.cpu_s / best.ours.simulated_s), 2),
                memory(Some(best.ours)),
                memory(best.base),
                memory(best.ns3),
                memory(best.htsim),
            ]);
        }
        table.print();
        Ok(())
    }

    /// The cost of a packet and the memory against the number of flows or hosts. The buffer holds the
    /// smallest windows of all flows: the cost of losses would hide that of flows.
    fn growth(
        &self,
        what: &str,
        title: &str,
        hosts_and_flows: impl Fn(u32) -> (u32, u32),
    ) -> Result<(), Box<dyn Error>> {
        let sizes = [10, 100, 1_000, 10_000];
        let name = |size: u32| format!("{what}-{size}");
        if !sizes.iter().any(|size| self.has(&name(*size))) {
            return Ok(());
        }
        let mut table = Figures::new(&[
            title,
            "ns of CPU\nper packet",
            "÷ the\nfirst",
            "base's",
            "÷ the\nfirst",
            "ours ÷\nbase's",
            "peak\nmemory, MB",
            "base's",
            "KB for each\nmore",
            "base's",
        ]);
        let mut first = None;
        for size in sizes {
            // The others are compared with the first.
            if first.is_some() && !self.has(&name(size)) {
                continue;
            }
            let (hosts, flows) = hosts_and_flows(size);
            let best = self.peers.best(
                &Work::Case(Case {
                    dctcp_hosts: hosts,
                    cubic_hosts: 0,
                    flows_per_host: flows,
                    ack_every: 1,
                    buffer_mb: 100.0,
                    duration_ms: self.scaled(500, 50),
                }),
                Others::StayAway,
            )?;
            let first = *first.get_or_insert(best);
            let cost = |figures: Option<SpeedFigures>| figures.map(|run| run.ns_per_packet());
            let quotient = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
            let each = |run: Option<SpeedFigures>, first: Option<SpeedFigures>| {
                let more = run?.peak_rss_bytes as f64 - first?.peak_rss_bytes as f64;
                (size > 10).then(|| more / 1e3 / f64::from(size - 10))
            };
            let ours = Some(best.ours);
            table.add([
                name(size),
                decimals(cost(ours), 0),
                decimals(quotient(cost(ours), cost(Some(first.ours))), 2),
                decimals(cost(best.base), 0),
                decimals(quotient(cost(best.base), cost(first.base)), 2),
                decimals(quotient(cost(ours), cost(best.base)), 3),
                decimals(ours.map(megabytes), 1),
                decimals(best.base.map(megabytes), 1),
                decimals(each(ours, Some(first.ours)), 1),
                decimals(each(best.base, first.base), 1),
            ]);
        }
        table.print();
        Ok(())
    }

    /// The cost of a hop in a fat tree of 1,024 hosts.
    fn fat_tree(&self) -> Result<(), Box<dyn Error>> {
        if !self.has("fat-tree") {
            return Ok(());
        }
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("fat-tree.toml");
        std::fs::write(&path, scenario_text("fat-tree", self.scaled(500, 50))?)?;
        let measuring = |ports: &str| Work::Scenario {
            path: path.display().to_string(),
            settings: vec![ports.to_owned()],
        };
        let (ours_counted, base_counted) = self.peers.once(&measuring(ALL_PORTS))?;
        let best = self
            .peers
            .best(&measuring(FAT_TREE_PORT), Others::StayAway)?;
        let hops = |counted: SpeedFigures, timed: SpeedFigures| {
            if counted.delivered_bytes != timed.delivered_bytes {
                return Err("the run that counted hops was not the same as the timed ones");
            }
            Ok(SpeedFigures {
                packets: counted.packets,
                ..timed
            })
        };
        let ours = hops(ours_counted, best.ours)?;
        let base = match (base_counted, best.base) {
            (Some(counted), Some(timed)) => Some(hops(counted, timed)?),
            _ => None,
        };
        let mut table = Figures::new(&[
            "fat tree, 1,024 hosts, 100 Gbit/s",
            "ns of CPU\nper hop",
            "base's",
            "ours ÷\nbase's",
            "million\nhops",
            "CPU s per\nsimulated ms",
            "setup,\nCPU s",
            "peak\nmemory, MB",
            "base's",
        ]);
        let cost = |figures: SpeedFigures| figures.ns_per_packet();
        table.add([
            "fat-tree".to_owned(),
            decimals(Some(cost(ours)), 1),
            decimals(base.map(cost), 1),
            decimals(base.map(|base| cost(ours) / cost(base)), 3),
            decimals(Some(ours.packets as f64 / 1e6), 2),
            decimals(Some(ours.cpu_s / ours.simulated_s / 1e3), 2),
            decimals(Some(ours.setup_s), 2),
            decimals(Some(megabytes(ours)), 1),
            decimals(base.map(megabytes), 1),
        ]);
        table.print();
        self.threads(&path)
    }

    /// The fat tree on one thread and on two.
    fn threads(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let on = |threads| Work::Threads {
            threads,
            path: path.display().to_string(),
            settings: vec![FAT_TREE_PORT.to_owned()],
        };
        let runs = self.peers.fastest(&[on(1), on(2)])?;
        let [one, two] = runs;
        if (one.delivered_bytes, one.packets) != (two.delivered_bytes, two.packets) {
            return Err("two threads gave another result than one".into());
        }
        let mut table = Figures::new(&[
            "fat tree, wall-clock time",
            "s per\nsimulated ms",
            "one thread's\n÷ these",
            "CPU s per\nsimulated ms",
            "peak\nmemory, MB",
        ]);
        for (name, run) in ["1 thread", "2 threads"].into_iter().zip(runs) {
            let per_ms = |seconds: f64| decimals(Some(seconds / run.simulated_s / 1e3), 2);
            table.add([
                name.to_owned(),
                per_ms(run.wall_s),
                decimals(Some(one.wall_s / run.wall_s), 2),
                per_ms(run.cpu_s),
                decimals(Some(megabytes(run)), 1),
            ]);
        }
        table.print();
        Ok(())
    }
}

fn megabytes(figures: SpeedFigures) -> f64 {
    figures.peak_rss_bytes as f64 / 1e6
}
