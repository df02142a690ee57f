//! Random small scenarios: nothing panics, no byte appears or vanishes, and all expected data arrive.
//!
//! Bulk flows, datagrams and arrivals stop early, faults end, and the rest has time to arrive. At the end
//! the network is silent, and all counters have to balance exactly.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;
use weir_results::capture::Content;
use weir_results::{Observation, OutputError, Recorder, RunSummary};
use weir_scenario::{Node, Scenario, Workload};
use weir_sim::Simulation;
use weir_units::{ByteSize, Time};

use crate::observe::scenario;

/// The packets that left each port's link, and each flow.
#[derive(Default)]
struct Seen {
    /// Packets and bytes by the port's position among the measured ones.
    arrived: Vec<(u64, u64)>,
    flows: Vec<Flow>,
}

#[derive(Debug)]
struct Flow {
    group: String,
    size: Option<ByteSize>,
    delivered: ByteSize,
    ended: bool,
}

impl Recorder for Seen {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => self.flows.push(Flow {
                group: flow.group.to_owned(),
                size: flow.size,
                delivered: flow.counters.delivered,
                ended: flow.end.is_some(),
            }),
            Observation::Packet(port, packet) => {
                let (packets, bytes) = &mut self.arrived[port];
                *packets += 1;
                *bytes += length(&packet.content);
            }
            _ => {}
        }
        Ok(())
    }

    fn wants_packets(&self) -> bool {
        true
    }
}

/// The length of an IP packet with these contents.
fn length(content: &Content) -> u64 {
    let (header, payload) = match content {
        Content::Tcp(segment) => (segment.header_length().bytes(), segment.payload.into()),
        Content::Udp(size) => (8, size.bytes()),
    };
    20 + header + payload
}

const HEAD: &str = r#"
title = "A random scenario"
source = "a property test"
duration = "600s"
[measurements]
ports = "*"
sample_interval = "10s"
"#;

fn queue() -> impl Strategy<Value = String> {
    let kb = |range| {
        prop::collection::vec(range, 3).prop_map(|mut sizes: Vec<u32>| {
            sizes.sort_unstable();
            sizes
        })
    };
    let kind = select(vec![
        "drop-tail",
        "red",
        "red-now",
        "step",
        "two-threshold",
        "shared",
        "qfx",
        "codel",
        "strict-priority",
    ]);
    (kind, kb(2_u32..100), any::<bool>()).prop_map(|(kind, sizes, ecn)| {
        let [low, high, buffer] = sizes[..] else { unreachable!() };
        let rest = match kind {
            "red" => format!("red_min = \"{low}KB\", red_max = \"{high}KB\", drop_probability = 0.1, ecn = {ecn}"),
            "red-now" => format!("red_min = \"{low}KB\", red_max = \"{high}KB\", drop_probability = 0.1, length = \"instantaneous\", ecn = {ecn}"),
            "step" | "qfx" => format!("ecn_threshold = \"{low}KB\""),
            "codel" => format!("target = \"1ms\", interval = \"{low}ms\", mark = {ecn}"),
            "strict-priority" => format!("high = \"ect\", ecn_threshold = \"{low}KB\""),
            "two-threshold" => format!("ecn_min = \"{low}KB\", ecn_max = \"{high}KB\", probability = 0.3"),
            "shared" => format!("ecn_threshold = \"{low}KB\", red_min = \"{low}KB\", red_max = \"{high}KB\", drop_probability = 0.1"),
            _ => String::new(),
        };
        let kind = kind.trim_end_matches("-now");
        let comma = if rest.is_empty() { "" } else { ", " };
        format!("{{ kind = \"{kind}\", buffer = \"{buffer}KB\"{comma}{rest} }}")
    })
}

