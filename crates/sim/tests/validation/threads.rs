//! A large network gives the same records, the same summary and the same packets with any number of
//! threads.

use std::fmt::Write;

use weir_results::{Observation, OutputError, Recorder, Summary};
use weir_scenario::Scenario;
use weir_sim::{FewerThreads, Simulation, Threads};
use weir_units::Duration;

use crate::observe::{Rows, scenario};

/// Small buffers that drop, random drops, and groups that start and stop.
const HEAD: &str = r#"
title = "Shards"
source = "a test"
seed = 3
duration = "8ms"
warm_up = "1ms"
host_jitter = "500ns"
[queues.fabric]
kind = "shared"
buffer = "60KB"
ecn_threshold = "20KB"
red_min = "20KB"
red_max = "50KB"
drop_probability = 0.02
[measurements]
ports = "*"
sample_interval = "150us"
"#;

fn link(text: &mut String, from: &str, to: &str, delay: &str) {
    let _ = write!(
        text,
        "[[links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"5Gbps\"\ndelay = \"{delay}\"\n\
         queue = \"fabric\"\nreverse_queue = \"fabric\"\n"
    );
}

/// Adds groups from each of `hosts` to others, some steps further.
fn groups(text: &mut String, hosts: &[String]) {
    let mut group = |name: &str, congestion: &str, steps: &[usize], more: &str| {
        let pairs = steps.iter().flat_map(|step| {
            let to = hosts.iter().cycle().skip(*step);
            hosts.iter().zip(to)
        });
        let (from, to): (Vec<_>, Vec<_>) = pairs.unzip();
        let _ = write!(
            text,
            "[groups.{name}]\nfrom = {from:?}\nto = {to:?}\npairing = \"one-to-one\"\n\
             congestion = \"{congestion}\"\nworkload = \"bulk\"\nstart_within = \"100us\"\n{more}\n\
             tcp.min_rto = \"2ms\"\n"
        );
    };
    group("dctcp", "dctcp", &[5, 2], "");
    group("cubic", "cubic", &[7, 1], "flows = 2\ntcp.ack_every = 2");
    group("early", "dctcp", &[6], "stop = \"2ms\"");
    group("late", "cubic", &[9], "start = \"2500us\"");
}

/// Returns a fat tree of switches with four ports, and its hosts: 16 in four pods.
fn empty_fat_tree() -> (String, Vec<String>) {
    let mut text = HEAD.to_owned();
    let (mut links, mut hosts) = (String::new(), Vec::new());
    for pod in 1..=4 {
        for edge in 1..=2 {
            let _ = write!(
                text,
                "[hosts.h-{pod}-{edge}-]\ncount = 2\n[switches.edge-{pod}-{edge}]\n\
                 [switches.agg-{pod}-{edge}]\n"
            );
            hosts.extend((1..=2).map(|host| format!("h-{pod}-{edge}-{host}")));
            let switch = format!("edge-{pod}-{edge}");
            link(&mut links, &format!("h-{pod}-{edge}-"), &switch, "1us");
        }
        let (from, to) = (format!("edge-{pod}-*"), format!("agg-{pod}-*"));
        link(&mut links, &from, &to, "1us");
    }
    for group in 1..=2 {
        let _ = write!(
            text,
            "[switches.core-{group}-1]\n[switches.core-{group}-2]\n"
        );
        let (from, to) = (format!("agg-*-{group}"), format!("core-{group}-*"));
        link(&mut links, &from, &to, "700ns");
    }
    (text + &links, hosts)
}

/// Returns the fat tree with flows to and from all hosts.
fn fat_tree() -> String {
    let (mut text, hosts) = empty_fat_tree();
    groups(&mut text, &hosts);
    text
}

/// Returns the fat tree with so few flows that many ports have one feeder, where packets run ahead.
fn few_flows() -> String {
    let (text, _) = empty_fat_tree();
    text + r#"
[groups.few]
from = ["h-1-1-1", "h-1-1-2", "h-2-1-1", "h-3-2-2"]
to = ["h-2-1-2", "h-4-1-1", "h-2-2-1", "h-1-2-1"]
pairing = "one-to-one"
congestion = "dctcp"
workload = "bulk"
tcp.min_rto = "2ms"
[groups.into-one]
from = ["h-3-1-1", "h-4-2-1"]
to = "h-1-1-2"
congestion = "cubic"
workload = "bulk"
start = "100us"
tcp.min_rto = "2ms"
"#
}

/// Returns 16 leaves with three hosts each, and three spines.
fn leaf_spine() -> String {
    let mut text = HEAD.replace("8ms", "4ms");
    let (mut links, mut hosts) = (String::new(), Vec::new());
    for leaf in 1..=16 {
        let _ = write!(
            text,
            "[hosts.h-{leaf}-]\ncount = 3\n[switches.leaf-{leaf}]\n"
        );
        hosts.extend((1..=3).map(|host| format!("h-{leaf}-{host}")));
        let switch = format!("leaf-{leaf}");
        link(&mut links, &format!("h-{leaf}-"), &switch, "1us");
    }
    for spine in 1..=3 {
        let _ = writeln!(text, "[switches.spine-{spine}]");
    }
    link(&mut links, "leaf-*", "spine-*", "2us");
    text += &links;
    groups(&mut text, &hosts);
    text
}

