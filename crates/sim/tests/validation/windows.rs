//! Exact throughput under a window limit.

use weir_units::Duration;

use crate::observe::{Observed, assert_close, bottleneck, observe, run};

/// A receiver that holds no more than `rwnd` limits a flow to `rwnd / RTT` (RFC 9293, section 3.8.6). The
/// round trip consists of the propagation delay and the transmission times of a packet and its
/// acknowledgment on the two links each way.
#[test]
fn a_small_receive_buffer_means_one_window_per_round_trip() {
    const SCENARIO: &str = r#"
title = "A small receive buffer"
source = "RFC 9293, section 3.8.6"
duration = "5s"
warm_up = "1s"
[dumbbell]
rate = "10Gbps"
delay = "5us"
queue = { kind = "drop-tail", buffer = "unlimited" }
[dumbbell.senders.sender]
rtt = "10ms"
[groups.flow]
from = "sender"
to = "receiver"
workload = "bulk"
[groups.flow.tcp]
ack_every = 1
timestamps = false
receive_buffer = "58400B"
"#;
    for segments in [2_u32, 10, 40, 43] {
        let buffer = segments * 1460;
        let settings = [format!("groups.flow.tcp.receive_buffer={buffer}B")];
        let goodput = run(SCENARIO, &settings).groups["flow"].goodput;
        let round_trip = 10e-3 + 2.0 * (1538.0 + 78.0) * 8.0 / 10e9;
        let expected = f64::from(buffer) * 8.0 / round_trip;
        let goodput = goodput.bits_per_second() as f64;
        assert_close(
            &format!("goodput with {segments} segments"),
            goodput,
            expected,
            0.003,
        );
    }
}

/// Slow start doubles the window in each round trip (RFC 5681, section 3.1), with delayed ACKs too if
/// bytes are counted (RFC 3465 without its limit, as RFC 9002, section 7.3.1, has it).
#[test]
fn slow_start_doubles_the_window_in_each_round_trip() {
    const SCENARIO: &str = r#"
title = "Slow start"
source = "RFC 5681, section 3.1"
duration = "1.15s"
[dumbbell]
rate = "100Gbps"
delay = "5us"
queue = { kind = "drop-tail", buffer = "unlimited" }
[dumbbell.senders.sender]
rtt = "100ms"
[groups.flow]
from = "sender"
to = "receiver"
congestion = { name = "newreno", initial_window = 10 }
workload = "bulk"
[groups.flow.tcp]
delayed_ack_timeout = "1ms"
send_buffer = "unlimited"
receive_buffer = "unlimited"
[measurements]
sample_interval = "2ms"
"#;
    for ack_every in [1, 2] {
        let settings = [format!("groups.flow.tcp.ack_every={ack_every}")];
        let Observed { windows, .. } = observe(SCENARIO, &settings);
        let mut rounds = [false; 11];
        for sample in windows {
            // The handshake takes the first round; between two bursts the window is constant.
            let round = sample.time.as_nanos() / 100_000_000;
            let within = Duration::from_nanos(sample.time.as_nanos() % 100_000_000);
            if (1..=10).contains(&round) && within > Duration::from_millis(50) {
                let packets = sample.window.bytes() as f64 / 1448.0;
                assert_eq!(packets, f64::from(10 << (round - 1)), "round trip {round}");
                rounds[round as usize] = true;
            }
        }
        assert!(rounds[1..].iter().all(|seen| *seen), "{rounds:?}");
    }
}

/// Flows whose own link is the bottleneck keep no more than a millisecond (2^-10 s) of it in their host,
/// and take turns. Without small queues they fill the host instead.
#[test]
fn small_queues_keep_a_hosts_queue_to_a_millisecond() {
    const SCENARIO: &str = r#"
title = "Flows behind their own link"
source = "TCP small queues: Linux, sk_pacing_shift"
duration = "2s"
warm_up = "500ms"
[dumbbell]
rate = "1Gbps"
delay = "5us"
queue = { kind = "drop-tail", buffer = "unlimited" }
[dumbbell.senders.sender]
rtt = "1ms"
[groups.flows]
from = "sender"
to = "receiver"
flows = 4
congestion = "newreno"
workload = "bulk"
[measurements]
ports = ["sender->switch", "bottleneck"]
"#;
    let longest = |small_queues: bool| {
        let settings = [format!("groups.flows.tcp.small_queues={small_queues}")];
        let summary = run(SCENARIO, &settings);
        let fairness = summary.groups["flows"].fairness.unwrap().value();
        assert!(fairness > 0.95, "Jain's index {fairness}");
        assert!(bottleneck(&summary).utilization.value() > 0.99);
        summary.ports["sender->switch"].queue_max.bytes()
    };
    // 122 KB in 2^-10 s, and a packet for each turn.
    let limited = longest(true);
    assert!((115_000..125_000).contains(&limited), "{limited} B");
    assert!(longest(false) > 10 * limited);
}
