//! Round trips of every frame, and frames that must be refused.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::*;
use crate::codec::{Reader, VARINT_MAX};
use crate::{Level, Side, TransportError};

const LEVELS: [Level; 4] = [
    Level::Initial,
    Level::ZeroRtt,
    Level::Handshake,
    Level::OneRtt,
];

fn decode(payload: &[u8]) -> Result<Vec<Frame<'_>>, TransportError> {
    Frames::new(payload).collect()
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.write(&mut out);
    out
}

/// The number of frames of [`example`].
const EXAMPLES: usize = 30;

/// Returns a frame of each kind, with fields from numbers and bytes.
fn example(which: usize, [a, b, c]: [u64; 3], flag: bool, bytes: &[u8]) -> Frame<'_> {
    let id = StreamId::from_wire(a);
    let token = [b as u8; 16];
    let data = b.to_be_bytes();
    match which {
        0 => Frame::Padding,
        1 => Frame::Ping,
        2 => Frame::ResetStream(ResetStream {
            id,
            code: b,
            final_size: c,
        }),
        3 => Frame::StopSending { id, code: b },
        4 => Frame::Crypto {
            offset: b >> 1,
            data: bytes,
        },
        5 if bytes.is_empty() => Frame::NewToken(b"token"),
        5 => Frame::NewToken(bytes),
        6 => Frame::Stream(Stream {
            id,
            offset: b >> 1,
            fin: flag,
            data: bytes,
        }),
        7 => Frame::MaxData(a),
        8 => Frame::MaxStreamData { id, limit: b },
        9 | 10 => Frame::MaxStreams {
            direction: direction(which == 9),
            limit: a >> 2,
        },
        11 => Frame::DataBlocked(a),
        12 => Frame::StreamDataBlocked { id, limit: b },
        13 | 14 => Frame::StreamsBlocked {
            direction: direction(which == 13),
            limit: a >> 2,
        },
        15 => Frame::NewConnectionId(NewConnectionId {
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            id: ConnectionId::new(&[c as u8; 20][..1 + c as usize % 20]).unwrap(),
            reset_token: token,
        }),
        16 => Frame::RetireConnectionId(a),
        17 => Frame::PathChallenge(data),
        18 => Frame::PathResponse(data),
        19 => Frame::Close(Close::Transport {
            code: Code::from_wire(a),
            frame_type: b,
            reason: bytes,
        }),
        20 => Frame::Close(Close::Application {
            code: a,
            reason: bytes,
        }),
        21 => Frame::HandshakeDone,
        23 => Frame::Datagram(bytes),
        24 => Frame::AckFrequency(AckFrequency {
            sequence: a,
            threshold: b,
            max_ack_delay: c,
            reordering_threshold: a >> 1,
        }),
        25 => Frame::ImmediateAck,
        26 => Frame::PathSecret(PathSecret {
            lifetime: a,
            refusal_token: [b as u8; 16],
        }),
        27 => Frame::PathKey([b as u8; 32]),
        28 => Frame::PathKeyAnswer {
            key: [c as u8; 32],
            secret: PathSecret {
                lifetime: a,
                refusal_token: token,
            },
        },
        29 => Frame::GoAway(a >> 2),
        _ => Frame::Ack(Ack {
            largest: a.max(b),
            delay: c,
            encoded_ranges: &[],
            first_range: a.min(b),
            ecn: flag.then_some(EcnCounts {
                ect0: a,
                ect1: b,
                ce: c,
            }),
        }),
    }
}

const fn direction(bidirectional: bool) -> Direction {
    if bidirectional {
        Direction::Bidirectional
    } else {
        Direction::Unidirectional
    }
}

fn varint() -> impl Strategy<Value = u64> {
    (0..=VARINT_MAX, 0..62_u32).prop_map(|(value, shift)| value >> shift)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

/// Ranges from the largest downwards with gaps between them.
fn ranges(count: usize) -> impl Strategy<Value = Vec<RangeInclusive<u64>>> {
    let step = prop_oneof![4 => 0..4_u64, 1 => 0..1_u64 << 20];
    prop::collection::vec((step.clone(), step), 1..=count).prop_map(|steps| {
        let mut next = 0;
        let mut ranges: Vec<_> = steps
            .into_iter()
            .map(|(gap, length)| {
                let start = next + gap;
                next = start + length + 2;
                start..=start + length
            })
            .collect();
        ranges.reverse();
        ranges
    })
}

/// Returns the ranges of an ACK that is alone in `payload`.
fn acknowledged(payload: &[u8]) -> Vec<RangeInclusive<u64>> {
    match decode(payload).unwrap().as_slice() {
        [Frame::Ack(ack)] => ack.ranges().collect(),
        other => panic!("{other:?}"),
    }
}

fn assert_refused(payload: &[u8], code: Code, frame_type: u64) {
    let mut frames = Frames::new(payload);
    let error = frames.next().unwrap().unwrap_err();
    assert_eq!(
        (error.code, error.frame_type),
        (code, frame_type),
        "{error}"
    );
    assert_eq!(frames.next(), None, "the iterator goes on after an error");
}

#[test]
fn the_payload_of_rfc_9001_appendix_a_3_is_an_ack_and_a_server_hello() {
    let mut payload = vec![0x02, 0, 0, 0, 0, 0x06, 0x00, 0x40, 0x5a];
    payload.extend([0x5a; 0x5a]);
    let frames = decode(&payload).unwrap();
    let [Frame::Ack(ack), Frame::Crypto { offset, data }] = frames.as_slice() else {
        panic!("{frames:?}");
    };
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [0..=0]);
    assert_eq!((ack.delay, ack.ecn), (0, None));
    assert_eq!((*offset, data.len()), (0, 0x5a));
}

