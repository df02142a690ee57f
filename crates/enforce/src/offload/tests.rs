//! Super-packets compared with a byte-by-byte reference, and with etherparse.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use weir_wire::{Checksum, Ecn, FlowKey};

use super::*;

const MAC: MacAddress = [2, 0, 0, 0, 0, 9];

/// The description of a super-packet.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) v4: bool,
    pub(crate) udp: bool,
    pub(crate) gso: bool,
    pub(crate) size: u16,
    pub(crate) payload: Vec<u8>,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    /// Words of TCP options.
    pub(crate) options: usize,
    pub(crate) ecn: Ecn,
}

pub(crate) fn described() -> impl Strategy<Value = Described> {
    (
        any::<(bool, bool, bool)>(),
        1_u16..3000,
        prop::collection::vec(any::<u8>(), 0..20_000),
        any::<(u32, u8)>(),
        0_usize..=10,
        (0_u8..4).prop_map(Ecn::from_bits),
    )
        .prop_map(
            |((v4, udp, gso), size, payload, (sequence, flags), options, ecn)| Described {
                v4,
                udp,
                gso,
                size,
                payload,
                sequence,
                flags,
                options,
                ecn,
            },
        )
}

impl Described {
    /// Returns the frame as a kernel hands it over: with its virtio-net header, and only the
    /// pseudo-header in the checksum.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let builder = if self.v4 {
            builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        } else {
            builder.ipv6([1; 16], [2; 16], 64)
        };
        let mut frame = VnetHeader::default().emit().to_vec();
        if self.udp {
            builder.udp(40_000, 50_000).write(&mut frame, &self.payload)
        } else {
            builder
                .tcp(40_000, 50_000, self.sequence, 1000)
                .options_raw(&[1; 40][..4 * self.options])
                .unwrap()
                .write(&mut frame, &self.payload)
        }
        .unwrap();
        let transport = 14 + if self.v4 { 20 } else { 40 };
        let field = if self.udp { 6 } else { 16 };
        let ethernet = &mut frame[VnetHeader::LENGTH..];
        let ip_header = &mut ethernet[14..transport];
        let length = self.payload.len() + transport - 14 + self.header();
        let length = weir_units::ByteSize::from_bytes(length as u64);
        weir_wire::ip::rewrite(ip_header, length, self.ecn, 0);
        if !self.udp {
            ethernet[transport + 13] = self.flags;
        }
        let vnet = VnetHeader {
            checksum: Some(PartialChecksum {
                start: transport as u16,
                field,
            }),
            gso: self.gso.then_some(Gso {
                kind: match (self.udp, self.v4) {
                    (true, _) => GsoKind::Udp,
                    (false, true) => GsoKind::TcpV4,
                    (false, false) => GsoKind::TcpV6,
                },
                size: self.size,
                cwr: !self.udp && self.flags & 0x80 != 0,
            }),
            headers: (transport + self.header()) as u16,
        };
        let at = transport + usize::from(field);
        ethernet[at..at + 2].fill(0);
        frame[..VnetHeader::LENGTH].copy_from_slice(&vnet.emit());
        let (source, destination) = if self.v4 {
            ([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
        } else {
            ([1; 16].into(), [2; 16].into())
        };
        let length = (self.header() + self.payload.len()) as u32;
        let protocol = if self.udp { 17 } else { 6 };
        let sum = Checksum::of_pseudo_header(source, destination, protocol, length).partial();
        let at = VnetHeader::LENGTH + at;
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    fn header(&self) -> usize {
        if self.udp { 8 } else { 20 + 4 * self.options }
    }

    /// Returns the payloads that a network card would send.
    fn payloads(&self) -> Vec<&[u8]> {
        let size = if self.gso {
            usize::from(self.size)
        } else {
            usize::MAX
        };
        if self.payload.is_empty() {
            vec![&[]]
        } else {
            self.payload.chunks(size).collect()
        }
    }
}

pub(crate) fn parsed(bytes: &[u8]) -> Result<SuperFrame, FrameError> {
    let mut frame = SuperFrame::with_capacity(bytes.len());
    frame.buffer_mut().copy_from_slice(bytes);
    frame.parse(bytes.len()).map(|()| frame)
}

pub(crate) fn joined(cut: &CutFrame<'_>) -> Vec<u8> {
    [cut.headers(), cut.payload()].concat()
}

/// Completes the checksum, as the receiver's network card would.
pub(crate) fn finished(mut frame: Vec<u8>) -> Vec<u8> {
    let vnet = VnetHeader::parse(&frame).unwrap();
    let ethernet = &mut frame[VnetHeader::LENGTH..];
    if let Some(PartialChecksum { start, field }) = vnet.checksum {
        let mut sum = Checksum::default();
        sum.add(&ethernet[usize::from(start)..]);
        let at = usize::from(start + field);
        // Zero would mean that a datagram has no checksum.
        let sum = match sum.finish() {
            0 => 0xFFFF,
            sum => sum,
        };
        ethernet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

/// The fields that etherparse finds in a frame after verifying its checksums.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) destination: MacAddress,
    pub(crate) ecn: u8,
    pub(crate) identification: u16,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn verified(frame: &[u8]) -> Seen {
    let packet = SlicedPacket::from_ethernet(&frame[VnetHeader::LENGTH..]).unwrap();
    let etherparse::LinkSlice::Ethernet2(ethernet) = packet.link.unwrap() else {
        panic!("no Ethernet");
    };
    let (ecn, identification, source, destination) = match packet.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            let addresses = (header.source.to_vec(), header.destination.to_vec());
            (
                u8::from(header.ecn),
                header.identification,
                addresses.0,
                addresses.1,
            )
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            let addresses = (header.source.to_vec(), header.destination.to_vec());
            (header.traffic_class & 0b11, 0, addresses.0, addresses.1)
        }
        other => panic!("{other:?}"),
    };
    let v4 = |bytes: &[u8]| <[u8; 4]>::try_from(bytes);
    let v6 = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).unwrap();
    let (sequence, flags, payload) = match packet.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let header = tcp.to_header();
            let sum = match (v4(&source), v4(&destination)) {
                (Ok(from), Ok(to)) => header.calc_checksum_ipv4_raw(from, to, tcp.payload()),
                _ => header.calc_checksum_ipv6_raw(v6(&source), v6(&destination), tcp.payload()),
            };
            // Both zeros of one's complement are valid; receivers cannot distinguish them.
            assert_eq!(sum.unwrap() % 0xFFFF, header.checksum % 0xFFFF);
            (header.sequence_number, tcp.slice()[13], tcp.payload())
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            let sum = match (v4(&source), v4(&destination)) {
                (Ok(from), Ok(to)) => header.calc_checksum_ipv4_raw(from, to, udp.payload()),
                _ => header.calc_checksum_ipv6_raw(v6(&source), v6(&destination), udp.payload()),
            };
            assert_eq!(sum, Ok(header.checksum));
            (0, 0, udp.payload())
        }
        other => panic!("{other:?}"),
    };
    Seen {
        destination: ethernet.destination(),
        ecn,
        identification,
        sequence,
        flags,
        payload: payload.to_vec(),
    }
}

