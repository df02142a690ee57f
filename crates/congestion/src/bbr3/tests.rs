use super::*;
use crate::LossCause;
use crate::samples::{CONTEXT, PACKET, ack, loss, micros, packets, spurious};

/// A flow at 10 ms that has filled a pipe of 80 packets per millisecond and probes upward with 100
/// packets in flight.
fn probing() -> Bbr3 {
    let spec: AlgorithmSpec = "bbr3".parse().unwrap();
    let mut bbr = Bbr3::new(&spec, &CONTEXT);
    bbr.used = true;
    bbr.min_rtt = Duration::from_millis(1);
    bbr.min_rtt_at = micros(9_000);
    bbr.max_bandwidths[1] = Rate::from_size_over(packets(80), bbr.min_rtt);
    bbr.bandwidth = bbr.max_bandwidth();
    bbr.filled_pipe = true;
    bbr.cwnd = packets(160);
    bbr.state = Bbr3State::ProbeUp;
    bbr.cycle.probing_samples = true;
    let sent = PacketSent {
        now: micros(10_000),
        size: PACKET,
        in_flight: packets(100),
    };
    bbr.on_sent(&sent);
    bbr
}

#[test]
fn losses_above_the_threshold_while_probing_set_the_longterm_bound() {
    let mut bbr = probing();
    // One of 100: 1 % is below the threshold.
    bbr.on_loss(&loss(11_000, 10_000, 1, LossCause::Acks));
    assert_eq!(bbr.bounds.inflight_longterm, ByteSize::MAX);
    assert_eq!(bbr.state, Bbr3State::ProbeUp);
    // Four more in one burst: before it, 96 were in flight and 1 was lost. The losses pass the
    // threshold (0.02 · 96 − 1) / 0.98 = 0.94 packets into it.
    bbr.on_loss(&loss(11_010, 10_000, 4, LossCause::Acks));
    let bound = bbr.bounds.inflight_longterm.bytes() as f64 / PACKET.bytes() as f64;
    assert!((bound - (96.0 + 0.92 / 0.98)).abs() < 0.01, "{bound}");
    assert_eq!(bbr.state, Bbr3State::ProbeDown);
    assert!(bbr.window() <= bbr.bounds.inflight_longterm);
    // Only once per probe.
    bbr.on_loss(&loss(11_020, 10_000, 50, LossCause::Acks));
    let again = bbr.bounds.inflight_longterm.bytes() as f64 / PACKET.bytes() as f64;
    assert_eq!(again, bound);
}

#[test]
fn the_longterm_bound_falls_by_at_most_beta() {
    let mut bbr = probing();
    let sent = PacketSent {
        now: micros(10_500),
        size: PACKET,
        in_flight: packets(6),
    };
    bbr.on_sent(&sent);
    bbr.on_loss(&loss(11_000, 10_500, 6, LossCause::Acks));
    // 0.7 of the pipe of 80 packets, not the 6 that were in flight.
    assert_eq!(bbr.bounds.inflight_longterm, packets(56));
}

#[test]
fn losses_while_cruising_set_the_shortterm_bounds_once_per_round() {
    let mut bbr = probing();
    bbr.state = Bbr3State::ProbeCruise;
    bbr.cycle.probing_samples = false;
    bbr.cycle.wait = Duration::from_secs(2);
    bbr.cycle.start = micros(10_000);
    bbr.on_loss(&loss(11_000, 10_000, 1, LossCause::Acks));
    assert_eq!(bbr.bounds.inflight_shortterm, ByteSize::MAX);
    bbr.on_ack(&ack(12_100, 11_100, 1));
    assert_eq!(bbr.bounds.inflight_shortterm, packets(112));
    assert_eq!(
        bbr.bounds.bandwidth_shortterm,
        bbr.max_bandwidth().mul_f64(0.7)
    );
    assert_eq!(bbr.window(), packets(112));
    bbr.on_ack(&ack(12_200, 11_200, 1));
    assert_eq!(bbr.bounds.inflight_shortterm, packets(112));
    // Refill resets the short-term bounds.
    bbr.start_probe_refill(micros(12_300));
    assert_eq!(bbr.bounds.inflight_shortterm, ByteSize::MAX);
}

#[test]
fn a_spurious_loss_undoes_the_bound_and_probes_again() {
    let mut bbr = probing();
    bbr.on_loss(&loss(11_000, 10_000, 10, LossCause::Acks));
    assert_eq!(bbr.state, Bbr3State::ProbeDown);
    bbr.on_spurious_loss(&spurious(11_100, 10_000, 10));
    assert_eq!(bbr.state, Bbr3State::ProbeRefill);
    assert_eq!(bbr.bounds.inflight_longterm, ByteSize::MAX);
    assert_eq!(bbr.window(), packets(160));
}

#[test]
fn the_longterm_bound_grows_faster_each_round_while_probing() {
    let mut bbr = probing();
    bbr.bounds.inflight_longterm = packets(100);
    bbr.cwnd = packets(100);
    bbr.cycle.start = micros(10_000);
    let mut growth = Vec::new();
    for round in 0..4 {
        let before = bbr.bounds.inflight_longterm;
        let start = 11_000 + 2_000 * round;
        for index in 0..10 {
            // The first acknowledgment of a round covers a packet sent after the last round ended.
            bbr.cwnd = bbr.bounds.inflight_longterm;
            bbr.on_ack(&ack(
                start + 1_000 + index,
                if index == 0 { start } else { 1 + index },
                10,
            ));
        }
        growth.push((bbr.bounds.inflight_longterm - before) / PACKET);
    }
    assert_eq!(bbr.state, Bbr3State::ProbeUp);
    // 1, 2, 4, 8 packets per acknowledged window, minus the rounding at the start of each round.
    assert!(
        growth.windows(2).all(|pair| pair[1] >= pair[0]),
        "{growth:?}"
    );
    assert!(growth[3] >= 4 * growth[0], "{growth:?}");
}

#[test]
fn a_time_out_leaves_the_minimum_window() {
    let mut bbr = probing();
    bbr.on_loss(&loss(11_000, 10_000, 100, LossCause::Timeout));
    assert_eq!(bbr.window(), packets(4));
}