#[test]
fn consecutive_padding_decodes_as_one_frame() {
    let mut payload = vec![0; 60_000];
    payload.extend([0x01, 0x00]);
    let frames = decode(&payload).unwrap();
    assert_eq!(frames, [Frame::Padding, Frame::Ping, Frame::Padding]);
}

#[test]
fn a_stream_frame_without_length_takes_the_rest() {
    let id = StreamId::new(Side::Client, Direction::Unidirectional, 3);
    let mut payload = Vec::new();
    write::ping(&mut payload);
    write::stream_header(&mut payload, id, 7, None, true);
    payload.extend(b"\x01\x02rest");
    let stream = Stream {
        id,
        offset: 7,
        fin: true,
        data: b"\x01\x02rest",
    };
    assert_eq!(
        decode(&payload).unwrap(),
        [Frame::Ping, Frame::Stream(stream)]
    );
}

#[test]
fn a_datagram_without_length_takes_the_rest() {
    let payload = [0x31, 2, 7, 8, 0x01, 0x30, 0x01, 0x31];
    assert_eq!(
        decode(&payload).unwrap(),
        [
            Frame::Datagram(&[7, 8]),
            Frame::Ping,
            Frame::Datagram(&[0x01, 0x31])
        ]
    );
    assert_eq!(decode(&[0x30]).unwrap(), [Frame::Datagram(&[])]);
}

#[test]
fn ack_frequency_frames_match_the_draft() {
    let payload = [0x40, 0xaf, 1, 10, 0x43, 0xe8, 3, 0x1f];
    let request = AckFrequency {
        sequence: 1,
        threshold: 10,
        max_ack_delay: 1000,
        reordering_threshold: 3,
    };
    assert_eq!(
        decode(&payload).unwrap(),
        [Frame::AckFrequency(request), Frame::ImmediateAck]
    );
}

#[test]
fn ack_ranges_follow_rfc_9000_section_19_3_1() {
    // Largest 100, delay 5, two more ranges; first 100-3; gap 1 skips 96 and 95; 94-2; gap 0.
    let payload = [0x03, 0x40, 100, 5, 2, 3, 1, 2, 0, 0x40, 90, 7, 8, 9];
    assert_eq!(acknowledged(&payload), [97..=100, 92..=94, 0..=90]);
    let Frame::Ack(ack) = &decode(&payload).unwrap()[0] else {
        panic!("no ACK");
    };
    let counts = EcnCounts {
        ect0: 7,
        ect1: 8,
        ce: 9,
    };
    assert_eq!(ack.ecn, Some(counts));
}

#[test]
fn malformed_frames_are_frame_encoding_errors() {
    let max = [0xff; 8];
    let with_max = |before: &[u8], after: &[u8]| [before, &max, after].concat();
    let too_many = [0xd0, 0, 0, 0, 0, 0, 0, 1];
    let cases: Vec<(Vec<u8>, u64)> = vec![
        (vec![0x02, 5, 0, 0, 6], 0x02),
        (vec![0x02, 5, 0, 1, 3, 1, 0], 0x02),
        (vec![0x02, 5, 0, 1, 0, 1, 3], 0x02),
        (with_max(&[0x02, 5, 0], &[0]), 0x02),
        (with_max(&[0x06], &[1, 0]), 0x06),
        (vec![0x07, 0], 0x07),
        (with_max(&[0x0e, 0], &[1, 0]), 0x0e),
        (with_max(&[0x0c, 0], &[0]), 0x0c),
        ([&[0x12][..], &too_many].concat(), 0x12),
        ([&[0x13][..], &too_many].concat(), 0x13),
        ([&[0x16][..], &too_many].concat(), 0x16),
        ([&[0x17][..], &too_many].concat(), 0x17),
        ([&[0x18, 1, 0, 0][..], &[0; 40]].concat(), 0x18),
        ([&[0x18, 1, 0, 21][..], &[0; 40]].concat(), 0x18),
        ([&[0x18, 1, 2, 8][..], &[0; 40]].concat(), 0x18),
        (vec![0x20], 0x20),
        (vec![0x31, 2, 0], 0x31),
        (vec![0x32, 0], 0x32),
        (vec![0x40, 0xaf, 0, 0, 0], 0xaf),
        (vec![0x40, 0x40], 0x40),
        (vec![0x80, 0xff], 0),
    ];
    for (payload, frame_type) in cases {
        assert_refused(&payload, Code::FRAME_ENCODING_ERROR, frame_type);
    }
}

