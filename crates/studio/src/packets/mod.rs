//! The packets of a flow, or of a port, hop by hop: the run is simulated again with a capture at all ports, for a window
//! of time that is bounded, as is the number of packets.

mod capture;
mod ways;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use weir_scenario::{Node, Scenario};
use weir_sim::Simulation;
use weir_units::{Duration, Time};

use crate::error::StudioError;
use crate::probes::WatchedFlow;
use crate::script::seconds;
use capture::Hops;
use ways::Way;

/// The packets of an answer at most.
pub(crate) const MOST_PACKETS: usize = 500;
/// The part of a run that is looked at, unless links are so fast that they send more packets meanwhile than these.
const PARTS: u64 = 10;
const MOST_BITS: u64 = 200_000 * 1_500 * 8;
/// The hops that are kept.
const MOST_HOPS: usize = 30_000;
/// The slices of a run between which it may be given up.
const SLICES: u64 = 1_000;

/// Whose packets are wanted.
#[derive(Clone, Debug)]
pub(crate) enum Whose {
    /// A flow's, by its name.
    Flow(String),
    /// Those that were sent, or should have been, by a port.
    Port(String),
}

/// The last packets up to a time.
#[derive(Debug, Serialize)]
pub(crate) struct PacketTrace {
    /// The time that was looked at, in seconds of the run.
    from: f64,
    until: f64,
    /// The nodes that packets pass, in the order of their way.
    lanes: Vec<Lane>,
    /// In the order in which they were first seen.
    packets: Vec<Way>,
    /// Whether there were more in this time.
    is_cut: bool,
}

#[derive(Debug, Serialize)]
struct Lane {
    name: String,
    kind: &'static str,
}

/// The names of the flows that have these ports: the initiator's and the other end's.
type FlowNames = HashMap<(u16, u16), String>;

/// Simulates a scenario up to a time, and returns the last `most` packets up to it.
///
/// # Errors
/// There is no such flow or port; the scenario cannot be simulated; `is_wanted` has become false.
pub(crate) fn trace(
    mut scenario: Scenario,
    whose: &Whose,
    until: Time,
    most: usize,
    is_wanted: &AtomicBool,
) -> Result<PacketTrace, StudioError> {
    match whose {
        Whose::Flow(name) => drop(WatchedFlow::find(&scenario, name)?),
        Whose::Port(name) => {
            let mut ports = scenario.topology.ports.iter();
            if !ports.any(|port| port.name == *name) {
                return Err(StudioError::NoPort(name.clone()));
            }
        }
    }
    // Every port is observed. That changes nothing else.
    scenario.measurements.ports = scenario.topology.port_indices().collect();
    let from = until.since(Time::ZERO) - window(&scenario);
    let from = Time::ZERO + from;
    let slice = (scenario.duration / SLICES).max(Duration::from_nanos(1));
    let mut simulation = Simulation::new(scenario)?;
    let mut hops = Hops::closed(MOST_HOPS);
    advance(&mut simulation, from, slice, &mut hops, is_wanted)?;
    let mut names = names(&simulation);
    if let Whose::Flow(wanted) = whose {
        hops.only(ports_of(&names, wanted));
    }
    hops.open();
    let slice = (until.since(from) / 50).max(Duration::from_nanos(1));
    while simulation.now() < until && simulation.now() < simulation.end() {
        let next = (simulation.now() + slice).min(until);
        advance(&mut simulation, next, slice, &mut hops, is_wanted)?;
        names.extend(self::names(&simulation));
        if let Whose::Flow(wanted) = whose {
            // It may have begun meanwhile.
            hops.only(ports_of(&names, wanted));
        }
    }
    let scenario = simulation.scenario();
    let mut ways = ways::of(hops.taken(), &scenario.topology, &names);
    if let Whose::Port(port) = whose {
        let topology = &scenario.topology;
        let mut ports = topology.ports.iter();
        let node = ports.find(|known| known.name == *port);
        let node = node.map_or("", |port| topology.name(port.from));
        ways::only_by(&mut ways, port, node);
    }
    let is_cut = ways.len() > most || hops.is_full();
    ways.drain(..ways.len().saturating_sub(most));
    Ok(PacketTrace {
        from: seconds(from),
        until: seconds(simulation.now()),
        lanes: lanes(&mut ways, scenario),
        packets: ways,
        is_cut,
    })
}

/// How much of the run is looked at.
fn window(scenario: &Scenario) -> Duration {
    let rates = scenario.topology.ports.iter().map(|port| port.rate);
    let fastest = rates.map(|rate| rate.bits_per_second()).max().unwrap_or(1);
    let busy = Duration::from_secs_f64(MOST_BITS as f64 / fastest.max(1) as f64);
    (scenario.duration / PARTS).min(busy)
}

fn advance(
    simulation: &mut Simulation,
    until: Time,
    slice: Duration,
    hops: &mut Hops,
    is_wanted: &AtomicBool,
) -> Result<(), StudioError> {
    while simulation.now() < until && simulation.now() < simulation.end() {
        if !is_wanted.load(Ordering::Relaxed) {
            return Err(StudioError::Stopped);
        }
        let next = (simulation.now() + slice).min(until);
        simulation.advance(next, hops)?;
    }
    Ok(())
}

