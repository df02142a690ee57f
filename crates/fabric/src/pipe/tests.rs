//! A packet's way through queue, link and faults.

use super::*;
use crate::packet::testing::Numbered;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// 1 byte takes 1 ns, and 100 ns pass until it arrives.
fn pipe(rules: impl Into<Vec<Rule>>) -> Pipe<Numbered> {
    let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100));
    Pipe::new(Queue::new(rules, 1), link, Faults::none())
}

fn drain(pipe: &mut Pipe<Numbered>) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    while let Some(time) = pipe.next_time() {
        out.extend(
            pipe.receive(time)
                .map(|packet| (time.as_nanos(), packet.number)),
        );
    }
    out
}

#[test]
fn the_packet_being_sent_is_not_in_the_queue() {
    let mut pipe = pipe([Rule::tail_drop(ByteSize::from_bytes(10))]);
    assert_eq!(pipe.send(at(0), Numbered::new(0, 10)), Admission::Queued);
    assert_eq!(pipe.send(at(0), Numbered::new(1, 10)), Admission::Queued);
    assert_eq!(
        pipe.send(at(9), Numbered::new(2, 10)),
        Admission::Dropped(DropReason::Tail)
    );
    // The first is out at 10 ns, before what arrives then.
    assert_eq!(pipe.send(at(10), Numbered::new(3, 10)), Admission::Queued);
    assert_eq!(drain(&mut pipe), [(110, 0), (120, 1), (130, 3)]);
}

#[test]
fn larger_than_the_mtu_is_dropped_for_that_reason() {
    let mut pipe = pipe([]);
    pipe.set_mtu(ByteSize::from_bytes(9));
    let admission = pipe.send(at(0), Numbered::new(0, 10));
    assert_eq!(admission, Admission::Dropped(DropReason::Mtu));
    assert_eq!(pipe.counters().dropped.by(DropReason::Mtu).packets, 1);
    assert_eq!(pipe.next_time(), None);
}

#[test]
fn a_stopped_pipe_keeps_its_packets_until_it_gets_a_rate() {
    let mut pipe = pipe([]);
    pipe.set_rate(at(0), Rate::ZERO);
    pipe.send(at(0), Numbered::new(0, 10));
    pipe.send(at(5), Numbered::new(1, 10));
    assert_eq!(pipe.next_time(), None);
    assert_eq!(pipe.queue().backlog().packets, 2);
    pipe.set_rate(at(1000), Rate::from_gbps(8));
    assert_eq!(drain(&mut pipe), [(1110, 0), (1120, 1)]);
}

#[test]
fn a_link_that_goes_down_loses_what_is_on_the_way() {
    let mut pipe = pipe([]);
    pipe.send(at(0), Numbered::new(0, 10));
    pipe.send(at(50), Numbered::new(1, 10));
    // The first has arrived at 110 ns; nobody has asked for it yet.
    pipe.set_faults(
        at(120),
        FaultSettings {
            down: true,
            ..FaultSettings::default()
        },
    );
    assert_eq!(drain(&mut pipe), [(110, 0)]);
    assert_eq!(pipe.counters().dropped.by(DropReason::Down).packets, 1);
}

#[test]
fn rules_and_delay_change_under_way() {
    let mut pipe = pipe([]);
    pipe.send(at(0), Numbered::new(0, 10));
    pipe.set_delay(at(0), Duration::from_nanos(500));
    pipe.set_rules([Rule::tail_drop(ByteSize::ZERO)]);
    assert_eq!(
        pipe.send(at(20), Numbered::new(1, 10)),
        Admission::Dropped(DropReason::Tail)
    );
    pipe.set_rules([]);
    pipe.send(at(20), Numbered::new(2, 10));
    assert_eq!(drain(&mut pipe), [(110, 0), (530, 2)]);
}

