//! One flow with random losses of constant probability: the laws that relate throughput to loss.
//!
//! - NewReno: the mean window is `c / sqrt(p)` packets. For independent losses and one packet more per
//!   round trip, `c = 1.3098` (Ott, Kemperman and Mathis 1996; Mathis et al. 1997, table 1, round 1.31).
//!   Their constant for delayed ACKs, 0.94, is for senders that count ACKs; ours counts bytes (RFC
//!   3465), so that delayed ACKs change nothing.
//! - CUBIC: the mean window is proportional to `(RTT / p)^(3/4)` (RFC 9438, section 5.1, equation 6).
//!   Its constant is for losses at equal distances; the exponents hold for independent ones as well.
//!
//! The laws need no queue, no other limit than the window, and so few losses that there are hardly any
//! time-outs. After each loss our window stands still for the round trip of the recovery, which the laws
//! do not include: with larger p they are too high.

use weir_units::Duration;

use crate::observe::{assert_close, run};

const SCENARIO: &str = r#"
title = "One flow and random losses"
source = "Mathis et al. 1997"
duration = "100s"
warm_up = "1s"
[parameters]
rtt = "10ms"
loss = 0.001
congestion = "newreno"
ack_every = 1
[dumbbell]
rate = "100Gbps"
delay = "5us"
queue = { kind = "drop-tail", buffer = "unlimited" }
[dumbbell.senders.sender]
rtt = "$rtt"
[groups.flow]
from = "sender"
to = "receiver"
congestion = "$congestion"
workload = "bulk"
[groups.flow.tcp]
ack_every = "$ack_every"
send_buffer = "unlimited"
receive_buffer = "unlimited"
[[faults]]
kind = "loss"
ports = "bottleneck"
at = "0s"
probability = "$loss"
"#;

/// Returns the mean window in packets: the packets delivered per round trip.
fn mean_window(settings: &[String], rtt: Duration) -> f64 {
    let summary = run(SCENARIO, settings);
    let flow = &summary.groups["flow"];
    assert!(flow.timeouts * 50 <= flow.retransmits, "{flow:?}");
    flow.goodput.bits_per_second() as f64 / 8.0 / 1448.0 * rtt.as_secs_f64()
}

fn newreno(p: f64, ack_every: u32, packets: f64) -> f64 {
    let expected = 1.3098 / p.sqrt();
    let seconds = 1.0 + packets / expected * 0.01;
    let settings = [
        format!("duration={seconds:.0}s"),
        format!("parameters.loss={p}"),
        format!("parameters.ack_every={ack_every}"),
    ];
    mean_window(&settings, Duration::from_millis(10)) / expected
}

#[test]
fn newreno_follows_the_square_root_of_loss() {
    for (p, ack_every) in [(3e-4, 1), (5e-4, 2), (1e-3, 1), (2e-3, 2)] {
        let ratio = newreno(p, ack_every, 1e6);
        assert_close(&format!("p {p}, an ACK for {ack_every}"), ratio, 1.0, 0.1);
    }
}

/// The exponent of CUBIC's window: with four times the round trip, and with ten times the losses.
#[test]
fn cubic_follows_its_exponents() {
    // With the usual C of 0.4 the region beyond Reno takes millions of packets per loss.
    let window = |rtt: u64, p: f64| {
        let settings = [
            "parameters.congestion={ name = \"cubic\", c = 40.0, hystart = false }".to_owned(),
            format!("parameters.rtt={rtt}ms"),
            format!("parameters.loss={p}"),
            "duration=1000s".to_owned(),
        ];
        mean_window(&settings, Duration::from_millis(rtt))
    };
    let (short, long, rare) = (window(50, 1e-3), window(200, 1e-3), window(50, 2e-4));
    let exponent = |ratio: f64, factor: f64| ratio.ln() / factor.ln();
    assert_close(
        "exponent of the round trip",
        exponent(long / short, 4.0),
        0.75,
        0.1,
    );
    assert_close(
        "exponent of the loss",
        exponent(rare / short, 5.0),
        0.75,
        0.1,
    );
}
