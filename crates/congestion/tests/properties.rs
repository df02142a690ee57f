//! Properties of every registered algorithm under any sequence of events.

use proptest::prelude::*;
use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, Deadline, DeliverySample, LossCause, LossSample,
    PacketSent, SpuriousLoss, algorithms,
};
use weir_units::{ByteSize, Duration, Rate, Time};

/// Algorithms that reduce at most once per round trip, determined by send time.
const ONCE_PER_ROUND_TRIP: [&str; 4] = ["newreno", "cubic", "dctcp", "d2tcp"];

#[derive(Clone, Debug)]
enum Event {
    Sent {
        in_flight: u64,
    },
    Ack(Ack),
    Loss {
        lost: u64,
        age: u64,
        cause: LossCause,
    },
    Spurious {
        bytes: u64,
        age: u64,
    },
    IdleRestart,
    Deadline(Option<(u64, u64)>),
    PacketSize(u64),
}

#[derive(Clone, Debug)]
struct Ack {
    acked: u64,
    marked: u64,
    ece: bool,
    rtt: Option<u64>,
    in_flight: u64,
    age: u64,
    rate: Option<u64>,
    app_limited: bool,
    round_ended: bool,
}

/// Mostly plausible values, sometimes any value.
fn amount(plausible: u64) -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..plausible, 1 => any::<u64>()]
}

fn ack() -> impl Strategy<Value = Ack> {
    let rtt = prop::option::weighted(0.9, amount(1_000_000));
    let rate = prop::option::weighted(0.8, amount(10_000_000_000));
    let flags = (
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    );
    let marked = prop_oneof![3 => Just(0), 1 => amount(3_000)];
    (
        amount(20_000),
        marked,
        rtt,
        amount(200_000),
        amount(1_000_000),
        rate,
        flags,
    )
        .prop_map(
            |(acked, marked, rtt, in_flight, age, rate, (ece, app_limited, round_ended))| Ack {
                acked,
                marked,
                ece,
                rtt,
                in_flight,
                age,
                rate,
                app_limited,
                round_ended,
            },
        )
}

fn event() -> impl Strategy<Value = Event> {
    let cause = prop_oneof![
        6 => Just(LossCause::Acks),
        2 => Just(LossCause::Nak),
        1 => Just(LossCause::Timeout),
    ];
    prop_oneof![
        6 => amount(200_000).prop_map(|in_flight| Event::Sent { in_flight }),
        12 => ack().prop_map(Event::Ack),
        3 => (amount(10_000), amount(1_000_000), cause)
            .prop_map(|(lost, age, cause)| Event::Loss { lost, age, cause }),
        1 => (amount(10_000), amount(1_000_000))
            .prop_map(|(bytes, age)| Event::Spurious { bytes, age }),
        1 => Just(Event::IdleRestart),
        1 => prop::option::of((amount(100_000), amount(1_000_000))).prop_map(Event::Deadline),
        1 => prop_oneof![Just(0), Just(1_200), Just(1_452), Just(9_000), Just(65_000), any::<u64>()]
            .prop_map(Event::PacketSize),
    ]
}

/// A controller under test and the state to check it against.
struct Subject {
    controller: Box<dyn Controller>,
    now: Time,
    packet: ByteSize,
    /// The smallest allowed window, in packets.
    min_packets: f64,
    last_decrease: Option<Time>,
    largest: ByteSize,
}

impl Subject {
    fn new(name: &str) -> Self {
        let packet = ByteSize::from_bytes(1_452);
        let spec: AlgorithmSpec = name.parse().expect("a name of the registry");
        let minimum = spec
            .algorithm()
            .parameters()
            .find(|parameter| parameter.name == "min_window")
            // A purely rate-based algorithm has no window and no minimum window.
            .map_or_else(|| "1".to_owned(), |parameter| parameter.default.to_string());
        let controller = spec.build(&Context {
            packet_size: packet,
            seed: 9,
            is_paced: false,
        });
        Self {
            largest: controller.window(),
            controller,
            now: Time::from_nanos(1_000_000),
            packet,
            min_packets: minimum.parse().expect("a number"),
            last_decrease: None,
        }
    }

    fn ago(&self, age: u64) -> Time {
        self.now - Duration::from_nanos(age)
    }

    fn apply(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let before = self.controller.window();
        match event {
            Event::Sent { in_flight } => self.controller.on_sent(&PacketSent {
                now: self.now,
                size: self.packet,
                in_flight: ByteSize::from_bytes(*in_flight),
            }),
            Event::Ack(ack) => self.acknowledge(ack, before)?,
            Event::Loss { lost, age, cause } => self.lose(*lost, *age, *cause, before)?,
            Event::Spurious { bytes, age } => self.controller.on_spurious_loss(&SpuriousLoss {
                now: self.now,
                bytes: ByteSize::from_bytes(*bytes),
                newest_sent: self.ago(*age),
            }),
            Event::IdleRestart => self.controller.on_idle_restart(self.now),
            Event::Deadline(deadline) => {
                self.controller
                    .on_deadline(deadline.map(|(remaining, left)| Deadline {
                        remaining: ByteSize::from_bytes(remaining),
                        time_left: Duration::from_nanos(left),
                    }));
            }
            Event::PacketSize(size) => {
                self.packet = ByteSize::from_bytes((*size).max(1));
                self.controller.on_packet_size(ByteSize::from_bytes(*size));
            }
        }
        self.check()
    }

