//! The packets of RFC 9001, appendix A, header round trips, and packets that must be dropped.

use proptest::prelude::*;

use super::*;
use crate::known_peers::KNOWN_PEERS_VERSION;
use crate::{ConnectionId, Level};

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

const CLIENT_ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const SERVER_ID: [u8; 8] = [0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];

/// The header of the client's Initial packet in RFC 9001, appendix A.2, protected.
const CLIENT_INITIAL: [u8; 22] = [
    0xc0, 0x00, 0x00, 0x00, 0x01, 0x08, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0x00, 0x00,
    0x44, 0x9e, 0x7b, 0x9a, 0xec, 0x34,
];

/// The Retry packet of RFC 9001, appendix A.4.
const RETRY: [u8; 36] = [
    0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74,
    0x6f, 0x6b, 0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f,
    0x0f, 0x24, 0x96, 0xba,
];

#[test]
fn the_client_initial_of_rfc_9001_appendix_a_2_decodes() {
    let mut datagram = CLIENT_INITIAL.to_vec();
    datagram.resize(1200, 0);
    let expected = Header {
        kind: Kind::Initial,
        version: Some(Version::V1),
        destination: id(&CLIENT_ID),
        source: ConnectionId::EMPTY,
        token: 16..16,
        number_offset: 18,
        end: 1200,
        fixed_bit: true,
    };
    assert_eq!(Header::decode(&datagram, 8), Ok(expected.clone()));

    datagram.extend([0x40; 30]);
    assert_eq!(Header::decode(&datagram, 8), Ok(expected));
    for end in 0..1200 {
        assert_eq!(
            Header::decode(&datagram[..end], 8),
            Err(HeaderError::Truncated)
        );
    }
}

#[test]
fn the_headers_of_rfc_9001_appendix_a_are_written() {
    let mut out = b"before".to_vec();
    let header = write_long_header(
        &mut out,
        &LongFields {
            version: Version::V1,
            kind: LongKind::Initial { token: &[] },
            destination: id(&CLIENT_ID),
            source: ConnectionId::EMPTY,
            number: 2,
            number_length: 4,
            size_limit: 1200,
        },
    );
    header.finish(&mut out, header.start + 1200);
    let mut expected = CLIENT_INITIAL;
    expected[0] = 0xc3;
    expected[18..].copy_from_slice(&[0, 0, 0, 2]);
    assert_eq!(out[header.start..], expected);
    assert_eq!(header.start, 6);

    let mut out = Vec::new();
    let header = write_long_header(
        &mut out,
        &LongFields {
            version: Version::V1,
            kind: LongKind::Initial { token: &[] },
            destination: ConnectionId::EMPTY,
            source: id(&SERVER_ID),
            number: 1,
            number_length: 2,
            size_limit: 1200,
        },
    );
    header.finish(&mut out, 135);
    assert_eq!(out[..7], [0xc1, 0, 0, 0, 1, 0, 8]);
    assert_eq!(out[7..15], SERVER_ID);
    assert_eq!(out[15..], [0x00, 0x40, 0x75, 0x00, 0x01]);

    let mut out = Vec::new();
    let offset = write_short_header(&mut out, &ConnectionId::EMPTY, false, false, 654_360_564, 3);
    assert_eq!((out.as_slice(), offset), (&[0x42, 0x00, 0xbf, 0xf4][..], 1));
}

#[test]
fn the_retry_of_rfc_9001_appendix_a_4_decodes_and_is_written() {
    let header = Header::decode(&RETRY, 8).unwrap();
    assert_eq!((header.kind, header.end), (Kind::Retry, RETRY.len()));
    assert_eq!(header.source, id(&SERVER_ID));
    let retry = Retry::decode(&RETRY, &header).unwrap();
    assert_eq!(retry.token, b"token");
    assert_eq!(retry.signed, &RETRY[..20]);
    assert_eq!(retry.tag, RETRY[20..]);

    let mut out = Vec::new();
    write_retry(
        &mut out,
        Version::V1,
        &ConnectionId::EMPTY,
        &id(&SERVER_ID),
        b"token",
        0xff,
    );
    assert_eq!(out, retry.signed);

    let without_token = [&RETRY[..15], &RETRY[20..]].concat();
    let refused = Header::decode(&without_token, 8);
    assert_eq!(refused, Err(HeaderError::EmptyRetryToken));
    let short = Header::decode(&RETRY[..30], 8);
    assert_eq!(short, Err(HeaderError::Truncated));
}

