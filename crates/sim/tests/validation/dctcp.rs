//! DCTCP's queue and marking against the model of N synchronized flows: Alizadeh et al., Data Center
//! TCP (DCTCP), SIGCOMM 2010, section 3.3.
//!
//! The flows' windows rise together by one packet per round trip to `W* + 1`, where
//! `W* = (C·RTT + K) / N` (equation 5), and fall by `α/2`. With `α ≈ sqrt(2 / W*)` (equation 6):
//!
//! - the amplitude of the queue is `A = ½ sqrt(2 N (C·RTT + K))` (equation 8),
//! - the period is `T = ½ sqrt(2 (C·RTT + K) / N)` round trips (equation 9),
//! - the maximum of the queue is `Q_max = K + N` (equation 10).
//!
//! The model's windows fall at once. Linux, ns-3 and this simulator spread a reduction over a round trip
//! (PRR in the state CWR); flows that share a queue then react to each other's marks, which makes the
//! period of two to four flows a fifth to a third longer. The comparison with several flows therefore
//! has `prr = false`, that with one flow the default.
//!
//! These scenarios have what the model needs: flows that start together and have equal paths; every packet
//! acknowledged; a window that is large beside its oscillation (α small, as equation 6 approximates); a
//! queue that does not run empty; marks by the instantaneous queue; and an estimate of α that hardly moves
//! within a period, `g` far below `1.386 / sqrt(2 (C·RTT + K))` (equation 15). With the usual `g` of 1/16,
//! which is above that here, the reduction uses an α that has decayed since the last one, and the
//! amplitude is a sixth smaller.

use weir_units::Time;

use crate::observe::{Observed, QueueSample, assert_close, bottleneck, observe, run};

const PACKET: f64 = 1500.0;
const SCENARIO: &str = r#"
title = "Synchronized DCTCP flows"
source = "Alizadeh et al. 2010, section 3.3"
duration = "1s"
host_jitter = "0s"
warm_up = "300ms"
[parameters]
threshold = "65 packets"
flows = 2
rtt = "400us"
[dumbbell]
rate = "10Gbps"
delay = "5us"
queue = { kind = "step", ecn_threshold = "$threshold", buffer = "unlimited" }
[dumbbell.senders.sender]
count = "$flows"
rtt = "$rtt"
rate = "100Gbps"
[groups.flows]
from = "sender"
to = "receiver"
congestion = { name = "dctcp", g = 0.01 }
workload = "bulk"
[groups.flows.tcp]
ack_every = 1
timestamps = false
send_buffer = "unlimited"
receive_buffer = "unlimited"
[measurements]
sample_interval = "5us"
"#;

/// A setting, and the model's results for it, in packets and round trips.
struct Model {
    flows: f64,
    threshold: f64,
    /// C·RTT, including the transmission times of a packet and its acknowledgment.
    bandwidth_delay: f64,
}

impl Model {
    fn new(flows: u32, threshold: u32, rtt_us: u32) -> Self {
        // A link of 100 Gbps and one of 10 Gbps carry 1538 B, and 78 B for the acknowledgment.
        let transmission = 1.1 * (1538.0 + 78.0) * 8.0 / 10e9;
        let rtt = f64::from(rtt_us) * 1e-6 + transmission;
        Self {
            flows: f64::from(flows),
            threshold: f64::from(threshold),
            bandwidth_delay: rtt * 10e9 / (1538.0 * 8.0),
        }
    }

    fn egress_port(&self) -> f64 {
        self.bandwidth_delay + self.threshold
    }

    fn amplitude(&self) -> f64 {
        (2.0 * self.flows * self.egress_port()).sqrt() / 2.0
    }

    fn maximum(&self) -> f64 {
        self.threshold + self.flows
    }

    fn alpha(&self) -> f64 {
        (2.0 * self.flows / self.egress_port()).sqrt()
    }

    fn period(&self) -> f64 {
        (2.0 * self.egress_port() / self.flows).sqrt() / 2.0
    }
}

/// The mean of the queue's peaks, of its valleys, and of the samples from peak to peak, in packets.
struct Oscillation {
    peak: f64,
    valley: f64,
    /// In seconds.
    period: f64,
}

