use etherparse::{SlicedPacket, TransportSlice};
use proptest::prelude::*;
use weir_fabric::Packet;
use weir_wire::tcp::{Flags, Sequence, Timestamps};

use super::*;
use crate::offload::VnetHeader;
use crate::offload::tests::{Described, described, finished, joined, parsed, verified};

/// The changes that elements make to a segment.
#[derive(Clone, Debug)]
enum Act {
    Window(u16),
    Acknowledgment(u32),
    Timestamps(u32, u32),
    Flags(u8),
    NoSack,
    Ecn(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        any::<u16>().prop_map(Act::Window),
        any::<u32>().prop_map(Act::Acknowledgment),
        any::<(u32, u32)>().prop_map(|(value, echo)| Act::Timestamps(value, echo)),
        any::<u8>().prop_map(Act::Flags),
        Just(Act::NoSack),
        (0_u8..4).prop_map(Act::Ecn),
    ];
    prop::collection::vec(act, 0..5)
}

fn act_on(packet: &mut Segment, acts: &[Act]) {
    for act in acts {
        match *act {
            Act::Window(window) => packet.set_window(window),
            Act::Acknowledgment(number) => packet.set_acknowledgment(Sequence::new(number)),
            Act::Timestamps(value, echo) => packet.set_timestamps(Timestamps { value, echo }),
            Act::Flags(bits) => packet.set_flags(Flags::from_bits(bits)),
            Act::NoSack => packet.clear_sack_blocks(),
            Act::Ecn(bits) => packet.set_ecn(Ecn::from_bits(bits)),
        }
    }
}

fn arrived(described: &Described) -> Arc<ReceivedFrame> {
    Arc::new(ReceivedFrame {
        frame: parsed(&described.bytes()).unwrap(),
        unread: Duration::ZERO,
        number: 0,
    })
}

/// Returns the TCP header that etherparse finds in a frame after verifying its checksum.
fn header_of(frame: &[u8]) -> Option<tcp::Segment> {
    verified(frame);
    let packet = SlicedPacket::from_ethernet(&frame[VnetHeader::LENGTH..]).unwrap();
    match packet.transport.unwrap() {
        TransportSlice::Tcp(segment) => Some(tcp::Segment::parse(segment.slice()).unwrap().1),
        _ => None,
    }
}

proptest! {
    // Each case is up to 20,000 packets.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Segments leave as elements see them, with valid checksums and the same length.
    #[test]
    fn sent_segments_carry_the_changes_of_elements(described in described(), acts in acts()) {
        let from = arrived(&described);
        for index in 0..from.frame.segments() {
            let mut packet = Segment::new(Arc::clone(&from), index, 7);
            let before = packet.length();
            act_on(&mut packet, &acts);
            let sent = joined(&packet.on_wire());
            prop_assert_eq!(sent.len() as u64, before.bytes() + 14 + VnetHeader::LENGTH as u64);
            prop_assert_eq!(header_of(&sent), packet.tcp());
            prop_assert_eq!(verified(&sent).ecn, packet.ecn().bits());
            let frame = joined(&SegmentRun::new(&packet).frame());
            prop_assert_eq!(header_of(&finished(frame)), packet.tcp());
            prop_assert_eq!((packet.destination(), packet.length()), (7, before));
        }
    }

    /// Runs carry all segments in order, whatever is changed in each.
    #[test]
    fn runs_carry_all_segments_in_order(
        described in described(),
        changes in prop::collection::vec(acts(), 1..3),
        which in prop::collection::vec(0_usize..2, 1..30),
    ) {
        let from = arrived(&described);
        let packets: Vec<_> = (0..from.frame.segments())
            .zip(which.iter().cycle())
            .map(|(index, which)| {
                let mut packet = Segment::new(Arc::clone(&from), index, 0);
                act_on(&mut packet, &changes[which % changes.len()]);
                packet
            })
            .collect();
        let mut runs: Vec<SegmentRun> = Vec::new();
        for packet in &packets {
            if !runs.last_mut().is_some_and(|run| run.extend(packet, Egress::Network)) {
                runs.push(SegmentRun::new(packet));
            }
        }
        let mut sent = Vec::new();
        for run in &runs {
            let frame = parsed(&joined(&run.frame())).unwrap();
            prop_assert_eq!(frame.segments(), run.segments());
            let segments = 0..frame.segments();
            let cut = |index| (index > 0, joined(&frame.on_wire(index, frame.ecn())));
            sent.extend(segments.map(cut));
        }
        prop_assert_eq!(sent.len(), packets.len());
        for ((follows, sent), packet) in sent.iter().zip(&packets) {
            let expected = joined(&packet.on_wire());
            let mut header = header_of(&expected);
            if let Some(header) = &mut header && *follows {
                header.flags = header.flags.without(Flags::CWR);
            }
            prop_assert_eq!(header_of(sent), header);
            prop_assert_eq!(verified(sent).payload, verified(&expected).payload);
        }
    }

    /// A damaged frame is rewritten without harm, or not at all.
    #[test]
    fn damaged_frames_never_grow(described in described(), place: prop::sample::Index, byte: u8, acts in acts()) {
        let mut bytes = described.bytes();
        let headers = bytes.len().min(100);
        *place.get_mut(&mut bytes[..headers]) = byte;
        let Ok(frame) = parsed(&bytes) else {
            return Ok(());
        };
        let from = Arc::new(ReceivedFrame { frame, unread: Duration::ZERO, number: 0 });
        for index in 0..from.frame.segments() {
            let mut packet = Segment::new(Arc::clone(&from), index, 0);
            let before = joined(&packet.on_wire());
            let ecn = packet.ecn();
            act_on(&mut packet, &acts);
            packet.set_ecn(ecn);
            let after = joined(&packet.on_wire());
            prop_assert_eq!(before.len(), after.len());
            if packet.tcp().is_none() {
                prop_assert_eq!(before, after);
            }
        }
    }
}

