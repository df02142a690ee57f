//! Invariants of every switch under any traffic.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir_fabric::{
    DropReason, EgressPort, Element, Faults, Link, Output, Packet, PacketCount, PortChange,
    PortIndex, Probability, Queue, Ramp, Reordering, Routes, Rule, SharedBuffer, Switch,
    discipline,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

const PORTS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    number: u64,
    to: u32,
    flow: u64,
    bytes: u64,
    ecn: Ecn,
}

impl Packet for Sent {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(self.bytes)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn destination(&self) -> u32 {
        self.to
    }
    fn flow_hash(&self) -> u64 {
        self.flow
    }
}

/// Holds, copies, answers, drops or absorbs packets, by their numbers.
#[derive(Debug, Default)]
struct Meddler {
    held: VecDeque<(Time, PortIndex, Sent)>,
}

impl Element<Sent> for Meddler {
    fn process(&mut self, now: Time, ingress: PortIndex, packet: Sent, out: &mut Output<'_, Sent>) {
        match packet.number % 7 {
            0 => {
                let release = now + Duration::from_nanos(700);
                self.held.push_back((release, ingress, packet));
            }
            1 => {
                out.inject(ingress, packet);
                out.forward(ingress, packet);
            }
            2 => {
                let answer = Sent {
                    to: ingress.index() as u32,
                    bytes: 40,
                    ..packet
                };
                out.inject(ingress, answer);
                out.absorb(packet);
            }
            3 => out.drop(packet, DropReason::Element),
            _ => out.forward(ingress, packet),
        }
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
        self.held
            .iter()
            .fold(PacketCount::ZERO, |mut sum, (.., packet)| {
                sum.record(packet.length());
                sum
            })
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Forward { ingress: u32, packet: Sent },
    Wait(Duration),
    Apply(u32, PortChange),
    Settle,
}

fn probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0).prop_filter_map("a probability", |value| Probability::new(value).ok())
}

fn nanos(limit: u64) -> impl Strategy<Value = Duration> {
    (0..=limit).prop_map(Duration::from_nanos)
}

fn change() -> impl Strategy<Value = PortChange> {
    let gbps = prop_oneof![1 => Just(0), 4 => 1u64..20];
    prop_oneof![
        gbps.prop_map(|gbps| PortChange::Rate(Rate::from_gbps(gbps))),
        nanos(2000).prop_map(PortChange::Delay),
        nanos(2000).prop_map(PortChange::AddedDelay),
        nanos(2000).prop_map(PortChange::Jitter),
        any::<bool>().prop_map(PortChange::Down),
        probability().prop_map(PortChange::Loss),
        probability().prop_map(PortChange::Duplication),
        probability().prop_map(PortChange::Corruption),
        (probability(), nanos(2000)).prop_map(|(probability, delay)| PortChange::Reordering(
            Reordering { probability, delay }
        )),
        (100u64..2000).prop_map(|bytes| PortChange::Mtu(ByteSize::from_bytes(bytes))),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    // One destination more than there are routes to.
    let packet = (0..PORTS + 2, 0u64..5, 1u64..1500, 0..4u8);
    let forward = (0..PORTS, packet).prop_map(|(ingress, (to, flow, bytes, ecn))| {
        let packet = Sent {
            number: 0,
            to,
            flow,
            bytes,
            ecn: Ecn::from_bits(ecn),
        };
        Operation::Forward { ingress, packet }
    });
    prop_oneof![
        12 => forward,
        6 => nanos(1000).prop_map(Operation::Wait),
        1 => (0..PORTS, change()).prop_map(|(port, change)| Operation::Apply(port, change)),
        1 => Just(Operation::Settle),
    ]
}

fn buffer() -> impl Strategy<Value = Option<SharedBuffer>> {
    let size = || (1000u64..12_000).prop_map(ByteSize::from_bytes);
    prop_oneof![
        Just(None),
        (size(), prop::collection::vec(size(), PORTS as usize))
            .prop_map(|(size, limits)| Some(SharedBuffer::with_limits(size, limits))),
        (size(), 0.1..4.0)
            .prop_map(|(size, alpha)| Some(SharedBuffer::dynamic(size, alpha).expect("a factor"))),
    ]
}

fn switch(seed: u64, buffer: Option<SharedBuffer>, elements: bool) -> Switch<Sent> {
    let kilobytes = |count| ByteSize::from_bytes(1000) * count;
    let red = Ramp {
        min: kilobytes(2),
        max: kilobytes(6),
        probability: Probability::new(0.5).expect("a half"),
    };
    let egress_port = |port: u32| {
        let [mark, drop] = discipline::shared_queue(kilobytes(3), red);
        let rules = [Rule::buffer(kilobytes(8)), mark, drop];
        let queue = Queue::new(rules, seed ^ u64::from(port)).with_occupancy();
        let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(500));
        let faults = Faults::new(Default::default(), seed ^ u64::from(port));
        EgressPort::new(queue, link, faults)
    };
    let port = PortIndex::new;
    let mut routes = Routes::new().with(PORTS, [port(0), port(1), port(3)]);
    (0..PORTS).for_each(|to| routes.set(to, &[port(to)]));
    let ports: Vec<_> = (0..PORTS).map(egress_port).collect();
    let mut switch = Switch::new(ports, routes, seed).expect("routes to its ports");
    if let Some(buffer) = buffer {
        switch = switch.with_shared_buffer(buffer).expect("four limits");
    }
    if elements {
        switch = switch
            .with_element(Meddler::default())
            .with_element(Meddler::default());
    }
    switch
}