fn oscillation(samples: &[QueueSample], middle: f64) -> Oscillation {
    let mut extremes: Vec<(bool, f64)> = Vec::new();
    let mut rises = Vec::new();
    // A band around the middle, so that single arrivals and departures are no oscillation.
    let band = middle * 0.03 + 1.0;
    for sample in samples {
        let queue = sample.queue.bytes() as f64 / PACKET;
        let above = match extremes.last() {
            Some((true, _)) => queue > middle - band,
            _ => queue > middle + band,
        };
        match extremes.last_mut() {
            Some((was, extreme)) if *was == above => {
                *extreme = if above {
                    extreme.max(queue)
                } else {
                    extreme.min(queue)
                };
            }
            _ => {
                extremes.push((above, queue));
                if above {
                    rises.push(sample.time);
                }
            }
        }
    }
    // The first and the last may have been cut off.
    let whole = &extremes[1..extremes.len() - 1];
    let mean = |above: bool| {
        let chosen: Vec<f64> = whole.iter().filter(|e| e.0 == above).map(|e| e.1).collect();
        chosen.iter().sum::<f64>() / chosen.len() as f64
    };
    let cycles = rises.len() - 1;
    let span = rises[cycles].since(rises[0]).as_secs_f64();
    Oscillation {
        peak: mean(true),
        valley: mean(false),
        period: span / cycles as f64,
    }
}

#[test]
fn the_queue_oscillates_as_the_model_predicts() {
    for (flows, threshold, rtt, spread) in [
        (1, 65, 400, true),
        (1, 65, 400, false),
        (2, 65, 400, false),
        (2, 130, 400, false),
        (4, 130, 400, false),
        (4, 200, 800, false),
    ] {
        let settings = [
            format!("groups.flows.tcp.prr={spread}"),
            format!("parameters.flows={flows}"),
            format!("parameters.threshold={threshold} packets"),
            format!("parameters.rtt={rtt}us"),
        ];
        let Observed { queue, summary, .. } = observe(SCENARIO, &settings);
        let model = Model::new(flows, threshold, rtt);
        let warm_up = Time::ZERO + summary.warm_up;
        let steady: Vec<_> = queue
            .into_iter()
            .filter(|sample| sample.time > warm_up)
            .collect();
        let middle = model.maximum() - model.amplitude() / 2.0;
        let measured = oscillation(&steady, middle);
        let port = bottleneck(&summary);
        let alpha = port.marks as f64 / port.packets as f64;
        let mean_queue = port.queue_mean.bytes() as f64 / PACKET;
        let round_trip = (model.bandwidth_delay + mean_queue) * 1538.0 * 8.0 / 10e9;

        println!("N = {flows}, K = {threshold} packets, RTT = {rtt} us");
        let maximum = port.queue_max.bytes() as f64 / PACKET;
        assert_close("  maximum", maximum, model.maximum(), 0.03);
        assert_close("  mean peak", measured.peak, model.maximum(), 0.03);
        assert_close(
            "  amplitude",
            measured.peak - measured.valley,
            model.amplitude(),
            0.1,
        );
        assert_close("  alpha", alpha, model.alpha(), 0.1);
        // After a reduction the window rests for a round trip, as in Linux; the model's keeps growing.
        let period = measured.period / round_trip;
        assert_close("  period", period, model.period() + 1.0, 0.05);
        assert!(port.utilization.value() > 0.999);
    }
}

/// Initial windows of 200 packets meet a buffer of 100, and all of the first round trip is marked. Kernel
/// DCTCP repairs the losses without a timeout: its reduction in CWR is spread over a round trip, so that new
/// segments keep bringing SACKs.
#[test]
fn senders_that_begin_together_repair_their_losses_without_timeouts() {
    let summary = run(
        r#"
        title = "Twenty DCTCP flows that begin together"
        source = "kernel TCP in the lab"
        duration = "2s"
        [star]
        rate = "100Mbps"
        delay = "25us"
        queue = { kind = "step", ecn_threshold = "20 packets", buffer = "150KB" }
        [star.hosts.client]
        [star.hosts.server]
        count = 20
        [groups.transfers]
        from = "server"
        to = "client"
        congestion = "dctcp"
        workload = { kind = "transfer", size = "100KB" }
        tcp = { ecn = "dctcp" }
        "#,
        &[],
    );
    let transfers = &summary.groups["transfers"];
    assert!(transfers.retransmits > 50, "the buffer overflows");
    assert_eq!(transfers.timeouts, 0);
}
