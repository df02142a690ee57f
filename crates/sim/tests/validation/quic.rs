//! The DCQUIC engine in virtual time: its workloads, and its share of a queue.

use weir_counters::FlowCounters;
use weir_results::{Observation, OutputError, Recorder, RunSummary, Summary};

use crate::observe::{Rows, assert_close, bottleneck, record, run};

/// A few flows of one kind over a marking switch.
const QUEUE: &str = r#"
title = "DCTCP's queue"
source = "Tan et al., DCQUIC; K as Linux advises for 1 Gbps"
duration = "1s"
warm_up = "200ms"
[dumbbell]
rate = "1Gbps"
queue = { kind = "step", ecn_threshold = "20 packets", buffer = "1MB" }
[dumbbell.senders.sender]
count = 4
rtt = "100us"
[groups.flows]
from = "sender"
to = "receiver"
transport = "quic"
congestion = "dctcp"
workload = "bulk"
start_within = "10ms"
"#;

fn settings(all: &[&str]) -> Vec<String> {
    all.iter().map(|setting| (*setting).to_owned()).collect()
}

#[test]
fn dctcp_keeps_the_queue_that_it_keeps_under_tcp() {
    let [quic, tcp] = ["quic", "tcp"]
        .map(|transport| run(QUEUE, &[format!("groups.flows.transport={transport}")]));
    let mean = |summary: &RunSummary| bottleneck(summary).queue_mean.bytes() as f64;
    assert_close("mean queue in bytes", mean(&quic), mean(&tcp), 0.2);
    for summary in [&quic, &tcp] {
        let flows = &summary.groups["flows"];
        assert!(bottleneck(summary).utilization.value() > 0.99);
        assert!(flows.fairness.unwrap().value() > 0.9, "{flows:?}");
        assert_eq!(flows.retransmits, 0);
        // Exactly the switch's marks, except for packets in transit at either end of the period.
        let (seen, marked) = (flows.marks, bottleneck(summary).marks);
        assert!(seen.abs_diff(marked) <= 60, "{seen} of {marked}");
    }
}

#[test]
fn every_algorithm_fills_the_link() {
    for algorithm in weir_congestion::algorithms() {
        let congestion = format!("groups.flows.congestion={}", algorithm.name);
        let summary = run(QUEUE, &[congestion, "duration=600ms".to_owned()]);
        let utilization = bottleneck(&summary).utilization.value();
        println!("{}: {utilization:.3}", algorithm.name);
        assert!(utilization > 0.9, "{}: {utilization}", algorithm.name);
    }
}

#[test]
fn the_packet_size_is_the_interface_mtu_unless_set() {
    let jumbo = |packet_size: &str| {
        let summary = run(
            QUEUE,
            &[
                "duration=400ms".to_owned(),
                "dumbbell.mtu=9000B".to_owned(),
                "groups.flows.congestion=cubic".to_owned(),
                format!("groups.flows.quic.packet_size={packet_size}"),
            ],
        );
        let port = bottleneck(&summary);
        port.bytes.bytes() as f64 / port.packets as f64
    };
    assert_close("interface", jumbo("interface"), 9000.0, 0.01);
    assert_close("probe", jumbo("probe"), 9000.0, 0.05);
    assert_close("fixed", jumbo("3000B"), 3028.0, 0.01);
    // Endless flows are large tasks.
    assert_close("task", jumbo("task"), 5028.0, 0.02);
}

/// A mixture of all QUIC workloads, on links with every kind of fault.
const MIXTURE: &str = r#"
title = "What QUIC carries"
source = "a test"
seed = 3
duration = "1s"
warm_up = "20ms"
[dumbbell]
rate = "1Gbps"
queue = { kind = "step", ecn_threshold = "30KB", buffer = "60KB" }
[dumbbell.senders.near]
count = 2
rtt = "100us"
[dumbbell.senders.far]
rtt = "2ms"
[groups.bulk]
from = "near1"
to = "receiver"
transport = "quic"
congestion = "bbr"
workload = "bulk"
stop = "250ms"
[groups.requests]
from = "near2"
to = "receiver"
transport = "quic"
congestion = "dctcp"
flows = 3
workload = { kind = "request-response", request = "200B", response = "30KB", requests = 100 }
[groups.transfers]
from = "far"
to = "receiver"
transport = "quic"
congestion = "cubic"
flows = 20
workload = { kind = "transfer", size = "100KB" }
start_within = "200ms"
[groups.arrivals]
from = "near"
to = "receiver"
transport = "quic"
congestion = "swift"
workload = { kind = "poisson", mean_interval = "2ms", distribution = [["1KB", 0.5], ["50KB", 1.0]] }
stop = "300ms"
[groups.incast]
from = "near"
to = "far"
transport = "quic"
congestion = "dctcp"
flows = 4
workload = { kind = "incast", response = "20KB", rounds = 20, pause = "1ms", spread = "0s" }
[groups.tcp]
from = "far"
to = "receiver"
congestion = "cubic"
workload = "bulk"
stop = "300ms"