#[test]
fn the_types_of_version_2_are_those_of_rfc_9369_section_3_2() {
    let kinds = [Kind::Retry, Kind::Initial, Kind::ZeroRtt, Kind::Handshake];
    for (number, kind) in (0..).zip(kinds) {
        assert_eq!(long_kind(Version::V2, 0xc0 | number << 4), kind);
        assert_eq!(long_type_bits(Version::V2, kind), number << 4);
    }
    let mut out = Vec::new();
    write_retry(
        &mut out,
        Version::V2,
        &ConnectionId::EMPTY,
        &id(&SERVER_ID),
        b"token",
        0xff,
    );
    // RFC 9369, appendix A.4.
    assert_eq!(out[..7], [0xcf, 0x6b, 0x33, 0x43, 0xcf, 0x00, 0x08]);
}

#[test]
fn a_first_packet_of_a_known_peer_has_the_layout_of_an_initial_packet() {
    let mut datagram = Vec::new();
    let fields = LongFields {
        version: Version::V1,
        kind: LongKind::KnownFirst {
            credential: CredentialId::new([0xc5; 16]),
            key_id: 0x0102_0304_0506_0708,
        },
        destination: id(&[1; 8]),
        source: id(&[2; 8]),
        number: 3,
        number_length: 1,
        size_limit: 1200,
    };
    let long = write_long_header(&mut datagram, &fields);
    datagram.resize(1200, 0);
    long.finish(&mut datagram, 1200);
    let known = Header::decode(&datagram, 8).unwrap();
    assert_eq!(known.kind, Kind::KnownFirst);
    // What a stack does that reads an unknown version by the layout of version 1.
    datagram[1..5].copy_from_slice(&1_u32.to_be_bytes());
    let initial = Header::decode(&datagram, 8).unwrap();
    assert_eq!(initial.kind, Kind::Initial);
    let places = |header: &Header| (header.token.clone(), header.number_offset, header.end);
    assert_eq!(places(&initial), places(&known));
    assert_eq!(initial.token.len(), 24);
    // No other length is one of a credential and a key ID.
    datagram[1..5].copy_from_slice(&KNOWN_PEERS_VERSION.to_be_bytes());
    datagram[known.token.start - 1] = 25;
    let unsupported = HeaderError::UnsupportedVersion(KNOWN_PEERS_VERSION);
    assert_eq!(Header::decode(&datagram, 8), Err(unsupported));
}

#[test]
fn unknown_versions_get_a_version_negotiation_reply() {
    let mut datagram = vec![0x80, 0x1a, 0x2a, 0x3a, 0x4a, 255];
    datagram.extend([7; 255]);
    datagram.extend([21]);
    datagram.extend([9; 21]);
    datagram.extend([0; 100]);
    assert_eq!(
        Header::decode(&datagram, 8),
        Err(HeaderError::UnsupportedVersion(0x1a2a_3a4a))
    );
    let invariants = Invariants::decode(&datagram).unwrap();
    assert_eq!(invariants.version, 0x1a2a_3a4a);
    assert_eq!(invariants.destination, [7; 255]);
    assert_eq!(invariants.source, [9; 21]);

    let mut answer = Vec::new();
    write_version_negotiation(
        &mut answer,
        invariants.source,
        invariants.destination,
        &[Version::V1.as_u32()],
        0x15,
    );
    let read = Invariants::decode(&answer).unwrap();
    assert_eq!(
        (read.version, read.destination, read.source),
        (0, &[9; 21][..], &[7; 255][..])
    );
    assert_eq!(Invariants::decode(&[0x40; 30]), Err(HeaderError::NotLong));
}