/// Returns what network cards send, by definition.
fn reference(described: &Described, ecn: Ecn) -> Vec<Seen> {
    let payloads = described.payloads();
    let mut offset = 0;
    (0..)
        .zip(&payloads)
        .map(|(index, payload)| {
            let mut flags = described.flags;
            if index > 0 {
                flags &= !0x80;
            }
            if usize::from(index) + 1 < payloads.len() {
                flags &= !0x09;
            }
            let seen = Seen {
                destination: MAC,
                ecn: ecn.bits(),
                identification: if described.v4 { index } else { 0 },
                sequence: if described.udp {
                    0
                } else {
                    described.sequence.wrapping_add(offset)
                },
                flags: if described.udp { 0 } else { flags },
                payload: payload.to_vec(),
            };
            offset += payload.len() as u32;
            seen
        })
        .collect()
}

proptest! {
    #[test]
    fn segments_match_the_reference(described in described(), mark: bool) {
        let frame = parsed(&described.bytes()).unwrap();
        let ecn = if mark { Ecn::Ce } else { described.ecn };
        let expected = reference(&described, ecn);
        prop_assert_eq!(usize::from(frame.segments()), expected.len());
        prop_assert_eq!(frame.ecn(), described.ecn);
        for (index, expected) in (0..).zip(expected) {
            let cut = frame.cut(index..index + 1, ecn, MAC);
            let length = cut.slices().iter().map(|slice| slice.len()).sum::<usize>();
            let packet = length - VnetHeader::LENGTH - 14;
            prop_assert_eq!(frame.segment_length(index).bytes(), packet as u64);
            prop_assert_eq!(&verified(&finished(joined(&cut))), &expected);
            let on_wire = frame.on_wire(index, ecn);
            let to = [2, 0, 0, 0, 0, 2];
            prop_assert_eq!(verified(&joined(&on_wire)), Seen { destination: to, ..expected });
            prop_assert_eq!(on_wire.ethernet(), &on_wire.headers()[VnetHeader::LENGTH..]);
        }
    }

    /// Cutting a range and then a part of it equals cutting once.
    #[test]
    fn cutting_a_range_of_segments_gives_a_super_packet(described in described(), cuts: (prop::sample::Index, prop::sample::Index)) {
        let frame = parsed(&described.bytes()).unwrap();
        let count = frame.segments();
        let first = cuts.0.index(usize::from(count)) as u16;
        let last = first + 1 + cuts.1.index(usize::from(count - first)) as u16;
        let part = joined(&frame.cut(first..last, described.ecn, MAC));
        let part = parsed(&part).unwrap();
        prop_assert_eq!(part.segments(), last - first);
        prop_assert_eq!(part.flow(), frame.flow());
        for index in first..last {
            let at_once = joined(&frame.cut(index..index + 1, Ecn::Ce, MAC));
            let inside = index - first;
            let twice = joined(&part.cut(inside..inside + 1, Ecn::Ce, MAC));
            prop_assert_eq!(at_once, twice);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), ip: bool) {
        if let (true, Some(ethertype)) = (ip, bytes.get_mut(22..24)) {
            ethertype.copy_from_slice(&[8, 0]);
        }
        if let Ok(frame) = parsed(&bytes) {
            prop_assert!(frame.segments() > 0);
            for index in 0..frame.segments() {
                let cut = frame.cut(index..index + 1, Ecn::Ce, MAC);
                prop_assert!(cut.headers().len() + cut.payload().len() <= bytes.len());
            }
        }
    }

    #[test]
    fn damaged_frames_are_read_or_refused(described in described(), place: prop::sample::Index, byte: u8, length: prop::sample::Index) {
        let mut bytes = described.bytes();
        let end = length.index(bytes.len() + 1);
        *place.get_mut(&mut bytes[..100.min(described.header() + 44)]) = byte;
        if let Ok(frame) = parsed(&bytes[..end]) {
            let all = frame.cut(0..u16::MAX, frame.ecn(), MAC);
            prop_assert!(all.headers().len() + all.payload().len() <= end);
            let last = frame.segments() - 1;
            let single = joined(&frame.cut(last..last + 1, Ecn::Ce, MAC));
            let single = parsed(&single).unwrap();
            prop_assert_eq!(single.segments(), 1);
            prop_assert_eq!(single.segment_length(0), frame.segment_length(last));
        }
    }
}

