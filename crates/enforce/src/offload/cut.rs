//! Cuts segments out of a super-packet.

use std::io::IoSlice;
use std::net::IpAddr;
use std::ops::Range;

use weir_units::ByteSize;
use weir_wire::tcp::{Flags, Rewrite};
use weir_wire::{Checksum, Ecn, FlowKey, ip};

use super::frame::{ETHERNET, MacAddress, SuperFrame};
use super::vnet::{Gso, VnetHeader};

/// The longest headers: virtio-net, Ethernet with VLAN tags, IPv4 with all options, TCP with all options.
const LONGEST: usize = VnetHeader::LENGTH + ETHERNET + 60 + 60;
/// Offsets in the TCP header.
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;
/// The offset in the UDP header.
const UDP_LENGTH: usize = 4;

/// The header changes of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// The new ECN codepoint.
    pub ecn: Ecn,
    /// The changes of the TCP header, if there is one.
    pub tcp: Rewrite,
}

/// Changes only the ECN codepoint.
impl From<Ecn> for HeaderChanges {
    fn from(ecn: Ecn) -> Self {
        Self {
            ecn,
            tcp: Rewrite::default(),
        }
    }
}

/// A frame made of consecutive segments of a super-packet: its own headers, and a reference to the
/// payload.
#[derive(Clone, Debug)]
pub struct CutFrame<'a> {
    headers: [u8; LONGEST],
    length: usize,
    payload: &'a [u8],
}

impl SuperFrame {
    /// Returns a frame of the segments in `range`, addressed to `to`, with these changes. It is a
    /// super-packet again if there are several. Indices beyond the last segment are ignored.
    ///
    /// The headers are those of a network card that segments the whole (Linux: `tcp_gso_segment`): an
    /// own sequence number or length, FIN and PSH only with the last segment, CWR only with the first, a
    /// counting IPv4 identification. A partial checksum stays partial; a complete one is updated. A
    /// receiver that gets the frame whole takes an added CWR to be in all segments; a network card that
    /// splits it leaves CWR to the first.
    pub fn cut(
        &self,
        range: Range<u16>,
        changes: impl Into<HeaderChanges>,
        to: MacAddress,
    ) -> CutFrame<'_> {
        let layout = &self.layout;
        let last = range.end.min(layout.segments);
        let first = range.start.min(last);
        let payload = layout.payload_of(first, last);
        let mut cut = CutFrame {
            headers: [0; LONGEST],
            length: 0,
            payload: self.ethernet().get(payload.clone()).unwrap_or_default(),
        };
        let Some(headers) = self.ethernet().get(..layout.payload) else {
            return cut;
        };
        let begin = VnetHeader::LENGTH;
        let Some(place) = cut.headers.get_mut(begin..begin + headers.len()) else {
            return cut;
        };
        place.copy_from_slice(headers);
        cut.length = begin + headers.len();

