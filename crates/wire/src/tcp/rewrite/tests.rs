use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::super::{PROTOCOL, Ports, SackBlock, SynOptions};
use super::*;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

prop_compose! {
    fn rewrite()(
        window: Option<u16>,
        acknowledgment: Option<u32>,
        timestamps: Option<(u32, u32)>,
        flags: Option<(u8, u8)>,
        without_sack: bool,
    ) -> Rewrite {
        let mut rewrite = Rewrite::default();
        if let Some(window) = window {
            rewrite.set_window(window);
        }
        if let Some(number) = acknowledgment {
            rewrite.set_acknowledgment(Sequence::new(number));
        }
        if let Some((value, echo)) = timestamps {
            rewrite.set_timestamps(Timestamps { value, echo });
        }
        if let Some((now, wanted)) = flags {
            rewrite.set_flags(Flags::from_bits(now), Flags::from_bits(wanted));
        }
        if without_sack {
            rewrite.remove_sack();
        }
        rewrite
    }
}

prop_compose! {
    /// Segments with all kinds of options, some malformed, and a payload.
    fn any_segment()(
        mut fixed: [u8; 20],
        options in prop::collection::vec(option(), 0..6),
        payload in prop::collection::vec(any::<u8>(), 0..50),
        cut in prop::option::of(0_usize..60),
    ) -> Vec<u8> {
        let mut options = options.concat();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), kind::NOP);
        fixed[12] = ((20 + options.len()) as u8 / 4) << 4;
        let mut bytes = [&fixed[..], &options, &payload].concat();
        if let Some(cut) = cut {
            bytes.truncate(cut.max(1));
        }
        bytes
    }
}

fn option() -> impl Strategy<Value = Vec<u8>> {
    let of = |kind: u8, length: usize| {
        prop::collection::vec(any::<u8>(), length - 2)
            .prop_map(move |body| [&[kind, length as u8][..], &body].concat())
    };
    prop_oneof![
        Just(vec![kind::NOP]),
        Just(vec![kind::END]),
        of(kind::MAXIMUM_SEGMENT_SIZE, 4),
        of(kind::WINDOW_SCALE, 3),
        Just(vec![kind::SACK_PERMITTED, 2]),
        of(kind::TIMESTAMPS, 10),
        of(kind::SACK, 10),
        of(kind::SACK, 18),
        of(kind::SACK, 5),
        of(99, 6),
        prop::collection::vec(any::<u8>(), 1..4),
    ]
}

/// Returns the correct checksum of these bytes, whatever their field holds.
fn checksum_of(bytes: &[u8]) -> u16 {
    let length = bytes.len() as u32;
    let mut sum = Checksum::of_pseudo_header(SOURCE, DESTINATION, PROTOCOL, length);
    sum.add(&bytes[..CHECKSUM]);
    sum.add(&bytes[CHECKSUM + 2..]);
    sum.finish()
}

/// A SYN with default options equals one without options.
fn plain(mut segment: Segment) -> Segment {
    if segment.options == Options::Syn(SynOptions::NONE) {
        segment.options = Options::None;
    }
    segment
}

proptest! {
    #[test]
    fn bytes_match_the_view_and_the_checksum_is_correct(
        mut bytes in any_segment(),
        rewrite in rewrite(),
    ) {
        if bytes.len() >= 20 {
            let sum = checksum_of(&bytes).to_be_bytes();
            bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum);
        }
        let before = bytes.clone();
        rewrite.apply(&mut bytes, true);
        prop_assert_eq!(bytes.len(), before.len());
        match Segment::parse(&before) {
            Err(_) => prop_assert_eq!(bytes, before),
            Ok((ports, segment)) => {
                let (after, seen) = Segment::parse(&bytes).unwrap();
                prop_assert_eq!(after, ports);
                prop_assert_eq!(plain(seen), plain(rewrite.view(segment)));
                let field = u16::from_be_bytes([bytes[CHECKSUM], bytes[CHECKSUM + 1]]);
                prop_assert_eq!(field, checksum_of(&bytes));
                let header = usize::from(before[12] >> 4) * 4;
                prop_assert_eq!(&bytes[header..], &before[header..]);
            }
        }
    }

    /// A wrong checksum stays wrong by the same amount.
    #[test]
    fn a_wrong_checksum_is_not_corrected(mut bytes in any_segment(), rewrite in rewrite(), error in 1_u16..) {
        prop_assume!(Segment::parse(&bytes).is_ok());
        let wrong = checksum_of(&bytes) ^ error;
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&wrong.to_be_bytes());
        // Ones' complement has two zeros.
        prop_assume!(![0, u16::MAX].contains(&checksum_of(&bytes)) || ![0, u16::MAX].contains(&wrong));
        rewrite.apply(&mut bytes, true);
        let field = u16::from_be_bytes([bytes[CHECKSUM], bytes[CHECKSUM + 1]]);
        prop_assert_ne!(field, checksum_of(&bytes));
    }

    #[test]
    fn an_unfinished_checksum_is_left_alone(mut bytes in any_segment(), rewrite in rewrite()) {
        prop_assume!(bytes.len() >= 20);
        let before = [bytes[CHECKSUM], bytes[CHECKSUM + 1]];
        rewrite.apply(&mut bytes, false);
        prop_assert_eq!(&bytes[CHECKSUM..CHECKSUM + 2], &before);
    }

    #[test]
    fn the_last_change_of_flags_applies(now: u8, first: u8, second: u8) {
        let flags = |bits| Flags::from_bits(bits).without(Flags::SYN);
        let (now, first, second) = (flags(now), flags(first), flags(second));
        let mut rewrite = Rewrite::default();
        rewrite.set_flags(now, first);
        let segment = Segment { flags: now, ..Segment::default() };
        prop_assert_eq!(rewrite.view(segment).flags, first);
        rewrite.set_flags(first, second);
        prop_assert_eq!(rewrite.view(segment).flags, second);
    }
}

#[test]
fn sack_becomes_padding() {
    let block = SackBlock {
        start: Sequence::new(5),
        end: Sequence::new(9),
    };
    let segment = Segment {
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        options: Options::Sack([block].into_iter().collect()),
        ..Segment::default()
    };
    let mut header = segment.emit(Ports::default());
    header.set_checksum(SOURCE, DESTINATION, 0);
    let mut bytes = header.as_bytes().to_vec();
    let mut rewrite = Rewrite::default();
    rewrite.remove_sack();
    rewrite.apply(&mut bytes, true);
    assert_eq!(bytes[32..], [kind::NOP; 12]);
    let mut sum = Checksum::of_pseudo_header(SOURCE, DESTINATION, PROTOCOL, 44);
    sum.add(&bytes);
    assert_eq!(sum.finish(), 0);
}

#[test]
fn a_rewritten_syn_keeps_its_syn_flag() {
    let mut rewrite = Rewrite::default();
    rewrite.set_flags(Flags::SYN, Flags::ECE);
    assert_eq!(rewrite.added_flags(), Flags::ECE);
    let syn = Segment {
        flags: Flags::SYN,
        ..Segment::default()
    };
    assert_eq!(rewrite.view(syn).flags, Flags::SYN | Flags::ECE);
    assert!(Rewrite::default().is_empty() && !rewrite.is_empty());
}
