//! A frame read from a port, and the layout of its headers.

use thiserror::Error;
use weir_units::ByteSize;
use weir_wire::{Ecn, FlowKey, ip, tcp};

use super::vlan::{ADDRESSES, VlanTag};
use super::vnet::{Gso, GsoKind, VnetError, VnetHeader};

/// An Ethernet address.
pub type MacAddress = [u8; 6];
/// The length of addresses, VLAN tags and EtherType.
pub(super) const ETHERNET: usize = ADDRESSES + TAGS * VlanTag::LENGTH + 2;
/// A provider's VLAN tag and a customer's.
const TAGS: usize = 2;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const UDP_HEADER: usize = 8;
/// The fixed part of a TCP header.
const TCP_HEADER: usize = 20;
/// The offset of the checksum in the header.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

/// A frame with its virtio-net header: one segment, or a super-packet of many.
///
/// The buffer is reused for each frame: fill [`Self::buffer_mut`], then call [`parse`](Self::parse).
#[derive(Clone, Debug)]
pub struct SuperFrame {
    buffer: Box<[u8]>,
    /// The length of the frame in the buffer.
    length: usize,
    pub(super) layout: Layout,
}

/// The layout of a frame; offsets are from its Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) vnet: VnetHeader,
    /// The ECN codepoint of the first segment.
    pub(super) ecn: Ecn,
    pub(super) dscp: u8,
    pub(super) flow: FlowKey,
    /// The offset of the IP header.
    pub(super) network: usize,
    /// The offset of the TCP or UDP header; of the payload for other protocols.
    pub(super) transport: usize,
    /// The offset of the payload.
    pub(super) payload: usize,
    /// The end of the IP packet.
    pub(super) end: usize,
    /// The payload length of each segment but the last.
    pub(super) segment: usize,
    pub(super) segments: u16,
    /// The TCP header, if it is valid, with the whole payload: parsed once for all segments.
    pub(super) tcp: Option<tcp::Segment>,
}

/// The frame is not an IP packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The bytes end before the headers do, or the frame is larger than the buffer.
    #[error("the frame ends before its headers do")]
    Truncated,
    /// Neither IPv4 nor IPv6: ARP, for instance.
    #[error("EtherType {0:#06x} is not IP")]
    NotIp(u16),
    /// The IP header is invalid.
    #[error(transparent)]
    Ip(#[from] ip::ParseError),
    /// The virtio-net header is invalid.
    #[error(transparent)]
    Vnet(#[from] VnetError),
    /// The virtio-net header does not match the frame.
    #[error("what is left to be done to the frame does not fit its protocol")]
    Contradiction,
}

const NOTHING: Layout = Layout {
    vnet: VnetHeader {
        checksum: None,
        gso: None,
        headers: 0,
    },
    ecn: Ecn::NotEct,
    dscp: 0,
    flow: FlowKey::UNSPECIFIED,
    network: 0,
    transport: 0,
    payload: 0,
    end: 0,
    segment: 0,
    segments: 0,
    tcp: None,
};

impl SuperFrame {
    /// The capacity that holds any frame of a port: the largest IP packet, its Ethernet header with VLAN
    /// tags, and its virtio-net header.
    pub const LARGEST: usize = VnetHeader::LENGTH + ETHERNET + 65_535;

    /// Creates an empty frame with a buffer of this many bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            buffer: vec![0; capacity].into_boxed_slice(),
            length: 0,
            layout: NOTHING,
        }
    }

    /// Returns the buffer, for a port to fill from its beginning: virtio-net header, then Ethernet header.
    /// The frame is empty until it is [parsed](Self::parse) again.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.length = 0;
        self.layout = NOTHING;
        &mut self.buffer
    }

    /// Parses the first `length` bytes of the buffer. After an error the frame is empty.
    ///
    /// # Errors
    /// The bytes are not a valid IP packet, or contradict the virtio-net header.
    pub fn parse(&mut self, length: usize) -> Result<(), FrameError> {
        (self.length, self.layout) = (0, NOTHING);
        let bytes = self.buffer.get(..length).ok_or(FrameError::Truncated)?;
        self.layout = Layout::of(bytes)?;
        self.length = length;
        Ok(())
    }

    /// Copies `other`, if the buffer is large enough; returns whether it is.
    pub fn copy_from(&mut self, other: &Self) -> bool {
        match self.buffer.get_mut(..other.length) {
            Some(place) => place.copy_from_slice(other.bytes()),
            None => return false,
        }
        (self.length, self.layout) = (other.length, other.layout);
        true
    }

    /// Returns the frame with its virtio-net header, as received.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// Returns the frame without its virtio-net header.
    pub(super) fn ethernet(&self) -> &[u8] {
        self.bytes().get(VnetHeader::LENGTH..).unwrap_or_default()
    }

    /// Returns the number of segments that a network card would make of it; 0 if the frame is empty.
    pub fn segments(&self) -> u16 {
        self.layout.segments
    }

    /// Returns the IP length of the segment at `index`; zero if there is no such segment.
    pub fn segment_length(&self, index: u16) -> ByteSize {
        if index >= self.layout.segments {
            return ByteSize::ZERO;
        }
        let headers = self.layout.payload.saturating_sub(self.layout.network);
        let payload = self.layout.payload_of(index, index + 1).len();
        ByteSize::from_bytes((headers + payload) as u64)
    }

    /// Returns the destination Ethernet address; zeros if the frame is empty.
    pub fn destination(&self) -> MacAddress {
        self.ethernet().first_chunk().copied().unwrap_or_default()
    }

    /// Returns the TCP header of the segment at `index`, if it has a valid one; fragments have none.
    pub fn tcp(&self, index: u16) -> Option<tcp::Segment> {
        let layout = &self.layout;
        if index >= layout.segments {
            return None;
        }
        Some((layout.tcp?).segment(layout.segment as u32, u32::from(index)))
    }

    /// Returns the ECN codepoint of all its segments.
    pub fn ecn(&self) -> Ecn {
        self.layout.ecn
    }

    /// Returns the differentiated services code point of all its segments.
    pub fn dscp(&self) -> u8 {
        self.layout.dscp
    }

    /// Returns the flow of all its segments; ports are zero for protocols other than TCP and UDP, and for
    /// fragments.
    pub fn flow(&self) -> &FlowKey {
        &self.layout.flow
    }
}

