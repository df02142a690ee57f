//! Forged segments: no panic, no inconsistent state, no unbounded work.

use std::sync::Arc;

use proptest::prelude::*;
use weir_tcp::{Config, Connection, EcnMode, LossDetection, State};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{
    Flags, Options, SackBlock, SackBlocks, Segment, Sequence, SynOptions, Timestamps,
};

use crate::world::controller;

/// An event at the connection under test.
#[derive(Clone, Debug)]
enum Event {
    /// A segment arrives, with numbers relative to the expected ones.
    Segment(Box<Forged>),
    Write(u64),
    Read(u64),
    Close,
    Abort,
    /// Time passes (in microseconds).
    Wait(u64),
    /// Time passes until the next timer.
    Expire,
}

#[derive(Clone, Debug)]
struct Forged {
    /// Relative to the next expected byte, and to the end of the sent data.
    sequence: i32,
    acknowledgment: i32,
    payload: u32,
    window: u16,
    flags: u8,
    timestamps: Option<(u32, u32)>,
    sack: Vec<(i32, i32)>,
    syn: Option<(u16, Option<u8>, bool)>,
    ecn: u8,
}

fn near() -> impl Strategy<Value = i32> {
    prop_oneof![
        4 => Just(0),
        4 => -5_000..20_000i32,
        1 => any::<i32>(),
    ]
}

