//! Routes, elements, and the shared buffer, each on its own.

use std::collections::VecDeque;

use weir_units::{ByteSize, Duration, Rate};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Segment};

use super::*;
use crate::{DropReason, Faults, Link, Queue, Rule};

/// A TCP segment of 100 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    to: u32,
    number: u64,
    segment: Segment,
}

impl Packet for Sent {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(100)
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn destination(&self) -> u32 {
        self.to
    }
    fn tcp(&self) -> Option<Segment> {
        Some(self.segment)
    }
    fn set_window(&mut self, window: u16) {
        self.segment.window = window;
    }
    fn set_flags(&mut self, flags: Flags) {
        self.segment.flags = flags;
    }
}

const CLIENT: PortIndex = PortIndex::new(0);
const SERVER: PortIndex = PortIndex::new(1);

fn packet(to: u32, number: u64) -> Sent {
    Sent {
        to,
        number,
        segment: Segment {
            window: 1000,
            ..Segment::default()
        },
    }
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

/// 1 byte takes 1 ns, and the propagation delay is 50 ns.
fn egress_port() -> EgressPort<Sent> {
    let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(50));
    EgressPort::new(Queue::new([], 1), link, Faults::none())
}

/// Host 0 is behind port 0, host 1 behind port 1.
fn switch() -> Switch<Sent> {
    let routes = Routes::new().with(0, [CLIENT]).with(1, [SERVER]);
    Switch::new([egress_port(), egress_port()], routes, 1).unwrap()
}

/// A switch with one event entry per port, as its caller keeps.
struct Caller {
    switch: Switch<Sent>,
    entries: [Option<Time>; 2],
    out: Vec<(u64, PortIndex, Sent)>,
}

impl Caller {
    fn new(switch: Switch<Sent>) -> Self {
        Self {
            switch,
            entries: [None; 2],
            out: Vec::new(),
        }
    }

    fn forward(&mut self, nanos: u64, ingress: PortIndex, packet: Sent) {
        let entries = &mut self.entries;
        self.switch
            .forward(at(nanos), ingress, packet, |port, next| {
                entries[port.index()] = next;
            });
    }

    /// Runs until no event is left.
    fn run(&mut self) {
        loop {
            for port in [CLIENT, SERVER] {
                assert_eq!(self.entries[port.index()], self.switch.timeout(port));
            }
            assert!(self.switch.counters().balance(self.switch.inside()));
            let [client, server] = self.entries;
            let timer = self.switch.timeout_of_elements();
            let Some(now) = [client, server, timer].into_iter().flatten().min() else {
                break;
            };
            for port in [CLIENT, SERVER] {
                while let Some(packet) = self.switch.poll_delivered(now, port) {
                    self.out.push((now.as_nanos(), port, packet));
                }
                self.entries[port.index()] = self.switch.timeout(port);
            }
            if timer == Some(now) {
                let entries = &mut self.entries;
                self.switch
                    .handle_timeout(now, |port, next| entries[port.index()] = next);
            }
        }
        assert_eq!(self.switch.inside(), PacketCount::ZERO);
    }

    fn arrivals(&self) -> Vec<(u64, PortIndex, u64)> {
        let out = self.out.iter();
        out.map(|&(time, port, packet)| (time, port, packet.number))
            .collect()
    }
}

#[test]
fn packets_leave_by_the_routed_port() {
    let mut caller = Caller::new(switch());
    caller.forward(0, CLIENT, packet(1, 0));
    caller.forward(10, CLIENT, packet(1, 1));
    caller.forward(20, SERVER, packet(0, 2));
    caller.forward(30, CLIENT, packet(7, 3));
    caller.run();
    let arrivals = [(150, SERVER, 0), (170, CLIENT, 2), (250, SERVER, 1)];
    assert_eq!(caller.arrivals(), arrivals);
    let counters = caller.switch.counters();
    assert_eq!(counters.arrived.packets, 4);
    assert_eq!(counters.dropped.by(DropReason::NoRoute).packets, 1);
    let client = caller.switch.port(CLIENT).unwrap();
    assert_eq!(client.counters().departed.packets, 1);
    assert!(caller.switch.port(PortIndex::new(2)).is_none());
    assert_eq!(
        caller.switch.poll_delivered(at(999), PortIndex::new(2)),
        None
    );
}

#[test]
fn only_a_changed_timeout_is_reported() {
    let mut switch = switch();
    let mut told = Vec::new();
    for nanos in [0, 10, 20] {
        switch.forward(at(nanos), CLIENT, packet(1, nanos), |port, next| {
            told.push((port, next));
        });
    }
    assert_eq!(told, [(SERVER, Some(at(150)))]);
}