/// Returns a super-packet with this many bytes of data, a hundred for each segment.
fn frame_of_100_byte_segments(bytes: usize) -> Described {
    Described {
        v4: true,
        udp: false,
        gso: true,
        size: 100,
        payload: vec![1; bytes],
        sequence: 1,
        flags: Flags::ACK.bits(),
        options: 0,
        ecn: Ecn::Ect0,
    }
}

#[test]
fn segments_keep_their_burst_until_changed() {
    let described = frame_of_100_byte_segments(350);
    let mut pool = FramePools::new();
    let bursts = [(); 2].map(|()| {
        let bytes = described.bytes();
        let frame = pool.reading();
        frame.buffer_mut()[..bytes.len()].copy_from_slice(&bytes);
        frame.parse(bytes.len()).unwrap();
        let from = pool.keep(Duration::ZERO);
        [0, 1, 2, 3].map(|index| Segment::new(Arc::clone(&from), index, 0))
    });
    for pieces in &bursts {
        let id = pieces[0].burst().unwrap().id;
        let inner = [false, true, true, false].map(|is_inner| Some(Burst { id, is_inner }));
        assert_eq!(pieces.each_ref().map(Packet::burst), inner);
    }
    assert_ne!(bursts[0][0].burst(), bursts[1][0].burst());
    let mut changed = bursts[0][1].clone();
    changed.set_window(7);
    assert_eq!(changed.burst(), None);
}

#[test]
fn segments_with_added_cwr_leave_together_unless_they_are_to_be_apart() {
    let from = arrived(&frame_of_100_byte_segments(300));
    let packet = |index| Segment::new(Arc::clone(&from), index, 0);
    let mut run = SegmentRun::new(&packet(0));
    let mut extends = |packet| run.extend(&packet, Egress::Network);
    assert!(extends(packet(1)) && !extends(packet(1)) && extends(packet(2)));
    assert_eq!(run.segments(), 3);
    let reduced = |index| {
        let mut packet = packet(index);
        packet.set_flags(Flags::ACK | Flags::CWR);
        packet
    };
    let mut run = SegmentRun::new(&reduced(0));
    assert!(!run.extend(&packet(1), Egress::Network), "other flags");
    assert!(run.extend(&reduced(1), Egress::Network));
    let frame = parsed(&joined(&run.frame())).unwrap();
    assert_eq!(frame.segments(), 2);
    // A receiver of the whole sees CWR; a card that splits it leaves CWR to the first.
    assert!(frame.tcp(0).unwrap().flags.contains(Flags::CWR));
    let second = header_of(&joined(&frame.on_wire(1, frame.ecn()))).unwrap();
    assert!(!second.flags.contains(Flags::CWR));

    let apart = |index| {
        let mut packet = reduced(index);
        packet.keep_apart();
        packet
    };
    for (one, other) in [
        (apart(0), apart(1)),
        (apart(0), reduced(1)),
        (reduced(0), apart(1)),
    ] {
        assert!(!SegmentRun::new(&one).extend(&other, Egress::Network));
        assert!(SegmentRun::new(&one).extend(&other, Egress::Host));
    }
}