    fn acknowledge(&mut self, ack: &Ack, before: ByteSize) -> Result<(), TestCaseError> {
        let newest_sent = self.ago(ack.age);
        let sample = AckSample {
            now: self.now,
            acked: ByteSize::from_bytes(ack.acked),
            ce_marked: ByteSize::from_bytes(ack.marked),
            ece: ack.ece,
            rtt: ack.rtt.map(Duration::from_nanos),
            smoothed_rtt: Duration::from_nanos(ack.rtt.unwrap_or(0)),
            min_rtt: Duration::from_nanos(ack.rtt.unwrap_or(50_000).min(50_000)),
            prior_in_flight: ByteSize::from_bytes(ack.in_flight) + ByteSize::from_bytes(ack.acked),
            in_flight: ByteSize::from_bytes(ack.in_flight),
            newest_sent,
            delivery: ack.rate.map(|rate| DeliverySample {
                rate: Rate::from_bits_per_second(rate),
                interval: Duration::from_nanos(ack.age),
                delivered: ByteSize::from_bytes(ack.acked),
                prior_delivered: ByteSize::ZERO,
                in_flight_at_send: ByteSize::from_bytes(ack.in_flight),
                lost: ByteSize::from_bytes(ack.marked),
                app_limited: ack.app_limited,
            }),
            app_limited: ack.app_limited,
            is_recovering: false,
            round_ended: ack.round_ended,
        };
        self.controller.on_ack(&sample);
        if ack.app_limited {
            // BBR may return to the window before recovery or ProbeRTT.
            let name = self.controller.name();
            let ceiling = if name.starts_with("bbr") {
                self.largest
            } else {
                before
            };
            prop_assert!(
                self.controller.window() <= ceiling,
                "{name} grew while app-limited"
            );
        }
        self.check_decrease(newest_sent, before)
    }

    fn lose(
        &mut self,
        lost: u64,
        age: u64,
        cause: LossCause,
        before: ByteSize,
    ) -> Result<(), TestCaseError> {
        let newest_sent = self.ago(age);
        self.controller.on_loss(&LossSample {
            now: self.now,
            lost: ByteSize::from_bytes(lost),
            newest_sent,
            cause,
            in_flight: ByteSize::from_bytes(lost),
        });
        prop_assert!(
            self.controller.window() <= before,
            "a loss raised the window"
        );
        if cause == LossCause::Timeout {
            self.last_decrease = Some(self.now);
            return Ok(());
        }
        self.check_decrease(newest_sent, before)
    }

    fn check_decrease(&mut self, newest_sent: Time, before: ByteSize) -> Result<(), TestCaseError> {
        let name = self.controller.name();
        if self.controller.window() < before && ONCE_PER_ROUND_TRIP.contains(&name) {
            prop_assert!(
                self.last_decrease.is_none_or(|last| newest_sent > last),
                "{name}: a second decrease in a round trip"
            );
            self.last_decrease = Some(self.now);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let window = self.controller.window();
        self.largest = self.largest.max(window);
        prop_assert!(!window.is_zero());
        let minimum = if self.min_packets < 1.0 {
            self.packet.mul_f64(self.min_packets * (1.0 - 1e-9))
        } else {
            self.packet * self.min_packets as u64
        };
        prop_assert!(
            window >= minimum,
            "{}: {window} is less than {} packets of {}",
            self.controller.name(),
            self.min_packets,
            self.packet
        );
        prop_assert!(
            self.controller
                .pacing_rate()
                .is_none_or(|rate| !rate.is_zero())
        );
        let alpha = self.controller.snapshot().ce_fraction.unwrap_or(0.0);
        prop_assert!((0.0..=1.0).contains(&alpha));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_algorithm_upholds_the_controller_contract(events in prop::collection::vec((amount(200_000), event()), 1..120)) {
        for algorithm in algorithms() {
            let mut subject = Subject::new(algorithm.name);
            let mut twin = subject.controller.clone();
            for (index, (step, event)) in events.iter().enumerate() {
                subject.now += Duration::from_nanos(*step);
                subject.apply(event)?;
                if index == events.len() / 2 {
                    twin = subject.controller.clone();
                    prop_assert_eq!(twin.window(), subject.controller.window());
                }
            }
            prop_assert_eq!(twin.name(), algorithm.name);
        }
    }

    #[test]
    fn a_cap_is_never_exceeded(
        events in prop::collection::vec((amount(200_000), event()), 1..60),
        cap in 1_u64..1_000_000,
    ) {
        for algorithm in algorithms() {
            let spec = format!("{},max_window={cap}B,max_rate=1Mbps", algorithm.name);
            let mut controller: Box<dyn Controller> = spec
                .parse::<AlgorithmSpec>()
                .unwrap()
                .build(&Context { packet_size: ByteSize::from_bytes(1_452), seed: 9, is_paced: false });
            let mut subject = Subject::new(algorithm.name);
            std::mem::swap(&mut subject.controller, &mut controller);
            subject.min_packets = 0.0;
            for (step, event) in &events {
                subject.now += Duration::from_nanos(*step);
                // Only the cap matters here: the other properties have their own test.
                let _ = subject.apply(event);
                prop_assert!(subject.controller.window() <= ByteSize::from_bytes(cap));
                prop_assert!(subject.controller.pacing_rate().unwrap() <= Rate::from_mbps(1));
            }
        }
    }
}
