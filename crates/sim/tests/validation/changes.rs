//! Changes of settings act at their times, and no packet earlier.

use std::path::Path;

use weir_results::RunSummary;
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;
use weir_units::{Duration, Rate, Time};

use crate::observe::{run, scenario};

/// Datagrams of 1500 bytes at 2 Gbit/s: one each 6 us into a link of half the rate. They reach the switch 6
/// us after they were sent (12 Gbit/s and 5 us), the first at 6 us.
const OVERLOAD: &str = r#"
title = "Changes"
source = "a test"
duration = "20ms"
host_jitter = "0s"
[hosts.sender]
[hosts.receiver]
[switches.switch]
[[links]]
from = "sender"
to = "switch"
rate = "12Gbps"
delay = "5us"
framing = "0B"
[[links]]
from = "switch"
to = "receiver"
name = "bottleneck"
rate = "1Gbps"
delay = "5us"
framing = "0B"
queue = "q"
[queues.q]
kind = "step"
ecn_threshold = "10MB"
buffer = "10MB"
[groups.datagrams]
from = "sender"
to = "receiver"
transport = "udp"
udp.ecn = "ect0"
workload = { kind = "cbr", rate = "2Gbps", packet = "1500B" }
[measurements]
ports = "*"
"#;

fn micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// Returns the summary of a run up to a time.
fn until(text: &str, time: Time) -> RunSummary {
    let mut simulation = Simulation::new(scenario(text, &[])).unwrap();
    simulation.advance(time, &mut ()).unwrap();
    simulation.summary()
}

#[test]
fn a_threshold_acts_on_the_first_packet_at_its_time() {
    // Packets reach the switch at 6 us, 12 us, and so on: one at 9996 us, one at 10002 us.
    for (at, first_marked) in [("9996us", 9996), ("9997us", 10_002), ("10002us", 10_002)] {
        let change = format!(
            "[[changes]]\nat = \"{at}\"\nports = \"bottleneck\"\nset.queue.ecn_threshold = \"1KB\"\n"
        );
        let text = format!("{OVERLOAD}{change}");
        let marks = |time: u64| {
            until(&text, micros(time) + Duration::from_nanos(1)).ports["bottleneck"].marks
        };
        assert_eq!(marks(first_marked - 1), 0, "{at}");
        assert_eq!(marks(first_marked), 1, "{at}");
        assert_eq!(marks(first_marked + 600), 101, "{at}");
    }
}

#[test]
fn a_smaller_buffer_drops_what_comes_and_keeps_what_waits() {
    let text = format!(
        "{OVERLOAD}[[changes]]\nat = \"12ms\"\nports = \"bottleneck\"\n\
         set.queue = {{ buffer = \"300KB\", ecn_threshold = \"300KB\" }}\n"
    );
    // A thousand packets wait at 12 ms. Of these, 200 may stay: nothing is admitted until 800 are sent,
    // 9.6 ms later.
    let port = |time: u64| until(&text, micros(time)).ports["bottleneck"];
    let (before, after) = (port(12_000), port(19_000));
    assert_eq!(before.drops.total(), 0);
    let arrivals = 7_000 / 6;
    let dropped = after.drops.total();
    assert!(dropped.abs_diff(arrivals) <= 1, "{dropped} of {arrivals}");
    assert_eq!(after.packets - before.packets, 7_000 / 12);
}