/// Generates a network with the hosts `red1`, `red2`, `blue1`, `blue2`.
fn network() -> impl Strategy<Value = String> {
    let mbps = select(vec![2_u32, 10, 50, 200]);
    let delay = select(vec!["0ns", "1us", "300us", "5ms"]);
    (queue(), mbps, delay, 0..3, any::<bool>()).prop_map(|(queue, mbps, delay, form, shared)| {
        let memory = if shared { "shared_buffer = { size = \"60KB\", alpha = 1 }" } else { "" };
        match form {
            0 => format!(
                "[star]\nrate = \"{mbps}Mbps\"\ndelay = \"{delay}\"\nqueue = {queue}\n{memory}\n\
                 [star.hosts.red]\ncount = 2\n[star.hosts.blue]\ncount = 2\nrate = \"{}Mbps\"\n",
                mbps * 2
            ),
            1 => {
                let spines = if shared { "a*" } else { "a1" };
                let mut text = format!(
                    "[hosts.red]\ncount = 2\n[hosts.blue]\ncount = 2\n\
                     [switches.left]\n{memory}\n[switches.right]\n[switches.a1]\n[switches.a2]\n\
                     [queues.port]\n{}\n",
                    queue.trim_matches(['{', '}', ' ']).replace(", ", "\n")
                );
                for (from, to, rate) in [
                    ("red", "left", mbps), ("blue", "right", mbps),
                    ("left", spines, mbps), ("right", "a*", mbps),
                ] {
                    let _ = write!(text, "[[links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}Mbps\"\ndelay = \"{delay}\"\nqueue = \"port\"\nreverse_queue = \"port\"\n");
                }
                // The second switch must be connected to both sides or to none.
                if !shared {
                    let _ = write!(text, "[[links]]\nfrom = \"left\"\nto = \"a2\"\nrate = \"{mbps}Mbps\"\ndelay = \"{delay}\"\nqueue = \"port\"\n");
                }
                text
            }
            _ => format!(
                "[dumbbell]\nrate = \"{mbps}Mbps\"\ndelay = \"{delay}\"\nqueue = {queue}\n\
                 [dumbbell.senders.red]\ncount = 2\ndelay = \"10us\"\n\
                 [dumbbell.senders.blue]\ncount = 2\ndelay = \"1ms\"\n"
            ),
        }
    })
}

fn workload() -> impl Strategy<Value = String> {
    let size = select(vec![1_u32, 1448, 5_000, 60_000, 300_000]);
    let kind = select(vec![
        "bulk",
        "cbr",
        "transfer",
        "incast",
        "request-response",
        "poisson",
        "udp",
    ]);
    (kind, size, 1..4_u32, select(vec!["0s", "1us", "3ms"])).prop_map(|(kind, size, count, pause)| {
        match kind {
            "cbr" => format!("workload = {{ kind = \"cbr\", rate = \"{count}Mbps\", packet = \"700B\", arrivals = \"poisson\" }}\nstop = \"200ms\""),
            "udp" => format!("transport = \"udp\"\nworkload = {{ kind = \"cbr\", rate = \"{count}Mbps\", packet = \"700B\" }}\nudp = {{ ecn = \"ect0\" }}\nstop = \"200ms\""),
            "transfer" => format!("workload = {{ kind = \"transfer\", size = \"{size}B\" }}\nstart_within = \"100ms\""),
            "incast" => format!("workload = {{ kind = \"incast\", response = \"{size}B\", rounds = {count}, pause = \"{pause}\", spread = \"{pause}\" }}"),
            "request-response" => format!("workload = {{ kind = \"request-response\", request = \"100B\", response = \"{size}B\", requests = {count}, pause = \"{pause}\" }}"),
            "poisson" => "workload = { kind = \"poisson\", mean_interval = \"20ms\", distribution = [[\"100B\", 0.3], [\"20KB\", 1.0]] }\nstop = \"200ms\"".to_owned(),
            _ => "workload = \"bulk\"\nstart_within = \"10ms\"\nstop = \"200ms\"".to_owned(),
        }
    })
}

/// Generates a transport with congestion control, and the table of its options.
fn transport() -> impl Strategy<Value = (&'static str, String)> {
    prop_oneof![
        3 => tcp().prop_map(|options| ("tcp", options)),
        1 => quic().prop_map(|options| ("quic", options)),
    ]
}

fn quic() -> impl Strategy<Value = String> {
    let sizes = select(vec!["interface", "1300B", "probe", "task"]);
    (sizes, any::<bool>())
        .prop_map(|(size, ecn)| format!("packet_size = \"{size}\"\necn = {ecn}\n"))
}

