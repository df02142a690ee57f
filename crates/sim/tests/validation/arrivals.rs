//! When and between which hosts flows start: arrivals of each host, incasts at random times, and traces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_results::{Observation, OutputError, Recorder};
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;
use weir_units::Time;

/// A flow: start, source, destination, size, and whether it ended.
type Flow = (u64, String, String, u64, bool);

#[derive(Default)]
struct Flows(Vec<Flow>);

impl Recorder for Flows {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        if let Observation::Flow(flow) = observation {
            self.0.push((
                flow.start.as_nanos(),
                flow.source.to_owned(),
                flow.destination.to_owned(),
                flow.size.unwrap().bytes(),
                flow.end.is_some(),
            ));
        }
        Ok(())
    }

    fn wants_samples(&self) -> bool {
        false
    }
}

/// Returns the flows of a run in the order of their starts.
fn flows(scenario: Scenario) -> Vec<Flow> {
    let mut simulation = Simulation::new(scenario).unwrap();
    let mut flows = Flows::default();
    simulation.advance(Time::MAX, &mut flows).unwrap();
    simulation.finish(&mut flows).unwrap();
    flows.0.sort();
    flows.0
}

const STAR: &str = "
    title = 'Arrivals'
    source = 'a test'
    duration = '20ms'
    star = { rate = '10Gbps', delay = '1us', queue = 'unlimited', hosts = { a = { count = 4 }, b = { count = 2 } } }
    [groups.g]
    from = 'a'
    to = ['b1', 'a1']
    ";

fn random(workload: &str) -> Vec<Flow> {
    let text = format!(
        "{STAR}\nworkload = {{ kind = 'poisson', distribution = [['1KB', 1]], {workload} }}\n"
    );
    let loaded = Scenario::parse("test.toml", &text, &[]);
    flows(loaded.unwrap_or_else(|error| panic!("{error}")).scenario)
}

#[test]
fn each_host_sends_as_often_as_any_other() {
    let counts = |workload: &str| {
        let mut counts = BTreeMap::new();
        for (_, from, to, ..) in random(workload) {
            *counts.entry((from, to)).or_insert(0_u32) += 1;
        }
        let count = |from: &str, to: &str| {
            let pair = (from.to_owned(), to.to_owned());
            counts.get(&pair).copied().unwrap_or(0)
        };
        [("a1", "b1"), ("a2", "b1"), ("a2", "a1"), ("a4", "a1")].map(|(from, to)| count(from, to))
    };
    // Four standard deviations of 1,000 arrivals are 126, and of 500 89.
    let by_host = counts("mean_interval = '20us', per = 'host'");
    for (found, expected, range) in [(0, 1_000, 126), (1, 500, 89), (2, 500, 89), (3, 500, 89)] {
        let found = by_host[found];
        assert!(u32::abs_diff(found, expected) < range, "{by_host:?}");
    }
    // Seven pairs share the arrivals of the group: 571 each.
    let by_group = counts("mean_interval = '5us'");
    assert!(
        by_group.iter().all(|found| found.abs_diff(571) < 96),
        "{by_group:?}"
    );
}

#[test]
fn an_incast_has_several_senders_and_one_receiver() {
    let flows = random("mean_interval = '100us', fan_in = 3");
    let mut incasts: BTreeMap<u64, Vec<&Flow>> = BTreeMap::new();
    for flow in &flows {
        incasts.entry(flow.0).or_default().push(flow);
    }
    // Four standard deviations of 200 are 57.
    assert!(incasts.len().abs_diff(200) < 57, "{}", incasts.len());
    let mut receivers = BTreeSet::new();
    for incast in incasts.values() {
        let senders: BTreeSet<_> = incast.iter().map(|flow| &flow.1).collect();
        let to: BTreeSet<_> = incast.iter().map(|flow| &flow.2).collect();
        assert_eq!(
            (incast.len(), senders.len(), to.len()),
            (3, 3, 1),
            "{incast:?}"
        );
        receivers.extend(to);
    }
    assert_eq!(receivers.len(), 2);
}

#[test]
fn a_trace_is_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let replayed = |settings: &[&str]| {
        let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        let loaded = Scenario::load(&folder.join("trace.toml"), &settings);
        flows(loaded.unwrap_or_else(|error| panic!("{error}")).scenario)
    };
    let flow =
        |start, from: &str, size| (start, from.to_owned(), "receiver".to_owned(), size, true);
    let all = [
        flow(10_000, "host1", 15_000),
        flow(25_000, "host2", 64_000),
        flow(25_000, "host3", 64_000),
        flow(1_500_000, "host4", 1_000_000),
    ];
    assert_eq!(replayed(&[]), all);
    assert_eq!(replayed(&["duration=1ms"]), all[..3]);
    // Of the 1143 KB of four flows, host4 sends a megabyte.
    let loaded = Scenario::load(&folder.join("trace.toml"), &[]).unwrap();
    let mut simulation = Simulation::new(loaded.scenario).unwrap();
    simulation.advance(Time::MAX, &mut ()).unwrap();
    let loads = simulation.summary().loads;
    assert!(!loads.is_empty());
    for (class, load) in loads {
        let (expected, offered) = (
            load.expected.unwrap().value(),
            load.offered.unwrap().value(),
        );
        assert!(
            expected > 0.0 && (offered / expected - 1.0).abs() < 0.01,
            "{class}: {load:?}"
        );
    }
    let later = replayed(&["groups.trace.start=1ms", "groups.trace.transport=quic"]);
    let starts: Vec<_> = later.iter().map(|flow| (flow.0, flow.4)).collect();
    assert_eq!(starts, all.map(|flow| (flow.0 + 1_000_000, true)));
}