#[test]
fn version_negotiation_lists_versions() {
    let mut packet = Vec::new();
    let versions = [0x0000_0001, 0x6b33_43cf];
    write_version_negotiation(&mut packet, &[1; 4], &[2; 5], &versions, 0);
    let header = Header::decode(&packet, 4).unwrap();
    assert_eq!(header.kind, Kind::VersionNegotiation);
    assert_eq!(
        (header.destination, header.source),
        (id(&[1; 4]), id(&[2; 5]))
    );
    assert!(supported_versions(&packet, &header).eq(versions));

    for (end, error) in [
        (packet.len() - 1, HeaderError::MalformedVersionList),
        (packet.len() - 8, HeaderError::MalformedVersionList),
        (packet.len() - 9, HeaderError::Truncated),
    ] {
        assert_eq!(Header::decode(&packet[..end], 4), Err(error));
    }
}

#[test]
fn the_fixed_bit_is_reported() {
    let mut datagram = CLIENT_INITIAL.to_vec();
    datagram.resize(1200, 0);
    for (first, fixed_bit) in [(0xc0, true), (0x80, false)] {
        datagram[0] = first;
        assert_eq!(Header::decode(&datagram, 8).unwrap().fixed_bit, fixed_bit);
    }
    for (first, fixed_bit) in [(0x40, true), (0x00, false)] {
        let header = Header::decode(&[first; 50], 8).unwrap();
        assert_eq!((header.kind, header.fixed_bit), (Kind::OneRtt, fixed_bit));
    }
}

#[test]
fn reserved_versions_match_the_rfc_9000_pattern() {
    for random in [0, 1, 0x1234_5678, u32::MAX] {
        let version = reserved_version(random);
        assert_eq!(version & 0x0f0f_0f0f, 0x0a0a_0a0a, "{version:#x}");
        assert_eq!(version & 0xf0f0_f0f0, random & 0xf0f0_f0f0);
    }
}

#[test]
fn headers_invalid_in_version_1_are_rejected() {
    let mut datagram = CLIENT_INITIAL.to_vec();
    datagram.resize(1200, 0);
    datagram[0] = 0xc0;
    datagram[5] = 21;
    assert_eq!(
        Header::decode(&datagram, 8),
        Err(HeaderError::ConnectionIdTooLong)
    );
    assert_eq!(
        Header::decode(&[0x40; 50], 21),
        Err(HeaderError::ConnectionIdTooLong)
    );
    assert_eq!(Header::decode(&[0x40; 8], 8), Err(HeaderError::Truncated));
    assert_eq!(Header::decode(&[], 8), Err(HeaderError::Truncated));
}

#[test]
fn reserved_bits_and_key_phase_are_read_from_the_first_byte() {
    assert!(reserved_bits_ok(0xf3, true) && reserved_bits_ok(0x67, false));
    assert!(!reserved_bits_ok(0xc4, true) && !reserved_bits_ok(0xc8, true));
    assert!(!reserved_bits_ok(0x48, false) && !reserved_bits_ok(0x50, false));
    let mut out = Vec::new();
    write_short_header(&mut out, &ConnectionId::EMPTY, true, true, 0, 1);
    assert_eq!(out[0], 0x64);
    assert!(key_phase(0x64) && !key_phase(0x60));
}

#[test]
fn only_protected_packet_types_have_a_level() {
    assert_eq!(Kind::Initial.level(), Some(Level::Initial));
    assert_eq!(Kind::ZeroRtt.level(), Some(Level::ZeroRtt));
    assert_eq!(Kind::Handshake.level(), Some(Level::Handshake));
    assert_eq!(Kind::OneRtt.level(), Some(Level::OneRtt));
    assert_eq!(Kind::Retry.level(), None);
    assert_eq!(Kind::VersionNegotiation.level(), None);
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 0..=ConnectionId::MAX_LENGTH).prop_map(|bytes| id(&bytes))
}

