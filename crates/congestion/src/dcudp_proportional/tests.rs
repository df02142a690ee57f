//! Tests with round trips of 100 us.

use crate::samples::{PACKET, ack, build, loss, packets};
use crate::{AckSample, Controller, LossCause, PacketSent};

const SPEC: &str = "dcudp-proportional,capacity=1.2Gbps";

/// Reports a round trip of 100 us with `count` packets acknowledged, `marked` of them marked.
fn report(controller: &mut dyn Controller, now: u64, count: u64, marked: u64) {
    let mut sample = ack(now, now - 100, count);
    sample.ce_marked = packets(marked);
    sample.round_ended = true;
    deliver_ack(controller, &sample);
}

/// Reports a fully marked round trip with `in_flight` packets in flight.
fn report_in_flight(controller: &mut dyn Controller, now: u64, count: u64, in_flight: u64) {
    let mut sample = ack(now, now - 100, count);
    sample.ce_marked = packets(count);
    sample.in_flight = packets(in_flight);
    sample.round_ended = true;
    deliver_ack(controller, &sample);
}

/// Delivers an acknowledgment, then sends the packet that releases the lock.
fn deliver_ack(controller: &mut dyn Controller, sample: &AckSample) {
    controller.on_ack(sample);
    controller.on_sent(&PacketSent {
        now: sample.now,
        size: PACKET,
        in_flight: PACKET,
    });
}

/// The rate in packets of 1500 bytes per round trip of 100 us.
fn window(controller: &dyn Controller) -> f64 {
    let rate = controller.pacing_rate().unwrap().bits_per_second();
    rate as f64 / 12_000.0 * 1e-4
}

fn close(left: f64, right: f64) {
    assert!((left / right - 1.0).abs() < 1e-6, "{left} is not {right}");
}

#[test]
fn the_rate_starts_at_the_capacity_and_follows_the_delivery_rate() {
    let mut controller = build(SPEC);
    close(window(&*controller), 10.0);
    report(&mut *controller, 200, 1, 1);
    close(window(&*controller), 10.0);
    // Four packets in a round trip, all marked; the smoothed fraction starts at 0.2.
    for (now, fraction) in [(300, 0.3), (400, 0.3875), (500, 0.464_062_5)] {
        report(&mut *controller, now, 4, 4);
        close(window(&*controller), 4.0 * (1.0 - fraction / 2.0));
    }
    // The congestion is over: the rate returns to `Rate_max` at once and grows from there.
    report(&mut *controller, 700, 4, 0);
    close(window(&*controller), 3.8);
    report(&mut *controller, 800, 4, 0);
    close(window(&*controller), 3.85);
}

#[test]
fn a_reduction_is_half_of_the_smoothed_fraction() {
    let mut controller = build(SPEC);
    report(&mut *controller, 200, 10, 0);
    report(&mut *controller, 300, 10, 1);
    close(window(&*controller), 10.0 * (1.0 - 0.1875 / 2.0));
}

#[test]
fn the_excess_queue_is_drained_over_eight_round_trips() {
    let mut controller = build(SPEC);
    for now in [200, 300] {
        report(&mut *controller, now, 8, 0);
    }
    // Eight in transit, nine tolerated in the queue, four in excess.
    report_in_flight(&mut *controller, 400, 8, 8 + 9 + 4);
    close(window(&*controller), 0.95 * 8.0 - 4.0 / 8.0);
    // Behind a long queue only the minimum rate remains.
    report_in_flight(&mut *controller, 500, 8, 1_000);
    close(window(&*controller), 1.0);
    // Marks did not count meanwhile.
    let fraction = controller.snapshot().ce_fraction.unwrap();
    close(fraction, 0.2 * 0.875);
    // Once the queue is empty, the rate continues at the delivery rate and grows.
    report(&mut *controller, 600, 8, 0);
    close(window(&*controller), 0.95 * 8.0 + 0.05);
}

#[test]
fn only_marks_reduce_the_rate_when_draining_is_off() {
    let mut controller = build("dcudp-proportional,capacity=1.2Gbps,drain=0");
    report(&mut *controller, 200, 8, 0);
    report_in_flight(&mut *controller, 300, 8, 1_000);
    close(window(&*controller), 8.0 * (1.0 - 0.3 / 2.0));
}

#[test]
fn growth_accelerates_without_marks() {
    let mut controller = build(SPEC);
    let mut now = 200;
    for _ in 0..5 {
        report(&mut *controller, now, 4, 4);
        now += 100;
    }
    let mut rounds = 0;
    while window(&*controller) < 20.0 {
        let count = window(&*controller) as u64;
        report(&mut *controller, now, count, 0);
        now += 100;
        rounds += 1;
    }
    // A twentieth of a packet per step would take over 300 round trips.
    assert!(rounds < 50, "{rounds}");
}

#[test]
fn a_loss_counts_as_a_fully_marked_round_trip() {
    let mut controller = build(SPEC);
    report(&mut *controller, 200, 10, 0);
    report(&mut *controller, 300, 10, 0);
    controller.on_loss(&loss(350, 100, 3, LossCause::Nak));
    close(window(&*controller), 5.0);
}

#[test]
fn the_rate_never_falls_below_a_packet_per_round_trip() {
    let mut controller = build(SPEC);
    for round in 0..1_000 {
        report(&mut *controller, 200 + 100 * round, 1, 1);
    }
    close(window(&*controller), 1.0);
}

#[test]
fn an_echo_counts_as_a_fully_marked_round_trip() {
    let mut controller = build(SPEC);
    report(&mut *controller, 200, 8, 0);
    let mut sample = ack(300, 200, 8);
    (sample.ece, sample.round_ended) = (true, true);
    controller.on_ack(&sample);
    close(window(&*controller), 8.0 * (1.0 - 0.3 / 2.0));
}
