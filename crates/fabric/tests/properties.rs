//! Invariants of every egress port under any traffic.

use proptest::prelude::*;
use weir_fabric::{
    Class, EgressPort, FaultSettings, Faults, Link, Packet, PacketCount, Probability, Queue, Ramp,
    Red, Reordering, Rule,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

#[derive(Clone, Debug, PartialEq)]
struct Numbered {
    number: u64,
    bytes: u64,
    ecn: Ecn,
    damaged: bool,
}

impl Packet for Numbered {
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(self.bytes)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn corrupt(&mut self, _: u64) -> bool {
        // Short packets carry no bytes, so that both cases occur.
        self.damaged = self.bytes > 500;
        self.damaged
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Send { bytes: u64, ecn: Ecn },
    Wait(Duration),
    SetRate(Rate),
    SetDelay(Duration),
    SetFaults(FaultSettings),
    SetRules(Vec<Rule>),
    SetMtu(ByteSize),
}

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![
        Just(Probability::NEVER),
        Just(Probability::ALWAYS),
        (0.0..=1.0).prop_filter_map("a probability", |value| Probability::new(value).ok()),
    ]
}

fn micros(limit: u64) -> impl Strategy<Value = Duration> {
    (0..=limit * 1000).prop_map(Duration::from_nanos)
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        1 => Just(Rate::ZERO),
        1 => Just(Rate::MAX),
        8 => (1u64..100_000_000_000).prop_map(Rate::from_bits_per_second),
    ]
}

fn ecn() -> impl Strategy<Value = Ecn> {
    (0..4u8).prop_map(Ecn::from_bits)
}

fn faults() -> impl Strategy<Value = FaultSettings> {
    let chances = (probability(), probability(), probability(), probability());
    let delays = (micros(50), micros(50), micros(50));
    let settings = (any::<bool>(), chances, delays).prop_map(
        |(down, (loss, duplication, corruption, reordering), (held_back, delay, jitter))| {
            FaultSettings {
                down,
                loss,
                duplication,
                corruption,
                reordering: Reordering {
                    probability: reordering,
                    delay: held_back,
                },
                delay,
                jitter,
            }
        },
    );
    // No faults at all is the common case, and takes another path.
    prop_oneof![Just(FaultSettings::default()), settings]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let size = || (0u64..10_000).prop_map(ByteSize::from_bytes);
    let class = prop_oneof![Just(Class::Every), Just(Class::Ect), Just(Class::NotEct)];
    let ramp = || {
        (size(), size(), probability()).prop_map(|(min, max, probability)| Ramp {
            min,
            max,
            probability,
        })
    };
    let red = (ramp(), probability(), micros(5), any::<bool>()).prop_map(
        |(ramp, weight, transmission, gentle)| Red {
            ramp,
            weight,
            transmission,
            gentle,
        },
    );
    let rule = prop_oneof![
        ramp().prop_map(Rule::red),
        red.prop_map(Rule::red_average),
        (size(), size(), probability())
            .prop_map(|(low, high, chance)| Rule::mark_between(low, high, chance)),
        size().prop_map(Rule::tail_drop),
        (0u64..10).prop_map(Rule::tail_drop_packets),
        size().prop_map(Rule::mark_above),
        (0u64..10).prop_map(Rule::mark_above_packets),
        probability().prop_map(Rule::mark_randomly),
        (probability(), class).prop_map(|(chance, class)| Rule::drop_randomly(chance).only(class)),
    ];
    prop::collection::vec(rule, 0..4)
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        10 => (1u64..2000, ecn()).prop_map(|(bytes, ecn)| Operation::Send { bytes, ecn }),
        6 => micros(5).prop_map(Operation::Wait),
        1 => rate().prop_map(Operation::SetRate),
        1 => micros(30).prop_map(Operation::SetDelay),
        1 => faults().prop_map(Operation::SetFaults),
        1 => rules().prop_map(Operation::SetRules),
        1 => (500u64..2000).prop_map(|bytes| Operation::SetMtu(ByteSize::from_bytes(bytes))),
    ]
}

