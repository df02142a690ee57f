//! A packet's path through queue, link and faults.

use std::collections::VecDeque;

use super::*;
use crate::packet::testing::NumberedPacket;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// 1 byte takes 1 ns, and the propagation delay is 100 ns.
fn egress_port(rules: impl Into<Vec<Rule>>) -> EgressPort<NumberedPacket> {
    let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100));
    EgressPort::new(Queue::new(rules, 1), link, Faults::none())
}

fn drain(egress_port: &mut EgressPort<NumberedPacket>) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    while let Some(time) = egress_port.timeout() {
        out.extend(
            egress_port
                .poll_delivered(time)
                .map(|packet| (time.as_nanos(), packet.number)),
        );
    }
    out
}

#[test]
fn the_packet_being_sent_is_not_in_the_queue() {
    let mut egress_port = egress_port([Rule::tail_drop(ByteSize::from_bytes(10))]);
    assert_eq!(
        egress_port.send(at(0), NumberedPacket::new(0, 10)),
        Admission::Queued
    );
    assert_eq!(
        egress_port.send(at(0), NumberedPacket::new(1, 10)),
        Admission::Queued
    );
    assert_eq!(
        egress_port.send(at(9), NumberedPacket::new(2, 10)),
        Admission::Dropped(DropReason::Tail)
    );
    // The first has left at 10 ns, before the next arrives.
    assert_eq!(
        egress_port.send(at(10), NumberedPacket::new(3, 10)),
        Admission::Queued
    );
    assert_eq!(drain(&mut egress_port), [(110, 0), (120, 1), (130, 3)]);
}

#[test]
fn a_packet_above_the_mtu_is_dropped_with_reason_mtu() {
    let mut egress_port = egress_port([]);
    egress_port.set_mtu(ByteSize::from_bytes(9));
    let admission = egress_port.send(at(0), NumberedPacket::new(0, 10));
    assert_eq!(admission, Admission::Dropped(DropReason::Mtu));
    assert_eq!(
        egress_port.counters().dropped.by(DropReason::Mtu).packets,
        1
    );
    assert_eq!(egress_port.timeout(), None);
}

#[test]
fn a_stopped_pipe_keeps_its_packets_until_it_gets_a_rate() {
    let mut egress_port = egress_port([]);
    egress_port.set_rate(at(0), Rate::ZERO);
    egress_port.send(at(0), NumberedPacket::new(0, 10));
    egress_port.send(at(5), NumberedPacket::new(1, 10));
    assert_eq!(egress_port.timeout(), None);
    egress_port.advance(at(5));
    assert_eq!(egress_port.queue().backlog().packets, 2);
    egress_port.set_rate(at(1000), Rate::from_gbps(8));
    assert_eq!(drain(&mut egress_port), [(1110, 0), (1120, 1)]);
}

#[test]
fn a_failing_link_loses_packets_in_flight() {
    let mut egress_port = egress_port([]);
    egress_port.send(at(0), NumberedPacket::new(0, 10));
    egress_port.send(at(50), NumberedPacket::new(1, 10));
    // The first has arrived at 110 ns, but has not been polled yet.
    egress_port.set_faults(
        at(120),
        FaultSettings {
            down: true,
            ..FaultSettings::default()
        },
    );
    assert_eq!(drain(&mut egress_port), [(110, 0)]);
    assert_eq!(
        egress_port.counters().dropped.by(DropReason::Down).packets,
        1
    );
}

#[test]
fn rules_and_delay_can_change_during_transmission() {
    let mut egress_port = egress_port([]);
    egress_port.send(at(0), NumberedPacket::new(0, 10));
    egress_port.set_delay(at(0), Duration::from_nanos(500));
    egress_port.set_rules([Rule::tail_drop(ByteSize::ZERO)]);
    assert_eq!(
        egress_port.send(at(20), NumberedPacket::new(1, 10)),
        Admission::Dropped(DropReason::Tail)
    );
    egress_port.set_rules([]);
    egress_port.send(at(20), NumberedPacket::new(2, 10));
    assert_eq!(drain(&mut egress_port), [(110, 0), (530, 2)]);
}

