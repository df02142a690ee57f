//! Ports with schedulers: against ordinary ports, priorities, CoDel, and counters.

use proptest::prelude::*;
use weir_units::{Duration, Rate};

use super::*;
use crate::codel::CodelSettings;
use crate::counters::PacketCount;
use crate::faults::FaultSettings;
use crate::link::Link;
use crate::packet::testing::NumberedPacket;
use crate::queue::Queue;
use crate::random::Probability;
use crate::rule::{Class, Rule};
use crate::scheduler::{ClassQueue, Classifier};

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

/// 1 byte takes 1 ns, and the propagation delay is 100 ns.
fn link() -> Link {
    Link::new(Rate::from_gbps(8), Duration::from_nanos(100))
}

fn class(classifier: Classifier, rules: impl Into<Vec<Rule>>) -> ClassQueue {
    ClassQueue {
        classifier,
        queue: Queue::new(rules, 1),
        codel: None,
    }
}

/// ECT packets before all others.
fn ect_first() -> Scheduler<NumberedPacket> {
    let ect = class(Classifier::Ecn(Class::Ect), []);
    Scheduler::strict_priority([ect], class(Classifier::EVERY, []))
}

fn port(scheduler: Scheduler<NumberedPacket>) -> EgressPort<NumberedPacket> {
    EgressPort::new(Queue::new([], 1), link(), Faults::none()).with_scheduler(scheduler)
}

fn packet(number: u64, length: u64, ecn: Ecn) -> NumberedPacket {
    NumberedPacket {
        ecn,
        ..NumberedPacket::new(number, length)
    }
}

/// Polls at each time-out up to `until`, and returns what comes out.
fn drain(port: &mut EgressPort<NumberedPacket>, until: Time) -> Vec<(u64, NumberedPacket)> {
    let mut out = Vec::new();
    while let Some(now) = port.timeout().filter(|&time| time <= until) {
        while let Some(packet) = port.poll_delivered(now) {
            out.push((now.as_nanos(), packet));
        }
    }
    out
}

fn numbers(out: &[(u64, NumberedPacket)]) -> Vec<(u64, u64)> {
    out.iter()
        .map(|(time, packet)| (*time, packet.number))
        .collect()
}

#[test]
fn the_higher_class_waits_only_for_the_packet_on_the_link() {
    let mut port = port(ect_first());
    for number in 0..3 {
        port.send(at(0), packet(number, 50, Ecn::NotEct));
    }
    port.send(at(10), packet(3, 20, Ecn::Ect0));
    port.send(at(60), packet(4, 20, Ecn::Ce));
    let out = drain(&mut port, Time::MAX);
    // 3 waits for 0, and 4 waits for 3.
    assert_eq!(
        numbers(&out),
        [(150, 0), (170, 3), (190, 4), (240, 1), (290, 2)]
    );
}

