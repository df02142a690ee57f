use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_units::{Duration, Rate};

use super::*;
use crate::packet::testing::NumberedPacket;
use crate::{FaultSettings, Faults, Link, Queue};

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn egress_port() -> EgressPort<NumberedPacket> {
    // A packet takes a whole number of nanoseconds and a fraction.
    let link = Link::new(Rate::from_mbps(7_777), Duration::from_nanos(300))
        .with_framing(ByteSize::from_bytes(2));
    let faults = Faults::new(FaultSettings::default(), 1);
    EgressPort::new(Queue::new([], 1), link, faults)
}

/// Collects the packets that come out by `now`, with their times.
fn drain(egress_port: &mut EgressPort<NumberedPacket>, now: Time, out: &mut Vec<(Time, u64)>) {
    while let Some(time) = egress_port.timeout().filter(|time| *time <= now) {
        let packet = egress_port
            .poll_delivered(time)
            .expect("something was to come");
        out.push((time, packet.number));
    }
}

/// How long before its entry a packet is fast-forwarded, if at all, and its length.
type Coming = (Option<u64>, u64);

fn packet(number: usize, length: u64) -> NumberedPacket {
    NumberedPacket::new(number as u64, length)
}

/// Sends each packet at its entry time.
fn one_by_one(packets: &BTreeMap<(u64, u32), Coming>) -> Vec<(Time, u64)> {
    let (mut egress_port, mut out) = (egress_port(), Vec::new());
    for (number, ((entry, _), (_, length))) in packets.iter().enumerate() {
        drain(&mut egress_port, at(*entry), &mut out);
        egress_port.send(at(*entry), packet(number, *length));
    }
    drain(&mut egress_port, at(u64::MAX - 1), &mut out);
    out
}

/// Fast-forwards some of them.
fn fast_forwarded(packets: &BTreeMap<(u64, u32), Coming>) -> Vec<(Time, u64)> {
    let mut steps: Vec<_> = packets
        .iter()
        .enumerate()
        .map(|(number, (&(entry, from), &(notice, length)))| {
            // A fast-forwarded packet enters later than that.
            let notice = notice.map(|notice| notice.clamp(1, entry));
            let time = entry - notice.unwrap_or(0);
            (time, notice.is_some(), entry, from, packet(number, length))
        })
        .collect();
    // At the same time packets come in any order, here from the last to the first.
    steps.reverse();
    steps.sort_by_key(|(time, early, _, from, _)| (*time, if *early { 0 } else { from + 1 }));
    let (mut egress_port, mut out) = (egress_port(), Vec::new());
    for (time, early, entry, from, packet) in steps {
        drain(&mut egress_port, at(time), &mut out);
        let before = egress_port.timeout();
        if early {
            let changed = egress_port.fast_forward(at(entry), from, packet);
            assert_eq!(changed, egress_port.timeout() != before);
        } else {
            egress_port.send_between(at(time), from, packet);
        }
    }
    assert!(egress_port.counters().balance(egress_port.inside()));
    drain(&mut egress_port, at(u64::MAX - 1), &mut out);
    assert!(egress_port.counters().balance(egress_port.inside()));
    out
}

proptest! {
    #[test]
    fn fast_forwarded_packets_depart_like_packets_sent_on_time(
        packets in prop::collection::btree_map(
            (1_u64..6_000, 0_u32..5),
            (prop::option::of(1_u64..3_000), 40_u64..1_500),
            0..40,
        ),
    ) {
        prop_assert_eq!(fast_forwarded(&packets), one_by_one(&packets));
    }

    #[test]
    fn fast_forwarded_packets_are_counted_inside_the_port(
        packets in prop::collection::vec((1_u64..3_000, 40_u64..1_500), 1..20),
        look in 0_u64..5_000,
    ) {
        let mut egress_port = egress_port();
        for (number, (entry, length)) in packets.iter().enumerate() {
            egress_port.fast_forward(at(*entry), number as u32, packet(number, *length));
        }
        let (mut early, mut out) = (Vec::new(), Vec::new());
        drain(&mut egress_port, at(look), &mut early);
        prop_assert_eq!(egress_port.packets().count(), packets.len() - early.len());
        egress_port.advance(at(look));
        drain(&mut egress_port, at(u64::MAX - 1), &mut out);
        prop_assert_eq!(early.len() + out.len(), packets.len());
        prop_assert!(egress_port.counters().balance(egress_port.inside()));
    }
}

#[test]
fn an_uncongested_send_returns_its_arrival_time() {
    let (mut through, mut usual) = (egress_port(), egress_port());
    let never = Time::MAX;
    for number in 0..3 {
        let now = at(100 * number);
        let (arrival, _) = through
            .send_or_fast_forward(now, NumberedPacket::new(number, 1_000), never)
            .unwrap();
        usual.send(now, NumberedPacket::new(number, 1_000));
        assert_eq!(usual.timeout(), Some(arrival));
        assert!(usual.poll_delivered(arrival).is_some());
    }
    assert_eq!(through.sent(), usual.sent());
    assert!(through.counters().balance(through.inside()));
    // The link changes before the packet is through: it is queued, and the next one behind it too.
    let until = at(1_000);
    for number in 3..5 {
        let sent = through.send_or_fast_forward(at(900), NumberedPacket::new(number, 1_000), until);
        assert!(sent.is_none());
    }
    assert_eq!(through.packets().count(), 2);
}