impl Layout {
    fn of(bytes: &[u8]) -> Result<Self, FrameError> {
        let vnet = VnetHeader::parse(bytes)?;
        let frame = bytes
            .get(VnetHeader::LENGTH..)
            .ok_or(FrameError::Truncated)?;
        let network = network_in(frame)?;
        let packet = frame.get(network..).ok_or(FrameError::Truncated)?;
        let ip = ip::Header::parse(packet)?;
        let (header, length) = (ip.header_length.bytes(), ip.length.bytes());
        // The packet is no longer than the frame, which is in memory.
        let (transport, end) = (network + header as usize, network + length as usize);
        let after_ip = frame.get(transport..end).ok_or(FrameError::Truncated)?;
        let protocol = if ip.fragment {
            None
        } else {
            Protocol::of(ip.protocol, after_ip)
        };
        let payload = transport + protocol.map_or(0, |protocol| protocol.header);
        let whole = end.saturating_sub(payload);
        let tcp = match protocol {
            Some(_) if ip.protocol == FlowKey::TCP => tcp::Segment::parse(after_ip).ok(),
            _ => None,
        };
        let layout = Self {
            vnet,
            ecn: ip.ecn,
            dscp: ip.dscp,
            flow: FlowKey {
                source: ip.source,
                destination: ip.destination,
                source_port: protocol.map_or(0, |protocol| protocol.ports.source),
                destination_port: protocol.map_or(0, |protocol| protocol.ports.destination),
                protocol: ip.protocol,
            },
            network,
            transport,
            payload,
            end,
            segment: whole,
            segments: 1,
            tcp: tcp.map(|(_, segment)| segment),
        };
        layout.checked_checksum(protocol)?;
        match vnet.gso {
            None => Ok(layout),
            Some(gso) => layout.segmented(gso, whole, ip.source.is_ipv4()),
        }
    }

    /// Returns the layout as a super-packet.
    fn segmented(self, gso: Gso, whole: usize, v4: bool) -> Result<Self, FrameError> {
        let fits = match gso.kind {
            GsoKind::TcpV4 => v4 && self.flow.protocol == FlowKey::TCP,
            GsoKind::TcpV6 => !v4 && self.flow.protocol == FlowKey::TCP,
            GsoKind::Udp => self.flow.protocol == FlowKey::UDP,
        };
        let segments = whole.div_ceil(usize::from(gso.size)).max(1);
        match u16::try_from(segments) {
            Ok(segments) if fits => Ok(Self {
                segment: usize::from(gso.size),
                segments,
                ..self
            }),
            _ => Err(FrameError::Contradiction),
        }
    }

    /// Checks that a partial checksum is that of TCP or UDP.
    fn checked_checksum(&self, protocol: Option<Protocol>) -> Result<(), FrameError> {
        let Some(checksum) = self.vnet.checksum else {
            return Ok(());
        };
        let right = protocol.is_some_and(|protocol| {
            usize::from(checksum.start) == self.transport && checksum.field == protocol.checksum
        });
        if right {
            Ok(())
        } else {
            Err(FrameError::Contradiction)
        }
    }

    /// Returns the payload range of the segments from `first` to before `last`.
    pub(super) fn payload_of(&self, first: u16, last: u16) -> std::ops::Range<usize> {
        let at = |index: u16| (self.payload + usize::from(index) * self.segment).min(self.end);
        if last >= self.segments {
            at(first)..self.end
        } else {
            at(first)..at(last)
        }
    }
}

/// Returns the offset of the IP packet in an Ethernet frame.
fn network_in(frame: &[u8]) -> Result<usize, FrameError> {
    let mut at = ADDRESSES;
    for tags in 0.. {
        let kind = frame.get(at..).and_then(<[u8]>::first_chunk);
        let kind = u16::from_be_bytes(*kind.ok_or(FrameError::Truncated)?);
        match kind {
            IPV4 | IPV6 => break,
            VlanTag::CUSTOMER | VlanTag::PROVIDER if tags < TAGS => at += VlanTag::LENGTH,
            other => return Err(FrameError::NotIp(other)),
        }
    }
    Ok(at + 2)
}

/// The transport header of TCP or UDP.
#[derive(Clone, Copy, Debug)]
struct Protocol {
    ports: tcp::Ports,
    /// The length of the header.
    header: usize,
    /// The offset of its checksum.
    checksum: u16,
}

impl Protocol {
    fn of(protocol: u8, bytes: &[u8]) -> Option<Self> {
        let &[s0, s1, d0, d1] = bytes.first_chunk()?;
        let (header, checksum) = match protocol {
            FlowKey::TCP => (usize::from(bytes.get(12)? >> 4) * 4, TCP_CHECKSUM),
            FlowKey::UDP => (UDP_HEADER, UDP_CHECKSUM),
            _ => return None,
        };
        let least = match protocol {
            FlowKey::TCP => TCP_HEADER,
            _ => UDP_HEADER,
        };
        let ports = tcp::Ports {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
        };
        (header >= least && header <= bytes.len()).then_some(Self {
            ports,
            header,
            checksum,
        })
    }
}