[[faults]]
kind = "loss"
ports = "*"
at = "20ms"
until = "220ms"
probability = 0.01
[[faults]]
kind = "reorder"
ports = "*"
at = "0s"
until = "200ms"
probability = 0.02
delay = "100us"
[[faults]]
kind = "duplicate"
ports = "*"
at = "0s"
until = "200ms"
probability = 0.02
[[faults]]
kind = "corrupt"
ports = "bottleneck"
at = "100ms"
until = "200ms"
probability = 0.01
"#;

/// The digest of the mixture's rows and summary. It changes whenever the behaviour of the simulator or the
/// engine changes; `cargo test` and `cargo test --release` agree on it.
const GOLDEN: u64 = 0xb4c5_7ec3_ee3e_138f;

#[test]
fn the_rows_match_the_golden_digest() {
    let rows = || {
        let mut rows = Rows::default();
        let summary = record(MIXTURE, &[], &mut rows);
        rows.text
            .push(Summary::new("", "", summary).to_json().unwrap());
        rows
    };
    let rows = [rows(), rows()];
    assert!(rows[0].text == rows[1].text);
    let digest = rows[0].digest();
    assert!(digest == GOLDEN, "the digest is {digest:#018x} now");
}

/// Settings of the mixture with known peers, in the groups that open many connections.
const KNOWN_PEERS: [&str; 5] = [
    "warm_up=0s",
    "groups.requests.workload.connection=fresh",
    "groups.transfers.quic.known_peers=true",
    "groups.arrivals.quic.known_peers=true",
    "groups.requests.quic.known_peers=true",
];

#[test]
fn known_peers_give_the_same_rows_again() {
    let all = settings(&KNOWN_PEERS);
    let rows = || {
        let mut rows = Rows::default();
        let summary = record(MIXTURE, &all, &mut rows);
        for (group, completed) in [("requests", 300), ("transfers", 20)] {
            assert_eq!(summary.groups[group].completed, completed, "{group}");
        }
        for group in ["requests", "transfers", "arrivals"] {
            let known = summary.groups[group].connections_without_handshake;
            println!("{group}: {known:?} of {}", summary.groups[group].flows);
            assert!(known > Some(0), "{group}");
        }
        assert_eq!(summary.groups["bulk"].connections_without_handshake, None);
        rows.text
            .push(Summary::new("", "", summary).to_json().unwrap());
        rows
    };
    assert!(rows().text == rows().text);
}

/// Ended flows by group, and the counters of all flows.
#[derive(Default)]
struct Ended(Vec<(String, bool)>, FlowCounters);

impl Recorder for Ended {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        if let Observation::Flow(flow) = observation {
            self.0.push((flow.group.to_owned(), flow.end.is_some()));
            self.1 += flow.counters;
        }
        Ok(())
    }
}

#[test]
fn all_transfers_complete_despite_losses() {
    let mut ended = Ended::default();
    let summary = record(MIXTURE, &settings(&["warm_up=0s"]), &mut ended);
    let completed = |group: &str| summary.groups[group].completed;
    assert_eq!(completed("requests"), 300);
    assert_eq!(completed("transfers"), 20);
    assert_eq!(completed("incast"), 20);
    let retransmits: u64 = summary.groups.values().map(|group| group.retransmits).sum();
    assert!(retransmits > 100, "{retransmits}");
    assert!(!ended.1.retransmitted.is_zero(), "{:?}", ended.1);
    assert!(ended.1.retransmitted < ended.1.delivered, "{:?}", ended.1);
    for group in ["requests", "transfers", "incast"] {
        let ended = ended.0.iter().filter(|(name, _)| name == group);
        assert!(ended.clone().count() > 0);
        for (_, is_ended) in ended {
            assert!(is_ended, "{group}");
        }
    }
}
