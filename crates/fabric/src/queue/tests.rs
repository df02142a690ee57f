//! Each rule on its own.

use proptest::prelude::*;

use super::*;
use crate::discipline;
use crate::packet::Packet;
use crate::packet::testing::NumberedPacket;
use crate::random::Probability;
use crate::rule::Class;
use weir_units::Duration;

/// A queue with its waiting packets, without a link.
struct Waiting {
    queue: Queue,
    now: Time,
    packets: std::collections::VecDeque<NumberedPacket>,
}

impl Waiting {
    fn new(rules: impl Into<Vec<Rule>>, seed: u64) -> Self {
        Self {
            queue: Queue::new(rules, seed),
            now: Time::ZERO,
            packets: Default::default(),
        }
    }

    fn push(&mut self, packet: NumberedPacket) -> Admission {
        self.push_within(packet, ByteSize::MAX)
    }

    fn push_within(&mut self, mut packet: NumberedPacket, room: ByteSize) -> Admission {
        let length = packet.length();
        let admission = self.queue.arrive(self.now, length, packet.ecn, room);
        if admission == Admission::Marked {
            packet.ecn = Ecn::Ce;
        }
        if !matches!(admission, Admission::Dropped(_)) {
            self.queue.enter(self.now, length);
            self.packets.push_back(packet);
        }
        assert!(self.queue.counters().balance(self.queue.backlog()));
        admission
    }

    fn pop(&mut self) -> Option<NumberedPacket> {
        let packet = self.packets.pop_front()?;
        self.queue.leave(self.now, packet.length());
        Some(packet)
    }
}

const THOUSAND: ByteSize = ByteSize::from_bytes(1000);

fn not_ect(number: u64) -> NumberedPacket {
    NumberedPacket {
        ecn: Ecn::NotEct,
        ..NumberedPacket::new(number, 500)
    }
}

#[test]
fn tail_drop_by_bytes_fills_the_queue_to_the_last_byte() {
    let mut queue = Waiting::new([Rule::tail_drop(THOUSAND)], 0);
    assert_eq!(queue.push(NumberedPacket::new(0, 400)), Admission::Queued);
    assert_eq!(
        queue.push(NumberedPacket::new(1, 601)),
        Admission::Dropped(DropReason::Tail)
    );
    assert_eq!(queue.push(NumberedPacket::new(2, 600)), Admission::Queued);
    assert_eq!(
        queue.queue.backlog(),
        PacketCount {
            packets: 2,
            size: THOUSAND
        }
    );
    assert_eq!(queue.pop().map(|packet| packet.number), Some(0));
    assert_eq!(queue.pop().map(|packet| packet.number), Some(2));
    assert_eq!(queue.pop(), None);
    assert_eq!(
        queue.queue.counters().dropped.by(DropReason::Tail).size,
        ByteSize::from_bytes(601)
    );
}

#[test]
fn tail_drop_by_packets_ignores_their_length() {
    let mut queue = Waiting::new([Rule::tail_drop_packets(2)], 0);
    assert_eq!(queue.push(NumberedPacket::new(0, 1)), Admission::Queued);
    assert_eq!(
        queue.push(NumberedPacket::new(1, 65_535)),
        Admission::Queued
    );
    assert_eq!(
        queue.push(NumberedPacket::new(2, 1)),
        Admission::Dropped(DropReason::Tail)
    );
}

#[test]
fn step_marking_starts_above_the_threshold() {
    let mut queue = Waiting::new([Rule::mark_above(THOUSAND)], 0);
    let admissions: Vec<_> = (0..4)
        .map(|number| queue.push(NumberedPacket::new(number, 500)))
        .collect();
    // The third finds exactly the threshold, the fourth more.
    use Admission::{Marked, Queued};
    assert_eq!(admissions, [Queued, Queued, Queued, Marked]);
    assert_eq!(queue.queue.marked().packets, 1);
    let codepoints: Vec<_> = std::iter::from_fn(|| queue.pop())
        .map(|packet| packet.ecn)
        .collect();
    assert_eq!(codepoints, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ce]);
}

#[test]
fn step_marking_by_packets() {
    let mut queue = Waiting::new([Rule::mark_above_packets(1)], 0);
    assert_eq!(queue.push(NumberedPacket::new(0, 1)), Admission::Queued);
    assert_eq!(queue.push(NumberedPacket::new(1, 1)), Admission::Queued);
    assert_eq!(queue.push(NumberedPacket::new(2, 1)), Admission::Marked);
}

#[test]
fn not_ect_packets_are_never_marked_but_may_be_dropped() {
    let mark = Rule::mark_above(ByteSize::ZERO);
    let mut lenient = Waiting::new([mark.only(Class::Every)], 0);
    assert_eq!(lenient.push(not_ect(0)), Admission::Queued);
    assert_eq!(lenient.push(not_ect(1)), Admission::Queued);

    let drop = Rule {
        class: Class::NotEct,
        trigger: mark.trigger,
        action: Action::Drop(DropReason::Red),
    };
    let mut strict = Waiting::new([mark, drop], 0);
    assert_eq!(strict.push(not_ect(0)), Admission::Queued);
    assert_eq!(strict.push(not_ect(1)), Admission::Dropped(DropReason::Red));
    assert_eq!(strict.push(NumberedPacket::new(2, 500)), Admission::Marked);
}