#[test]
fn a_port_change_reports_the_new_timeout() {
    let mut caller = Caller::new(switch());
    let apply = |caller: &mut Caller, nanos, change| {
        let entries = &mut caller.entries;
        caller
            .switch
            .apply(at(nanos), SERVER, change, |port, next| {
                entries[port.index()] = next;
            });
    };
    apply(&mut caller, 0, PortChange::Rate(Rate::ZERO));
    caller.forward(5, CLIENT, packet(1, 0));
    assert_eq!(caller.entries, [None; 2]);
    apply(&mut caller, 1000, PortChange::Rate(Rate::from_gbps(4)));
    caller.run();
    assert_eq!(caller.arrivals(), [(1250, SERVER, 0)]);
}

#[test]
fn invalid_switches_are_refused() {
    let routes = Routes::new().with(3, [CLIENT, PortIndex::new(2)]);
    let error = Switch::new([egress_port(), egress_port()], routes, 1).unwrap_err();
    let expected = SwitchError::NoSuchPort {
        destination: 3,
        port: PortIndex::new(2),
        ports: 2,
    };
    assert_eq!(error, expected);
    let buffer = SharedBuffer::with_limits(bytes(1000), [bytes(10)]);
    let error = switch().with_shared_buffer(buffer).unwrap_err();
    assert_eq!(
        error,
        SwitchError::Limits {
            limits: 1,
            ports: 2
        }
    );
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(SharedBuffer::dynamic(bytes(1000), alpha).is_err());
    }
}

/// Limits the window.
#[derive(Debug)]
struct Clamp(u16);

impl Element<Sent> for Clamp {
    fn process(
        &mut self,
        _: Time,
        ingress: PortIndex,
        mut packet: Sent,
        out: &mut Output<'_, Sent>,
    ) {
        if packet.tcp().is_some_and(|segment| segment.window > self.0) {
            packet.set_window(self.0);
        }
        out.forward(ingress, packet);
    }
}

/// Holds every packet for a time.
#[derive(Debug)]
struct Hold {
    span: Duration,
    held: VecDeque<(Time, PortIndex, Sent)>,
}

impl Element<Sent> for Hold {
    fn process(&mut self, now: Time, ingress: PortIndex, packet: Sent, _: &mut Output<'_, Sent>) {
        self.held.push_back((now + self.span, ingress, packet));
    }
    fn timeout(&self) -> Option<Time> {
        self.held.front().map(|&(time, ..)| time)
    }
    fn handle_timeout(&mut self, now: Time, out: &mut Output<'_, Sent>) {
        while self.timeout().is_some_and(|time| time <= now) {
            if let Some((_, ingress, packet)) = self.held.pop_front() {
                out.forward(ingress, packet);
            }
        }
    }
    fn held(&self) -> PacketCount {
        let mut held = PacketCount::ZERO;
        self.held
            .iter()
            .for_each(|(.., packet)| held.record(packet.length()));
        held
    }
}

/// Answers each packet of the client at once, drops every third, and absorbs those numbered 100.
#[derive(Debug, Default)]
struct Answer {
    seen: u64,
}

impl Element<Sent> for Answer {
    fn process(&mut self, _: Time, ingress: PortIndex, packet: Sent, out: &mut Output<'_, Sent>) {
        self.seen += 1;
        if packet.number == 100 {
            out.absorb(packet);
        } else if self.seen.is_multiple_of(3) {
            out.drop(packet, DropReason::Element);
        } else {
            if ingress == CLIENT {
                let mut answer = Sent {
                    to: 0,
                    number: packet.number + 1000,
                    ..packet
                };
                answer.set_flags(Flags::ACK);
                out.inject(SERVER, answer);
            }
            out.forward(ingress, packet);
        }
    }
}

#[test]
fn an_element_rewrites() {
    let mut caller = Caller::new(switch().with_element(Clamp(500)));
    caller.forward(0, CLIENT, packet(1, 0));
    caller.run();
    assert_eq!(caller.out[0].2.segment.window, 500);
    caller.switch.element_mut::<Clamp>().unwrap().0 = 300;
    caller.forward(1000, CLIENT, packet(1, 1));
    caller.run();
    assert_eq!(caller.out[1].2.segment.window, 300);
    assert!(caller.switch.element::<Hold>().is_none());
}

#[test]
fn an_element_holds() {
    let hold = Hold {
        span: Duration::from_nanos(1000),
        held: VecDeque::new(),
    };
    let mut caller = Caller::new(switch().with_element(hold));
    caller.forward(0, CLIENT, packet(1, 0));
    caller.forward(7, SERVER, packet(0, 1));
    assert_eq!(caller.switch.timeout_of_elements(), Some(at(1000)));
    assert_eq!(caller.switch.inside().packets, 2);
    caller.run();
    assert_eq!(caller.arrivals(), [(1150, SERVER, 0), (1157, CLIENT, 1)]);
}

