//! A frame as a port hands it over, and where what is in it.

use thiserror::Error;
use weir_units::ByteSize;
use weir_wire::{Ecn, FlowKey, ip, tcp};

use super::vlan::{ADDRESSES, VlanTag};
use super::vnet::{Gso, GsoKind, VnetError, VnetHeader};

/// An Ethernet address.
pub type MacAddress = [u8; 6];
/// Addresses, as many VLAN tags as are read, EtherType.
pub(super) const ETHERNET: usize = ADDRESSES + TAGS * VlanTag::LENGTH + 2;
/// A provider's VLAN tag and a customer's.
const TAGS: usize = 2;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const UDP_HEADER: usize = 8;
/// The fixed part of a TCP header.
const TCP_HEADER: usize = 20;
/// Where the checksum's field is in the header.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

/// A frame with its virtio-net header: one segment, or many as one super-packet.
///
/// Its buffer is used again for frame after frame: fill [`Self::buffer_mut`], then [`parse`](Self::parse).
#[derive(Clone, Debug)]
pub struct SuperFrame {
    buffer: Box<[u8]>,
    /// How much of the buffer the frame fills.
    length: usize,
    pub(super) layout: Layout,
}

/// Where what is in a frame; offsets are from its Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) vnet: VnetHeader,
    /// Of the first segment.
    pub(super) ecn: Ecn,
    pub(super) dscp: u8,
    pub(super) flow: FlowKey,
    /// Where the header of IP begins.
    pub(super) network: usize,
    /// Where the header of TCP or UDP begins; where the payload does, for other protocols.
    pub(super) transport: usize,
    /// Where the payload begins.
    pub(super) payload: usize,
    /// Where the IP packet ends.
    pub(super) end: usize,
    /// The payload of each segment but the last.
    pub(super) segment: usize,
    pub(super) segments: u16,
    /// The header of TCP, if it is a sound one, with all payload: read once for all segments.
    pub(super) tcp: Option<tcp::Segment>,
}

/// Why a frame is no IP packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The bytes end before the headers do, or the frame is larger than the buffer.
    #[error("the frame ends before its headers do")]
    Truncated,
    /// Neither IPv4 nor IPv6: ARP, for instance.
    #[error("EtherType {0:#06x} is not IP")]
    NotIp(u16),
    /// The header of IP is none.
    #[error(transparent)]
    Ip(#[from] ip::ParseError),
    /// The header that says what is left to do cannot be.
    #[error(transparent)]
    Vnet(#[from] VnetError),
    /// What the virtio-net header says does not fit the frame.
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
    /// The capacity that holds whatever a port hands over: the largest IP packet, its Ethernet header with
    /// VLAN tags, and its virtio-net header.
    pub const LARGEST: usize = VnetHeader::LENGTH + ETHERNET + 65_535;

    /// An empty frame with a buffer of this many bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            buffer: vec![0; capacity].into_boxed_slice(),
            length: 0,
            layout: NOTHING,
        }
    }

    /// The buffer, for a port to fill from its beginning: virtio-net header, then Ethernet header. The
    /// frame is empty until it is [parsed](Self::parse) again.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.length = 0;
        self.layout = NOTHING;
        &mut self.buffer
    }

    /// Looks at the first `length` bytes of the buffer. After an error the frame is empty.
    ///
    /// # Errors
    /// What is no IP packet, or contradicts itself.
    pub fn parse(&mut self, length: usize) -> Result<(), FrameError> {
        (self.length, self.layout) = (0, NOTHING);
        let bytes = self.buffer.get(..length).ok_or(FrameError::Truncated)?;
        self.layout = Layout::of(bytes)?;
        self.length = length;
        Ok(())
    }

    /// Becomes a copy of `other`, if its buffer is large enough for it, and tells whether it is.
    pub fn copy_from(&mut self, other: &Self) -> bool {
        match self.buffer.get_mut(..other.length) {
            Some(place) => place.copy_from_slice(other.bytes()),
            None => return false,
        }
        (self.length, self.layout) = (other.length, other.layout);
        true
    }

    /// The frame with its virtio-net header, as it came.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// The frame without its virtio-net header.
    pub(super) fn ethernet(&self) -> &[u8] {
        self.bytes().get(VnetHeader::LENGTH..).unwrap_or_default()
    }

    /// How many segments a network card would make of it; none while the frame is empty.
    pub fn segments(&self) -> u16 {
        self.layout.segments
    }

    /// The length of the IP packet of the segment at `index`; nothing where there is no such segment.
    pub fn segment_length(&self, index: u16) -> ByteSize {
        if index >= self.layout.segments {
            return ByteSize::ZERO;
        }
        let headers = self.layout.payload.saturating_sub(self.layout.network);
        let payload = self.layout.payload_of(index, index + 1).len();
        ByteSize::from_bytes((headers + payload) as u64)
    }

    /// The Ethernet address that it is for; zeros while it is empty.
    pub fn destination(&self) -> MacAddress {
        self.ethernet().first_chunk().copied().unwrap_or_default()
    }

    /// The TCP header of the segment at `index`, if it has a sound one; fragments have none.
    pub fn tcp(&self, index: u16) -> Option<tcp::Segment> {
        let layout = &self.layout;
        if index >= layout.segments {
            return None;
        }
        Some((layout.tcp?).piece(layout.segment as u32, u32::from(index)))
    }

    /// The ECN codepoint of all its segments.
    pub fn ecn(&self) -> Ecn {
        self.layout.ecn
    }

    /// The differentiated services code point of all its segments.
    pub fn dscp(&self) -> u8 {
        self.layout.dscp
    }

    /// The flow of all its segments; ports are zero for other protocols than TCP and UDP, and for
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

    /// The same as a super-packet.
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

    /// An unfinished checksum has to be the one of TCP or UDP.
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

    /// The payload of the segments from `first` to before `last`.
    pub(super) fn payload_of(&self, first: u16, last: u16) -> std::ops::Range<usize> {
        let at = |index: u16| (self.payload + usize::from(index) * self.segment).min(self.end);
        if last >= self.segments {
            at(first)..self.end
        } else {
            at(first)..at(last)
        }
    }
}

/// Where the IP packet begins in an Ethernet frame.
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

/// What is behind the header of IP, where it is TCP or UDP.
#[derive(Clone, Copy, Debug)]
struct Protocol {
    ports: tcp::Ports,
    /// The length of the header.
    header: usize,
    /// Where its checksum is.
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
