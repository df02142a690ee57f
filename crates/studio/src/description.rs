//! What the page draws of a scenario: topology, measured ports, groups and knobs.

use serde::Serialize;
use weir_network::thresholds;
use weir_results::{RunKind, Summary, Threshold};
use weir_scenario::{Group, Node, Routes, Scenario};
use weir_units::{ByteSize, Duration, Time};

use crate::knob::{Knob, LINKS, Link, Unit};
use crate::run::Run;
use crate::script::seconds;

/// A scenario for the page. Seconds, bytes, bits per second.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    /// What it is a description of, unless it is a run that can be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    live: bool,
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
    /// None where the network is not known.
    rate: Option<f64>,
}

/// The thresholds of a run's measured ports over time, as changes make them.
#[derive(Debug, Serialize)]
pub(crate) struct Thresholds {
    pub(crate) run: &'static str,
    pub(crate) ports: Vec<Vec<DescribedThreshold>>,
}

impl Thresholds {
    /// Returns the thresholds of ports with these names.
    pub(crate) fn of(scenario: &Scenario, ports: &[String]) -> Self {
        let mut known = thresholds(scenario);
        let of_port = |port: &String| described(known.swap_remove(port).unwrap_or_default());
        Self {
            run: "a",
            ports: ports.iter().map(of_port).collect(),
        }
    }
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
    /// The goodput that the slowest of the links that all its flows cross can carry; none if there is no such link.
    capacity: Option<f64>,
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
    /// Describes a run that can be changed.
    pub(crate) fn of(run: &Run) -> Self {
        let knobs = (run.knobs().iter().map(knob)).chain(run.links().iter().map(link));
        Self {
            knobs: knobs.collect(),
            ..Self::of_scenario(run.script().name(), run.scenario())
        }
    }

    /// Describes a live run.
    pub(crate) fn of_live(name: &str, scenario: &Scenario) -> Self {
        Self {
            kind: Some("live"),
            live: true,
            ..Self::of_scenario(name, scenario)
        }
    }

    /// Describes a finished run by its summary, and by its scenario, if that is known. The measured ports are these, and
    /// the groups have these numbers of flows.
    pub(crate) fn of_finished<'g>(
        name: &str,
        summary: &Summary,
        (ports, groups): (&[String], impl Iterator<Item = (&'g String, u64)>),
        scenario: Option<&Scenario>,
    ) -> Self {
        let known = scenario.map(|scenario| Self::of_scenario(name, scenario));
        let (nodes, mut links, known_groups) = known.map_or_else(
            || (Vec::new(), Vec::new(), Vec::new()),
            |known| (known.nodes, known.links, known.groups),
        );
        for link in &mut links {
            link.measured = ports.iter().position(|port| *port == link.port);
        }
        let rate = |port: &String| links.iter().find(|link| link.port == *port);
        let described = ports.iter().map(|port| DescribedPort {
            name: port.clone(),
            rate: rate(port).map(|link| link.rate),
        });
        let of_group = |group: &String| known_groups.iter().find(|known| known.name == *group);
        let groups = groups.map(|(name, flows)| DescribedGroup {
            name: name.clone(),
            algorithm: of_group(name).map_or_else(String::new, |known| known.algorithm.clone()),
            flows,
            capacity: of_group(name).and_then(|known| known.capacity),
        });
        Self {
            kind: Some("finished"),
            live: summary.run.world == RunKind::Live,
            name: name.to_owned(),
            title: summary.title.clone(),
            source: summary.source.clone(),
            duration: summary.run.simulated.as_secs_f64(),
            seed: summary.run.seed,
            ports: described.collect(),
            groups: groups.collect(),
            knobs: Vec::new(),
            nodes,
            links,
        }
    }

    fn of_scenario(name: &str, scenario: &Scenario) -> Self {
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
                rate: Some(port.rate.bits_per_second() as f64),
            });
        let routes = topology.routes();
        let groups = scenario.groups.iter().map(|group| DescribedGroup {
            name: group.name.clone(),
            algorithm: match group.transport.congestion() {
                Some(spec) => spec.name().to_owned(),
                None => "none".to_owned(),
            },
            flows: group.flow_count(),
            capacity: capacity(scenario, group, &routes),
        });
        Self {
            kind: None,
            live: false,
            name: name.to_owned(),
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
            knobs: Vec::new(),
        }
    }
}

/// Returns the goodput in bits per second that the slowest link of a group carries.
fn capacity(scenario: &Scenario, group: &Group, routes: &Routes) -> Option<f64> {
    // Any number of bytes that is much larger than a packet.
    let bytes = ByteSize::from_bytes(1_000_000_000);
    let second = Duration::from_secs(1);
    let (taken, carried) = scenario.link_share(group, routes, bytes, second)?;
    let share = taken.bytes() as f64 / carried.bytes().max(1) as f64;
    Some(8.0 * bytes.bytes() as f64 / share)
}

/// Returns the thresholds of each measured port over time.
pub(crate) fn port_thresholds(scenario: &Scenario) -> Vec<Vec<DescribedThreshold>> {
    let mut known = thresholds(scenario);
    let ports = scenario.measurements.ports.iter();
    let of_port = ports.map(|port| {
        let name = &scenario.topology.port(*port).name;
        described(known.swap_remove(name).unwrap_or_default())
    });
    of_port.collect()
}

fn described(thresholds: Vec<Threshold>) -> Vec<DescribedThreshold> {
    let thresholds = thresholds.into_iter().map(|threshold| DescribedThreshold {
        label: threshold.name,
        bytes: threshold.queue.bytes() as f64,
        from: seconds(threshold.from),
        until: threshold.until.map(|until: Time| seconds(until)),
    });
    thresholds.collect()
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