/// The goodput of a paced flow while its rate is capped at 200 Mbit/s is that, and afterwards that of the link.
#[test]
fn open_flows_take_over_parameters() {
    for group in [
        "congestion = \"cubic\"",
        "congestion = \"dctcp\"",
        "transport = \"quic\"\ncongestion = \"dctcp\"",
        "transport = \"dcudp\"\ndcudp.udp_mode = false",
    ] {
        let text = |warm_up: &str, duration: &str| {
            format!(
                r#"
                title = "A cap"
                source = "a test"
                duration = "{duration}"
                warm_up = "{warm_up}"
                [dumbbell]
                rate = "1Gbps"
                delay = "5us"
                queue = {{ kind = "step", ecn_threshold = "30 packets", buffer = "1MB" }}
                [dumbbell.senders.sender]
                rtt = "100us"
                [groups.flow]
                from = "sender"
                to = "receiver"
                {group}
                workload = "bulk"
                [[changes]]
                at = "100ms"
                groups = "flow"
                set.congestion.max_rate = "200Mbps"
                [[changes]]
                at = "300ms"
                groups = "flow"
                set.congestion.max_rate = "unbounded"
                "#
            )
        };
        let goodput = |warm_up, duration| run(&text(warm_up, duration), &[]).groups["flow"].goodput;
        let mbps = |rate: Rate| rate.bits_per_second() as f64 / 1e6;
        let full = mbps(goodput("50ms", "301ms"));
        let capped = mbps(goodput("150ms", "301ms"));
        let free = mbps(goodput("400ms", "500ms"));
        assert!(full > 300.0, "{group}: {full}");
        assert!((170.0..=215.0).contains(&capped), "{group}: {capped}");
        assert!(free > 850.0, "{group}: {free}");
    }
}

#[test]
fn loads_change_the_rate_of_arrivals_and_are_expected() {
    let text = r#"
        title = "A load"
        source = "a test"
        duration = "400ms"
        leaf_spine = { leaves = 2, spines = 2, hosts = 2, rate = "10Gbps", delay = "1us", queue = "unlimited" }
        [groups.web]
        from = "host"
        to = "host"
        congestion = "dctcp"
        workload = { kind = "poisson", load = 0.05, of = "hosts", distribution = [["10KB", 1.0]] }
        [[changes]]
        at = "200ms"
        groups = "web"
        set.workload.load = 0.15
        "#;
    let half = until(text, micros(200_000));
    let whole = run(text, &[]);
    let flows = |summary: &RunSummary| summary.groups["web"].completed as f64;
    let ratio = (flows(&whole) - flows(&half)) / flows(&half);
    // About 4,700 and 14,000 flows: the ratio's standard deviation is 1.7 %.
    assert!((ratio / 3.0 - 1.0).abs() < 0.07, "{ratio}");
    let load = |summary: &RunSummary| summary.loads["hosts"].expected.unwrap().value();
    assert!((load(&half) - 0.05).abs() < 0.0005, "{}", load(&half));
    assert!((load(&whole) - 0.10).abs() < 0.001, "{}", load(&whole));
    let offered = whole.loads["hosts"].offered.unwrap().value();
    assert!((offered / 0.10 - 1.0).abs() < 0.05, "{offered}");
}

#[test]
fn a_constant_rate_changes_at_once() {
    let text = OVERLOAD.replace("rate = \"2Gbps\"", "rate = \"100Mbps\"");
    let text = format!(
        "{text}[[changes]]\nat = \"10060us\"\ngroups = \"datagrams\"\nset.workload.rate = \"200Mbps\"\n"
    );
    // One packet each 120 us, so 84 by 10060 us, the last at 9960 us; 20 us are left until the next, which
    // become 10 us, and then one follows each 60 us.
    let sent = |time: u64| until(&text, micros(time)).ports["sender->switch"].packets;
    assert_eq!(sent(10_060), 84);
    assert_eq!(sent(10_070), 84);
    assert_eq!(sent(10_071), 85);
    assert_eq!(sent(10_071 + 600), 95);
}

#[test]
fn a_shared_buffer_changes() {
    let text = |change: &str| {
        format!(
            r#"
            title = "Shared memory"
            source = "a test"
            duration = "20ms"
            [star]
            rate = "1Gbps"
            delay = "1us"
            queue = "unlimited"
            shared_buffer = {{ size = "1MB", alpha = 1 }}
            [star.hosts.a]
            count = 2
            [star.hosts.b]
            [groups.datagrams]
            from = "a"
            to = "b"
            transport = "udp"
            workload = {{ kind = "cbr", rate = "700Mbps" }}
            {change}
            "#
        )
    };
    let drops = |change| run(&text(change), &[]).ports["switch->b"].drops.total();
    // 400 Mbit/s too much in 20 ms are a megabyte, of which half may wait.
    let (some, none) = (
        drops(""),
        drops(
            "[[changes]]\nat = \"1ms\"\nswitches = \"switch\"\nset.shared_buffer.size = \"100MB\"\n",
        ),
    );
    assert!(some > 100, "{some}");
    assert_eq!(none, 0);
}