#[test]
fn a_packet_already_marked_is_not_counted() {
    let mut queue = Waiting::new([Rule::mark_randomly(Probability::ALWAYS)], 0);
    assert_eq!(
        queue.push(NumberedPacket {
            ecn: Ecn::Ce,
            ..not_ect(0)
        }),
        Admission::Queued
    );
    assert_eq!(queue.queue.marked(), PacketCount::ZERO);
}

#[test]
fn random_marking_and_dropping_keep_their_fractions() {
    for value in [0.01, 0.1, 0.5] {
        let probability = Probability::new(value).unwrap();
        let rules = [
            Rule::mark_randomly(probability),
            Rule::drop_randomly(probability),
        ];
        let mut queue = Waiting::new(rules, 7);
        let packets = 200_000;
        for number in 0..packets {
            queue.push(NumberedPacket::new(number, 1000));
            queue.pop();
        }
        let near = |count: u64, out_of: u64| {
            let deviation = (value * (1.0 - value) * out_of as f64).sqrt();
            (count as f64 - value * out_of as f64).abs() < 4.0 * deviation
        };
        let dropped = queue.queue.counters().dropped.by(DropReason::Red).packets;
        assert!(near(dropped, packets), "{dropped} dropped at {value}");
        let marked = queue.queue.marked().packets;
        assert!(
            near(marked, packets - dropped),
            "{marked} marked at {value}"
        );
    }
}

#[test]
fn rules_can_change_while_packets_are_queued() {
    let mut queue = Waiting::new([], 0);
    assert_eq!(queue.push(NumberedPacket::new(0, 5000)), Admission::Queued);
    queue.queue.set_rules([Rule::tail_drop(THOUSAND)]);
    assert_eq!(
        queue.push(NumberedPacket::new(1, 1)),
        Admission::Dropped(DropReason::Tail)
    );
    assert_eq!(queue.pop().map(|packet| packet.number), Some(0));
}

fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

/// Offers `packets` packets of 500 bytes that all find `backlog`.
fn offer(rules: impl Into<Vec<Rule>>, ecn: Ecn, backlog: u64, packets: u64) -> Queue {
    let mut queue = Queue::new(rules, 3);
    if backlog > 0 {
        queue.enter(Time::ZERO, bytes(backlog));
    }
    for _ in 0..packets {
        queue.arrive(Time::ZERO, bytes(500), ecn, ByteSize::MAX);
    }
    queue
}

#[test]
fn two_thresholds_mark_with_constant_probability_and_never_drop() {
    let probability = Probability::new(0.2).unwrap();
    let rules = [
        Rule::buffer(bytes(20_000)),
        Rule::mark_between(THOUSAND, bytes(9000), probability),
    ];
    let marked = |ecn, backlog| {
        let queue = offer(rules, ecn, backlog, 10_000);
        assert_eq!(queue.counters().dropped.total(), PacketCount::ZERO);
        queue.marked().packets
    };
    assert_eq!(marked(Ecn::Ect0, 1000), 0);
    // Four standard deviations are 160.
    for backlog in [1001, 5000, 9000] {
        let count = marked(Ecn::Ect0, backlog);
        assert!(count.abs_diff(2000) < 160, "{count} at {backlog}");
    }
    assert_eq!(marked(Ecn::Ect0, 9001), 10_000);
    assert_eq!(marked(Ecn::NotEct, 9001), 0);
}

#[test]
fn the_shared_queue_marks_ect_and_drops_not_ect() {
    let red = Ramp {
        min: bytes(4000),
        max: bytes(8000),
        probability: Probability::new(0.2).unwrap(),
    };
    let [mark, drop] = discipline::shared_queue(bytes(2000), red);
    let rules = [Rule::buffer(bytes(10_000)), mark, drop];
    let dropped = |ecn, backlog, reason| {
        let queue = offer(rules, ecn, backlog, 10_000);
        queue.counters().dropped.by(reason).packets
    };
    let [ect, not_ect] = [Ecn::Ect0, Ecn::NotEct];
    // Half-way between the thresholds; four standard deviations are 120.
    assert!(dropped(not_ect, 6000, DropReason::Red).abs_diff(1000) < 120);
    assert_eq!(dropped(not_ect, 4000, DropReason::Red), 0);
    assert_eq!(dropped(not_ect, 8001, DropReason::Tail), 10_000);
    assert_eq!(dropped(not_ect, 9501, DropReason::Buffer), 10_000);
    assert_eq!(offer(rules, ect, 9500, 10_000).marked().packets, 10_000);
    assert_eq!(offer(rules, ect, 2000, 10_000).marked().packets, 0);
    assert_eq!(offer(rules, not_ect, 9501, 1).marked().packets, 0);
    assert_eq!(dropped(ect, 9501, DropReason::Buffer), 10_000);
    // At the buffer's limit only the buffer drops ECT packets.
    assert_eq!(
        offer(rules, ect, 9500, 1).counters().dropped.total(),
        PacketCount::ZERO
    );
}

