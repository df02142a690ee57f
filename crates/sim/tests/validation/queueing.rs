//! Queues in closed form.

use crate::observe::{assert_close, bottleneck, run};

/// M/D/1: packets arrive as a Poisson process and have equal service times. The mean waiting time of a
/// packet is `ρ / (2 (1 - ρ))` service times (Pollaczek 1930 and Khinchin 1932; Kleinrock, Queueing Systems
/// I, section 5.6). By Little's law `ρ² / (2 (1 - ρ))` packets wait. That is the queue here, which does
/// not include the packet that the link is sending.
#[test]
fn poisson_packets_wait_as_in_md1() {
    const SCENARIO: &str = r#"
title = "M/D/1"
source = "Kleinrock 1975, section 5.6"
duration = "10s"
warm_up = "10ms"
[dumbbell]
rate = "1Gbps"
delay = "1us"
queue = { kind = "drop-tail", buffer = "unlimited" }
# The sender's link must not space the packets.
[dumbbell.senders.sender]
rate = "100Tbps"
delay = "1us"
[groups.packets]
from = "sender"
to = "receiver"
transport = "udp"
workload = { kind = "cbr", rate = "500Mbps", packet = "962B", arrivals = "poisson" }
"#;
    for (percent, seconds) in [(30, 5), (50, 5), (70, 8), (80, 10), (90, 30)] {
        // 962 B and 38 B of framing take 8 us: a rate of IP bytes is 962/1000 of that of the link.
        let rate = percent * 9_620_000_u64;
        let settings = [
            format!("groups.packets.workload.rate={rate}bps"),
            format!("duration={seconds}s"),
        ];
        let summary = run(SCENARIO, &settings);
        let load = percent as f64 / 100.0;
        let waiting = bottleneck(&summary).queue_mean.bytes() as f64 / 962.0;
        let utilization = bottleneck(&summary).utilization.value();
        assert_close("utilization", utilization, load, 0.005);
        let expected = load * load / (2.0 * (1.0 - load));
        assert_close(&format!("queue at {load}"), waiting, expected, 0.03);
    }
}

/// One Reno flow over a link with a buffer of `b` bandwidth-delay products, `b <= 1`. Its window rises from
/// half of `P (1 + b)` to that, where `P` is C·RTT. In units of P packets and round trips: `3/8 (1 + b)²`
/// packets leave in `(1 - b) / 2` round trips while the link is not full, and in `b + b² / 2` while it is.
/// So the utilization is `3/4 (1 + b)² / (1 + b + b²)`: three quarters without a buffer, one with a buffer
/// of C·RTT (the rule of Villamizar and Song 1994).
#[test]
fn a_short_buffer_costs_a_reno_flow_throughput() {
    const SCENARIO: &str = r#"
title = "One Reno flow and a short buffer"
source = "Villamizar and Song 1994"
duration = "120s"
warm_up = "20s"
[dumbbell]
rate = "100Mbps"
delay = "5us"
queue = { kind = "drop-tail", buffer = "1 packets" }
[dumbbell.senders.sender]
rate = "1Gbps"
delay = "12.3ms"
[groups.flow]
from = "sender"
to = "receiver"
congestion = "newreno"
workload = "bulk"
[groups.flow.tcp]
ack_every = 1
"#;
    // C·RTT is 200 packets of 1538 B: 24.608 ms.
    for packets in [20, 50, 100, 200] {
        let settings = [format!("dumbbell.queue.buffer={packets} packets")];
        let summary = run(SCENARIO, &settings);
        let b = f64::from(packets) / 200.0;
        let expected = 0.75 * (1.0 + b) * (1.0 + b) / (1.0 + b + b * b);
        let utilization = bottleneck(&summary).utilization.value();
        assert_close(
            &format!("utilization with b = {b}"),
            utilization,
            expected,
            0.02,
        );
    }
}