/// Returns the summary of a variant of a shipped scenario, with more text at its end.
fn shipped(file: &str, more: &str, variant: &str, settings: &[&str]) -> RunSummary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(file);
    let text = format!("{}\n{more}", std::fs::read_to_string(path).unwrap());
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let loaded = Scenario::parse(file, &text, &settings).unwrap();
    let mut variants = loaded.variants.into_iter();
    let found = variants.find(|found| found.name == variant).unwrap();
    let mut simulation = Simulation::new(found.scenario).unwrap();
    simulation.advance(simulation.end(), &mut ()).unwrap();
    simulation.finish(&mut ()).unwrap()
}

/// The controllers of TCon, which are not those of the hosts, meet the new threshold as those of native DCTCP do: the
/// queue is as long as in a run that had it from the beginning.
#[test]
fn a_threshold_changes_under_tcon() {
    let change = "[[changes]]\nat = \"2s\"\nports = \"spine->client\"\nset.queue.ecn_threshold = \"60 packets\"\n";
    for variant in ["tcon", "dctcp"] {
        let queue = |more: &str, settings: &[&str]| {
            let run = shipped("tcon-dctcp.toml", more, variant, settings);
            let port = run.ports["spine->client"];
            assert_eq!(port.drops.total(), 0, "{variant}");
            port.queue_mean.bytes() as f64
        };
        let (first, second) = (
            ["warm_up=1s", "duration=2001ms"],
            ["warm_up=2500ms", "duration=4s"],
        );
        let low = queue("", &second);
        let high = queue(
            "",
            &[&second[..], &["parameters.ecn_threshold=60 packets"]].concat(),
        );
        assert!(high > 2.0 * low, "{variant}: {low} and {high}");
        let before = queue(change, &first);
        let after = queue(change, &second);
        println!("{variant}: {low} {high}; {before}, then {after}");
        assert!(
            (before / low - 1.0).abs() < 0.1,
            "{variant}: {before}, {low}"
        );
        assert!(
            (after / high - 1.0).abs() < 0.1,
            "{variant}: {after}, {high}"
        );
    }
}

/// SED assigns windows to all six flows. A cap that comes for the one without deadline holds below its window, and the
/// others keep their deadlines; so they do when the switch's buffer grows.
#[test]
fn parameters_and_buffers_change_under_sed() {
    let changes = "[[changes]]\nat = \"1s\"\ngroups = \"endless\"\nset.congestion.max_rate = \"40Mbps\"\n\
                   [[changes]]\nat = \"1500ms\"\nports = \"switch->receiver\"\n\
                   set.queue = { ecn_threshold = \"40 packets\", buffer = \"300KB\" }\n";
    for variant in ["sed", "sed-planned"] {
        let run = |more: &str| shipped("sed-small.toml", more, variant, &["warm_up=1200ms"]);
        let (without, with) = (run(""), run(changes));
        for (name, group) in &with.groups {
            assert!(
                group.deadlines_missed.is_none_or(|missed| missed == 0),
                "{variant}: {name}"
            );
        }
        let mbps = |run: &RunSummary| run.groups["endless"].goodput.bits_per_second() as f64 / 1e6;
        let (free, capped) = (mbps(&without), mbps(&with));
        println!("{variant}: {free} Mbps, capped {capped}");
        assert!(free > 100.0, "{variant}: {free}");
        assert!((25.0..=40.0).contains(&capped), "{variant}: {capped}");
    }
}
