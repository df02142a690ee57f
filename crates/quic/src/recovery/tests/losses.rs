//! Loss detection and persistent congestion.

use weir_congestion::LossCause;

use super::*;

#[test]
fn a_packet_three_numbers_behind_an_acked_one_is_lost() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(5); // 1 to 5
    sender.wait(us(100));
    assert_eq!(sender.ack_data(&[3..=3]).packets_lost, 0);
    assert_eq!(sender.ack_data(&[4..=4]).packets_lost, 1);
    assert_eq!(sender.lost_data(), [1]);
    assert_eq!(sender.path.stats.bytes_lost, u64::from(SIZE));
    assert_eq!(sender.path.in_flight, 2 * u64::from(SIZE));
}

#[test]
fn a_packet_is_lost_after_nine_eighths_of_a_round_trip() {
    let mut sender = Sender::with_rtt(us(400));
    sender.send_data(1);
    let first_sent = sender.now;
    sender.wait(us(10));
    sender.send_data(1);
    sender.wait(us(400));
    sender.ack_data(&[2..=2]);
    assert!(sender.lost_data().is_empty());
    assert_eq!(sender.timeout(), Some(first_sent + us(450)));
    assert_eq!(sender.fire(), TimeoutAction::Lost);
    assert_eq!(sender.lost_data(), [1]);
    let loss = sender.controller.log().losses[0];
    assert_eq!(loss.cause, LossCause::Acks);
    assert_eq!(loss.newest_sent, first_sent);
    assert_eq!(sender.timeout(), None);
}

#[test]
fn a_packet_sent_after_the_acknowledged_one_is_not_lost() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(2);
    sender.wait(us(100));
    sender.ack_data(&[1..=1]);
    sender.wait(us(10_000));
    assert_eq!(sender.ack_data(&[1..=1]).packets_lost, 0);
    assert!(sender.lost_data().is_empty());
}

#[test]
fn packet_number_spaces_detect_losses_independently() {
    let mut sender = Sender::unconfirmed(Side::Server);
    (0..4).for_each(|_| {
        sender.send(Space::Initial);
    });
    (0..4).for_each(|_| {
        sender.send(Space::Handshake);
    });
    sender.wait(us(100));
    sender.ack(Space::Handshake, &[3..=3]).unwrap();
    assert_eq!(sender.fates.lost, [(Space::Handshake, 0)]);
}

/// RFC 9002, section 7.6.1: with a span of three PTOs, packets 2 to 8 are lost in a row.
fn outage(after_sample: bool) -> Sender {
    let mut sender = if after_sample {
        Sender::with_rtt(us(100))
    } else {
        Sender::new(Side::Server)
    };
    // pto = 100 + 4 × 50 + 100 = 400 µs with the sample.
    for _ in 0..8 {
        sender.wait(us(250));
        sender.send_data(1);
    }
    sender.wait(us(100));
    sender
}

#[test]
fn losses_that_span_three_probe_timeouts_are_persistent_congestion() {
    let mut sender = outage(true);
    sender.ack_data(&[8..=8]);
    assert_eq!(sender.lost_data(), [1, 2, 3, 4, 5, 6, 7]);
    let log = sender.controller.log();
    assert_eq!(log.losses.len(), 1);
    assert_eq!(log.losses[0].cause, LossCause::Timeout);
    drop(log);
    assert_eq!(sender.path.stats.persistent_congestion, 1);
    // The minimum may be outdated: the next sample replaces it.
    sender.send_data(1);
    sender.wait(us(300));
    sender.ack_data(&[8..=9]);
    assert_eq!(sender.path.rtt.min, us(300));
}

#[test]
fn an_acked_packet_in_between_prevents_persistent_congestion() {
    let mut sender = outage(true);
    sender.ack_data(&[8..=8, 4..=4]);
    assert_eq!(sender.lost_data(), [1, 2, 3, 5, 6, 7]);
    assert_eq!(sender.controller.log().losses[0].cause, LossCause::Acks);
}