fn forged() -> impl Strategy<Value = Event> {
    let flags = prop_oneof![
        6 => Just(Flags::ACK.bits()),
        2 => Just((Flags::ACK | Flags::ECE).bits()),
        2 => Just((Flags::SYN | Flags::ACK).bits()),
        1 => Just((Flags::FIN | Flags::ACK).bits()),
        2 => any::<u8>().prop_map(|bits| bits & !Flags::RST.bits()),
        1 => any::<u8>(),
    ];
    let payload = prop_oneof![3 => Just(0u32), 3 => 1..5_000u32, 1 => any::<u32>()];
    let numbers = (near(), near(), payload, any::<u16>(), flags);
    let options = (
        prop::option::of(any::<(u32, u32)>()),
        prop::collection::vec((near(), near()), 0..4),
        prop::option::weighted(0.2, any::<(u16, Option<u8>, bool)>()),
        0u8..4,
    );
    (numbers, options).prop_map(
        |((sequence, acknowledgment, payload, window, flags), (timestamps, sack, syn, ecn))| {
            Event::Segment(Box::new(Forged {
                sequence,
                acknowledgment,
                payload,
                window,
                flags,
                timestamps,
                sack,
                syn,
                ecn,
            }))
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => forged(),
        2 => (0..100_000u64).prop_map(Event::Write),
        1 => (0..100_000u64).prop_map(Event::Read),
        1 => Just(Event::Close),
        1 => Just(Event::Abort),
        2 => (0..10_000_000u64).prop_map(Event::Wait),
        3 => Just(Event::Expire),
    ]
}

fn configuration() -> impl Strategy<Value = Config> {
    (
        any::<(bool, bool, bool, bool)>(),
        prop::option::of(1u64..1_000_000),
        0..3usize,
        1u32..5,
    )
        .prop_map(
            |((sack, timestamps, rack, reads), buffer, ecn, burst_segments)| Config {
                sack,
                timestamps: timestamps.then_some(Duration::from_millis(1)),
                loss_detection: if rack {
                    LossDetection::RackTlp
                } else {
                    LossDetection::DuplicateThreshold
                },
                read_automatically: reads,
                receive_buffer: buffer.map(ByteSize::from_bytes),
                ecn: [EcnMode::Off, EcnMode::Classic, EcnMode::Dctcp][ecn],
                burst_segments,
                ..Config::default()
            },
        )
}

/// The state that the peer of the connection under test would have.
struct Peer {
    isn: Sequence,
    /// The end of the connection's sent data, initially its first sequence number.
    sent: Sequence,
}

impl Peer {
    fn forge(&self, received: u64, forged: &Forged) -> Segment {
        let expected = self.isn + 1 + received as u32;
        let shift = |from: Sequence, by: i32| from + by as u32;
        let acknowledgment = shift(self.sent, forged.acknowledgment);
        let blocks: SackBlocks = forged
            .sack
            .iter()
            .map(|&(start, end)| SackBlock {
                start: shift(acknowledgment, start),
                end: shift(acknowledgment, end),
            })
            .collect();
        Segment {
            sequence: shift(expected, forged.sequence),
            acknowledgment,
            payload: forged.payload,
            window: forged.window,
            flags: Flags::from_bits(forged.flags),
            timestamps: forged
                .timestamps
                .map(|(value, echo)| Timestamps { value, echo }),
            options: match forged.syn {
                Some((maximum_segment_size, window_scale, sack_permitted)) => {
                    Options::Syn(SynOptions {
                        maximum_segment_size,
                        window_scale,
                        sack_permitted,
                    })
                }
                None if blocks.is_empty() => Options::None,
                None => Options::Sack(blocks),
            },
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_segments_keep_the_connection_consistent(
        config in configuration(),
        side in 0..3usize,
        spec in prop::sample::select(vec!["newreno", "cubic", "dctcp", "swift", "bbr", "bbr3"]),
        isn: u32,
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut now = Time::ZERO + Duration::from_secs(3);
        let algorithm = controller(spec, &config);
        let config = Arc::new(config);
        let isn = Sequence::new(isn);
        let mut peer = Peer { isn: Sequence::new(5), sent: isn };
        let mut end = match side {
            0 => Connection::client(now, &config, algorithm, isn),
            1 => Connection::server(&config, algorithm, isn),
            _ => {
                peer.sent = isn + 1;
                Connection::established(now, &config, &config, algorithm, isn, peer.isn)
            }
        }
        .unwrap();
        let (mut written, mut received, mut acknowledged) = (0, 0, 0);
        for event in &events {
            match event {
                Event::Segment(forged) => {
                    let segment = peer.forge(received, forged);
                    if segment.flags.contains(Flags::SYN) {
                        peer.isn = segment.sequence;
                    }
                    end.receive(now, &segment, Ecn::from_bits(forged.ecn));
                }
                Event::Write(bytes) => {
                    written += bytes;
                    end.write(ByteSize::from_bytes(*bytes));
                }
                Event::Read(bytes) => end.read(ByteSize::from_bytes(*bytes)),
                Event::Close => end.close(),
                Event::Abort => end.abort(),
                Event::Wait(micros) => now += Duration::from_micros(*micros),
                Event::Expire => now = end.timeout().unwrap_or(now).max(now),
            }
            end.handle_timeout(now);
            let mut segments = 0;
            while let Some((segment, _)) = end.next_segment(now) {
                segments += 1;
                prop_assert!(segments < 20_000, "endless");
                prop_assert!(segment.flags.intersects(Flags::ACK | Flags::SYN | Flags::RST));
                let limit = config.mss.bytes() * u64::from(config.burst_segments);
                prop_assert!(u64::from(segment.payload) <= limit);
                if peer.sent.precedes(segment.end()) {
                    peer.sent = segment.end();
                }
            }
            // Delivered and acknowledged bytes only grow, within the written data.
            let (delivered, done) = (end.received().bytes(), end.acknowledged().bytes());
            prop_assert!(delivered >= received && done >= acknowledged && done <= written);
            prop_assert!(end.unread().bytes() <= delivered);
            prop_assert!(end.snapshot().in_flight.bytes() <= written - done + 1);
            (received, acknowledged) = (delivered, done);
            prop_assert!(end.timeout().is_none_or(|next| next > now), "{:?}", end);
            if end.state() == State::Closed {
                prop_assert_eq!(end.timeout(), None);
                prop_assert!(end.ending().is_some());
            }
        }
    }

    /// Two ends in disagreement must not answer each other forever.
    #[test]
    fn a_mismatched_segment_causes_no_ack_storm(shift in 1u32.., length in 0u32..3, isn: u32) {
        let config = Arc::new(Config::default());
        let now = Time::ZERO + Duration::from_secs(3);
        let (isn, peer_isn) = (Sequence::new(isn), Sequence::new(99));
        let one = |isn, peer| {
            Connection::established(now, &config, &config, controller("cubic", &config), isn, peer)
                .unwrap()
        };
        let (mut a, mut b) = (one(isn, peer_isn), one(peer_isn, isn + shift));
        let first = Segment {
            sequence: Sequence::new(4_000_000_000),
            payload: length,
            flags: Flags::ACK,
            timestamps: Some(Timestamps { value: 3_001, echo: 0 }),
            ..Segment::default()
        };
        a.receive(now, &first, Ecn::NotEct);
        let mut count = 0;
        loop {
            let to_b = a.next_segment(now);
            if let Some((segment, ecn)) = &to_b {
                b.receive(now, segment, *ecn);
            }
            let to_a = b.next_segment(now);
            if let Some((segment, ecn)) = &to_a {
                a.receive(now, segment, *ecn);
            }
            if to_a.is_none() && to_b.is_none() {
                break;
            }
            count += 1;
            prop_assert!(count < 10);
        }
    }
}