proptest! {
    #[test]
    fn long_headers_round_trip(
        version in prop::sample::select(vec![Version::V1, Version::V2]),
        kind in 0..3,
        token in prop::collection::vec(any::<u8>(), 0..100),
        destination in connection_id(),
        source in connection_id(),
        number: u32,
        number_length in 1..=4_usize,
        payload in 0..17_000_usize,
        coalesced in 0..50_usize,
    ) {
        let (kind, long_kind) = match kind {
            0 => (Kind::Initial, LongKind::Initial { token: &token }),
            1 => (Kind::ZeroRtt, LongKind::ZeroRtt),
            _ => (Kind::Handshake, LongKind::Handshake),
        };
        let mut out = Vec::new();
        let written = write_long_header(&mut out, &LongFields {
            version,
            kind: long_kind,
            destination,
            source,
            number: u64::from(number),
            number_length,
            size_limit: payload + 200,
        });
        let end = out.len() + payload;
        out.resize(end + coalesced, 0);
        written.finish(&mut out, end);

        let header = Header::decode(&out, 8).unwrap();
        prop_assert_eq!((header.kind, header.version), (kind, Some(version)));
        prop_assert_eq!((header.destination, header.source), (destination, source));
        prop_assert_eq!((header.number_offset, header.end), (written.number_offset, end));
        let expected_token = if kind == Kind::Initial { &token[..] } else { &[] };
        prop_assert_eq!(&out[header.token.clone()], expected_token);
        let number_read = read_packet_number(&out, header.number_offset, number_length).unwrap();
        let mask = (1_u64 << (8 * number_length)) - 1;
        prop_assert_eq!(number_read, u64::from(number) & mask);
        prop_assert_eq!(usize::from(out[0] & 0x03) + 1, number_length);
        prop_assert!(reserved_bits_ok(out[0], true));

        for prefix in 0..out.len().min(300) {
            if prefix < end {
                prop_assert_eq!(Header::decode(&out[..prefix], 8), Err(HeaderError::Truncated));
            }
        }
    }

    #[test]
    fn short_headers_round_trip(
        destination in connection_id(),
        spin: bool,
        phase: bool,
        number: u64,
        number_length in 1..=4_usize,
    ) {
        let mut out = Vec::new();
        let offset = write_short_header(&mut out, &destination, spin, phase, number, number_length);
        prop_assert_eq!(out.len(), offset + number_length);
        let header = Header::decode(&out, destination.len()).unwrap();
        prop_assert_eq!(header.kind, Kind::OneRtt);
        prop_assert_eq!(header.destination, destination);
        prop_assert_eq!((header.number_offset, header.end), (offset, out.len()));
        prop_assert_eq!(key_phase(out[0]), phase);
        prop_assert!(reserved_bits_ok(out[0], false));
    }

    #[test]
    fn arbitrary_datagrams_never_panic_and_offsets_stay_in_bounds(
        start in prop_oneof![
            Just(vec![]),
            (192..=255_u8).prop_map(|first| vec![first, 0, 0, 0, 1]),
            (192..=255_u8).prop_map(|first| vec![first, 0x6b, 0x33, 0x43, 0xcf]),
            (128..=255_u8).prop_map(|first| vec![first, 0, 0, 0, 0]),
        ],
        rest in prop::collection::vec(prop_oneof![0..20_u8, any::<u8>()], 0..100),
        short_dcid_len in 0..30_usize,
    ) {
        let datagram = [start, rest].concat();
        let _ = Invariants::decode(&datagram);
        if let Ok(header) = Header::decode(&datagram, short_dcid_len) {
            prop_assert!(header.token.start <= header.token.end);
            prop_assert!(header.token.end <= header.number_offset);
            prop_assert!(header.number_offset <= header.end);
            prop_assert!(header.end <= datagram.len());
            prop_assert_eq!(
                Retry::decode(&datagram, &header).is_some(),
                header.kind == Kind::Retry
            );
            prop_assert_eq!(
                supported_versions(&datagram, &header).count() > 0,
                header.kind == Kind::VersionNegotiation
            );
        }
    }
}