#[test]
fn classes_are_told_apart_by_dscp() {
    #[derive(Clone, Copy)]
    struct Frame(u8);
    impl Packet for Frame {
        fn length(&self) -> ByteSize {
            bytes(10)
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn set_ecn(&mut self, _: Ecn) {}
        fn dscp(&self) -> u8 {
            self.0
        }
    }
    let expedited = class(
        Classifier::Dscp {
            first: 46,
            last: 46,
        },
        [],
    );
    let scheduler = Scheduler::strict_priority([expedited], class(Classifier::EVERY, []));
    let mut port = EgressPort::new(Queue::new([], 1), link(), Faults::none());
    port = port.with_scheduler(scheduler);
    for dscp in [0, 10, 46] {
        port.send(at(0), Frame(dscp));
    }
    let mut order = Vec::new();
    while let Some(now) = port.timeout() {
        order.extend(port.poll_delivered(now).map(|frame| frame.0));
    }
    assert_eq!(order, [0, 46, 10]);
}

#[test]
fn each_class_has_its_own_rules_and_the_port_counts_all() {
    let ect = class(
        Classifier::Ecn(Class::Ect),
        [Rule::buffer(bytes(20)), Rule::mark_above(bytes(5))],
    );
    let rest = class(Classifier::EVERY, [Rule::tail_drop(bytes(10))]);
    let mut port = port(Scheduler::strict_priority([ect], rest));
    let admissions: Vec<_> = [
        Ecn::NotEct,
        Ecn::Ect0,
        Ecn::Ect0,
        Ecn::Ect0,
        Ecn::NotEct,
        Ecn::NotEct,
    ]
    .into_iter()
    .zip(0..)
    .map(|(ecn, number)| port.send(at(0), packet(number, 10, ecn)))
    .collect();
    use Admission::{Dropped, Marked, Queued};
    let (buffer, tail) = (Dropped(DropReason::Buffer), Dropped(DropReason::Tail));
    assert_eq!(admissions, [Queued, Queued, Marked, buffer, Queued, tail]);
    assert_eq!(port.queue().backlog().packets, 3);
    assert_eq!(port.queue().marked().packets, 1);
    let backlogs = port
        .scheduler()
        .unwrap()
        .queues()
        .map(|queue| queue.backlog().packets);
    assert_eq!(backlogs.collect::<Vec<_>>(), [2, 1]);
    assert_eq!(port.counters().dropped.total().packets, 2);
    assert!(port.counters().balance(port.inside()));
}

#[test]
fn a_stopped_link_takes_the_highest_class_first_when_it_starts() {
    let mut port = port(ect_first());
    port.set_rate(at(0), Rate::ZERO);
    port.send(at(0), packet(0, 10, Ecn::NotEct));
    port.send(at(5), packet(1, 10, Ecn::Ect0));
    assert_eq!(port.timeout(), None);
    port.set_rate(at(1000), Rate::from_gbps(8));
    assert_eq!(port.queue().backlog().packets, 1);
    assert_eq!(
        numbers(&drain(&mut port, Time::MAX)),
        [(1110, 1), (1120, 0)]
    );
}

#[test]
fn codel_drops_at_dequeue_with_its_own_reason() {
    for (mark, ecn) in [(false, Ecn::Ect0), (true, Ecn::NotEct), (true, Ecn::Ect0)] {
        let codel = CodelSettings {
            target: Duration::from_nanos(50),
            interval: Duration::from_nanos(1000),
            mtu: bytes(10),
            mark,
        };
        let mut port = port(Scheduler::codel(Queue::new([], 1), codel));
        for number in 0..1000 {
            port.send(at(0), packet(number, 10, ecn));
        }
        port.advance(at(5000));
        let dropped = port.counters().dropped.by(DropReason::Codel).packets;
        let marked = port.queue().marked().packets;
        // The first above the target leaves at 50 ns; 1050, 2050, 2757, 3334, 3834, 4281, 4690.
        let expected = if mark && ecn == Ecn::Ect0 {
            (0, 7)
        } else {
            (7, 0)
        };
        assert_eq!((dropped, marked), expected);
        assert!(port.counters().balance(port.inside()));
        let out = drain(&mut port, Time::MAX);
        assert_eq!(
            out.len() as u64,
            1000 - port.counters().dropped.total().packets
        );
        let ce = out
            .iter()
            .filter(|(_, packet)| packet.ecn == Ecn::Ce)
            .count();
        assert_eq!(ce as u64, port.queue().marked().packets);
    }
}

/// What is done to a port.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u64, Ecn),
    Poll,
    Advance,
    Rate(u64),
    Delay(u64),
    Loss(bool),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ce]);
    let step = prop_oneof![
        8 => (1u64..50, ecn).prop_map(|(length, ecn)| Step::Send(length, ecn)),
        2 => Just(Step::Poll),
        1 => Just(Step::Advance),
        1 => (0u64..9).prop_map(Step::Rate),
        1 => (0u64..200).prop_map(Step::Delay),
        1 => any::<bool>().prop_map(Step::Loss),
    ];
    (0u64..60, step)
}