#[test]
fn values_at_their_limit_are_accepted() {
    let limit = MAX_STREAM_COUNT;
    let direction = Direction::Bidirectional;
    for frame in [
        Frame::MaxStreams { direction, limit },
        Frame::StreamsBlocked { direction, limit },
        Frame::Crypto {
            offset: VARINT_MAX - 1,
            data: &[0],
        },
        Frame::Stream(Stream {
            id: StreamId::from_wire(VARINT_MAX),
            offset: VARINT_MAX,
            fin: true,
            data: &[],
        }),
    ] {
        assert_eq!(decode(&encoded(&frame)).unwrap(), [frame]);
    }
}

#[test]
fn a_non_minimal_frame_type_is_a_protocol_violation() {
    assert_refused(&[0x40, 0x01], Code::PROTOCOL_VIOLATION, 0x01);
    assert_refused(&[0x80, 0, 0, 0], Code::PROTOCOL_VIOLATION, 0x00);
}

#[test]
fn a_packet_without_frames_is_a_protocol_violation() {
    assert_refused(&[], Code::PROTOCOL_VIOLATION, 0);
}

#[test]
fn frame_types_are_allowed_per_packet_type_as_in_rfc_9000_table_3() {
    // Initial, 0-RTT, Handshake, 1-RTT; in the order of `example`.
    let table = [
        "I0H1", "I0H1", "_0_1", "_0_1", "I_H1", "___1", "_0_1", "_0_1", "_0_1", "_0_1", "_0_1",
        "_0_1", "_0_1", "_0_1", "_0_1", "_0_1", "___1", "_0_1", "___1", "I0H1", "_0_1", "___1",
        "I_H1", "_0_1", "___1", "___1", "___1", "___1", "___1", "___1",
    ];
    assert_eq!(table.len(), EXAMPLES);
    for (which, allowed) in table.iter().enumerate() {
        let frame = example(which, [8, 4, 2], true, b"data");
        for (level, mark) in LEVELS.into_iter().zip(allowed.chars()) {
            assert_eq!(frame.allowed_in(level), mark != '_', "{frame:?} {level:?}");
        }
    }
}

#[test]
fn only_ack_padding_and_close_elicit_no_ack() {
    let silent: Vec<_> = (0..EXAMPLES)
        .filter(|which| !example(*which, [8, 4, 2], true, b"data").ack_eliciting())
        .collect();
    assert_eq!(silent, [0, 19, 20, 22]);
}

#[test]
fn an_ack_of_many_ranges_has_a_two_byte_range_count() {
    for count in [63, 64, 65, 66, 300] {
        let ranges: Vec<_> = (0..count).rev().map(|n| n * 2..=n * 2).collect();
        let mut out = Vec::new();
        assert!(write::ack(
            &mut out,
            ranges.iter().cloned(),
            0,
            None,
            usize::MAX
        ));
        assert_eq!(acknowledged(&out), ranges);
    }
}

#[test]
fn a_reason_phrase_is_truncated_at_a_character_boundary() {
    let close = |reason, limit| {
        let mut out = Vec::new();
        let frame = Close::Application { code: 1, reason };
        let written = write::close(&mut out, &frame, limit);
        assert_eq!(written, !out.is_empty());
        written.then(|| out[3..].to_vec())
    };
    let reason = "aé€😀".as_bytes();
    let kept = [
        "",
        "a",
        "a",
        "aé",
        "aé",
        "aé",
        "aé€",
        "aé€",
        "aé€",
        "aé€",
        "aé€😀",
    ];
    for (room, kept) in kept.into_iter().enumerate() {
        assert_eq!(close(reason, 3 + room).unwrap(), kept.as_bytes(), "{room}");
    }
    assert_eq!(close(reason, 2), None);
    assert_eq!(close(&[0x80; 9], 3 + 5).unwrap().len(), 2);
}

