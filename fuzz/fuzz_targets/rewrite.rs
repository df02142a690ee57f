//! Fuzzes the rewriting of segments by the elements of a switch, on any frame of a host: nothing panics, no
//! packet changes its length, packets that are not TCP segments pass unchanged, and a checksum stays as right
//! or as wrong as it was.

#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use weir_enforce::offload::{CutFrame, SuperFrame};
use weir_enforce::segment::{Egress, ReceivedFrame, Segment, SegmentRun};
use weir_fabric::Packet;
use weir_units::Duration;
use weir_wire::tcp::{Flags, Sequence, Timestamps};
use weir_wire::{Checksum, Ecn, ip};

#[derive(Arbitrary, Debug)]
enum Act {
    Window(u16),
    Acknowledgment(u32),
    Timestamps(u32, u32),
    Flags(u8),
    RefuseSack,
    ClearSack,
    Ecn(u8),
}

fn act(packet: &mut Segment, act: &Act) {
    match *act {
        Act::Window(window) => packet.set_window(window),
        Act::Acknowledgment(number) => packet.set_acknowledgment(Sequence::new(number)),
        Act::Timestamps(value, echo) => packet.set_timestamps(Timestamps { value, echo }),
        Act::Flags(bits) => packet.set_flags(Flags::from_bits(bits)),
        Act::RefuseSack => packet.refuse_sack(),
        Act::ClearSack => packet.clear_sack_blocks(),
        Act::Ecn(bits) => packet.set_ecn(Ecn::from_bits(bits)),
    }
}

/// Returns the checksum over a whole TCP segment including its checksum field: zero if that is right.
fn remainder(frame: &CutFrame<'_>) -> Option<u16> {
    let packet = [frame.ethernet(), frame.payload()].concat();
    let header = ip::Header::parse(&packet[14..]).ok()?;
    let begin = 14 + header.header_length.bytes() as usize;
    let segment = packet.get(begin..14 + header.length.bytes() as usize)?;
    let length = segment.len() as u32;
    let mut sum =
        Checksum::of_pseudo_header(header.source, header.destination, header.protocol, length);
    sum.add(segment);
    Some(sum.finish())
}

fn bytes(frame: &CutFrame<'_>) -> Vec<u8> {
    [frame.headers(), frame.payload()].concat()
}

fuzz_target!(|input: (Vec<Act>, bool, &[u8])| {
    let (acts, to_network, frame_bytes) = input;
    let egress = if to_network {
        Egress::Network
    } else {
        Egress::Host
    };
    let mut frame = SuperFrame::with_capacity(frame_bytes.len());
    frame.buffer_mut().copy_from_slice(frame_bytes);
    if frame.parse(frame_bytes.len()).is_err() {
        return;
    }
    let from = Arc::new(ReceivedFrame {
        frame,
        unread: Duration::ZERO,
        number: 0,
    });
    let mut runs: Vec<SegmentRun> = Vec::new();
    for index in 0..from.frame.segments() {
        let whole = Segment::new(Arc::clone(&from), index, 0);
        let mut packet = whole.clone();
        acts.iter().for_each(|what| act(&mut packet, what));
        let (before, after) = (whole.on_wire(), packet.on_wire());
        assert_eq!(bytes(&before).len(), bytes(&after).len());
        if whole.tcp().is_none() {
            packet.set_ecn(whole.ecn());
            assert_eq!(bytes(&before), bytes(&packet.on_wire()));
            continue;
        }
        assert_eq!(remainder(&before), remainder(&after));
        if !runs
            .last_mut()
            .is_some_and(|run| run.extend(&packet, egress))
        {
            runs.push(SegmentRun::new(&packet));
        }
    }
    for run in runs {
        assert!(bytes(&run.frame()).len() <= frame_bytes.len());
    }
});