#[test]
fn a_time_line_changes_a_pipe() {
    let mut timeline = crate::Timeline::new([
        (at(100), Change::Rate(Rate::from_gbps(4))),
        (at(200), Change::AddedDelay(Duration::from_nanos(1000))),
        (at(300), Change::Mtu(ByteSize::from_bytes(9))),
        (at(400), Change::Mtu(ByteSize::from_bytes(10))),
        (at(400), Change::Delay(Duration::from_nanos(50))),
        (at(2000), Change::Down(true)),
        (at(2500), Change::Down(false)),
        (at(2500), Change::AddedDelay(Duration::ZERO)),
    ])
    .unwrap();
    let mut pipe = pipe([]);
    let mut out = Vec::new();
    for (number, sent) in [0, 95, 150, 350, 450, 1990, 2990].into_iter().enumerate() {
        loop {
            let due = pipe
                .next_time()
                .into_iter()
                .chain(timeline.next_time())
                .min();
            let Some(now) = due.filter(|&now| now <= at(sent)) else {
                break;
            };
            while let Some((time, change)) = timeline.due(now) {
                pipe.apply(time, change);
            }
            while let Some(packet) = pipe.receive(now) {
                out.push((now.as_nanos(), packet.number));
            }
        }
        pipe.send(at(sent), Numbered::new(number as u64, 10));
    }
    out.extend(drain(&mut pipe));
    // 0: before everything. 1: at the far end after 200 ns, with the rate it began with. 2: half the
    // rate. 3: too large. 4: the shorter link, but a longer way. 5: reaches a link that is down.
    let arrivals = [(110, 0), (1205, 1), (1270, 2), (1520, 4), (3060, 6)];
    assert_eq!(out, arrivals);
    assert_eq!(pipe.counters().dropped.by(DropReason::Mtu).packets, 1);
    assert_eq!(pipe.counters().dropped.by(DropReason::Down).packets, 1);
}

#[test]
fn occupancy_is_exact_however_late_it_is_asked_for() {
    let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(100));
    let mut pipe = Pipe::new(Queue::new([], 1).with_occupancy(), link, Faults::none());
    // The first is sent at once; the second waits from 0 to 10, the third to 20.
    for number in 0..3 {
        pipe.send(at(0), Numbered::new(number, 10));
    }
    pipe.settle(at(40));
    let occupancy = pipe.queue().occupancy().unwrap();
    assert_eq!(occupancy.span(), Duration::from_nanos(40));
    assert_eq!(occupancy.maximum(), ByteSize::from_bytes(20));
    // 20 bytes for 10 ns and 10 bytes for 10 ns, of 40 ns: 7.5 bytes.
    assert_eq!(occupancy.mean(), ByteSize::from_bytes(8));
    assert_eq!(occupancy.percentile(0.5), ByteSize::ZERO);
    assert_eq!(occupancy.percentile(0.51), ByteSize::from_bytes(10));
    pipe.reset_occupancy(at(50));
    pipe.settle(at(60));
    let occupancy = pipe.queue().occupancy().unwrap();
    assert_eq!(occupancy.maximum(), ByteSize::ZERO);
    assert_eq!(occupancy.span(), Duration::from_nanos(10));
}

mod line {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is counted as inside is what is in the line.
        #[test]
        fn what_is_counted_is_there(
            steps in prop::collection::vec((0u64..30, 1u64..50, 0u64..4), 1..100),
            delay in 0u64..100,
        ) {
            let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(delay));
            let rules = [Rule::tail_drop(ByteSize::from_bytes(150))];
            let mut pipe = Pipe::new(Queue::new(rules, 1), link, Faults::none());
            let mut now = Time::ZERO;
            for (wait, length, kind) in steps {
                now += Duration::from_nanos(wait);
                match kind {
                    0 => {
                        pipe.receive(now);
                    }
                    1 => pipe.set_rate(now, Rate::from_gbps(length % 9)),
                    _ => {
                        pipe.send(now, Numbered::new(0, length));
                    }
                }
                let tally = |places: &mut dyn Iterator<Item = &Place<Numbered>>| {
                    let mut tally = Tally::ZERO;
                    places.for_each(|place| tally.record(place.length));
                    tally
                };
                prop_assert_eq!(tally(&mut pipe.line.iter().skip(pipe.on_link)), pipe.queue().backlog());
                prop_assert_eq!(tally(&mut pipe.line.iter().take(pipe.on_link)), pipe.in_flight());
                let arrivals = pipe.line.iter().take(pipe.on_link).map(|place| place.arrival);
                prop_assert_eq!(arrivals.clone().next(), pipe.next_time());
                prop_assert!(arrivals.is_sorted());
                let waits = pipe.queue().backlog().packets > 0 && !pipe.link().rate().is_zero();
                prop_assert_eq!(pipe.next_departure(), waits.then_some(pipe.link().free_at()));
            }
        }
    }
}