#[test]
fn junos_drops_at_the_threshold_at_which_it_marks() {
    let [mark, drop] = discipline::ecn_with_tail_drop(bytes(2000));
    let rules = [Rule::buffer(bytes(10_000)), mark, drop];
    assert_eq!(offer(rules, Ecn::Ect1, 2001, 1).marked().packets, 1);
    let by = |backlog| offer(rules, Ecn::NotEct, backlog, 1).counters().dropped;
    assert_eq!(by(2001).by(DropReason::Tail).packets, 1);
    assert_eq!(by(2000).total(), PacketCount::ZERO);
}

#[test]
fn every_arrival_counts_in_the_average_but_only_its_class_is_dropped() {
    let red = Red {
        ramp: Ramp {
            min: bytes(100),
            max: bytes(200),
            probability: Probability::ALWAYS,
        },
        weight: Probability::new(0.5).unwrap(),
        transmission: Duration::from_nanos(10),
        gentle: false,
    };
    let rule = Rule::red_average(red).only(Class::NotEct);
    let mut queue = Waiting::new([rule], 1);
    // Averages: 0, 250, 625; an ECT packet is never dropped.
    for number in 0..3 {
        assert_eq!(
            queue.push(NumberedPacket::new(number, 500)),
            Admission::Queued
        );
    }
    assert_eq!(queue.queue.average(), Some(bytes(625)));
    let reason = DropReason::Tail;
    assert_eq!(queue.push(not_ect(3)), Admission::Dropped(reason));
    // The queue becomes empty at 40 ns; four samples later the next packet comes.
    queue.now = Time::from_nanos(40);
    for _ in 0..3 {
        queue.pop();
    }
    queue.now = Time::from_nanos(70);
    assert_eq!(queue.push(not_ect(4)), Admission::Queued);
    assert_eq!(queue.queue.average(), Some(bytes(66)));
}

#[test]
fn the_room_covers_queue_and_packet() {
    let mut queue = Queue::new([], 1);
    queue.keep_backlog();
    let mut arrive =
        |length, room| queue.arrive(Time::ZERO, bytes(length), Ecn::NotEct, bytes(room));
    assert_eq!(arrive(500, 500), Admission::Queued);
    assert_eq!(arrive(501, 500), Admission::Dropped(DropReason::Buffer));
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let size = || (0_u64..5_000).prop_map(ByteSize::from_bytes);
    let ramp = (size(), size()).prop_map(|(min, max)| Ramp {
        min,
        max,
        probability: Probability::new(0.3).unwrap(),
    });
    let trigger = prop_oneof![
        6 => size().prop_map(Trigger::Above),
        6 => size().prop_map(Trigger::Overflows),
        4 => ramp.prop_map(Trigger::Ramp),
        1 => (0_u64..8).prop_map(Trigger::AbovePackets),
        1 => (1_u64..8).prop_map(Trigger::OverflowsPackets),
        1 => Just(Trigger::Random(Probability::new(0.1).unwrap())),
    ];
    let class = prop_oneof![Just(Class::Every), Just(Class::Ect), Just(Class::NotEct)];
    let action = prop_oneof![
        Just(Action::Mark),
        Just(Action::Drop(DropReason::Tail)),
        Just(Action::DropEarly),
    ];
    (class, trigger, action).prop_map(|(class, trigger, action)| Rule {
        class,
        trigger,
        action,
    })
}

proptest! {
    /// A queue decides as one that applies its rules to each packet one by one.
    #[test]
    fn shortcuts_leave_every_decision_as_it_is(
        rules in prop::collection::vec(any_rule(), 0..4),
        steps in prop::collection::vec((0_u8..4, 1_u64..1_500, 500_u64..6_000), 1..200),
    ) {
        let mut fast = Waiting::new(rules.clone(), 1);
        let mut slow = Waiting::new(rules, 1);
        slow.queue.watch().shortcuts = [Shortcut::NONE; 2];
        for (number, (kind, bytes, room)) in (0..).zip(steps) {
            if kind == 0 {
                prop_assert_eq!(fast.pop(), slow.pop());
                continue;
            }
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ce][usize::from(kind) - 1];
            let packet = NumberedPacket { ecn, ..NumberedPacket::new(number, bytes) };
            let room = ByteSize::from_bytes(room);
            prop_assert_eq!(fast.push_within(packet, room), slow.push_within(packet, room));
            prop_assert_eq!(fast.queue.counters(), slow.queue.counters());
            prop_assert_eq!(fast.queue.marked(), slow.queue.marked());
        }
    }
}