#[test]
fn a_late_ack_in_between_prevents_persistent_congestion() {
    let mut sender = outage(true);
    let now = sender.now;
    // Packets 1 to 3 are lost by number; 2 is acknowledged before the others are lost.
    sender.recovery.config.packet_threshold = 5;
    sender.recovery.config.granularity = us(1_000_000);
    sender.ack_data(&[8..=8]);
    assert_eq!(sender.lost_data(), [1, 2, 3]);
    sender.ack_data(&[8..=8, 2..=2]);
    sender.recovery.config.granularity = GRANULARITY;
    sender.now = now;
    sender.send_data(1);
    sender.ack_data(&[8..=9]);
    assert_eq!(sender.lost_data(), [1, 2, 3, 4, 5, 6, 7]);
    let causes: Vec<LossCause> = sender
        .controller
        .log()
        .losses
        .iter()
        .map(|l| l.cause)
        .collect();
    assert_eq!(causes, [LossCause::Acks, LossCause::Acks]);
}

#[test]
fn persistent_congestion_needs_an_rtt_sample() {
    let mut sender = outage(false);
    for _ in 0..8 {
        sender.wait(us(2_000));
        sender.send_data(1);
    }
    sender.ack_data(&[15..=15]);
    assert!(!sender.lost_data().is_empty());
    assert_eq!(sender.controller.log().losses[0].cause, LossCause::Acks);
}

#[test]
fn persistent_congestion_is_reported_once_per_run_of_losses() {
    let mut sender = outage(true);
    sender.ack_data(&[8..=8]);
    sender.wait(us(10));
    sender.send_data(5);
    sender.wait(us(100));
    sender.ack_data(&[13..=13]);
    let causes: Vec<LossCause> = sender
        .controller
        .log()
        .losses
        .iter()
        .map(|l| l.cause)
        .collect();
    assert_eq!(causes, [LossCause::Timeout, LossCause::Acks]);
}

#[test]
fn a_loss_is_forgotten_after_a_probe_timeout() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(4);
    sender.wait(us(100));
    sender.ack_data(&[4..=4]);
    sender.fire();
    assert_eq!(sender.lost_data(), [1, 2, 3]);
    sender.wait(us(10_000));
    sender.send_data(1);
    sender.wait(us(100));
    sender.ack_data(&[4..=5]);
    assert_eq!(sender.ack_data(&[1..=5]).packets_acked, 0);
    assert!(sender.controller.log().spurious.is_empty());
}

#[test]
fn discarding_keys_removes_their_packets() {
    let mut sender = Sender::unconfirmed(Side::Client);
    sender.send(Space::Initial);
    sender.fire();
    sender.send(Space::Initial);
    sender.send(Space::Handshake);
    assert_eq!(sender.recovery.pto_count, 1);
    sender.recovery.discard(Space::Initial, &mut sender.path);
    assert_eq!(sender.path.in_flight, u64::from(SIZE));
    assert_eq!(sender.recovery.pto_count, 0);
    assert_eq!(sender.recovery.next_number(Space::Initial), 2);
    assert!(!sender.recovery.has_eliciting_outstanding(Space::Initial));
    assert!(sender.fates.lost.is_empty() && sender.controller.log().order.is_empty());
}

#[test]
fn rejected_early_data_are_sent_again_without_a_congestion_signal() {
    let mut sender = Sender::unconfirmed(Side::Client);
    sender.send(Space::Initial);
    sender.send(Space::Data);
    let Sender {
        recovery,
        path,
        fates,
        ..
    } = &mut sender;
    recovery.on_early_data_rejected(path, fates);
    assert_eq!(fates.lost, [(Space::Data, 0)]);
    assert_eq!(path.in_flight, u64::from(SIZE));
    assert_eq!(path.stats.packets_lost, 0);
    assert_eq!(recovery.next_number(Space::Data), 1);
    assert!(sender.controller.log().order.is_empty());
}

#[test]
fn probes_retransmit_the_oldest_packets_which_stay_in_flight() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(3);
    sender.wait(us(100));
    sender.ack_data(&[1..=1]);
    let Sender {
        recovery, fates, ..
    } = &mut sender;
    assert_eq!(recovery.oldest_unacked_frames(Space::Data, 1, fates), 1);
    assert_eq!(fates.lost, [(Space::Data, 2)]);
    assert_eq!(recovery.oldest_unacked_frames(Space::Data, 5, fates), 2);
    assert_eq!(recovery.oldest_unacked_frames(Space::Initial, 1, fates), 0);
    assert_eq!(sender.path.in_flight, 2 * u64::from(SIZE));
    assert_eq!(sender.ack_data(&[1..=3]).packets_acked, 2);
}