fn apply(
    port: &mut EgressPort<NumberedPacket>,
    now: Time,
    number: u64,
    step: Step,
) -> Option<Admission> {
    match step {
        Step::Send(length, ecn) => return Some(port.send(now, packet(number, length, ecn))),
        Step::Poll => {}
        Step::Advance => port.advance(now),
        // 7 Gbit/s leave fractions of a nanosecond.
        Step::Rate(gbps) => port.set_rate(now, Rate::from_gbps(gbps)),
        Step::Delay(delay) => port.set_delay(now, Duration::from_nanos(delay)),
        Step::Loss(loses) => {
            let loss = Probability::new(if loses { 0.2 } else { 0.0 }).unwrap_or_default();
            port.set_faults(
                now,
                FaultSettings {
                    loss,
                    ..FaultSettings::default()
                },
            );
        }
    }
    None
}

proptest! {
    /// One queue without CoDel is a FIFO: the packets come out as from an ordinary port, at the same times.
    /// After a change of the link, an ordinary port draws the jitter of waiting packets anew.
    #[test]
    fn one_queue_is_an_ordinary_port(steps in prop::collection::vec(step(), 1..150), jitter in prop_oneof![Just(0), 1u64..20]) {
        let rules = [
            Rule::buffer(bytes(200)),
            Rule::mark_above(bytes(60)),
            Rule::drop_randomly(Probability::new(0.1).unwrap()),
        ];
        let link = link().with_mtu(bytes(45)).with_jitter(Duration::from_nanos(jitter), 7);
        let faults = || Faults::new(FaultSettings::default(), 3);
        let queue = Queue::new(rules, 1).with_occupancy();
        let mut ordinary = EgressPort::new(queue, link.clone(), faults());
        let all = Queue::new([], 1).with_occupancy();
        let fifo = Scheduler::strict_priority([], class(Classifier::EVERY, rules));
        let mut scheduled = EgressPort::new(all, link, faults()).with_scheduler(fifo);
        let mut now = 0;
        for (number, (wait, mut step)) in (0..).zip(steps) {
            if jitter > 0 && matches!(step, Step::Rate(_) | Step::Delay(_)) {
                step = Step::Poll;
            }
            now += wait;
            prop_assert_eq!(drain(&mut ordinary, at(now)), drain(&mut scheduled, at(now)));
            let decisions = [&mut ordinary, &mut scheduled].map(|port| apply(port, at(now), number, step));
            prop_assert_eq!(decisions[0], decisions[1]);
            for port in [&mut ordinary, &mut scheduled] {
 port.advance(at(now));
}
            prop_assert_eq!(ordinary.counters(), scheduled.counters());
            prop_assert_eq!(ordinary.inside(), scheduled.inside());
            prop_assert_eq!(ordinary.queue().backlog(), scheduled.queue().backlog());
            prop_assert_eq!(ordinary.queue().marked(), scheduled.queue().marked());
            prop_assert_eq!(ordinary.next_departure(), scheduled.next_departure());
        }
        if jitter == 0 {
            for port in [&mut ordinary, &mut scheduled] {
 port.set_rate(at(now), Rate::from_gbps(3));
}
        }
        prop_assert_eq!(drain(&mut ordinary, Time::MAX), drain(&mut scheduled, Time::MAX));
        now += 100_000;
        for port in [&mut ordinary, &mut scheduled] {
 port.advance(at(now));
}
        let statistics = |port: &EgressPort<NumberedPacket>| {
            let occupancy = port.queue().occupancy().unwrap();
            (occupancy.mean(), occupancy.maximum(), occupancy.percentile(0.9))
        };
        prop_assert_eq!(statistics(&ordinary), statistics(&scheduled));
    }

    /// Late polls change nothing, and the counters balance at every step.
    #[test]
    fn late_calls_have_the_same_result(
        steps in prop::collection::vec(step(), 1..150),
        target in 1u64..200,
        mark: bool,
    ) {
        let scheduler = || {
            let codel = CodelSettings {
                target: Duration::from_nanos(target),
                interval: Duration::from_nanos(300),
                mtu: bytes(20),
                mark,
            };
            let mut ect = class(Classifier::Ecn(Class::Ect), [Rule::mark_above(bytes(60))]);
            let mut rest = class(Classifier::EVERY, [Rule::buffer(bytes(200))]);
            ect.codel = Some(codel);
            rest.codel = Some(codel);
            Scheduler::strict_priority([ect], rest)
        };
        let all = || Queue::new([Rule::buffer(bytes(500)), Rule::mark_above(bytes(300))], 1).with_occupancy();
        let port = || EgressPort::new(all(), link(), Faults::none()).with_scheduler(scheduler());
        let (mut prompt, mut late) = (port(), port());
        let (mut prompt_out, mut late_out) = (Vec::new(), Vec::new());
        let mut now = 0;
        for (number, (wait, step)) in (0..).zip(steps) {
            now += wait;
            prompt_out.extend(drain(&mut prompt, at(now)).into_iter().map(|(_, packet)| packet));
            apply(&mut prompt, at(now), number, step);
            apply(&mut late, at(now), number, step);
            if let Step::Poll = step {
                late_out.extend(std::iter::from_fn(|| late.poll_delivered(at(now))));
            }
            for port in [&prompt, &late] {
                prop_assert!(port.counters().balance(port.inside()));
                let queues = port.scheduler().unwrap().queues();
                let backlog = queues.fold(PacketCount::ZERO, |sum, queue| sum + queue.backlog());
                prop_assert_eq!(backlog, port.queue().backlog());
                let queues = port.scheduler().unwrap().queues();
                let waiting = queues.map(|queue| queue.backlog().packets).sum::<u64>();
                prop_assert!(waiting == 0 || port.link().rate().is_zero() || port.timeout().is_some());
                prop_assert_eq!(port.packets().count() as u64, port.inside().packets);
            }
        }
        now += 1;
        for port in [&mut prompt, &mut late] {
 port.set_rate(at(now), Rate::from_gbps(3));
}
        prompt_out.extend(drain(&mut prompt, Time::MAX).into_iter().map(|(_, packet)| packet));
        now += 1_000_000;
        late_out.extend(std::iter::from_fn(|| late.poll_delivered(at(now))));
        prop_assert_eq!(prompt_out, late_out);
        for port in [&mut prompt, &mut late] {
 port.advance(at(now));
}
        prop_assert_eq!(prompt.counters(), late.counters());
        prop_assert_eq!(prompt.queue().marked(), late.queue().marked());
        prop_assert_eq!(prompt.inside(), PacketCount::ZERO);
        let means = [&prompt, &late].map(|port| port.queue().occupancy().map(crate::Occupancy::mean));
        prop_assert_eq!(means[0], means[1]);
    }

    /// A packet of the higher class starts right after the packet on the link and those of its class.
    #[test]
    fn the_higher_class_never_waits_for_the_lower(
        sends in prop::collection::vec((0u64..60, 1u64..50, any::<bool>()), 1..100),
    ) {
        let mut port = port(ect_first());
        let (mut now, mut out, mut arrivals) = (0, Vec::new(), Vec::new());
        for (number, (wait, length, ect)) in (0..).zip(sends) {
            now += wait;
            out.extend(drain(&mut port, at(now)));
            port.send(at(now), packet(number, length, if ect { Ecn::Ect0 } else { Ecn::NotEct }));
            arrivals.push(now);
        }
        out.extend(drain(&mut port, Time::MAX));
        prop_assert_eq!(out.len(), arrivals.len());
        let start = |(time, packet): &(u64, NumberedPacket)| time - 100 - packet.bytes;
        for (position, entry) in out.iter().enumerate().filter(|(_, (_, packet))| packet.ecn == Ecn::Ect0) {
            let arrival = arrivals[entry.1.number as usize];
            // One of the lower class may start at the time of its arrival, none later.
            let overtaken = out.iter().take(position);
            let lower = overtaken.filter(|other| other.1.ecn == Ecn::NotEct && start(other) > arrival);
            prop_assert_eq!(lower.count(), 0);
        }
    }
}
