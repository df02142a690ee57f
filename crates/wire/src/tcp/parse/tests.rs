use std::net::IpAddr;

use proptest::prelude::*;

use super::super::PROTOCOL;
use super::*;
use crate::Checksum;

prop_compose! {
    fn syn()(
        maximum_segment_size: u16,
        window_scale in prop::option::of(0..=14_u8),
        sack_permitted: bool,
    ) -> Options {
        Options::Syn(SynOptions { maximum_segment_size, window_scale, sack_permitted })
    }
}

fn sack() -> impl Strategy<Value = Options> {
    let block = any::<(u32, u32)>().prop_map(|(start, end)| SackBlock {
        start: Sequence::new(start),
        end: Sequence::new(end),
    });
    prop::collection::vec(block, 1..=SackBlocks::CAPACITY)
        .prop_map(|blocks| Options::Sack(blocks.into_iter().collect()))
}

prop_compose! {
    /// Segments with valid options: a SYN's on a SYN, SACK elsewhere.
    fn segment()(
        numbers: (u32, u32),
        payload in 0..10_000_u32,
        window: u16,
        bits: u8,
        timestamps in prop::option::of(any::<(u32, u32)>()),
        options in prop_oneof![Just(Options::None), syn(), sack()],
    ) -> Segment {
        let bits = Flags::from_bits(bits);
        let flags = match options {
            Options::Syn(_) => bits | Flags::SYN,
            Options::Sack(_) => bits.without(Flags::SYN),
            Options::None => bits,
        };
        Segment {
            sequence: Sequence::new(numbers.0),
            acknowledgment: Sequence::new(numbers.1),
            payload,
            window,
            flags,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            options,
        }
    }
}

proptest! {
    #[test]
    fn emitted_segments_round_trip(segment in segment(), ports: (u16, u16)) {
        let ports = Ports { source: ports.0, destination: ports.1 };
        let header = segment.emit(ports);
        prop_assert_eq!(header.as_bytes().len() as u64, segment.header_length().bytes());
        let mut bytes = header.as_bytes().to_vec();
        bytes.resize(bytes.len() + segment.payload as usize, 0);
        prop_assert_eq!(Segment::parse(&bytes), Ok((ports, segment)));
    }

    #[test]
    fn a_checksum_is_right_over_header_and_zeros(
        segment in segment(),
        addresses: (std::net::Ipv6Addr, std::net::Ipv6Addr),
    ) {
        let (source, destination) = (IpAddr::V6(addresses.0), IpAddr::V6(addresses.1));
        let mut header = segment.emit(Ports::default());
        header.set_checksum(source, destination, segment.payload);
        let length = header.as_bytes().len() as u32 + segment.payload;
        let mut sum = Checksum::of_pseudo_header(source, destination, PROTOCOL, length);
        sum.add(header.as_bytes());
        prop_assert_eq!(sum.finish(), 0);
    }

    #[test]
    fn any_bytes_are_a_segment_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok((_, segment)) = Segment::parse(&bytes) {
            prop_assert!(bytes.len() >= 20 + segment.payload as usize);
        }
    }

    /// Arbitrary options after a valid header.
    #[test]
    fn any_options_are_read_or_refused(
        options in prop::collection::vec(prop_oneof![0..9_u8, any::<u8>()], 40),
        is_syn: bool,
    ) {
        let mut bytes = vec![0; 20];
        bytes[12] = 15 << 4;
        bytes[13] = if is_syn { Flags::SYN.bits() } else { 0 };
        bytes.extend(options);
        if let Ok((ports, segment)) = Segment::parse(&bytes) {
            // An accepted segment parses to the same value after it is emitted.
            prop_assert_eq!(Segment::parse(segment.emit(ports).as_bytes()), Ok((ports, segment)));
        }
    }
}

/// The SYN of a Linux host: MSS 1460, SACK permitted, time stamps, window scale 7.
#[test]
fn a_syn_has_the_bytes_that_linux_sends() {
    let segment = Segment {
        sequence: Sequence::new(0x0102_0304),
        window: 64_240,
        flags: Flags::SYN,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        options: Options::Syn(SynOptions {
            maximum_segment_size: 1460,
            window_scale: Some(7),
            sack_permitted: true,
        }),
        ..Segment::default()
    };
    let ports = Ports {
        source: 0x8001,
        destination: 80,
    };
    #[rustfmt::skip]
    let expected = [
        0x80, 0x01, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xA0, 0x02, 0xFA, 0xF0, 0, 0, 0, 0,
        2, 4, 0x05, 0xB4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert_eq!(segment.emit(ports).as_bytes(), expected);
}

#[test]
fn an_empty_sack_list_is_padding() {
    let segment = Segment {
        options: Options::Sack(SackBlocks::default()),
        ..Segment::default()
    };
    let header = segment.emit(Ports::default());
    assert_eq!(header.as_bytes()[20..], [1, 1, 1, 1]);
    let (_, parsed) = Segment::parse(header.as_bytes()).unwrap();
    assert_eq!(parsed.options, Options::None);
}

#[test]
fn inconsistent_headers_are_refused() {
    let bytes = |offset: u8, options: &[u8]| {
        let mut bytes = vec![0; 20];
        bytes[12] = offset << 4;
        bytes.extend(options);
        Segment::parse(&bytes).map(|(_, segment)| segment.options)
    };
    assert_eq!(Segment::parse(&[0; 19]), Err(ParseError::Truncated));
    assert_eq!(bytes(4, &[]), Err(ParseError::DataOffset(16)));
    assert_eq!(bytes(6, &[0, 0, 0]), Err(ParseError::Truncated));
    let length = |kind, length| Err(ParseError::OptionLength { kind, length });
    assert_eq!(bytes(6, &[99, 0, 0, 0]), length(99, 0));
    assert_eq!(bytes(6, &[99, 1, 0, 0]), length(99, 1));
    assert_eq!(bytes(6, &[99, 5, 0, 0]), length(99, 5));
    assert_eq!(bytes(6, &[1, 1, 1, 99]), length(99, 0));
    assert_eq!(bytes(6, &[99, 4, 0, 0]), Ok(Options::None));
    // An option of an unexpected length is skipped.
    assert_eq!(bytes(6, &[2, 3, 0, 0]), Ok(Options::None));
}

#[test]
fn a_syn_without_mss_has_the_default() {
    let mut bytes = vec![0; 20];
    bytes[12] = 6 << 4;
    bytes[13] = Flags::SYN.bits();
    bytes.extend([3, 3, 200, 0]);
    let (_, segment) = Segment::parse(&bytes).unwrap();
    let expected = SynOptions {
        maximum_segment_size: 536,
        window_scale: Some(14),
        sack_permitted: false,
    };
    assert_eq!(segment.options, Options::Syn(expected));
}
