//! Switches whose ports have schedulers, against ordinary ones: the caller's entries and the shared buffer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use weir_fabric::{
    ClassQueue, Classifier, EgressPort, Faults, Link, Packet, PortChange, PortIndex, Queue, Routes,
    Rule, Scheduler, SharedBuffer, Switch,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Datagram {
    number: u32,
    length: u64,
    to: u32,
}

impl Packet for Datagram {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(self.length)
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn destination(&self) -> u32 {
        self.to
    }
}

/// A switch, and its caller's entry for each port.
struct Caller {
    switch: Switch<Datagram>,
    entries: [Option<Time>; 2],
    out: Vec<(Time, Datagram)>,
}

impl Caller {
    /// Two ports at 8 Gbit/s, with one queue each, which a scheduler serves if the port is `scheduled`.
    fn new(scheduled: [bool; 2], buffer: Option<SharedBuffer>) -> Self {
        let rules = [Rule::tail_drop(ByteSize::from_bytes(400))];
        let port = |scheduled: bool| {
            let link = Link::new(Rate::from_gbps(8), Duration::from_nanos(30));
            if !scheduled {
                return EgressPort::new(Queue::new(rules, 1), link, Faults::none());
            }
            let fifo = ClassQueue {
                classifier: Classifier::EVERY,
                queue: Queue::new(rules, 1),
                codel: None,
            };
            let all = Queue::new([], 1);
            let scheduler = Scheduler::strict_priority([], fifo);
            EgressPort::new(all, link, Faults::none()).with_scheduler(scheduler)
        };
        let routes = Routes::new()
            .with(0, [PortIndex::new(0)])
            .with(1, [PortIndex::new(1)]);
        let mut switch = Switch::new(scheduled.map(port), routes, 1).unwrap();
        if let Some(buffer) = buffer {
            switch = switch.with_shared_buffer(buffer).unwrap();
        }
        Self {
            switch,
            entries: [None; 2],
            out: Vec::new(),
        }
    }

    /// Polls the ports whose entries are due.
    fn run(&mut self, until: Time) {
        loop {
            let entries = self.entries.iter().copied().zip(0..);
            let due = entries.filter_map(|(entry, port)| Some((entry?, port)));
            let Some((now, port)) = due.min().filter(|(time, _)| *time <= until) else {
                return;
            };
            let port = PortIndex::new(port);
            while let Some(packet) = self.switch.poll_delivered(now, port) {
                self.out.push((now, packet));
            }
            self.entries[port.index()] = self.switch.timeout(port);
        }
    }

    fn forward(&mut self, now: Time, packet: Datagram) {
        let entries = &mut self.entries;
        let ingress = PortIndex::new(0);
        self.switch.forward(now, ingress, packet, |port, next| {
            entries[port.index()] = next;
        });
    }

    fn set_rate(&mut self, now: Time, port: u32, gbps: u64) {
        let change = PortChange::Rate(Rate::from_gbps(gbps));
        let (port, entries) = (PortIndex::new(port), &mut self.entries);
        self.switch.apply(now, port, change, |port, next| {
            entries[port.index()] = next;
        });
    }
}

proptest! {
    #[test]
    fn schedulers_with_one_queue_make_no_difference_to_a_switch(
        steps in prop::collection::vec((0u64..60, 0u32..2, 1u64..60, 0u64..20), 1..200),
        scheduled: [bool; 2],
        shared in 0..3,
    ) {
        let buffer = || match shared {
            0 => None,
            1 => Some(SharedBuffer::dynamic(ByteSize::from_bytes(600), 0.8).unwrap()),
            _ => Some(SharedBuffer::with_limits(
                ByteSize::from_bytes(400),
                [ByteSize::from_bytes(300); 2],
            )),
        };
        let mut callers = [Caller::new([false; 2], buffer()), Caller::new(scheduled, buffer())];
        let mut now = Time::ZERO;
        for (number, (wait, to, length, rate)) in (0..).zip(steps) {
            now += Duration::from_nanos(wait);
            for caller in &mut callers {
                caller.run(now);
                match rate {
                    0..3 => caller.set_rate(now, to, rate * 8),
                    _ => caller.forward(now, Datagram { number, length, to }),
                }
                let (counters, inside) = (caller.switch.counters(), caller.switch.inside());
                prop_assert!(counters.balance(inside));
            }
            let dropped = callers.each_ref().map(|caller| caller.switch.counters().dropped);
            prop_assert_eq!(dropped[0], dropped[1]);
        }
        for caller in &mut callers {
            (0..2).for_each(|port| caller.set_rate(now, port, 8));
            caller.run(Time::MAX);
            // Of two packets that come out at the same time, either may be polled first.
            caller.out.sort_by_key(|(time, packet)| (*time, packet.number));
        }
        prop_assert_eq!(&callers[0].out, &callers[1].out);
    }
}
