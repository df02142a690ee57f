//! Ports that decide at dequeue: CoDel keeps the queue short where drop-tail fills it, and strict priorities
//! give one class the link first.

use weir_results::RunSummary;

use crate::observe::{assert_close, bottleneck, run};

/// The wait in the mean queue at 10 Mbit/s, in milliseconds.
fn mean_wait(summary: &RunSummary) -> f64 {
    let queue = bottleneck(summary).queue_mean;
    queue.bytes() as f64 * 8.0 / 10e6 * 1e3
}

fn one_flow(queue: &str, extra: &str) -> RunSummary {
    let scenario = format!(
        r#"
title = "One CUBIC flow"
source = "RFC 8289"
duration = "60s"
warm_up = "10s"
[dumbbell]
rate = "10Mbps"
delay = "5ms"
queue = {{ {queue}, buffer = "500KB" }}
[dumbbell.senders.sender]
rate = "1Gbps"
rtt = "40ms"
[groups.flow]
from = "sender"
to = "receiver"
congestion = "cubic"
workload = "bulk"
[groups.flow.tcp]
send_buffer = "unlimited"
receive_buffer = "unlimited"
{extra}
"#
    );
    let summary = run(&scenario, &[]);
    let port = bottleneck(&summary);
    println!(
        "{queue}: wait {:.2} ms, link {:.1} %, {} marks, {:?}",
        mean_wait(&summary),
        port.utilization.value() * 100.0,
        port.marks,
        port.drops
    );
    summary
}

/// RFC 8289, section 1: with CoDel the wait is about the target, however large the buffer, and the link stays
/// busy.
#[test]
fn codel_keeps_the_wait_near_its_target() {
    let drop_tail = one_flow("kind = \"drop-tail\"", "");
    assert!(mean_wait(&drop_tail) > 150.0);
    let codel = one_flow(
        "kind = \"codel\", target = \"5ms\", interval = \"100ms\"",
        "",
    );
    assert!(mean_wait(&codel) < 15.0);
    let port = bottleneck(&codel);
    assert!(port.utilization.value() > 0.9);
    assert!(port.drops.codel > 0);
    assert_eq!(port.drops.total(), port.drops.codel);
}

/// ECT packets are marked instead, and nothing is lost.
#[test]
fn codel_marks_ect_packets() {
    let marking = one_flow("kind = \"codel\", mark = true", "ecn = \"rfc3168\"");
    let port = bottleneck(&marking);
    assert!(mean_wait(&marking) < 15.0);
    assert!(port.utilization.value() > 0.9);
    assert!(port.marks > 0);
    assert_eq!(port.drops.total(), 0);
}

fn two_groups(queue: &str, dctcp_limit: &str, settings: &[String]) -> RunSummary {
    let scenario = format!(
        r#"
title = "DCTCP and CUBIC"
source = "none"
duration = "2s"
warm_up = "500ms"
[dumbbell]
rate = "1Gbps"
delay = "10us"
queue = {{ {queue}, buffer = "500KB", ecn_threshold = "30KB" }}
[dumbbell.senders.sender]
count = 2
rtt = "200us"
[groups.dctcp]
from = "sender1"
to = "receiver"
flows = 4
congestion = "dctcp"
workload = "bulk"
[groups.dctcp.tcp]
{dctcp_limit}
[groups.cubic]
from = "sender2"
to = "receiver"
flows = 4
congestion = "cubic"
workload = "bulk"
"#
    );
    let summary = run(&scenario, settings);
    let port = bottleneck(&summary);
    println!(
        "{queue} {dctcp_limit} {settings:?}: CUBIC {:.1} %, DCTCP {}, link {:.1} %, {} marks, {:?}",
        summary.groups["cubic"].share.value() * 100.0,
        summary.groups["dctcp"].goodput,
        port.utilization.value() * 100.0,
        port.marks,
        port.drops
    );
    summary
}

/// DCTCP takes what it wants before CUBIC: nearly all, and half the link if that is what its windows allow,
/// of which CUBIC gets the rest. In one queue CUBIC fills the buffer, and DCTCP backs off.
#[test]
fn the_higher_class_takes_its_share_first() {
    let step = two_groups("kind = \"step\"", "", &[]);
    let ect_first = two_groups("kind = \"strict-priority\", high = \"ect\"", "", &[]);
    let cubic = |summary: &RunSummary| summary.groups["cubic"].share.value();
    assert!(cubic(&step) > 0.8);
    assert!(cubic(&ect_first) < 0.05);
    // ECT packets wait for one other packet at most, so that each window is sent every round trip.
    let limited = |settings: &[String]| {
        let queue = "kind = \"strict-priority\", high = \"ect\"";
        two_groups(queue, "receive_buffer = \"3KB\"", settings)
    };
    let alone = limited(&["groups.cubic.start=1.99s".to_owned()]);
    let limited = limited(&[]);
    let dctcp = |summary: &RunSummary| summary.groups["dctcp"].goodput.bits_per_second() as f64;
    assert_close("DCTCP", dctcp(&limited), dctcp(&alone), 0.06);
    assert!((0.2..0.8).contains(&cubic(&limited)));
    assert!(bottleneck(&limited).utilization.value() > 0.99);
    assert_eq!(bottleneck(&limited).marks, 0);
    // CUBIC before DCTCP: the opposite.
    let cubic_first = two_groups("kind = \"strict-priority\", high = \"not-ect\"", "", &[]);
    assert!(cubic(&cubic_first) > 0.95);
}

/// A host whose own link decides at dequeue still sees how much waits there: its flows wait for room, as with an
/// ordinary queue.
#[test]
fn a_host_waits_for_room_on_a_link_that_decides_at_dequeue() {
    let scenario = |queue: &str| {
        let text = format!(
            r#"
title = "A slow link of a host"
source = "none"
duration = "5s"
warm_up = "1s"
[hosts.a]
[hosts.b]
[switches.s]
[[links]]
from = "a"
to = "s"
rate = "100Mbps"
delay = "1ms"
queue = {queue}
[[links]]
from = "s"
to = "b"
rate = "1Gbps"
delay = "1ms"
[groups.flow]
from = "a"
to = "b"
congestion = "cubic"
workload = "bulk"
[measurements]
ports = "a->s"
"#
        );
        let summary = run(&text, &[]);
        let port = summary.ports["a->s"];
        println!(
            "{queue}: {} {} {:?}",
            port.queue_max,
            port.utilization.value(),
            port.drops
        );
        assert!(port.utilization.value() > 0.99);
        assert_eq!(port.drops.total(), 0);
        port.queue_max.bytes()
    };
    let ordinary = scenario("\"unlimited\"");
    let prioritized =
        scenario("{ kind = \"strict-priority\", high = \"ect\", buffer = \"unlimited\" }");
    assert_eq!(ordinary, prioritized);
}
