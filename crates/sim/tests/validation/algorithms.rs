//! Every congestion control of the registry, end to end: two equal flows over a link of 1 Gbps.

use crate::observe::{bottleneck, run};

/// The queue suits algorithms that need marks and those that need losses: K of the DCTCP paper for 1 Gbps,
/// and a buffer of one C·RTT.
const SCENARIO: &str = r#"
title = "Two equal flows"
source = "a sanity check"
duration = "10s"
warm_up = "3s"
[dumbbell]
rate = "1Gbps"
delay = "5us"
queue = { kind = "step", ecn_threshold = "20 packets", buffer = "250KB" }
# The senders' own links must not be what limits one flow: its packets would come at the very rate at
# which they leave, and whatever else came would find the queue full (Floyd and Jacobson 1991).
[dumbbell.senders.sender]
count = 2
rtt = "1ms"
rate = "10Gbps"
[groups.flows]
from = "sender"
to = "receiver"
congestion = "cubic"
workload = "bulk"
start_within = "100ms"
"#;

/// DCUDP's rate falls to one packet per round trip with every loss, and this queue loses packets: the
/// marking that DCUDP is designed for never drops (section IV-A.1 of its paper).
fn least_utilization(algorithm: &str) -> f64 {
    match algorithm {
        "dcudp" => 0.6,
        _ => 0.9,
    }
}

#[test]
fn each_algorithm_fills_and_shares_the_link() {
    println!(
        "algorithm  utilization  fairness  queue mean/max (packets)  retransmits  time-outs  marks"
    );
    for algorithm in weir_congestion::algorithms() {
        let settings = [format!("groups.flows.congestion={}", algorithm.name)];
        let summary = run(SCENARIO, &settings);
        let (flows, port) = (&summary.groups["flows"], bottleneck(&summary));
        let utilization = port.utilization.value();
        let fairness = flows.fairness.unwrap().value();
        println!(
            "{:9}  {utilization:11.3}  {fairness:8.3}  {:10.1}/{:<13.1}  {:11}  {:9}  {:5}",
            algorithm.name,
            port.queue_mean.bytes() as f64 / 1500.0,
            port.queue_max.bytes() as f64 / 1500.0,
            flows.retransmits,
            flows.timeouts,
            port.marks,
        );
        assert!(
            utilization > least_utilization(algorithm.name),
            "{}: {utilization}",
            algorithm.name
        );
        assert!(
            flows.timeouts <= 2,
            "{}: {}",
            algorithm.name,
            flows.timeouts
        );
        assert!(fairness > 0.75, "{}: {fairness}", algorithm.name);
    }
}