/// Returns the fat tree, whose thresholds and congestion controls change while it runs.
fn changing() -> String {
    fat_tree()
        + r#"
[[changes]]
at = "3ms"
ports = "*"
set.queue = { ecn_threshold = "5KB", red_max = "40KB" }
[[changes]]
at = "3ms"
groups = "dctcp"
set.congestion = { g = 0.5, max_rate = "300Mbps" }
[[changes]]
at = "5123456ns"
groups = ["dctcp", "late"]
set.congestion.max_rate = "unbounded"
"#
}

/// Returns the summary, the number of threads, and the most drops of a port.
fn simulate(
    scenario: Scenario,
    threads: usize,
    slice: Duration,
    recorder: &mut dyn Recorder,
) -> (String, usize, u64) {
    let threads = Threads {
        most: threads,
        least_hosts: 1,
    };
    let mut simulation = Simulation::with_threads(scenario, threads).unwrap();
    while simulation.now() < simulation.end() {
        let until = simulation.now() + slice;
        simulation.advance(until, recorder).unwrap();
    }
    let threads = simulation.threads();
    let summary = simulation.finish(recorder).unwrap();
    let drops = summary.ports.values().map(|port| port.drops.total()).max();
    let summary = Summary::new("", "", summary).to_json().unwrap();
    (summary, threads, drops.unwrap_or(0))
}

const WHOLE: Duration = Duration::from_secs(1);

#[test]
fn records_are_the_same_with_any_number_of_threads() {
    let cases = [
        (fat_tree(), 3, 4),
        (fat_tree(), 4, 4),
        (leaf_spine(), 3, 16),
        (few_flows(), 3, 4),
        (changing(), 3, 4),
    ];
    for (text, seed, parts) in cases {
        let rows = |threads, slice| {
            let mut rows = Rows::default();
            let scenario = scenario(&text, &[format!("seed={seed}")]);
            let (summary, threads, drops) = simulate(scenario, threads, slice, &mut rows);
            rows.text.push(summary);
            (rows.text, threads, drops)
        };
        let (alone, threads, drops) = rows(1, WHOLE);
        assert_eq!(threads, 1);
        assert!(drops > 10, "{drops} drops");
        assert!(alone.len() > 1000, "{} rows", alone.len());
        for wanted in [2, 3, 16] {
            let (together, threads, _) = rows(wanted, WHOLE);
            assert_eq!(threads, wanted.min(parts));
            let pairs = alone.iter().zip(&together);
            for (number, (one, several)) in pairs.enumerate() {
                assert_eq!(one, several, "row {number} with {threads} threads");
            }
            assert_eq!(alone.len(), together.len());
        }
        let (sliced, ..) = rows(2, Duration::from_nanos(31_415));
        assert!(sliced == alone);
    }
}

#[test]
fn packets_are_the_same_with_any_number_of_threads() {
    struct Packets(Vec<String>);
    impl Recorder for Packets {
        fn wants_packets(&self) -> bool {
            true
        }
        fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
            if let Observation::Packet(port, packet) = observation {
                self.0.push(format!("{port} {packet:?}"));
            }
            Ok(())
        }
    }
    let settings = ["duration=3ms".to_owned()];
    let packets = |threads| {
        let mut packets = Packets(Vec::new());
        let scenario = scenario(&fat_tree(), &settings);
        simulate(scenario, threads, WHOLE, &mut packets);
        packets.0
    };
    let alone = packets(1);
    assert!(alone.len() > 10_000, "{} packets", alone.len());
    assert!(alone == packets(2));
    assert!(alone == packets(4));
}

#[test]
fn what_stays_on_one_thread_has_a_reason() {
    let reason = |text: &str, threads| {
        let simulation = Simulation::with_threads(scenario(text, &[]), threads).unwrap();
        (simulation.threads(), simulation.fewer_threads().cloned())
    };
    let four = Threads {
        most: 4,
        least_hosts: 1,
    };
    let tree = fat_tree();
    assert_eq!(reason(&tree, four), (4, None));
    assert_eq!(reason(&tree, Threads::ONE), (1, None));
    let five = Threads { most: 5, ..four };
    assert_eq!(reason(&tree, five), (4, Some(FewerThreads::Parts)));
    let one_for = |text: &str, threads| match reason(text, threads) {
        (1, Some(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(one_for(&tree, Threads::up_to(4)).contains("at least 16 hosts"));
    let with = |more: &str| one_for(&format!("{tree}{more}"), four);
    let fault = "[[faults]]\nkind = \"loss\"\nports = \"*\"\nat = \"1ms\"\nprobability = 0.1\n";
    assert!(with(fault).contains("faults"));
    let group = "[groups.web]\nfrom = \"h-1-1-1\"\nto = \"h-2-1-1\"\n\
         workload = { kind = \"poisson\", mean_interval = \"1ms\", distribution = \"web-search\" }\n";
    assert!(with(group).contains("group `web`"));
    let long = tree.replace("\"8ms\"", "\"40ms\"");
    assert!(one_for(&long, four).contains("32ms"));
}