fn tcp() -> impl Strategy<Value = String> {
    let flags = prop::collection::vec(any::<bool>(), 6);
    (flags, 1..4_u32, select(vec!["rack", "rfc6675"]), select(vec!["off", "rfc3168", "dctcp"]), select(vec!["4KB", "30KB", "unlimited"]))
        .prop_map(|(flags, ack_every, recovery, ecn, buffer)| {
            let mut text = format!(
                "handshake = {}\ntimestamps = {}\nlimited_transmit = {}\nprr = {}\nnagle = {}\nack_every = {ack_every}\necn = \"{ecn}\"\nreceive_buffer = \"{buffer}\"\nmin_rto = \"10ms\"\nmax_rto = \"5s\"\ninitial_rto = \"100ms\"\nsack = {}\n",
                flags[0], flags[1], flags[2], flags[3], flags[4], flags[5],
            );
            if flags[5] {
                let _ = writeln!(text, "recovery = \"{recovery}\"");
            }
            text
        })
}

fn groups(dumbbell: bool) -> impl Strategy<Value = String> {
    let names: Vec<_> = weir_congestion::algorithms()
        .map(|algorithm| algorithm.name)
        .collect();
    let group = (
        workload(),
        transport(),
        select(names),
        1..3_u32,
        any::<bool>(),
    );
    prop::collection::vec(group, 1..4).prop_map(move |groups| {
        let mut text = String::new();
        for (number, (workload, (transport, options), congestion, flows, from_red)) in groups.into_iter().enumerate() {
            let (from, to) = match (dumbbell, from_red) {
                (true, true) => ("red", "receiver"),
                (true, false) => ("blue", "receiver"),
                (false, true) => ("red", "blue"),
                (false, false) => ("blue", "red1"),
            };
            let _ = write!(text, "[groups.g{number}]\nfrom = \"{from}\"\nto = \"{to}\"\n{workload}\n");
            if !workload.contains("kind = \"poisson\"") {
                let _ = writeln!(text, "flows = {flows}");
            }
            // Swift would pace over milliseconds in a congested network, and would take hours.
            let patience = if congestion == "swift" { ", min_window = 1.0" } else { "" };
            if !workload.contains("udp") {
                let _ = write!(text, "transport = \"{transport}\"\ncongestion = {{ name = \"{congestion}\"{patience} }}\n[groups.g{number}.{transport}]\n{options}");
            }
        }
        text
    })
}

/// Generates at most one fault of each kind, as faults of one kind must not overlap.
fn faults() -> impl Strategy<Value = String> {
    let kinds = prop::sample::subsequence(
        vec![
            "kind = \"down\"",
            "kind = \"loss\"\nprobability = 0.05",
            "kind = \"duplicate\"\nprobability = 0.05",
            "kind = \"corrupt\"\nprobability = 0.05",
            "kind = \"reorder\"\nprobability = 0.1\ndelay = \"2ms\"",
            "kind = \"delay\"\ndelay = \"3ms\"",
            "kind = \"jitter\"\njitter = \"1ms\"",
            "kind = \"rate\"\nrate = \"1Mbps\"",
        ],
        0..4,
    );
    let spans = prop::collection::vec((0..200_u32, 1..150_u32), 3);
    (kinds, spans).prop_map(|(kinds, spans)| {
        let mut text = String::new();
        for (kind, (at, span)) in kinds.into_iter().zip(spans) {
            let until = at + span;
            let _ = write!(
                text,
                "[[faults]]\n{kind}\nports = \"*\"\nat = \"{at}ms\"\nuntil = \"{until}ms\"\n"
            );
        }
        text
    })
}

fn anything() -> impl Strategy<Value = String> {
    (network(), faults(), any::<u32>()).prop_flat_map(|(network, faults, seed)| {
        groups(network.contains("[dumbbell]"))
            .prop_map(move |groups| format!("seed = {seed}{HEAD}{network}{groups}{faults}"))
    })
}

