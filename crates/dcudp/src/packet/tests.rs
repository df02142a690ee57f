use proptest::prelude::*;
use weir_units::{ByteSize, Duration};

use super::*;
use crate::{MessageNumber, SequenceNumber};

fn sequence() -> impl Strategy<Value = SequenceNumber> {
    any::<u32>().prop_map(SequenceNumber::new)
}

fn header_flags() -> impl Strategy<Value = HeaderFlags> {
    any::<[bool; 3]>().prop_map(|[observe, reduced, echo]| HeaderFlags {
        obs: observe,
        cwr: reduced,
        ece: echo,
    })
}

fn data() -> impl Strategy<Value = DataHeader> {
    (
        sequence(),
        any::<[bool; 3]>(),
        header_flags(),
        any::<[u32; 3]>(),
    )
        .prop_map(
            |(sequence, [first, last, in_order], flags, words)| DataHeader {
                sequence,
                position: MessagePosition::new(first, last),
                in_order,
                flags,
                message: MessageNumber::new(words[0]),
                timestamp: Timestamp(words[1]),
                destination: SocketId(words[2]),
            },
        )
}

fn handshake() -> impl Strategy<Value = Handshake> {
    let kind = prop::sample::select(vec![
        HandshakeKind::Request,
        HandshakeKind::Challenge,
        HandshakeKind::Response,
        HandshakeKind::Refused(Refusal::Busy),
        HandshakeKind::Refused(Refusal::Version),
        HandshakeKind::Refused(Refusal::Mode),
        HandshakeKind::Refused(Refusal::Authentication),
    ]);
    let words = (any::<[u32; 6]>(), any::<u64>(), any::<[u8; 16]>());
    (
        kind,
        any::<bool>(),
        sequence(),
        words,
        any::<Option<[u8; 16]>>(),
    )
        .prop_map(
            |(kind, messages, initial_sequence, (words, cookie, random), tag)| Handshake {
                version: words[0],
                kind,
                messages,
                udp_mode: words[5] % 2 == 0,
                initial_sequence,
                packet_size: ByteSize::from_bytes(words[1].into()),
                window: words[2],
                rtt: Duration::from_nanos(words[4].into()),
                socket: SocketId(words[3]),
                cookie,
                random,
                tag,
            },
        )
}

/// All control packets but NAKs, whose ranges are borrowed.
fn control() -> impl Strategy<Value = Control<'static>> {
    let reason = prop_oneof![
        Just(ShutdownReason::Finished),
        any::<u32>().prop_map(ShutdownReason::Aborted),
        Just(ShutdownReason::Protocol),
        Just(ShutdownReason::TimedOut),
    ];
    prop_oneof![
        handshake().prop_map(Control::Handshake),
        (
            sequence(),
            any::<u32>(),
            sequence(),
            any::<bool>(),
            prop::option::of(sequence())
        )
            .prop_map(|(expected, window, next, request, answers)| {
                Control::KeepAlive(KeepAlive {
                    expected,
                    window,
                    next,
                    request,
                    answers,
                })
            }),
        (sequence(), any::<[u32; 4]>()).prop_map(|(expected, words)| Control::Ack(Ack {
            expected,
            window: words[0],
            rtt: Duration::from_nanos(words[1].into()),
            received: words[2],
            marked: words[3],
        })),
        Just(Control::ObsChange),
        (reason, sequence(), any::<bool>()).prop_map(|(reason, expected, is_answer)| {
            Control::Shutdown(Shutdown {
                reason,
                expected,
                is_answer,
            })
        }),
        Just(Control::Ack2),
    ]
}

/// Ranges as gaps and lengths, starting at any number.
fn ranges() -> impl Strategy<Value = Vec<LossRange>> {
    let steps = prop::collection::vec((0_u32..1000, 0_u32..1000), 1..50);
    (any::<u32>(), steps).prop_map(|(start, steps)| {
        let mut next = start;
        let range = |(gap, length): (u32, u32)| {
            let first = next.wrapping_add(gap);
            next = first.wrapping_add(length + 1);
            LossRange {
                first: SequenceNumber::new(first),
                last: SequenceNumber::new(first.wrapping_add(length)),
            }
        };
        steps.into_iter().map(range).collect()
    })
}

proptest! {
    #[test]
    fn data_packets_round_trip(header in data(), payload: Vec<u8>) {
        let mut bytes = Vec::new();
        let packet = Packet::Data(header, &payload);
        packet.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), HEADER_LENGTH + payload.len());
        prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
    }

    #[test]
    fn control_packets_round_trip(control in control(), flags in header_flags(), words: [u32; 3]) {
        let header = ControlHeader {
            kind: control.kind(),
            flags,
            number: SequenceNumber::new(words[0]),
            timestamp: Timestamp(words[1]),
            destination: SocketId(words[2]),
        };
        let mut bytes = Vec::new();
        let packet = Packet::Control(header, control);
        packet.encode(&mut bytes);
        prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
        bytes.push(0);
        prop_assert!(Packet::decode(&bytes).is_err());
        bytes.truncate(bytes.len() - 2);
        prop_assert!(Packet::decode(&bytes).is_err());
    }

    #[test]
    fn loss_ranges_round_trip(ranges in ranges()) {
        let mut bytes = Vec::new();
        for range in &ranges {
            write_loss_range(&mut bytes, *range);
        }
        let read = LossRanges::decode(&bytes).unwrap();
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), ranges);
    }

    #[test]
    fn decoded_bytes_reencode_identically(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(packet) = Packet::decode(&bytes) {
            let mut again = Vec::new();
            packet.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}

#[test]
fn out_of_order_ranges_are_rejected() {
    let word = |value: u32| value.to_be_bytes();
    let refused = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().copied().flat_map(word).collect();
        assert!(LossRanges::decode(&bytes).is_err(), "{words:x?}");
    };
    refused(&[]);
    refused(&[5, 4]);
    refused(&[5, 5]);
    refused(&[0x8000_0005, 5]);
    refused(&[0x8000_0005, 4]);
    refused(&[0x8000_0005, 0x8000_0006]);
    refused(&[0x8000_0005]);
    refused(&[0x8000_0005, 9, 9]);
    refused(&[0x8000_0000, 0x4000_0000]);
    refused(&[0, 0x3fff_ffff, 0x7fff_ffff]);
}
