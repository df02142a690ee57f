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
