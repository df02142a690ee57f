//! CUBIC's window over an epoch against RFC 9438, section 4.2:
//! `W_cubic(t) = C (t - K)^3 + W_max` with `K = cbrt((W_max - cwnd_epoch) / C)` (figures 1 and 2),
//! `cwnd_epoch = β W_max` and β = 0.7, C = 0.4 packets/s³.
//!
//! The formula needs a packet or two lost at a known time and none after them, a window that is the limit
//! all the time, and a round trip so long that the window is beyond the Reno-friendly region (section
//! 4.3).

use weir_units::Time;

use crate::observe::{Observed, WindowSample, assert_close, observe};

/// The payload of a packet with time stamps.
const PACKET: f64 = 1448.0;
const SCENARIO: &str = r#"
title = "One CUBIC flow"
source = "RFC 9438, section 4.2"
duration = "25s"
[dumbbell]
rate = "10Gbps"
delay = "5us"
queue = { kind = "drop-tail", buffer = "unlimited" }
[dumbbell.senders.sender]
rtt = "100ms"
[groups.flow]
from = "sender"
to = "receiver"
congestion = { name = "cubic", hystart = false, initial_window = 10 }
workload = "bulk"
[groups.flow.tcp]
# Spreads each window over the round trip, so that a short fault meets a packet or two.
pacing = "window"
ack_every = 1
send_buffer = "unlimited"
receive_buffer = "unlimited"
[[faults]]
kind = "down"
ports = "bottleneck"
at = "870ms"
until = "870.1ms"
[measurements]
sample_interval = "2ms"
"#;

/// A reduction of the window: its value before, its value after, and the last sample before it grew
/// again.
struct Reduction {
    before: f64,
    after: f64,
    epoch: Time,
}

fn packets(sample: &WindowSample) -> f64 {
    sample.window.bytes() as f64 / PACKET
}

fn reductions(windows: &[WindowSample]) -> Vec<Reduction> {
    let mut found: Vec<Reduction> = Vec::new();
    for (last, next) in windows.iter().zip(&windows[1..]) {
        let (before, after) = (packets(last), packets(next));
        match found.last_mut() {
            Some(reduction) if after == reduction.after => reduction.epoch = next.time,
            _ if after < before * 0.9 => found.push(Reduction {
                before,
                after,
                epoch: next.time,
            }),
            _ => {}
        }
    }
    found
}

fn window(t: f64, start: f64, plateau: f64) -> f64 {
    const C: f64 = 0.4;
    let k = ((plateau - start) / C).cbrt();
    C * (t - k).powi(3) + plateau
}

/// Compares the window with the curve every second from an epoch's start.
fn assert_curve(windows: &[WindowSample], reduction: &Reduction, plateau: f64, until: f64) {
    let mut compared = 0;
    let mut next = 0.0;
    for sample in windows
        .iter()
        .filter(|sample| sample.time > reduction.epoch)
    {
        let t = sample.time.since(reduction.epoch).as_secs_f64();
        if t < next || t > until {
            continue;
        }
        next += 1.0;
        compared += 1;
        let expected = window(t, reduction.after, plateau);
        assert_close(
            &format!("window after {t:.2} s"),
            packets(sample),
            expected,
            0.005,
        );
    }
    assert!(f64::from(compared) >= until, "{compared} samples");
}

#[test]
fn an_epoch_follows_the_cubic_function() {
    let Observed {
        windows, summary, ..
    } = observe(SCENARIO, &[]);
    assert!(summary.groups["flow"].retransmits > 0 && summary.groups["flow"].timeouts == 0);
    let reductions = reductions(&windows);
    let [reduction] = &reductions[..] else {
        panic!("{} reductions", reductions.len());
    };
    // It grew in slow start until the loss was seen, between two samples.
    assert_close(
        "the reduction",
        reduction.after,
        0.7 * reduction.before,
        0.1,
    );
    // The concave and the convex parts: K is about 10 s.
    assert_curve(&windows, reduction, reduction.after / 0.7, 22.0);
}

/// RFC 9438, section 4.7: a second loss below the first plateau makes the next one lower,
/// `W_max = cwnd (1 + β) / 2`.
#[test]
fn fast_convergence_lowers_the_plateau() {
    let second = r#"
[[faults]]
kind = "down"
ports = "bottleneck"
at = "5.07s"
until = "5.0703s"
"#;
    let Observed { windows, .. } = observe(&format!("{SCENARIO}{second}"), &[]);
    let reductions = reductions(&windows);
    let [first, second] = &reductions[..] else {
        panic!("{} reductions", reductions.len());
    };
    assert!(second.before < first.before);
    assert_close("the reduction", second.after, 0.7 * second.before, 0.001);
    assert_curve(&windows, second, second.before * 0.85, 18.0);
}