#[test]
fn a_finished_checksum_stays() {
    let described = Described {
        v4: true,
        udp: true,
        gso: false,
        size: 1,
        payload: vec![7; 100],
        sequence: 0,
        flags: 0,
        options: 0,
        ecn: Ecn::Ect0,
    };
    let mut bytes = finished(described.bytes());
    bytes[..VnetHeader::LENGTH].copy_from_slice(&VnetHeader::default().emit());
    let frame = parsed(&bytes).unwrap();
    let cut = joined(&frame.cut(0..1, Ecn::Ce, MAC));
    assert_eq!(verified(&cut).ecn, Ecn::Ce.bits());
    assert_eq!(VnetHeader::parse(&cut), Ok(VnetHeader::default()));
}

#[test]
fn unsupported_frames_are_errors() {
    let mut arp = vec![0; 60];
    arp[VnetHeader::LENGTH + 12..VnetHeader::LENGTH + 14].copy_from_slice(&[8, 6]);
    assert_eq!(parsed(&arp).unwrap_err(), FrameError::NotIp(0x0806));
    let mut frame = SuperFrame::with_capacity(10);
    assert_eq!(frame.parse(11), Err(FrameError::Truncated));
    assert_eq!((frame.segments(), frame.segment_length(0).bytes()), (0, 0));
    assert_eq!(frame.flow(), &FlowKey::UNSPECIFIED);
}