/// A switch with its caller's event entries: one per port.
struct Caller {
    switch: Switch<Sent>,
    entries: [Option<Time>; PORTS as usize],
    now: Time,
    sent: u64,
    out: Vec<(Time, u32, Sent)>,
}

impl Caller {
    fn new(switch: Switch<Sent>) -> Self {
        Self {
            switch,
            entries: Default::default(),
            now: Time::ZERO,
            sent: 0,
            out: Vec::new(),
        }
    }

    fn perform(&mut self, operation: &Operation) {
        let (now, entries) = (self.now, &mut self.entries);
        let changed = |port: PortIndex, next| entries[port.index()] = next;
        match *operation {
            Operation::Forward { ingress, packet } => {
                let number = self.sent;
                self.sent += 1;
                let packet = Sent { number, ..packet };
                self.switch
                    .forward(now, PortIndex::new(ingress), packet, changed);
            }
            Operation::Wait(span) => self.run_until(now + span),
            Operation::Apply(port, change) => {
                self.switch
                    .apply(now, PortIndex::new(port), change, changed);
            }
            Operation::Settle => self.settle(),
        }
        // An entry may be too early, but never too late.
        for (index, entry) in (0..).zip(self.entries) {
            let next = self.switch.timeout(PortIndex::new(index));
            assert!(entry.unwrap_or(Time::MAX) <= next.unwrap_or(Time::MAX));
        }
    }

    fn settle(&mut self) {
        for port in 0..PORTS {
            self.switch.advance(self.now, PortIndex::new(port));
        }
    }

    /// Runs all events that are due, by the entries alone.
    fn run_until(&mut self, end: Time) {
        loop {
            let entries = self.entries.iter().flatten().copied();
            let next = entries.chain(self.switch.timeout_of_elements()).min();
            let Some(now) = next.filter(|&next| next <= end) else {
                break;
            };
            assert!(now >= self.now, "an entry came too late");
            self.now = now;
            for (index, entry) in (0..).zip(&mut self.entries) {
                if entry.is_some_and(|time| time <= now) {
                    let port = PortIndex::new(index);
                    while let Some(packet) = self.switch.poll_delivered(now, port) {
                        self.out.push((now, index, packet));
                    }
                    *entry = self.switch.timeout(port);
                }
            }
            if self
                .switch
                .timeout_of_elements()
                .is_some_and(|time| time <= now)
            {
                let entries = &mut self.entries;
                self.switch
                    .handle_timeout(now, |port, next| entries[port.index()] = next);
            }
        }
        self.now = end;
    }

    /// Sets a rate on every link and waits until nothing is in transit.
    fn finish(&mut self) {
        for port in 0..PORTS {
            self.perform(&Operation::Apply(
                port,
                PortChange::Rate(Rate::from_gbps(8)),
            ));
        }
        self.run_until(Time::from_nanos(u64::MAX / 2));
    }
}

fn total<'a>(packets: impl Iterator<Item = &'a Sent>) -> PacketCount {
    packets.fold(PacketCount::ZERO, |mut sum, packet| {
        sum.record(packet.length());
        sum
    })
}