#[test]
fn a_timeline_changes_an_egress_port() {
    let mut timeline = crate::Timeline::new([
        (at(100), PortChange::Rate(Rate::from_gbps(4))),
        (at(200), PortChange::AddedDelay(Duration::from_nanos(1000))),
        (at(300), PortChange::Mtu(ByteSize::from_bytes(9))),
        (at(400), PortChange::Mtu(ByteSize::from_bytes(10))),
        (at(400), PortChange::Delay(Duration::from_nanos(50))),
        (at(2000), PortChange::Down(true)),
        (at(2500), PortChange::Down(false)),
        (at(2500), PortChange::AddedDelay(Duration::ZERO)),
    ])
    .unwrap();
    let mut egress_port = egress_port([]);
    let mut out = Vec::new();
    for (number, sent) in [0, 95, 150, 350, 450, 1990, 2990].into_iter().enumerate() {
        loop {
            let due = egress_port
                .timeout()
                .into_iter()
                .chain(timeline.timeout())
                .min();
            let Some(now) = due.filter(|&now| now <= at(sent)) else {
                break;
            };
            while let Some((time, change)) = timeline.due(now) {
                egress_port.apply(time, change);
            }
            while let Some(packet) = egress_port.poll_delivered(now) {
                out.push((now.as_nanos(), packet.number));
            }
        }
        egress_port.send(at(sent), NumberedPacket::new(number as u64, 10));
    }
    out.extend(drain(&mut egress_port));
    // 0: before all changes. 1: at the far end after 200 ns, with the rate it began with. 2: half the
    // rate. 3: too large. 4: the smaller MTU, but a longer delay. 5: reaches a link that is down.
    let arrivals = [(110, 0), (1205, 1), (1270, 2), (1520, 4), (3060, 6)];
    assert_eq!(out, arrivals);
    assert_eq!(
        egress_port.counters().dropped.by(DropReason::Mtu).packets,
        1
    );
    assert_eq!(
        egress_port.counters().dropped.by(DropReason::Down).packets,
        1
    );
}

#[test]
fn occupancy_is_exact_however_late_it_is_asked_for() {
    let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100));
    let mut egress_port = EgressPort::new(Queue::new([], 1).with_occupancy(), link, Faults::none());
    // The first is sent at once; the second waits from 0 to 10, the third to 20.
    for number in 0..3 {
        egress_port.send(at(0), NumberedPacket::new(number, 10));
    }
    egress_port.advance(at(40));
    let occupancy = egress_port.queue().occupancy().unwrap();
    assert_eq!(occupancy.span(), Duration::from_nanos(40));
    assert_eq!(occupancy.maximum(), ByteSize::from_bytes(20));
    // 20 bytes for 10 ns and 10 bytes for 10 ns, of 40 ns: 7.5 bytes.
    assert_eq!(occupancy.mean(), ByteSize::from_bytes(8));
    assert_eq!(occupancy.percentile(0.5), ByteSize::ZERO);
    assert_eq!(occupancy.percentile(0.51), ByteSize::from_bytes(10));
    egress_port.reset_occupancy(at(50));
    egress_port.advance(at(60));
    let occupancy = egress_port.queue().occupancy().unwrap();
    assert_eq!(occupancy.maximum(), ByteSize::ZERO);
    assert_eq!(occupancy.span(), Duration::from_nanos(10));
}

