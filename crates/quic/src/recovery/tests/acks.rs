//! RTT samples, calls to the controller, and invalid ACKs.

use super::*;
use crate::Code;
use crate::PathId;

#[test]
fn an_rtt_sample_needs_a_new_largest_and_an_ack_eliciting_packet() {
    let mut sender = Sender::new(Side::Server);
    sender.send_data(3);
    sender.wait(us(100));
    assert_eq!(sender.ack_data(&[1..=1]).rtt, Some(us(100)));
    sender.wait(us(100));
    assert_eq!(sender.ack_data(&[0..=1]).rtt, None);

    sender.send_as(Space::Data, |packet| {
        packet.ack_eliciting = false;
        packet.in_flight = false;
    });
    sender.wait(us(100));
    let both = sender.ack_data(&[0..=3]);
    assert_eq!(both.rtt, Some(us(100)));
    sender.send_as(Space::Data, |packet| {
        packet.ack_eliciting = false;
        packet.in_flight = false;
    });
    sender.wait(us(100));
    assert_eq!(sender.ack_data(&[0..=4]).rtt, None);
}

#[test]
fn the_ack_delay_is_capped_after_handshake_confirmation() {
    let sample = |confirmed, space, delay| {
        let mut sender = Sender::with_rtt(us(100));
        sender.handshake.confirmed = confirmed;
        let number = sender.send(space);
        sender.wait(us(1_000));
        let outcome = sender.ack_with(space, &[number..=number], delay, None);
        outcome.unwrap().rtt
    };
    assert_eq!(sample(true, Space::Data, us(40)), Some(us(960)));
    assert_eq!(sample(true, Space::Data, us(400)), Some(us(900)));
    assert_eq!(sample(false, Space::Data, us(400)), Some(us(600)));
    assert_eq!(sample(false, Space::Handshake, us(400)), Some(us(1_000)));
    assert_eq!(sample(false, Space::Initial, us(400)), Some(us(1_000)));
}

#[test]
fn an_acknowledgment_of_an_unsent_packet_is_a_violation() {
    let mut sender = Sender::new(Side::Server);
    sender.send_data(1);
    let error = sender.ack(Space::Data, &[0..=1]).unwrap_err();
    assert_eq!(
        (error.code, error.frame_type),
        (Code::PROTOCOL_VIOLATION, 2)
    );
    let error = sender.ack(Space::Initial, &[0..=0]).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
}

#[test]
fn an_acknowledgment_of_a_skipped_number_is_a_violation() {
    let mut sender = Sender::new(Side::Server);
    sender.send_data(2);
    sender.recovery.skip_number(Space::Data);
    sender.send_data(2);
    assert_eq!(sender.ack_data(&[3..=3, 0..=1]).packets_acked, 3);
    assert_eq!(sender.ack_data(&[3..=4, 0..=1]).packets_acked, 1);

    sender.recovery.skip_number(Space::Data);
    sender.send_data(1);
    let error = sender.ack(Space::Data, &[0..=6]).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
}

#[test]
fn spurious_losses_losses_and_acks_are_reported_in_order() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(8); // 1 to 8
    sender.wait(us(100));
    sender.ack_data(&[4..=4]);
    assert_eq!(sender.lost_data(), [1]);
    sender.ack_data(&[6..=6, 1..=1]);
    assert_eq!(sender.lost_data(), [1, 2, 3]);
    let log = sender.controller.log();
    assert_eq!(log.order, ["loss", "ack", "spurious", "loss", "ack"]);
    assert_eq!(log.spurious[0].bytes.bytes(), u64::from(SIZE));
    assert_eq!(log.acks[1].acked.bytes(), 2 * u64::from(SIZE));
    assert_eq!(log.acks[1].prior_in_flight.bytes(), 6 * u64::from(SIZE));
    assert_eq!(log.losses[1].in_flight.bytes(), 3 * u64::from(SIZE));
    assert_eq!(log.acks[1].in_flight.bytes(), 3 * u64::from(SIZE));
    drop(log);
    assert_eq!(sender.path.stats.spurious_losses, 1);
    assert_eq!(sender.path.in_flight, 3 * u64::from(SIZE));
}

#[test]
fn only_newly_acknowledged_packets_count() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(4);
    sender.wait(us(100));
    assert_eq!(sender.ack_data(&[1..=2]).packets_acked, 2);
    assert_eq!(sender.ack_data(&[1..=2]), AckOutcome::default());
    assert_eq!(sender.ack_data(&[1..=4]).packets_acked, 2);
    assert_eq!(sender.controller.log().order, ["ack", "ack"]);
    assert_eq!(sender.path.in_flight, 0);
}