/// Checks, once the network is silent, that packets which left a port's queue arrived at the link's other
/// end or met a fault, and that packets which arrived at a switch were sent on or dropped.
fn assert_balance(scenario: &Scenario, summary: &RunSummary, seen: &Seen, duplicated: bool) {
    let topology = &scenario.topology;
    let mut switches = vec![(0, 0); topology.switches.len()];
    for (position, index) in scenario.measurements.ports.iter().enumerate() {
        let port = topology.port(*index);
        let measured = &summary.ports[&port.name];
        let drops = measured.drops;
        let (arrived, bytes) = seen.arrived[position];
        let passed = measured.packets - drops.loss - drops.down - drops.corruption;
        if duplicated {
            assert!(arrived >= passed, "{}: {arrived} of {passed}", port.name)
        } else {
            assert_eq!(arrived, passed, "{}", port.name)
        }
        if !duplicated && drops.loss + drops.down + drops.corruption == 0 {
            assert_eq!(bytes, measured.bytes.bytes(), "{}", port.name);
        }
        if let Node::Switch(switch) = topology.port(index.reverse()).from {
            switches[switch.index()].0 += arrived;
        }
        if let Node::Switch(switch) = port.from {
            let early = drops.red + drops.codel + drops.tail + drops.buffer + drops.mtu;
            switches[switch.index()].1 += measured.packets + early;
        }
    }
    for (number, (arrived, sent_on)) in switches.into_iter().enumerate() {
        assert_eq!(arrived, sent_on, "switch {number}");
    }
}

fn assert_complete(scenario: &Scenario, summary: &RunSummary, seen: &Seen) {
    for flow in &seen.flows {
        let group = scenario.group(&flow.group).unwrap();
        if let (Some(size), true) = (flow.size, group.stop.is_none()) {
            assert!(flow.ended, "{flow:?}");
            assert_eq!(flow.delivered, size, "{flow:?}");
        }
        if let Some(size) = flow.size {
            assert!(flow.delivered <= size, "{flow:?}");
        }
    }
    for group in &scenario.groups {
        let summary = &summary.groups[&group.name];
        let pairs = group.pairs().count() as u64 * u64::from(group.flows);
        let of_group = seen.flows.iter().filter(|flow| flow.group == group.name);
        assert_eq!(
            of_group.clone().count() as u64,
            summary.flows,
            "{}",
            group.name
        );
        let delivered: u64 = of_group.map(|flow| flow.delivered.bytes()).sum();
        assert_eq!(delivered, summary.delivered.bytes(), "{}", group.name);
        match &group.workload {
            Workload::Transfer { size, .. } => {
                assert_eq!(summary.completed, pairs, "{}", group.name);
                assert_eq!(delivered, size.bytes() * pairs, "{}", group.name);
            }
            Workload::Incast {
                response, rounds, ..
            } => {
                let expected = response.bytes() * u64::from(*rounds) * pairs;
                assert_eq!(delivered, expected, "{}", group.name);
            }
            Workload::RequestResponse {
                request,
                response,
                requests,
                ..
            } => {
                let count = u64::from(requests.unwrap()) * pairs;
                assert_eq!(summary.completed, count, "{}", group.name);
                let expected = (request.bytes() + response.bytes()) * count;
                assert_eq!(delivered, expected, "{}", group.name);
            }
            Workload::Bulk
            | Workload::Cbr { .. }
            | Workload::Epochs { .. }
            | Workload::Poisson { .. }
            | Workload::Trace { .. } => {}
        }
    }
    let arrived_at_hosts: u64 = scenario
        .measurements
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| matches!(scenario.topology.port(port.reverse()).from, Node::Host(_)))
        .map(|(position, _)| seen.arrived[position].1)
        .sum();
    let delivered: u64 = seen.flows.iter().map(|flow| flow.delivered.bytes()).sum();
    assert!(
        delivered <= arrived_at_hosts,
        "{delivered} of {arrived_at_hosts}"
    );
}

proptest! {
    #[test]
    fn packets_and_bytes_are_conserved(text in anything()) {
        let scenario = scenario(&text, &[]);
        let mut seen = Seen {
            arrived: vec![(0, 0); scenario.measurements.ports.len()],
            flows: Vec::new(),
        };
        let mut simulation = Simulation::new(scenario.clone()).unwrap();
        simulation.advance(Time::MAX, &mut seen).unwrap();
        let summary = simulation.finish(&mut seen).unwrap();
        assert_balance(&scenario, &summary, &seen, text.contains("\"duplicate\""));
        assert_complete(&scenario, &summary, &seen);
    }
}