mod line {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The packets counted as inside are those that are queued.
        #[test]
        fn the_inside_count_equals_the_queued_packets(
            steps in prop::collection::vec((0u64..30, 1u64..50, 0u64..4), 1..100),
            delay in 0u64..100,
        ) {
            let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(delay));
            let rules = [Rule::tail_drop(ByteSize::from_bytes(150))];
            let mut egress_port = EgressPort::new(Queue::new(rules, 1), link, Faults::none());
            let mut now = Time::ZERO;
            for (wait, length, kind) in steps {
                now += Duration::from_nanos(wait);
                match kind {
                    0 => {
                        egress_port.poll_delivered(now);
                    }
                    1 => egress_port.set_rate(now, Rate::from_gbps(length % 9)),
                    _ => {
                        egress_port.send(now, NumberedPacket::new(0, length));
                    }
                }
                egress_port.advance(now);
                let tally = |lengths: &mut dyn Iterator<Item = ByteSize>| {
                    let mut tally = PacketCount::ZERO;
                    lengths.for_each(|length| tally.record(length));
                    tally
                };
                let queued = egress_port.queued();
                let waiting = egress_port.queue.waiting().iter().map(|waiting| waiting.length);
                let on_link = queued.len() - egress_port.queue.waiting().len();
                let mut lengths = queued.iter().map(|(_, length)| *length);
                prop_assert_eq!(tally(&mut lengths.by_ref().take(on_link)), egress_port.in_flight());
                prop_assert!(lengths.eq(waiting.clone()));
                prop_assert_eq!(tally(&mut waiting.into_iter()), egress_port.queue().backlog());
                let arrivals = queued.iter().map(|(arrival, _)| *arrival);
                let next = arrivals.clone().next().filter(|arrival| *arrival < Time::MAX);
                prop_assert_eq!(next, egress_port.timeout());
                prop_assert!(arrivals.is_sorted());
                let waits = egress_port.queue().backlog().packets > 0 && !egress_port.link().rate().is_zero();
                prop_assert_eq!(egress_port.next_departure().is_some(), waits);
                prop_assert!(egress_port.next_departure().is_none_or(|departure| departure > now));
            }
        }

        /// A port treats packets alike whether it holds them or its caller keeps them.
        #[test]
        fn a_port_without_packets_returns_the_arrivals_of_one_that_holds_them(
            steps in prop::collection::vec((0u64..60, 1u64..50, any::<bool>()), 1..150),
            watched: bool,
        ) {
            let port = || {
                let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100))
                    .with_mtu(ByteSize::from_bytes(45))
                    .with_jitter(Duration::from_nanos(20), 7);
                let rules = [
                    Rule::buffer(ByteSize::from_bytes(200)),
                    Rule::mark_above(ByteSize::from_bytes(60)),
                    Rule::drop_randomly(crate::Probability::new(0.1).unwrap()),
                ];
                let queue = if watched { Queue::new(rules, 1).with_occupancy() } else { Queue::new([], 1) };
                (queue, link)
            };
            let (queue, link) = port();
            let mut holding: EgressPort<NumberedPacket> = EgressPort::new(queue, link, Faults::none());
            let (queue, link) = port();
            let mut passing: EgressPort<NumberedPacket> = EgressPort::without_packets(queue, link);
            let (mut now, mut arrivals) = (0, Vec::new());
            for (number, (wait, length, ect)) in (0..).zip(steps) {
                now += wait;
                let mut packet = NumberedPacket::new(number, length);
                packet.ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
                holding.send(at(now), packet);
                if let Some(arrival) = passing.transmit(at(now), &mut packet) {
                    arrivals.push((arrival, packet));
                }
                prop_assert_eq!(passing.link().free_at(), holding.link().free_at());
            }
            holding.advance(at(now));
            passing.advance(at(now));
            let counters = |port: &EgressPort<NumberedPacket>| (port.counters().dropped, port.queue().marked());
            prop_assert_eq!(counters(&passing), counters(&holding));
            if watched {
                prop_assert_eq!(passing.sent(), holding.sent());
                prop_assert_eq!(passing.queue().backlog(), holding.queue().backlog());
            }
            for (arrival, packet) in arrivals {
                prop_assert_eq!(holding.timeout(), Some(arrival));
                prop_assert_eq!(holding.poll_delivered(arrival), Some(packet));
            }
            prop_assert_eq!(holding.timeout(), None);
            // Of a queue that nobody watches, what it sent is counted when it arrives there.
            passing.advance(at(now + 100_000));
            prop_assert_eq!(passing.in_flight(), PacketCount::ZERO);
            prop_assert!(passing.counters().balance(passing.inside()));
        }

        /// Times computed on arrival are those of a port that acts on each event in its time.
        #[test]
        fn precomputed_times_match_an_event_driven_model(
            steps in prop::collection::vec((0u64..60, 1u64..50, 0u64..6), 1..150),
            watched: bool,
        ) {
            let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100));
            let queue = Queue::new([], 1);
            let queue = if watched { queue.with_occupancy() } else { queue };
            let mut egress_port: EgressPort<NumberedPacket> = EgressPort::new(queue, link, Faults::none());
            let mut model = Model::new();
            let (mut now, mut number) = (0, 0);
            for (wait, length, kind) in steps {
                now += wait;
                match kind {
                    0 => {
                        // 8, 4, 2 or 0 Gbit/s: a byte takes 1, 2 or 4 ns, or forever.
                        let choice = length as usize % 4;
                        egress_port.set_rate(at(now), Rate::from_gbps([8, 4, 2, 0][choice]));
                        model.set_rate(now, [1, 2, 4, 0][choice]);
                    }
                    1 => {
                        egress_port.set_delay(at(now), Duration::from_nanos(length * 5));
                        model.set_delay(now, length * 5);
                    }
                    2 => {
                        let mut out = Vec::new();
                        while let Some(packet) = egress_port.poll_delivered(at(now)) {
                            out.push(packet.number);
                        }
                        prop_assert_eq!(out, model.receive(now));
                    }
                    _ => {
                        number += 1;
                        egress_port.send(at(now), NumberedPacket::new(number, length));
                        model.send(now, number, length);
                    }
                }
                egress_port.advance(at(now));
                model.settle(now);
                let waiting: u64 = model.waiting.iter().map(|(_, length)| length).sum();
                prop_assert_eq!(egress_port.queue().backlog().size.bytes(), waiting);
                prop_assert!(egress_port.counters().balance(egress_port.inside()));
            }
        }
    }
}

