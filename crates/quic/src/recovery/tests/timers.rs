//! Each rule of RFC 9002, section 6.2.

use super::*;

#[test]
fn a_probe_timeout_is_rtt_plus_variation_plus_ack_delay() {
    let mut sender = Sender::with_rtt(us(400));
    assert_eq!(sender.timeout(), None);
    sender.send_data(1);
    let sent = sender.now;
    // 400 + 4 × 200 + 100
    assert_eq!(sender.recovery.pto(&sender.path), us(1_300));
    assert_eq!(sender.timeout(), Some(sent + us(1_300)));
    // Only the last ack-eliciting packet counts.
    sender.wait(us(100));
    sender.send_data(1);
    sender.wait(us(100));
    sender.send_as(Space::Data, |packet| {
        packet.ack_eliciting = false;
        packet.in_flight = false;
    });
    assert_eq!(sender.timeout(), Some(sent + us(1_400)));
}

#[test]
fn probes_back_off_and_declare_nothing_lost() {
    let mut sender = Sender::with_rtt(us(400));
    sender.send_data(1);
    let sent = sender.now;
    let probe = TimeoutAction::Probe {
        space: Space::Data,
        packets: 2,
    };
    for (count, factor) in [(1, 2), (2, 4), (3, 8)] {
        assert_eq!(sender.fire(), probe);
        assert_eq!(sender.recovery.pto_count, count);
        assert_eq!(sender.timeout(), Some(sent + us(1_300) * factor));
    }
    assert!(sender.lost_data().is_empty());
    assert_eq!(sender.path.in_flight, u64::from(SIZE));
    assert_eq!(sender.path.stats.probe_timeouts, 3);
    sender.ack_data(&[1..=1]);
    assert_eq!(sender.recovery.pto_count, 0);
}

#[test]
fn an_early_timer_call_does_nothing() {
    let mut sender = Sender::with_rtt(us(400));
    sender.send_data(1);
    let early = sender.now + us(1_299);
    let Sender {
        recovery,
        path,
        fates,
        handshake,
        ..
    } = &mut sender;
    recovery.handle_timeout(early, path, *handshake, fates);
    assert_eq!(recovery.pto_count, 0);
    assert!(fates.lost.is_empty());
}

#[test]
fn the_backoff_does_not_overflow() {
    let mut sender = Sender::with_rtt(us(400));
    sender.send_data(1);
    (0..200).for_each(|_| {
        sender.fire();
    });
    assert_eq!(sender.recovery.pto_count, 200);
}

#[test]
fn the_data_timer_waits_for_handshake_confirmation() {
    let mut sender = Sender::unconfirmed(Side::Server);
    sender.send(Space::Data);
    assert_eq!(sender.timeout(), None);
    let data_sent = sender.now;
    sender.wait(us(50));
    sender.send(Space::Handshake);
    // 400 + 4 × 200, without the peer's delay: 1,200 µs.
    assert_eq!(sender.timeout(), Some(sender.now + us(1_200)));
    sender.handshake.confirmed = true;
    sender.recovery.discard(Space::Handshake, &mut sender.path);
    assert_eq!(sender.timeout(), Some(data_sent + us(1_300)));
}

#[test]
fn the_earliest_space_is_probed() {
    let mut sender = Sender::unconfirmed(Side::Server);
    sender.send(Space::Handshake);
    sender.wait(us(10));
    sender.send(Space::Initial);
    assert_eq!(
        sender.fire(),
        TimeoutAction::Probe {
            space: Space::Handshake,
            packets: 2
        }
    );
}

#[test]
fn a_client_probes_with_nothing_in_flight_until_its_address_is_validated() {
    let mut sender = Sender::unconfirmed(Side::Client);
    sender.send(Space::Initial);
    sender.wait(us(400));
    sender.ack(Space::Initial, &[0..=0]).unwrap();
    assert_eq!(sender.path.in_flight, 0);
    let due = sender.now + us(1_200);
    assert_eq!(sender.timeout(), Some(due));
    let probe = |space| TimeoutAction::Probe { space, packets: 1 };
    assert_eq!(sender.fire(), probe(Space::Initial));
    assert_eq!(sender.timeout(), Some(due + us(2_400)));
    sender.handshake.has_handshake_keys = true;
    assert_eq!(sender.fire(), probe(Space::Handshake));

    sender.send(Space::Handshake);
    sender.wait(us(400));
    sender.ack(Space::Handshake, &[0..=0]).unwrap();
    assert_eq!(sender.timeout(), None);
    assert_eq!(sender.recovery.pto_count, 0);
}

#[test]
fn early_data_in_flight_do_not_suppress_the_client_probe_timer() {
    let mut sender = Sender::unconfirmed(Side::Client);
    sender.send(Space::Initial);
    sender.send(Space::Data);
    sender.wait(us(400));
    sender.ack(Space::Initial, &[0..=0]).unwrap();
    assert_eq!(sender.timeout(), Some(sender.now + us(1_200)));
}

#[test]
fn an_initial_acknowledgment_does_not_end_a_clients_backoff() {
    let mut sender = Sender::unconfirmed(Side::Client);
    sender.send(Space::Initial);
    sender.fire();
    sender.ack(Space::Initial, &[0..=0]).unwrap();
    assert_eq!(sender.recovery.pto_count, 1);

    let mut sender = Sender::unconfirmed(Side::Server);
    sender.send(Space::Initial);
    sender.fire();
    sender.ack(Space::Initial, &[0..=0]).unwrap();
    assert_eq!(sender.recovery.pto_count, 0);
}

#[test]
fn a_server_that_may_not_send_has_no_probe_timer() {
    let mut sender = Sender::unconfirmed(Side::Server);
    sender.send(Space::Initial);
    sender.handshake.amplification_limited = true;
    assert_eq!(sender.timeout(), None);
    sender.handshake.amplification_limited = false;
    assert!(sender.timeout().is_some());
}

#[test]
fn the_amplification_budget_is_three_times_the_received_bytes() {
    let mut path = Sender::new(Side::Server).path;
    assert_eq!(path.amplification_budget(), u64::MAX);
    path.validated = false;
    path.limited = true;
    assert_eq!(path.amplification_budget(), 0);
    path.on_datagram_received(1_200);
    path.on_datagram_sent(3_000);
    assert_eq!(path.amplification_budget(), 600);
    path.on_datagram_sent(1_200);
    assert_eq!(path.amplification_budget(), 0);
}

#[test]
fn a_loss_timer_comes_before_a_probe_timer() {
    let mut sender = Sender::with_rtt(us(400));
    sender.send_data(2);
    let sent = sender.now;
    sender.wait(us(400));
    sender.ack_data(&[2..=2]);
    assert_eq!(sender.timeout(), Some(sent + us(450)));
    assert_eq!(sender.fire(), TimeoutAction::Lost);
    assert_eq!(sender.recovery.pto_count, 0);
}