/// A port with the test's clock and the packets that came out.
struct Bench {
    egress_port: EgressPort<Numbered>,
    now: Time,
    sent: u64,
    out: Vec<Numbered>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let link = Link::new(Rate::from_gbps(10), Duration::from_micros(5));
        let faults = Faults::new(FaultSettings::default(), seed);
        let egress_port = EgressPort::new(Queue::new([], seed), link, faults);
        Self {
            egress_port,
            now: Time::ZERO,
            sent: 0,
            out: Vec::new(),
        }
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.now;
        match operation.clone() {
            Operation::Send { bytes, ecn } => {
                self.egress_port.send(
                    now,
                    Numbered {
                        number: self.sent,
                        bytes,
                        ecn,
                        damaged: false,
                    },
                );
                self.sent += 1;
            }
            Operation::Wait(span) => self.now += span,
            Operation::SetRate(rate) => self.egress_port.set_rate(now, rate),
            Operation::SetDelay(delay) => self.egress_port.set_delay(now, delay),
            Operation::SetFaults(settings) => self.egress_port.set_faults(now, settings),
            Operation::SetRules(rules) => self.egress_port.set_rules(rules),
            Operation::SetMtu(mtu) => self.egress_port.set_mtu(mtu),
        }
    }

    /// Polls each packet when it is due.
    fn poll(&mut self) {
        while let Some(time) = self.egress_port.timeout().filter(|&time| time <= self.now) {
            self.out.extend(self.egress_port.poll_delivered(time));
        }
    }

    /// Sets a rate and waits until nothing is in transit.
    fn finish(&mut self) {
        self.poll();
        self.egress_port.set_rate(self.now, Rate::from_gbps(10));
        self.now = Time::from_nanos(u64::MAX / 2);
        self.poll();
        while let Some(packet) = self.egress_port.poll_delivered(self.now) {
            self.out.push(packet);
        }
    }
}