/// A port that starts each transmission when the one before it has ended, and not earlier.
struct Model {
    /// Nanoseconds per byte; zero if the link is stopped.
    pace: u64,
    delay: u64,
    free: u64,
    waiting: VecDeque<(u64, u64)>,
    /// Arrivals.
    on_link: VecDeque<(u64, u64)>,
}

impl Model {
    fn new() -> Self {
        Self {
            pace: 1,
            delay: 100,
            free: 0,
            waiting: VecDeque::new(),
            on_link: VecDeque::new(),
        }
    }

    fn settle(&mut self, now: u64) {
        while self.pace > 0 && self.free <= now {
            let Some((number, length)) = self.waiting.pop_front() else {
                break;
            };
            self.transmit(self.free, number, length);
        }
    }

    fn transmit(&mut self, ready: u64, number: u64, length: u64) {
        self.free = ready + length * self.pace;
        let last = self.on_link.back().map_or(0, |(arrival, _)| *arrival);
        self.on_link
            .push_back((last.max(self.free + self.delay), number));
    }

    fn send(&mut self, now: u64, number: u64, length: u64) {
        self.settle(now);
        if self.pace > 0 && self.free <= now {
            self.transmit(now, number, length);
        } else {
            self.waiting.push_back((number, length));
        }
    }

    fn set_rate(&mut self, now: u64, pace: u64) {
        self.settle(now);
        if self.pace == 0 {
            self.free = self.free.max(now);
        }
        self.pace = pace;
        self.settle(now);
    }

    fn set_delay(&mut self, now: u64, delay: u64) {
        self.settle(now);
        self.delay = delay;
    }

    fn receive(&mut self, now: u64) -> Vec<u64> {
        self.settle(now);
        let mut out = Vec::new();
        while let Some(&(arrival, number)) = self.on_link.front()
            && arrival <= now
        {
            self.on_link.pop_front();
            out.push(number);
        }
        out
    }
}

/// A simulation has two of them for each host.
#[test]
fn a_port_is_small() {
    assert!(size_of::<EgressPort<NumberedPacket>>() <= 128);
}