#[test]
fn a_frame_is_copied_only_if_it_fits() {
    let bytes = Described {
        v4: false,
        udp: false,
        gso: true,
        size: 100,
        payload: vec![1; 250],
        sequence: 1,
        flags: 0x18,
        options: 0,
        ecn: Ecn::Ect1,
    }
    .bytes();
    let frame = parsed(&bytes).unwrap();
    let mut copy = SuperFrame::with_capacity(bytes.len());
    assert!(copy.copy_from(&frame));
    assert_eq!((copy.bytes(), copy.segments()), (&bytes[..], 3));
    assert!(!SuperFrame::with_capacity(bytes.len() - 1).copy_from(&frame));
}

/// A tag inserted into a frame is in all frames cut out of it, and nothing else changes.
#[test]
fn tags_travel_with_segments() {
    let described = Described {
        v4: true,
        udp: false,
        gso: true,
        size: 1000,
        payload: vec![7; 2500],
        sequence: 7,
        flags: 0x18,
        options: 3,
        ecn: Ecn::NotEct,
    };
    let bytes = described.bytes();
    let plain = parsed(&bytes).unwrap();
    let (mut tagged, mut length) = (bytes.clone(), bytes.len());
    for kind in [VlanTag::CUSTOMER, VlanTag::PROVIDER] {
        tagged.resize(length + VlanTag::LENGTH, 0);
        let tag = VlanTag { kind, control: 42 };
        assert_eq!(tag.insert(&mut tagged[..length], length), None, "no room");
        length = tag.insert(&mut tagged, length).unwrap();
        let frame = parsed(&tagged).unwrap();
        assert_eq!((frame.segments(), frame.flow()), (3, plain.flow()));
        assert_eq!(frame.segment_length(2), plain.segment_length(2));
        assert_eq!(frame.tcp(1), plain.tcp(1));
        // On the wire, with complete checksums.
        let mut cut = joined(&frame.on_wire(1, Ecn::Ce));
        while cut[22..24] == VlanTag::PROVIDER.to_be_bytes()
            || cut[22..24] == VlanTag::CUSTOMER.to_be_bytes()
        {
            assert_eq!(cut[24..26], [0, 42]);
            cut.drain(22..26);
        }
        assert_eq!(cut, joined(&plain.on_wire(1, Ecn::Ce)));
        // As a super-packet: the offsets of the partial checksum follow the tag.
        let cut = joined(&frame.cut(0..2, Ecn::NotEct, frame.destination()));
        let again = parsed(&cut).unwrap();
        assert_eq!(
            joined(&again.on_wire(1, Ecn::NotEct)),
            joined(&frame.on_wire(1, Ecn::NotEct))
        );
    }
    tagged.resize(length + VlanTag::LENGTH, 0);
    let third = VlanTag {
        kind: VlanTag::CUSTOMER,
        control: 1,
    };
    third.insert(&mut tagged, length).unwrap();
    assert_eq!(
        parsed(&tagged).unwrap_err(),
        FrameError::NotIp(VlanTag::CUSTOMER)
    );
}
