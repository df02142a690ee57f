//! `load`: what a group offers to a class of links, and what the links carry.

use weir_results::LinkLoad;

use crate::observe::{assert_close, run};

/// Two racks of four hosts, and two spines with as much capacity to each rack. Acknowledgments are 90 bytes on a link
/// for every two data packets of 1538.
const LEAF_SPINE: &str = r#"
title = "A leaf-spine network"
source = "a test"
duration = "220ms"
warm_up = "20ms"

[hosts.one]
count = 4
[hosts.two]
count = 4
[switches.leaf1]
[switches.leaf2]
[switches.spine1]
[switches.spine2]

[[links]]
from = "one"
to = "leaf1"
rate = "1Gbps"
delay = "1us"
reverse_queue = "port"
[[links]]
from = "two"
to = "leaf2"
rate = "1Gbps"
delay = "1us"
reverse_queue = "port"
[[links]]
from = "leaf1"
to = "spine*"
rate = "2Gbps"
delay = "1us"
queue = "port"
reverse_queue = "port"
[[links]]
from = "leaf2"
to = "spine*"
rate = "2Gbps"
delay = "1us"
queue = "port"
reverse_queue = "port"

[queues.port]
kind = "step"
ecn_threshold = "20 packets"
buffer = "1MB"

[groups.flows]
from = ["one", "two"]
to = ["one", "two"]
congestion = "dctcp"
workload = { kind = "poisson", load = 0.6, of = "hosts", distribution = [["10KB", 0.0], ["50KB", 1.0]] }

[groups.flows.tcp]
handshake = false
quick_ack_segments = 0
"#;

/// The share of acknowledgments in what a link carries, if as many data go both ways.
const ACKS: f64 = 90.0 / (2.0 * 1538.0);

fn load(class: &str, load: f64) -> LinkLoad {
    let settings = [
        format!("groups.flows.workload.load={load}"),
        format!("groups.flows.workload.of={class}"),
    ];
    let summary = run(LEAF_SPINE, &settings);
    println!("{:?}", summary.loads);
    let names: Vec<_> = summary.loads.keys().map(String::as_str).collect();
    for name in ["hosts", "leaf->hosts", "leaf->spine", "spine->leaf"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    summary.loads[class]
}

/// With some thousand flows the offered load is within 5 % of the one that was asked for, and what the links carry is
/// within 3 % of what is offered, acknowledgments included.
#[test]
fn links_carry_the_load_that_was_asked_for() {
    for asked in [0.2, 0.6, 0.9] {
        let hosts = load("hosts", asked);
        let expected = hosts.expected.unwrap().value();
        // The mean interval is rounded to a nanosecond.
        assert_close("expected", expected, asked, 0.001);
        let offered = hosts.offered.unwrap().value();
        assert_close("offered", offered, asked, 0.05);
        let carried = hosts.carried.value();
        assert_close("carried", carried, offered * (1.0 + ACKS), 0.03);
        assert_eq!(hosts.links, 8);
    }
}

#[test]
fn a_load_may_be_that_of_links_between_switches() {
    // The hosts' links have 7 / 4 times as much.
    let between = load("leaf->spine", 0.4);
    assert_eq!(between.links, 4);
    let offered = between.offered.unwrap().value();
    assert_close("offered", offered, 0.4, 0.05);
    let carried = between.carried.value();
    assert_close("carried", carried, offered * (1.0 + ACKS), 0.03);
    assert!(between.carried_max.value() >= carried);
}

#[test]
fn the_offered_load_is_unknown_beside_endless_flows() {
    let text = format!(
        "{LEAF_SPINE}[groups.endless]\nfrom = \"one1\"\nto = \"two1\"\nworkload = \"bulk\"\n"
    );
    let summary = run(&text, &["duration=30ms".to_owned()]);
    let hosts = summary.loads["hosts"];
    assert_eq!((hosts.expected, hosts.offered), (None, None));
    assert!(hosts.carried.value() > 0.1);
}

#[test]
fn runs_without_arrivals_have_no_loads() {
    let settings = [
        "groups.flows.workload=bulk".to_owned(),
        "duration=30ms".to_owned(),
    ];
    assert!(run(LEAF_SPINE, &settings).loads.is_empty());
}
