//! RTT samples, calls to the controller, and invalid ACKs.

use super::*;
use crate::Code;
use crate::PathId;

#[test]
fn a_sample_needs_the_largest_number_to_be_new_and_something_ack_eliciting() {
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
fn the_peers_delay_is_held_to_its_promise_once_confirmed() {
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
fn an_acknowledgment_of_what_was_not_sent_is_a_violation() {
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
fn the_controller_hears_of_spurious_losses_then_losses_then_acknowledgments() {
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
fn only_new_packets_count() {
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
fn a_round_trip_ends_when_what_was_sent_after_the_last_one_is_acknowledged() {
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
fn a_window_that_was_not_the_limit_shows() {
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
fn waiting_for_the_pacer_is_no_application_limit() {
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
fn a_window_below_a_packet_lets_one_packet_go_at_a_time() {
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
fn the_controller_learns_of_a_restart_after_a_long_pause() {
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
fn packets_of_another_path_leave_this_one_alone() {
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
fn acks_that_the_peer_never_acknowledges_are_not_kept() {
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
fn a_peer_that_never_acknowledges_does_not_make_us_remember_without_end() {
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