fn names(simulation: &Simulation) -> FlowNames {
    let flows = simulation.open_flows();
    flows
        .map(|flow| {
            let name = format!("{}/{}", flow.record.group, flow.record.index);
            (flow.ports, name)
        })
        .collect()
}

fn ports_of(names: &FlowNames, wanted: &str) -> Option<(u16, u16)> {
    let mut names = names.iter();
    names.find_map(|(ports, name)| (name == wanted).then_some(*ports))
}

/// Returns the nodes that the packets pass, those first that they pass first, and gives the hops their places.
fn lanes(ways: &mut [Way], scenario: &Scenario) -> Vec<Lane> {
    let mut order: Vec<Node> = Vec::new();
    // The longest way in the direction of most data begins; nodes of others go next to those they follow.
    let mut sorted: Vec<&Way> = ways.iter().collect();
    sorted.sort_by_key(|way| std::cmp::Reverse((way.length, way.hops.len())));
    for way in sorted {
        for hop in &way.hops {
            let from = order.iter().position(|node| *node == hop.ends.0);
            let to = order.iter().position(|node| *node == hop.ends.1);
            match (from, to) {
                (None, None) => order.extend([hop.ends.0, hop.ends.1]),
                (Some(from), None) => order.insert(from + 1, hop.ends.1),
                (None, Some(to)) => order.insert(to, hop.ends.0),
                (Some(_), Some(_)) => {}
            }
        }
    }
    for way in ways.iter_mut() {
        for hop in &mut way.hops {
            let place = |node| order.iter().position(|known| *known == node).unwrap_or(0);
            (hop.from, hop.to) = (place(hop.ends.0), place(hop.ends.1));
        }
    }
    let lanes = order.into_iter().map(|node| Lane {
        name: scenario.topology.name(node).to_owned(),
        kind: match node {
            Node::Host(_) => "host",
            Node::Switch(_) => "switch",
        },
    });
    lanes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    const TEXT: &str = include_str!("../../tests/two-flows.toml");

    fn traced(text: &str, whose: &Whose, millis: u64, most: usize) -> PacketTrace {
        let scenario = Script::of_file("test.toml", text).scenario().unwrap();
        let until = Time::ZERO + Duration::from_millis(millis);
        trace(scenario, whose, until, most, &AtomicBool::new(true)).unwrap()
    }

    fn flow(name: &str) -> Whose {
        Whose::Flow(name.to_owned())
    }

    #[test]
    fn a_flows_packets_go_over_all_hops_and_its_acknowledgments_return() {
        let trace = traced(TEXT, &flow("dctcp/1"), 30, 200);
        assert_eq!(trace.packets.len(), 200);
        assert_eq!(trace.until, 0.03);
        assert!(trace.is_cut);
        assert!(trace.packets.iter().all(|way| way.flow == "dctcp/1"));
        let whole = |way: &&Way| way.hops.len() + 1 == trace.lanes.len();
        let there = trace.packets.iter().filter(|way| way.length > 1_000);
        let back = trace.packets.iter().filter(|way| way.length < 100);
        assert!(there.filter(whole).count() > 50);
        assert!(back.filter(whole).count() > 20);
        for way in &trace.packets {
            for pair in way.hops.windows(2) {
                assert_eq!(pair[0].to, pair[1].from);
                assert!(pair[0].arrived <= pair[1].sent + 1e-9);
            }
        }
        assert!(
            trace
                .packets
                .iter()
                .any(|way| way.hops.iter().any(|hop| hop.marked))
        );
    }

    #[test]
    fn a_ports_packets_are_those_of_all_flows_and_a_full_buffer_loses_some() {
        let small = TEXT
            .replace("\"step\", ecn_threshold = \"30KB\"", "\"drop-tail\"")
            .replace("200KB", "20KB")
            .replace("= \"dctcp\"", "= \"cubic\"");
        let port = Whose::Port("bottleneck".to_owned());
        let mut lost = 0;
        let mut retransmitted = 0;
        for millis in [2, 10, 30] {
            let trace = traced(&small, &port, millis, MOST_PACKETS);
            lost += trace
                .packets
                .iter()
                .filter(|way| way.lost.is_some())
                .count();
            let again = trace.packets.iter().filter(|way| way.retransmitted);
            retransmitted += again.count();
            assert!(trace.packets.iter().all(
                |way| way.lost.is_some() || way.hops.iter().any(|hop| hop.port == "bottleneck")
            ));
        }
        assert!(lost > 0);
        assert!(retransmitted > 0);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let scenario = || Script::of_file("test.toml", TEXT).scenario().unwrap();
        let ask = |whose: &Whose| {
            trace(scenario(), whose, Time::ZERO, 10, &AtomicBool::new(true)).unwrap_err()
        };
        assert!(matches!(ask(&flow("web/0")), StudioError::NoFlow(_)));
        let port = Whose::Port("none".to_owned());
        assert!(matches!(ask(&port), StudioError::NoPort(_)));
    }
}
