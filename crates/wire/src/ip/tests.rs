use proptest::prelude::*;

use super::*;

/// A version 4 header with eight bytes of payload and a correct checksum.
fn v4() -> Vec<u8> {
    let mut bytes = vec![
        0x45,
        0b1011_1000,
        0,
        28,
        0x12,
        0xFF,
        0x40,
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        1,
        10,
        0,
        0,
        2,
    ];
    bytes.extend([0; 8]);
    rewrite(&mut bytes[..20], ByteSize::from_bytes(28), Ecn::Ect0, 0);
    bytes
}

fn v6() -> Vec<u8> {
    let mut bytes = vec![0x6B, 0x8F, 0xFF, 0xFF, 0, 8, 6, 64];
    bytes.extend(Ipv6Addr::LOCALHOST.octets());
    bytes.extend(Ipv6Addr::UNSPECIFIED.octets());
    bytes.extend([0; 8]);
    bytes
}

fn checksum(header: &[u8]) -> u16 {
    let mut sum = Checksum::default();
    sum.add(header);
    sum.finish()
}

#[test]
fn both_versions_are_read() {
    let header = Header::parse(&v4()).unwrap();
    assert_eq!(header.source, IpAddr::from([10, 0, 0, 1]));
    assert_eq!(header.destination, IpAddr::from([10, 0, 0, 2]));
    assert_eq!((header.protocol, header.ecn), (17, Ecn::Ect0));
    assert_eq!(header.dscp, 46);
    assert_eq!(
        (header.header_length.bytes(), header.length.bytes()),
        (20, 28)
    );
    assert!(!header.fragment, "don't fragment is no fragment");

    let header = Header::parse(&v6()).unwrap();
    assert_eq!(header.source, IpAddr::from(Ipv6Addr::LOCALHOST));
    assert_eq!((header.protocol, header.ecn), (6, Ecn::NotEct));
    assert_eq!(header.dscp, 46);
    assert_eq!(
        (header.header_length.bytes(), header.length.bytes()),
        (40, 48)
    );
}

#[test]
fn inconsistent_headers_are_refused() {
    assert_eq!(Header::parse(&[]), Err(ParseError::Truncated));
    assert_eq!(Header::parse(&[0x55; 60]), Err(ParseError::Version(5)));
    for bytes in [v4(), v6()] {
        for end in 0..bytes.len() {
            assert_eq!(
                Header::parse(&bytes[..end]),
                Err(ParseError::Truncated),
                "{end}"
            );
        }
    }
    let mut short = v4();
    short[3] = 19;
    let lengths = ParseError::Lengths {
        header: 20,
        length: 19,
    };
    assert_eq!(Header::parse(&short), Err(lengths));
    let mut fragment = v4();
    fragment[6] = 0x20;
    assert!(Header::parse(&fragment).unwrap().fragment);
}

#[test]
fn identifications_wrap_around() {
    let mut bytes = v4();
    rewrite(&mut bytes[..20], ByteSize::from_bytes(28), Ecn::Ce, 0xEE01);
    assert_eq!(bytes[4..6], [0x01, 0x00]);
    assert_eq!(bytes[1], 0b1011_1011, "the code point of the service stays");
}

/// The length field of a version 6 header does not include the header.
#[test]
fn the_longest_packets_keep_their_lengths() {
    for (mut bytes, length, end) in [(v4(), 65_535, 20), (v6(), 65_575, 40)] {
        rewrite(&mut bytes[..end], ByteSize::from_bytes(length), Ecn::Ce, 0);
        bytes.resize(length as usize, 0);
        assert_eq!(Header::parse(&bytes).unwrap().length.bytes(), length);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), length: u64, part: u16) {
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert!(header.header_length <= header.length);
            prop_assert!(header.length.bytes() <= bytes.len() as u64);
        }
        let mut rewritten = bytes.clone();
        rewrite(&mut rewritten, ByteSize::from_bytes(length), Ecn::Ce, part);
        prop_assert_eq!(rewritten.len(), bytes.len());
    }

    #[test]
    fn rewritten_headers_round_trip(bits in 0_u8..4, part: u16) {
        let ecn = Ecn::from_bits(bits);
        for (mut bytes, end) in [(v4(), 20), (v6(), 40)] {
            let before = Header::parse(&bytes).unwrap();
            rewrite(&mut bytes[..end], before.length, ecn, part);
            let after = Header::parse(&bytes).unwrap();
            prop_assert_eq!(after, Header { ecn, ..before });
            prop_assert!(end == 40 || checksum(&bytes[..end]) == 0);
        }
    }
}