        let part = SegmentRange {
            first: first == 0,
            last: last == layout.segments,
            changes: changes.into(),
            number: first,
            offset: payload.start.saturating_sub(layout.payload),
            payload: payload.len(),
        };
        let flags = self.rewrite(place, to, &part);
        let cwr = flags.contains(Flags::CWR);
        let gso = layout.vnet.gso.filter(|_| last - first > 1);
        let vnet = VnetHeader {
            gso: gso.map(|gso| Gso { cwr, ..gso }),
            ..layout.vnet
        };
        if let Some(place) = cut.headers.first_chunk_mut() {
            *place = vnet.emit();
        }
        cut
    }

    /// Returns the segment at `index` as a network card puts it on the wire: alone, with these changes, to
    /// its original destination, and with a complete checksum.
    pub fn on_wire(&self, index: u16, changes: impl Into<HeaderChanges>) -> CutFrame<'_> {
        let mut cut = self.cut(index..index.saturating_add(1), changes, self.destination());
        let (layout, length) = (&self.layout, cut.length);
        let begin = VnetHeader::LENGTH + layout.transport;
        if let Some(checksum) = layout.vnet.checksum
            && let Some(header) = cut.headers.get_mut(begin..length)
        {
            // The field holds the sum of the pseudo-header.
            let mut sum = Checksum::default();
            sum.add(header);
            sum.add(cut.payload);
            let sum = match (sum.finish(), layout.flow.protocol) {
                // Zero means no checksum (RFC 768).
                (0, FlowKey::UDP) => u16::MAX,
                (sum, _) => sum,
            };
            put(header, usize::from(checksum.field), sum.to_be_bytes());
        }
        if let Some(place) = cut.headers.first_chunk_mut() {
            *place = VnetHeader::default().emit();
        }
        cut
    }

    /// Rewrites headers, from Ethernet's on; returns the TCP flags.
    fn rewrite(&self, headers: &mut [u8], to: MacAddress, part: &SegmentRange) -> Flags {
        let layout = &self.layout;
        if let Some(place) = headers.first_chunk_mut() {
            *place = to;
        }
        let length = layout.payload.saturating_sub(layout.network) + part.payload;
        if let Some(header) = headers.get_mut(layout.network..layout.transport) {
            let length = ByteSize::from_bytes(length as u64);
            ip::rewrite(header, length, part.changes.ecn, part.number);
        }
        let Some(transport) = headers.get_mut(layout.transport..) else {
            return Flags::empty();
        };
        let length = transport.len() + part.payload;
        let is_tcp = layout.flow.protocol == FlowKey::TCP;
        // A frame of one segment keeps its values.
        if layout.vnet.gso.is_some() {
            if is_tcp {
                part.rewrite_tcp(transport)
            } else {
                put(transport, UDP_LENGTH, (length as u16).to_be_bytes())
            }
            if let Some(checksum) = layout.vnet.checksum {
                let sum = pseudo_header(&layout.flow, length);
                put(transport, usize::from(checksum.field), sum.to_be_bytes());
            }
        }
        if !is_tcp || transport.is_empty() {
            return Flags::empty();
        }
        let finished = layout.vnet.checksum.is_none();
        part.changes.tcp.apply(transport, finished);
        Flags::from_bits(transport.get(FLAGS).copied().unwrap_or_default())
    }
}

/// A range of segments to cut out.
struct SegmentRange {
    first: bool,
    last: bool,
    changes: HeaderChanges,
    /// The index of its first segment.
    number: u16,
    /// The offset of its payload in the whole payload, and its length.
    offset: usize,
    payload: usize,
}

impl SegmentRange {
    /// Rewrites the sequence number and the flags.
    fn rewrite_tcp(&self, header: &mut [u8]) {
        if let Some(place) = header.get_mut(SEQUENCE..).and_then(<[u8]>::first_chunk_mut) {
            // An offset within a packet of 64 KB.
            *place = u32::from_be_bytes(*place)
                .wrapping_add(self.offset as u32)
                .to_be_bytes();
        }
        if let Some(bits) = header.get_mut(FLAGS) {
            let mut flags = Flags::from_bits(*bits);
            if !self.first {
                flags = flags.without(Flags::CWR);
            }
            if !self.last {
                flags = flags.without(Flags::FIN | Flags::PSH);
            }
            *bits = flags.bits();
        }
    }
}

fn put<const N: usize>(header: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = header.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = bytes;
    }
}

fn pseudo_header(flow: &FlowKey, length: usize) -> u16 {
    let (source, destination): (IpAddr, IpAddr) = (flow.source, flow.destination);
    Checksum::of_pseudo_header(source, destination, flow.protocol, length as u32).partial()
}

impl CutFrame<'_> {
    /// Returns the frame with its virtio-net header, in two pieces, as a port sends it.
    pub fn slices(&self) -> [IoSlice<'_>; 2] {
        [IoSlice::new(self.headers()), IoSlice::new(self.payload)]
    }

    /// Returns the headers, from virtio-net's on.
    pub fn headers(&self) -> &[u8] {
        self.headers.get(..self.length).unwrap_or_default()
    }

    /// Returns the headers, from Ethernet's on.
    pub fn ethernet(&self) -> &[u8] {
        let from = VnetHeader::LENGTH;
        self.headers.get(from..self.length).unwrap_or_default()
    }

    /// Returns the payload.
    pub fn payload(&self) -> &[u8] {
        self.payload
    }
}