proptest! {
    #[test]
    fn every_frame_round_trips(
        frames in prop::collection::vec(
            (1..EXAMPLES, [varint(), varint(), varint()], any::<bool>(), bytes()),
            1..8,
        ),
    ) {
        let frames: Vec<_> = frames
            .iter()
            .map(|(which, numbers, flag, bytes)| example(*which, *numbers, *flag, bytes))
            .collect();
        let mut payload = Vec::new();
        for frame in &frames {
            frame.write(&mut payload);
        }
        prop_assert_eq!(decode(&payload).unwrap(), frames);
    }

    #[test]
    fn a_frame_starts_with_its_type_and_has_the_predicted_size(
        which in 0..EXAMPLES,
        numbers in [varint(), varint(), varint()],
        flag: bool,
        bytes in bytes(),
    ) {
        let frame = example(which, numbers, flag, &bytes);
        let out = encoded(&frame);
        prop_assert_eq!(Reader::new(&out).varint().unwrap(), frame.frame_type());
        match frame {
            Frame::Crypto { offset, data } => prop_assert_eq!(
                out.len(),
                write::crypto_header_size(offset, data.len()) + data.len()
            ),
            Frame::Stream(Stream { id, offset, data, .. }) => prop_assert_eq!(
                out.len(),
                write::stream_header_size(id, offset, Some(data.len())) + data.len()
            ),
            Frame::NewToken(token) => {
                prop_assert_eq!(out.len(), write::new_token_size(token.len()));
            }
            Frame::Datagram(data) => prop_assert_eq!(
                out.len(),
                write::datagram_header_size(data.len()) + data.len()
            ),
            Frame::Ack(_) | Frame::Close(_) => {}
            _ => prop_assert!(out.len() <= write::CONTROL_MAX_SIZE),
        }
    }

    #[test]
    fn a_truncated_frame_is_refused(
        which in 1..EXAMPLES,
        numbers in [varint(), varint(), varint()],
        flag: bool,
        bytes in bytes(),
    ) {
        let out = encoded(&example(which, numbers, flag, &bytes));
        for end in 1..out.len() {
            let error = decode(&out[..end]).unwrap_err();
            prop_assert_eq!(error.code, Code::FRAME_ENCODING_ERROR);
        }
    }

    #[test]
    fn acks_round_trip_within_their_size_limit(
        ranges in ranges(200),
        delay in varint(),
        ecn in prop::option::of([varint(), varint(), varint()]),
        limit in 0..400_usize,
    ) {
        let ecn = ecn.map(|[ect0, ect1, ce]| EcnCounts { ect0, ect1, ce });
        let mut whole = Vec::new();
        prop_assert!(write::ack(&mut whole, ranges.iter().cloned(), delay, ecn, usize::MAX));
        prop_assert_eq!(acknowledged(&whole), ranges.clone());

        let mut cut = Vec::new();
        if write::ack(&mut cut, ranges.iter().cloned(), delay, ecn, limit) {
            prop_assert!(cut.len() <= limit);
            let kept = acknowledged(&cut);
            prop_assert_eq!(&kept[..], &ranges[..kept.len()]);
            if limit >= whole.len() {
                prop_assert_eq!(cut, whole);
            } else {
                // The next range would have needed up to 9 bytes.
                prop_assert!(cut.len() + 9 > limit);
            }
        } else {
            prop_assert!(cut.is_empty());
            prop_assert!(limit < 2 + 8 + 8 + 8 + 24);
        }
    }

    #[test]
    fn a_close_frame_stays_within_its_size_limit(reason in ".*", limit in 0..100_usize, code in varint()) {
        let frame = Close::Transport {
            code: Code::from_wire(code),
            frame_type: 0,
            reason: reason.as_bytes(),
        };
        let mut out = Vec::new();
        if write::close(&mut out, &frame, limit) {
            prop_assert!(out.len() <= limit);
            let frames = decode(&out).unwrap();
            let [Frame::Close(Close::Transport { reason: kept, .. })] = frames[..] else {
                panic!("{frames:?}");
            };
            prop_assert!(reason.starts_with(std::str::from_utf8(kept).unwrap()));
            prop_assert!(kept.len() == reason.len() || out.len() + 4 >= limit);
        } else {
            prop_assert!(out.is_empty() && limit < 1 + 8 + 1 + 1);
        }
    }

    #[test]
    fn arbitrary_payloads_never_panic_and_decoded_frames_reencode(
        payload in prop::collection::vec(prop_oneof![0..0x20_u8, 0x30..0x32_u8, any::<u8>()], 0..300),
    ) {
        for frame in Frames::new(&payload).map_while(Result::ok) {
            let once = encoded(&frame);
            let again = decode(&once).unwrap();
            prop_assert_eq!(again.len(), 1);
            if let (Frame::Ack(read), Frame::Ack(again)) = (&frame, &again[0]) {
                prop_assert!(read.ranges().eq(again.ranges()));
            } else {
                prop_assert_eq!(&again[0], &frame);
            }
        }
    }
}
