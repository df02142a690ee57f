//! The exact count of CE marks over a network that loses, reorders and repeats packets.

use proptest::prelude::*;

use super::*;
use crate::path::EcnPhase;

fn ect(packet: &mut SentPacket) {
    packet.ecn = Ecn::Ect0;
}

#[test]
fn marks_and_validation_are_reported_to_path_and_controller() {
    let mut sender = Sender::with_rtt(us(100));
    (0..4).for_each(|_| {
        sender.send_as(Space::Data, ect);
    });
    let counts = EcnCounts {
        ect0: 3,
        ect1: 0,
        ce: 1,
    };
    sender.wait(us(100));
    let outcome = sender
        .ack_with(Space::Data, &[1..=4], Duration::ZERO, Some(counts))
        .unwrap();
    assert_eq!(outcome.ce_marked.bytes(), u64::from(SIZE));
    assert!(!outcome.ecn_failed);
    assert_eq!(sender.path.ecn.phase, EcnPhase::Capable);
    assert_eq!(sender.path.stats.ce_marks, 1);
    assert_eq!(sender.path.stats.ect_acked, 4);
    assert_eq!(sender.controller.log().acks[0].ce_marked.bytes(), 1_200);

    sender.send_as(Space::Data, ect);
    sender.wait(us(100));
    let outcome = sender.ack_data(&[1..=5]);
    assert!(outcome.ecn_failed);
    assert_eq!(sender.path.ecn.codepoint(), Ecn::NotEct);
}

/// The fate of one packet.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives { late: bool },
    Marked { late: bool },
    Twice,
    Lost,
}

/// A batch of packets and the fate of its ACK.
#[derive(Clone, Debug)]
struct Flight {
    packets: Vec<(Fate, u32)>,
    pause: u64,
    ack_lost: bool,
    ack_late: bool,
    ack_twice: bool,
}

fn flight() -> impl Strategy<Value = Flight> {
    let fate = prop_oneof![
        8 => any::<bool>().prop_map(|late| Fate::Arrives { late }),
        4 => any::<bool>().prop_map(|late| Fate::Marked { late }),
        1 => Just(Fate::Twice),
        2 => Just(Fate::Lost),
    ];
    (
        prop::collection::vec((fate, 100u32..1_500), 1..12),
        1u64..400,
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(packets, pause, ack_lost, ack_late, ack_twice)| Flight {
            packets,
            pause,
            ack_lost,
            ack_late,
            ack_twice,
        })
}

/// Both ends and the ACKs in flight.
struct Network {
    sender: Sender,
    receiver: ReceivedPackets,
    late_packets: Vec<(u64, Ecn)>,
    late_acks: Vec<Vec<u8>>,
    marks: u64,
    marked_bytes: u64,
}

impl Network {
    fn new() -> Self {
        Self {
            sender: Sender::with_rtt(us(100)),
            receiver: ReceivedPackets::new(AckPolicy {
                max_ack_delay: us(100),
                final_delay: Duration::ZERO,
                threshold: 64,
                exponent: 0,
            }),
            late_packets: Vec::new(),
            late_acks: Vec::new(),
            marks: 0,
            marked_bytes: 0,
        }
    }

    fn arrive(&mut self, number: u64, ecn: Ecn) {
        if self.receiver.is_duplicate(number) {
            return;
        }
        self.receiver
            .on_received(self.sender.now, number, true, ecn);
        self.marks += u64::from(ecn == Ecn::Ce);
    }

    fn send_flight(&mut self, flight: &Flight, size: Option<u32>) {
        let mut late = Vec::new();
        for &(fate, packet_size) in &flight.packets {
            let number = self.sender.send_as(Space::Data, |packet| {
                packet.ecn = Ecn::Ect0;
                packet.size = size.unwrap_or(packet_size);
            });
            match fate {
                Fate::Arrives { late: false } => self.arrive(number, Ecn::Ect0),
                Fate::Marked { late: false } => self.arrive(number, Ecn::Ce),
                Fate::Arrives { late: true } => late.push((number, Ecn::Ect0)),
                Fate::Marked { late: true } => late.push((number, Ecn::Ce)),
                Fate::Twice => {
                    self.arrive(number, Ecn::Ect0);
                    self.arrive(number, Ecn::Ce);
                }
                Fate::Lost => {}
            }
        }
        for (number, ecn) in std::mem::replace(&mut self.late_packets, late) {
            self.arrive(number, ecn);
        }
        self.sender.wait(us(flight.pause));
        self.answer(flight);
    }

    fn answer(&mut self, flight: &Flight) {
        let mut ack = Vec::new();
        let before = std::mem::take(&mut self.late_acks);
        if self.receiver.ack_pending()
            && self
                .receiver
                .write_ack(self.sender.now, &mut ack, 1_000)
                .is_some()
            && !flight.ack_lost
        {
            if flight.ack_late || flight.ack_twice {
                self.late_acks.push(ack.clone());
            }
            if !flight.ack_late {
                self.deliver(&ack);
            }
        }
        before.iter().for_each(|ack| self.deliver(ack));
    }

    fn deliver(&mut self, ack: &[u8]) {
        let outcome = self.sender.on_frame(Space::Data, ack, Duration::ZERO);
        let outcome = outcome.unwrap();
        assert!(outcome.ce_marked <= outcome.acked);
        assert!(!outcome.ecn_failed, "{:?}", self.sender.path.ecn);
        self.marked_bytes += outcome.ce_marked.bytes();
    }

    /// Sends a last clean flight, so that every mark finds packets to be assigned to.
    fn settle(&mut self, size: u32) {
        for _ in 0..3 {
            let clean = Flight {
                packets: vec![(Fate::Arrives { late: false }, size); 400],
                pause: 100,
                ack_lost: false,
                ack_late: false,
                ack_twice: false,
            };
            self.send_flight(&clean, Some(size));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The marked bytes reported to the controller equal the marks on packets that arrived, times
    /// their size, whatever the fate of packets and ACKs. Honest feedback never fails the path.
    #[test]
    fn marked_bytes_are_exact_for_equal_sizes(flights in prop::collection::vec(flight(), 1..40)) {
        let mut network = Network::new();
        for flight in &flights {
            network.send_flight(flight, Some(SIZE));
        }
        network.settle(SIZE);
        prop_assert_eq!(network.marked_bytes, network.marks * u64::from(SIZE));
        prop_assert_eq!(network.sender.path.stats.ce_marks, network.marks);
        prop_assert_eq!(network.sender.path.ecn.phase, EcnPhase::Capable);
    }

    /// With mixed sizes the bytes are those of as many packets as there were marks.
    #[test]
    fn marked_bytes_are_apportioned_otherwise(flights in prop::collection::vec(flight(), 1..40)) {
        let mut network = Network::new();
        for flight in &flights {
            network.send_flight(flight, None);
        }
        network.settle(100);
        prop_assert_eq!(network.sender.path.stats.ce_marks, network.marks);
        prop_assert!(network.marked_bytes <= network.marks * 1_500);
        prop_assert!(network.marked_bytes + 1 >= network.marks * 100);
    }
}
