//! MTU probes and packets that have become too large.

use super::*;
use crate::path::MtuPlan;

/// Creates a sender with a first RTT sample and a packet size of `size` bytes.
fn sender(size: usize) -> Sender {
    let mut sender = Sender::with_rtt(us(100));
    sender.path.discovery.begin(
        Time::ZERO,
        MtuPlan {
            start: size,
            limit: 9000,
            ..MtuPlan::BASE
        },
    );
    sender
}

fn send_probe(sender: &mut Sender) -> (u64, usize) {
    let size = sender.path.discovery.next_probe(sender.now).unwrap();
    sender.path.discovery.on_probe_sent();
    let number = sender.send_as(Space::Data, |packet| {
        packet.size = size as u32;
        packet.mtu_probe = true;
        packet.frames.clear();
    });
    (number, size)
}

fn send_sized(sender: &mut Sender, size: u32) -> u64 {
    sender.send_as(Space::Data, |packet| packet.size = size)
}

#[test]
fn an_acknowledged_probe_raises_the_packet_size() {
    let mut sender = sender(1200);
    let (number, size) = send_probe(&mut sender);
    assert_eq!(sender.path.in_flight, size as u64);
    sender.wait(us(100));
    sender.ack_data(&[number..=number]);
    assert_eq!(sender.path.discovery.current, size);
    assert_eq!(sender.path.in_flight, 0);
}

#[test]
fn a_lost_probe_is_not_congestion() {
    let mut sender = sender(1200);
    let (probe, _) = send_probe(&mut sender);
    sender.send_data(3);
    sender.wait(us(100));
    let outcome = sender.ack_data(&[probe + 1..=probe + 3]);
    assert_eq!(outcome.packets_lost, 1);
    assert_eq!(sender.path.in_flight, 0);
    assert_eq!(sender.path.discovery.stats.probes_lost, 1);
    assert_eq!(sender.controller.log().order, ["ack"]);
    // It arrives after all.
    sender.ack_data(&[probe..=probe]);
    assert!(sender.controller.log().spurious.is_empty());
}

#[test]
fn a_probe_timeout_repeats_data_and_not_the_probe() {
    let mut sender = sender(1200);
    send_probe(&mut sender);
    let data = sender.send(Space::Data);
    let found = sender
        .recovery
        .oldest_unacked_frames(Space::Data, 1, &mut sender.fates);
    assert_eq!((found, sender.lost_data()), (1, vec![data]));
}

#[test]
fn oversized_packets_are_retransmitted_at_once_after_a_black_hole() {
    let mut sender = sender(9000);
    let lost: Vec<u64> = (0..4).map(|_| send_sized(&mut sender, 9000)).collect();
    sender.wait(us(1_000));
    let probes = [send_sized(&mut sender, 9000), send_sized(&mut sender, 1200)];
    sender.wait(us(10));
    let behind = [send_sized(&mut sender, 9000), send_sized(&mut sender, 1200)];
    sender.wait(us(90));
    // The small probe arrived: the old flight is lost, the large probe not yet.
    sender.ack_data(&[probes[1]..=probes[1]]);
    assert_eq!(sender.lost_data(), lost);
    assert_eq!(sender.path.discovery.current, 9000);
    sender.fire();
    assert_eq!(sender.path.discovery.current, 1200);
    assert_eq!(sender.lost_data()[4..], [probes[0], behind[0]]);
    // The small packet behind it stays in flight.
    assert_eq!(sender.path.in_flight, 1200);
    // Both loss detections were reported, but not the packets that were given up.
    let reported: u64 = sender
        .controller
        .log()
        .losses
        .iter()
        .map(|loss| loss.lost.bytes())
        .sum();
    assert_eq!(reported, 5 * 9000);
}