#[test]
fn a_round_ends_when_a_packet_sent_after_the_last_one_is_acked() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(4); // 1 to 4
    sender.wait(us(60));
    sender.send_data(2); // 5 and 6
    sender.wait(us(40));
    sender.ack_data(&[1..=2]);
    sender.send_data(1); // 7
    sender.wait(us(10));
    sender.ack_data(&[1..=4]);
    sender.wait(us(50));
    sender.ack_data(&[1..=6]);
    sender.wait(us(40));
    sender.ack_data(&[1..=7]);
    let ended: Vec<bool> = sender
        .controller
        .log()
        .acks
        .iter()
        .map(|ack| ack.round_ended)
        .collect();
    assert_eq!(ended, [true, false, false, true]);
}

#[test]
fn acks_of_a_flight_below_the_window_are_app_limited() {
    let mut sender = Sender::with_rtt(us(100));
    sender.controller.log().window = 4 * u64::from(SIZE);
    sender.send_data(4);
    sender.wait(us(100));
    // Every packet of the flight that filled the window grows it …
    sender.ack_data(&[1..=1]);
    sender.ack_data(&[1..=4]);
    // … but no packet of a flight that did not.
    sender.send_data(3);
    sender.wait(us(100));
    sender.ack_data(&[5..=7]);
    let limited: Vec<bool> = sender
        .controller
        .log()
        .acks
        .iter()
        .map(|ack| ack.app_limited)
        .collect();
    assert_eq!(limited, [false, false, true]);
}

#[test]
fn waiting_for_the_pacer_is_not_app_limited() {
    let mut sender = Sender::with_rtt(us(1_000));
    sender.controller.log().window = 200 * u64::from(SIZE);
    sender.path.update_pacing(sender.now);
    sender.send_data(150);
    let batch = 50 * u64::from(SIZE);
    let until = sender.path.pacing_delay(sender.now, batch).unwrap();
    assert!(until > sender.now);
    sender.wait(us(1_000));
    sender.ack_data(&[1..=150]);
    assert!(!sender.controller.log().acks[0].app_limited);
}

#[test]
fn a_window_below_a_packet_allows_one_packet_in_flight() {
    let mut sender = Sender::with_rtt(us(100));
    let size = u64::from(SIZE);
    sender.controller.log().window = size / 2;
    sender.path.update_pacing(sender.now);
    assert!(sender.path.can_send(size));
    sender.send_data(1);
    assert!(!sender.path.can_send(size));
    // Half a packet per round trip.
    sender.path.pacer.delay(sender.now, size);
    assert_eq!(
        sender.path.pacing_delay(sender.now, size),
        Some(sender.now + us(200))
    );
}

#[test]
fn an_idle_restart_is_reported_to_the_controller() {
    let mut sender = Sender::with_rtt(us(100));
    sender.wait(us(9_900));
    sender.send_data(1);
    sender.wait(us(100));
    sender.ack_data(&[1..=1]);
    sender.wait(us(9_901));
    sender.send_data(1);
    assert_eq!(sender.controller.log().order, ["ack", "idle"]);
}

#[test]
fn packets_of_another_path_do_not_affect_this_one() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(4);
    sender.path.id = PathId(1);
    sender.path.in_flight = 0;
    sender.send_data(4);
    sender.wait(us(500));
    let outcome = sender.ack_data(&[4..=4]);
    assert_eq!((outcome.rtt, outcome.acked), (None, ByteSize::ZERO));
    assert_eq!(sender.lost_data(), [1, 2, 3]);
    assert!(sender.controller.log().order.is_empty());
    assert_eq!(sender.path.in_flight, 4 * u64::from(SIZE));
}

#[test]
fn unacknowledged_ack_only_packets_are_not_kept() {
    let mut sender = Sender::with_rtt(us(100));
    for _ in 0..10_000 {
        sender.send_as(Space::Data, |packet| {
            packet.ack_eliciting = false;
            packet.in_flight = false;
        });
    }
    assert!(
        sender.recovery.spaces[Space::Data as usize]
            .packets
            .slots
            .len()
            <= 256
    );
}

#[test]
fn memory_is_bounded_for_a_peer_that_never_acknowledges() {
    let mut sender = Sender::with_rtt(us(100));
    sender.send_data(1);
    for _ in 0..100_000 {
        sender.send_as(Space::Data, |packet| {
            packet.ack_eliciting = false;
            packet.in_flight = false;
        });
        if sender.timeout().is_some_and(|due| due <= sender.now) {
            sender.fire();
        }
    }
    assert!(sender.lost_data() == [1]);
    assert_eq!(sender.path.in_flight, 0);
    assert!(
        sender.recovery.spaces[Space::Data as usize]
            .packets
            .slots
            .len()
            <= 4_100
    );
}