proptest! {
    #[test]
    fn counters_balance_at_every_step(seed: u64, operations in prop::collection::vec(operation(), 1..200)) {
        let mut bench = Bench::new(seed);
        for operation in &operations {
            bench.perform(operation);
            bench.poll();
            let egress_port = &bench.egress_port;
            prop_assert!(egress_port.counters().balance(egress_port.inside()));
            let inside: Vec<ByteSize> = egress_port.packets().map(Packet::length).collect();
            prop_assert_eq!(inside.len() as u64, egress_port.inside().packets);
            prop_assert_eq!(inside.into_iter().sum::<ByteSize>(), egress_port.inside().size);
            prop_assert!(egress_port.queue().counters().balance(egress_port.queue().backlog()));
            let faults = egress_port.faults().unwrap();
            prop_assert!(faults.counters().balance(faults.delayed()));
            let out = bench.out.iter().map(Packet::length).sum();
            let departed = PacketCount { packets: bench.out.len() as u64, size: out };
            prop_assert_eq!(egress_port.counters().departed, departed);
            prop_assert_eq!(egress_port.counters().arrived.packets, bench.sent);
        }
        bench.finish();
        prop_assert_eq!(bench.egress_port.inside(), PacketCount::ZERO);
        prop_assert!(bench.egress_port.counters().balance(PacketCount::ZERO));
    }

    #[test]
    fn the_same_seed_gives_the_same_packets_whenever_they_are_fetched(
        seed: u64,
        operations in prop::collection::vec(operation(), 1..200),
        punctual: [bool; 16],
    ) {
        let [mut first, mut again, mut late] = [(); 3].map(|()| Bench::new(seed));
        for (operation, punctual) in operations.iter().zip(punctual.iter().cycle()) {
            for bench in [&mut first, &mut again, &mut late] {
                bench.perform(operation);
            }
            first.poll();
            again.poll();
            if *punctual {
                late.poll();
            }
        }
        for bench in [&mut first, &mut again, &mut late] {
            bench.finish();
        }
        prop_assert_eq!(&first.out, &again.out);
        prop_assert_eq!(&first.out, &late.out);
        prop_assert_eq!(first.egress_port.counters(), late.egress_port.counters());
    }

    #[test]
    fn without_faults_packets_arrive_in_order_and_on_time(
        bits_per_second in 1_000_000u64..400_000_000_000,
        delay in micros(100),
        packets in prop::collection::vec((0u64..3000, 1u64..9000), 1..100),
    ) {
        let rate = Rate::from_bits_per_second(bits_per_second);
        let link = Link::new(rate, delay);
        let mut egress_port: EgressPort<Numbered> = EgressPort::new(Queue::new([], 0), link, Faults::none());
        let mut now = Time::ZERO;
        let mut arrivals = Vec::new();
        let mut due = Vec::new();
        // When the transmitter becomes idle, in units of a nanosecond divided by the rate.
        let mut idle = 0u128;
        let unit = u128::from(bits_per_second);
        let mut sent = packets.iter().enumerate();
        loop {
            let next = sent.next();
            let until = next.map_or(Time::MAX, |(_, &(gap, _))| now + Duration::from_nanos(gap));
            while let Some(time) = egress_port.timeout().filter(|&time| time <= until) {
                arrivals.extend(egress_port.poll_delivered(time).map(|packet| (packet.number, packet.bytes, time)));
            }
            let Some((number, &(_, bytes))) = next else { break };
            now = until;
            egress_port.send(now, Numbered { number: number as u64, bytes, ecn: Ecn::Ect0, damaged: false });
            if u128::from(now.as_nanos()) > idle.div_ceil(unit) {
                idle = u128::from(now.as_nanos()) * unit;
            }
            idle += u128::from(bytes) * 8 * 1_000_000_000;
            let done = Time::from_nanos(idle.div_ceil(unit) as u64);
            due.push((number as u64, bytes, done + delay));
        }
        prop_assert_eq!(&arrivals, &due);

        // Over any window the rate is kept, except for the rounding of arrivals to a nanosecond.
        for (index, &(_, _, from)) in arrivals.iter().enumerate() {
            let mut moved = ByteSize::ZERO;
            for &(_, bytes, to) in &arrivals[index + 1..] {
                moved += ByteSize::from_bytes(bytes);
                let window = u128::from(to.since(from).as_nanos()) + 1;
                prop_assert!(u128::from(moved.bytes()) * 8 * 1_000_000_000 <= unit * window);
            }
        }
    }
}

#[test]
fn different_seeds_differ() {
    let out = |seed| {
        let mut bench = Bench::new(seed);
        let loss = Probability::new(0.5).unwrap();
        bench.perform(&Operation::SetFaults(FaultSettings {
            loss,
            ..FaultSettings::default()
        }));
        (0..100).for_each(|_| {
            bench.perform(&Operation::Send {
                bytes: 100,
                ecn: Ecn::Ect0,
            })
        });
        bench.finish();
        bench.out
    };
    assert_eq!(out(1), out(1));
    assert_ne!(out(1), out(2));
}

#[test]
fn arriving_marks_are_the_marks_set_minus_losses() {
    let mut bench = Bench::new(3);
    let [mark, loss] = [0.1, 0.2].map(|value| Probability::new(value).unwrap());
    bench.perform(&Operation::SetRules(vec![Rule::mark_randomly(mark)]));
    bench.perform(&Operation::SetFaults(FaultSettings {
        loss,
        ..FaultSettings::default()
    }));
    let packets = 100_000;
    (0..packets).for_each(|_| {
        bench.perform(&Operation::Send {
            bytes: 100,
            ecn: Ecn::Ect0,
        })
    });
    bench.finish();
    let arrived = bench.out.len() as f64;
    let marked = bench
        .out
        .iter()
        .filter(|packet| packet.ecn == Ecn::Ce)
        .count() as f64;
    assert!((marked as u64) < bench.egress_port.queue().marked().packets);
    // Four standard deviations of a tenth of 80,000.
    assert!(
        (marked / arrived - 0.1).abs() < 4.0 * (0.09 / arrived).sqrt(),
        "{}",
        marked / arrived
    );
}
