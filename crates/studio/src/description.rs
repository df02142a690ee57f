//! What the page draws of a scenario: topology, measured ports, groups and knobs.

use serde::Serialize;
use weir_network::thresholds;
use weir_scenario::{Node, Scenario};
use weir_units::Time;

use crate::knob::{Knob, LINKS, Link, Unit};
use crate::run::Run;
use crate::script::seconds;

/// A scenario for the page. Seconds, bytes, bits per second.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    name: String,
    title: String,
    source: String,
    duration: f64,
    seed: u64,
    nodes: Vec<DescribedNode>,
    links: Vec<DescribedLink>,
    ports: Vec<DescribedPort>,
    groups: Vec<DescribedGroup>,
    knobs: Vec<DescribedKnob>,
}

#[derive(Debug, Serialize)]
struct DescribedNode {
    name: String,
    kind: &'static str,
}

/// A direction of a link.
#[derive(Debug, Serialize)]
struct DescribedLink {
    port: String,
    from: String,
    to: String,
    rate: f64,
    delay: f64,
    /// The index of the port among those that are measured.
    measured: Option<usize>,
}

#[derive(Debug, Serialize)]
struct DescribedPort {
    name: String,
    rate: f64,
}

/// A threshold of a queue, for as long as it holds.
#[derive(Debug, Serialize)]
pub(crate) struct DescribedThreshold {
    label: String,
    bytes: f64,
    from: f64,
    until: Option<f64>,
}

#[derive(Debug, Serialize)]
struct DescribedGroup {
    name: String,
    algorithm: String,
    flows: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum DescribedKnob {
    Value {
        id: String,
        section: String,
        label: &'static str,
        unit: Unit,
        value: f64,
        minimum: f64,
        maximum: f64,
        logarithmic: bool,
        /// Whether the maximum stands for no limit at all.
        open: bool,
    },
    Link {
        id: String,
        section: &'static str,
        label: String,
        action: &'static str,
        undo: &'static str,
    },
}

impl Description {
    pub(crate) fn of(run: &Run) -> Self {
        let scenario = run.scenario();
        let topology = &scenario.topology;
        let hosts = topology.hosts.iter().map(|host| (&host.name, "host"));
        let switches = (topology.switches.iter()).map(|switch| (&switch.name, "switch"));
        let links = topology.port_indices().map(|index| {
            let port = topology.port(index);
            let name = |node: Node| topology.name(node).to_owned();
            let mut measured = scenario.measurements.ports.iter();
            DescribedLink {
                port: port.name.clone(),
                from: name(port.from),
                to: name(port.to),
                rate: port.rate.bits_per_second() as f64,
                delay: port.delay.as_secs_f64(),
                measured: measured.position(|port| *port == index),
            }
        });
        let ports = scenario.measurements.ports.iter();
        let ports = ports
            .map(|port| topology.port(*port))
            .map(|port| DescribedPort {
                name: port.name.clone(),
                rate: port.rate.bits_per_second() as f64,
            });
        let groups = scenario.groups.iter().map(|group| DescribedGroup {
            name: group.name.clone(),
            algorithm: match group.transport.congestion() {
                Some(spec) => spec.name().to_owned(),
                None => "none".to_owned(),
            },
            flows: group.flow_count(),
        });
        Self {
            name: run.script().name().to_owned(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            duration: scenario.duration.as_secs_f64(),
            seed: scenario.seed,
            nodes: (hosts.chain(switches))
                .map(|(name, kind)| DescribedNode {
                    name: name.clone(),
                    kind,
                })
                .collect(),
            links: links.collect(),
            ports: ports.collect(),
            groups: groups.collect(),
            knobs: (run.knobs().iter().map(knob))
                .chain(run.links().iter().map(link))
                .collect(),
        }
    }
}

/// Returns the thresholds of each measured port over time.
pub(crate) fn port_thresholds(scenario: &Scenario) -> Vec<Vec<DescribedThreshold>> {
    let mut known = thresholds(scenario);
    let ports = scenario.measurements.ports.iter();
    let of_port = ports.map(|port| {
        let name = &scenario.topology.port(*port).name;
        let found = known.swap_remove(name).unwrap_or_default();
        let described = found.into_iter().map(|threshold| DescribedThreshold {
            label: threshold.name,
            bytes: threshold.queue.bytes() as f64,
            from: seconds(threshold.from),
            until: threshold.until.map(|until: Time| seconds(until)),
        });
        described.collect()
    });
    of_port.collect()
}

fn knob(knob: &Knob) -> DescribedKnob {
    DescribedKnob::Value {
        id: knob.id.clone(),
        section: knob.section(),
        label: knob.key,
        unit: knob.unit,
        value: knob.value,
        minimum: knob.range.minimum,
        maximum: knob.range.maximum,
        logarithmic: knob.range.is_wide(),
        open: knob.range.is_open,
    }
}

fn link(link: &Link) -> DescribedKnob {
    DescribedKnob::Link {
        id: link.id.clone(),
        section: LINKS,
        label: link.port.clone(),
        action: "fail",
        undo: "restore",
    }
}