proptest! {
    #[test]
    fn a_switch_balances_at_every_step(
        seed: u64,
        buffer in buffer(),
        elements: bool,
        operations in prop::collection::vec(operation(), 1..150),
    ) {
        let mut caller = Caller::new(switch(seed, buffer, elements));
        let mut arrived = PacketCount::ZERO;
        for operation in &operations {
            if let Operation::Forward { packet, .. } = operation {
                arrived.record(packet.length());
            }
            caller.perform(operation);
            let counters = caller.switch.counters();
            prop_assert!(counters.balance(caller.switch.inside()), "{:?}", counters);
            prop_assert_eq!(counters.arrived, arrived);
            prop_assert_eq!(counters.departed, total(caller.out.iter().map(|(.., packet)| packet)));
        }
        caller.finish();
        prop_assert_eq!(caller.switch.inside(), PacketCount::ZERO);
        prop_assert!(caller.switch.counters().balance(PacketCount::ZERO));
        // All packets of a flow leave by the same one of several ports.
        for flow in 0..5 {
            let ports = caller.out.iter().filter(|(.., sent)| sent.to == PORTS && sent.flow == flow);
            let mut ports: Vec<_> = ports.map(|&(_, port, _)| port).collect();
            ports.dedup();
            prop_assert!(ports.len() <= 1);
        }
    }

    #[test]
    fn polling_has_no_effect_and_runs_are_reproducible(
        seed: u64,
        buffer in buffer(),
        elements: bool,
        operations in prop::collection::vec(operation(), 1..150),
    ) {
        let [mut watched, mut alone] =
            [(); 2].map(|()| Caller::new(switch(seed, buffer.clone(), elements)));
        for operation in &operations {
            watched.perform(operation);
            watched.settle();
            if !matches!(operation, Operation::Settle) {
                alone.perform(operation);
            }
        }
        watched.finish();
        alone.finish();
        prop_assert_eq!(&watched.out, &alone.out);
        prop_assert_eq!(watched.switch.counters(), alone.switch.counters());
        let occupancies = |caller: &Caller| {
            let ports = caller.switch.ports().iter();
            ports.map(|egress_port| egress_port.queue().occupancy().map(|occupancy| (occupancy.maximum(), occupancy.percentile(0.9)))).collect::<Vec<_>>()
        };
        watched.settle();
        alone.settle();
        prop_assert_eq!(occupancies(&watched), occupancies(&alone));
    }

    #[test]
    fn a_shared_buffer_admits_exactly_like_an_eager_model(
        size in 500u64..5000,
        limits in prop::collection::vec(100u64..4000, PORTS as usize),
        alpha in prop::option::of(0.1..4.0),
        packets in prop::collection::vec((0u64..300, 0..PORTS, 1u64..1000), 1..200),
    ) {
        let shared = match alpha {
            Some(alpha) => SharedBuffer::dynamic(ByteSize::from_bytes(size), alpha).unwrap(),
            None => {
                let limits: Vec<_> = limits.iter().copied().map(ByteSize::from_bytes).collect();
                SharedBuffer::with_limits(ByteSize::from_bytes(size), limits)
            }
        };
        // 1 byte takes 1 ns.
        let egress_port = |_| {
            let rules: [Rule; 0] = [];
            let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(10_000));
            EgressPort::new(Queue::new(rules, 1), link, Faults::none())
        };
        let mut routes = Routes::new();
        (0..PORTS).for_each(|to| routes.set(to, &[PortIndex::new(to)]));
        let mut switch = Switch::new((0..PORTS).map(egress_port).collect::<Vec<_>>(), routes, 1)
            .unwrap()
            .with_shared_buffer(shared)
            .unwrap();

        // For each port: when its link becomes idle, and each packet's start and length.
        let mut model: Vec<(u64, Vec<(u64, u64)>)> = vec![(0, Vec::new()); PORTS as usize];
        let mut now = 0;
        for (wait, to, bytes) in packets {
            now += wait;
            let held = |port: &(u64, Vec<(u64, u64)>)| -> u64 {
                port.1.iter().filter(|&&(start, _)| start > now).map(|&(_, bytes)| bytes).sum()
            };
            let used: u64 = model.iter().map(held).sum();
            let free = size - used;
            let limit = match alpha {
                Some(alpha) => (free as f64 * alpha) as u64,
                None => limits[to as usize],
            };
            let port = &mut model[to as usize];
            let fits = held(port) + bytes <= limit && used + bytes <= size;
            if fits {
                let start = port.0.max(now);
                port.0 = start + bytes;
                port.1.push((start, bytes));
            }

            let dropped = |switch: &Switch<Sent>| switch.counters().dropped.by(DropReason::Buffer);
            let before = dropped(&switch);
            let packet = Sent { number: 0, to, flow: 0, bytes, ecn: Ecn::NotEct };
            switch.forward(Time::from_nanos(now), PortIndex::new(0), packet, |_, _| {});
            prop_assert_eq!(dropped(&switch).packets == before.packets, fits);
        }
    }
}