#[test]
fn an_element_injects_drops_and_absorbs() {
    let mut caller = Caller::new(
        switch()
            .with_element(Answer::default())
            .with_element(Clamp(9)),
    );
    for (time, number) in [(0, 0), (200, 1), (400, 2), (600, 100)] {
        caller.forward(time, CLIENT, packet(1, number));
    }
    caller.run();
    let arrivals = [
        (150, CLIENT, 1000),
        (150, SERVER, 0),
        (350, CLIENT, 1001),
        (350, SERVER, 1),
    ];
    assert_eq!(caller.arrivals(), arrivals);
    let first = caller.out[0].2.segment;
    assert_eq!((first.flags, first.window), (Flags::ACK, 9));
    let counters = caller.switch.counters();
    assert_eq!(counters.injected.packets, 2);
    assert_eq!(counters.absorbed.packets, 1);
    assert_eq!(counters.dropped.by(DropReason::Element).packets, 1);
}

#[test]
fn an_element_that_loses_a_packet_unbalances_the_counters() {
    #[derive(Debug)]
    struct Lose;
    impl Element<Sent> for Lose {
        fn process(&mut self, _: Time, _: PortIndex, _: Sent, _: &mut Output<'_, Sent>) {}
    }
    let mut switch = switch().with_element(Lose);
    switch.forward(at(0), CLIENT, packet(1, 0), |_, _| {});
    assert!(!switch.counters().balance(switch.inside()));
}

#[test]
fn a_static_limit_applies_per_port() {
    let buffer = SharedBuffer::with_limits(bytes(300), [bytes(200), bytes(200)]);
    let mut caller = Caller::new(switch().with_shared_buffer(buffer).unwrap());
    // One is being sent, two wait, and the fourth is one too many.
    (0..4).for_each(|number| caller.forward(0, CLIENT, packet(1, number)));
    // The other port may hold 200 bytes, but only 100 are left in the buffer.
    (0..3).for_each(|number| caller.forward(0, SERVER, packet(0, 10 + number)));
    let dropped = |caller: &Caller| {
        [CLIENT, SERVER].map(|port| {
            let counters = caller.switch.port(port).unwrap().counters();
            counters.dropped.by(DropReason::Buffer).packets
        })
    };
    assert_eq!(dropped(&caller), [1, 1]);
    // At 100 ns one has left each queue, though it has not been polled.
    caller.forward(100, SERVER, packet(0, 13));
    caller.forward(100, SERVER, packet(0, 14));
    assert_eq!(dropped(&caller), [1, 1]);
    caller.run();
    assert_eq!(caller.out.len(), 7);
}

#[test]
fn a_dynamic_threshold_shrinks_as_the_buffer_fills() {
    let buffer = SharedBuffer::dynamic(bytes(1200), 1.0).unwrap();
    let mut switch = switch().with_shared_buffer(buffer).unwrap();
    let mut offer = |to| {
        (0..20).for_each(|number| switch.forward(at(0), CLIENT, packet(to, number), |_, _| {}));
        let port = PortIndex::new(to);
        switch.port(port).unwrap().queue().backlog().packets
    };
    // With 600 bytes queued 600 are free; of these the other port may then take half.
    assert_eq!(offer(0), 6);
    assert_eq!(offer(1), 3);
}

#[test]
fn a_stopped_port_frees_its_space_when_it_goes_on() {
    let buffer = SharedBuffer::with_limits(bytes(200), [bytes(200), bytes(200)]);
    let mut switch = switch().with_shared_buffer(buffer).unwrap();
    let gbps = |count| PortChange::Rate(Rate::from_gbps(count));
    switch.apply(at(0), SERVER, gbps(0), |_, _| {});
    let full = |switch: &mut Switch<Sent>, nanos| {
        let before = switch.counters().dropped.by(DropReason::Buffer);
        switch.forward(at(nanos), SERVER, packet(0, 0), |_, _| {});
        before != switch.counters().dropped.by(DropReason::Buffer)
    };
    (0..2).for_each(|number| switch.forward(at(0), CLIENT, packet(1, number), |_, _| {}));
    assert!(full(&mut switch, 20));
    switch.apply(at(30), SERVER, gbps(8), |_, _| {});
    // One has left: one packet can be sent at once, and one can wait.
    assert!(!full(&mut switch, 40));
    assert!(!full(&mut switch, 40));
    assert!(full(&mut switch, 129));
    // The other has left.
    assert!(!full(&mut switch, 130));
}

#[test]
fn rules_still_apply_beside_the_shared_buffer() {
    let port = || {
        let link = Link::new(Rate::from_gbps(8), Duration::ZERO);
        EgressPort::new(
            Queue::new([Rule::tail_drop(bytes(100))], 1),
            link,
            Faults::none(),
        )
    };
    let routes = Routes::new().with(0, [CLIENT]);
    let buffer = SharedBuffer::with_limits(bytes(1000), [bytes(1000)]);
    let mut switch = Switch::new([port()], routes, 1)
        .unwrap()
        .with_shared_buffer(buffer)
        .unwrap();
    (0..5).for_each(|number| switch.forward(at(0), SERVER, packet(0, number), |_, _| {}));
    assert_eq!(switch.counters().dropped.by(DropReason::Tail).packets, 3);
}
