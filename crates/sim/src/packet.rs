//! Simulated packets: small records without allocations.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_fabric::Packet as FabricPacket;
use weir_results::capture::{CapturedPacket, Content};
use weir_units::{ByteSize, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence, Timestamps};
use weir_wire::{Ecn, FlowKey};

use crate::flows::FlowId;

/// Headers without options.
const IP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;
/// The first byte of all addresses.
const FIRST_NETWORK: u8 = 10;
/// The time to live of hosts. Data center switches that forward by hardware address leave it unchanged.
const HOPS: u8 = 64;
/// The ports of receivers and of initiators. They belong to no known protocol, so that a protocol analyzer
/// does not decode the zeros in a capture as one.
pub(crate) const SERVICE_PORT: u16 = 50_000;
const SERVICE_PORTS: u32 = 4000;
const INITIATOR_PORT: u16 = 60_002;
const INITIATOR_PORTS: u32 = u16::MAX as u32 - INITIATOR_PORT as u32 + 1;

/// The network of simulated packets.
pub(crate) type Network = weir_network::Network<Packet>;

/// An IP packet between two simulated hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// The header of a TCP segment. It is written in place, as copies would cost more than all else.
    segment: Segment,
    /// Its length, which is read at every hop.
    length: u32,
    /// The number of its flow.
    pub(crate) flow: u32,
    /// The position of its destination endpoint.
    pub(crate) endpoint: u32,
    /// The position of its source endpoint.
    pub(crate) sender: u32,
    /// Positions in the topology's list of hosts.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    datagram: RawDatagram,
    kind: PacketKind,
    pub(crate) ecn: Ecn,
    /// Whether it goes from the flow's initiator to its responder.
    pub(crate) forward: bool,
    /// Whether there is a copy of it, which holds the same slot if it is a raw datagram.
    pub(crate) is_copied: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum PacketKind {
    #[default]
    Segment,
    Datagram,
    RawDatagram,
}

/// The contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents<'a> {
    /// A TCP segment.
    Segment(&'a Segment),
    /// A UDP datagram.
    Datagram(Datagram),
    /// A UDP datagram of a QUIC or DCUDP connection.
    RawDatagram(RawDatagram),
}

/// A UDP datagram of a flow without congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Datagram {
    /// The length of its data, in bytes.
    pub(crate) payload: u32,
}

/// A UDP datagram with real bytes, in the slab of the QUIC and DCUDP hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawDatagram {
    /// The slot of its bytes.
    pub(crate) slot: u32,
    /// Their number.
    pub(crate) payload: u16,
    /// The editions of its source and destination addresses.
    pub(crate) editions: [u8; 2],
}

/// The position of an endpoint and the path of its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) flow: FlowId,
    pub(crate) position: u32,
    /// The position of its host in the topology's list.
    pub(crate) host: u32,
    /// The position of the endpoint at the other end.
    pub(crate) peer: u32,
    /// Positions in the topology's list of hosts.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The port of the source by which packets leave.
    pub(crate) port: u32,
    /// Whether this is the end that opened the flow.
    pub(crate) initiator: bool,
}

/// An address of a host. A link whose address has changed is still reached by the same number, but packets
/// to the old address are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The number that switches forward by: see [`Network`].
    pub(crate) number: u32,
    /// How often the address has changed.
    pub(crate) generation: u8,
}

impl Location {
    /// Returns 10.0.0.1 for the first number; 11.0.0.1 after its first change.
    pub(crate) fn ip(self) -> IpAddr {
        let [_, b, c, d] = self.number.wrapping_add(1).to_be_bytes();
        let a = FIRST_NETWORK.wrapping_add(self.generation);
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    }

    /// Returns the location with this address.
    pub(crate) fn of(ip: IpAddr) -> Option<Self> {
        let IpAddr::V4(ip) = ip else {
            return None;
        };
        let [a, b, c, d] = ip.octets();
        Some(Self {
            number: u32::from_be_bytes([0, b, c, d]).checked_sub(1)?,
            generation: a.wrapping_sub(FIRST_NETWORK),
        })
    }
}

/// Returns the ports of a flow's initiator and of its responder.
pub(crate) fn ports(flow: u32) -> (u16, u16) {
    // Twenty-two million flows have distinct pairs of ports.
    let initiator = INITIATOR_PORT + (flow % INITIATOR_PORTS) as u16;
    let service = SERVICE_PORT + (flow / INITIATOR_PORTS % SERVICE_PORTS) as u16;
    (initiator, service)
}

impl Packet {
    /// Creates a packet with a TCP segment of the endpoint with this address.
    pub(crate) fn of_segment(segment: Segment, ecn: Ecn, address: &Address) -> Self {
        let mut packet = Self {
            segment,
            ..Self::default()
        };
        packet.complete_segment(ecn, address);
        packet
    }

    /// The segment, to be written; then the packet is [completed](Self::complete_segment).
    #[inline]
    pub(crate) fn segment_mut(&mut self) -> &mut Segment {
        &mut self.segment
    }

    /// Makes it a packet with the segment that has been written.
    #[inline]
    pub(crate) fn complete_segment(&mut self, ecn: Ecn, address: &Address) {
        let length = self.segment.header_length().bytes() as u32 + self.segment.payload;
        self.complete(PacketKind::Segment, length, ecn, address);
    }

    /// Creates a packet with a UDP datagram.
    pub(crate) fn of_datagram(datagram: Datagram, ecn: Ecn, address: &Address) -> Self {
        let mut packet = Self::default();
        packet.segment.payload = datagram.payload;
        let length = UDP_HEADER + datagram.payload;
        packet.complete(PacketKind::Datagram, length, ecn, address);
        packet
    }

    /// Makes it a packet with a UDP datagram of real bytes.
    #[inline]
    pub(crate) fn write_raw_datagram(
        &mut self,
        datagram: RawDatagram,
        ecn: Ecn,
        address: &Address,
    ) {
        self.datagram = datagram;
        self.is_copied = false;
        let length = UDP_HEADER + u32::from(datagram.payload);
        self.complete(PacketKind::RawDatagram, length, ecn, address);
    }

    #[inline(always)]
    fn complete(&mut self, kind: PacketKind, length: u32, ecn: Ecn, address: &Address) {
        self.length = IP_HEADER + length;
        self.flow = address.flow.number;
        self.endpoint = address.peer;
        self.sender = address.position;
        self.source = address.source;
        self.destination = address.destination;
        self.kind = kind;
        self.ecn = ecn;
        self.forward = address.initiator;
    }

    /// Whether it is a TCP segment with data, or a datagram without congestion control.
    #[inline]
    pub(crate) fn has_data(&self) -> bool {
        self.segment.payload > 0
    }

    /// Returns its contents.
    #[inline]
    pub(crate) fn contents(&self) -> Contents<'_> {
        match self.kind {
            PacketKind::Segment => Contents::Segment(&self.segment),
            PacketKind::Datagram => Contents::Datagram(Datagram {
                payload: self.segment.payload,
            }),
            PacketKind::RawDatagram => Contents::RawDatagram(self.datagram),
        }
    }

    /// Returns the segment for changes, if it is one.
    fn own_segment(&mut self) -> Option<&mut Segment> {
        matches!(self.kind, PacketKind::Segment).then_some(&mut self.segment)
    }

    /// Returns its source and destination.
    pub(crate) fn locations(&self) -> [Location; 2] {
        let editions = match self.contents() {
            Contents::RawDatagram(datagram) => datagram.editions,
            Contents::Segment(_) | Contents::Datagram(_) => [0; 2],
        };
        let location = |number, edition| Location {
            number,
            generation: edition,
        };
        [
            location(self.source, editions[0]),
            location(self.destination, editions[1]),
        ]
    }

    /// Returns the packet as captured on a port's link at this time.
    pub(crate) fn captured(&self, time: Time) -> CapturedPacket {
        let flow = self.flow();
        CapturedPacket {
            time,
            source: SocketAddr::new(flow.source, flow.source_port),
            destination: SocketAddr::new(flow.destination, flow.destination_port),
            ecn: self.ecn,
            hops: HOPS,
            // It has no meaning in packets that must not be fragmented (RFC 6864).
            identification: 0,
            content: match self.contents() {
                Contents::Segment(segment) => Content::Tcp(*segment),
                Contents::Datagram(datagram) => {
                    Content::Udp(ByteSize::from_bytes(datagram.payload.into()))
                }
                Contents::RawDatagram(datagram) => {
                    Content::Udp(ByteSize::from_bytes(datagram.payload.into()))
                }
            },
        }
    }
}

impl FabricPacket for Packet {
    #[inline]
    fn length(&self) -> ByteSize {
        ByteSize::from_bytes(u64::from(self.length))
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    #[inline]
    fn destination(&self) -> u32 {
        self.destination
    }

    fn duplicate(&mut self) -> Self {
        self.is_copied = true;
        *self
    }

    fn flow(&self) -> FlowKey {
        let (initiator, service) = ports(self.flow);
        let [source, destination] = self.locations();
        let (source_port, destination_port) = if self.forward {
            (initiator, service)
        } else {
            (service, initiator)
        };
        FlowKey {
            source: source.ip(),
            destination: destination.ip(),
            source_port,
            destination_port,
            protocol: match self.contents() {
                Contents::Segment(_) => FlowKey::TCP,
                Contents::Datagram(_) | Contents::RawDatagram(_) => FlowKey::UDP,
            },
        }
    }

    fn tcp(&self) -> Option<Segment> {
        match self.contents() {
            Contents::Segment(segment) => Some(*segment),
            Contents::Datagram(_) | Contents::RawDatagram(_) => None,
        }
    }

    fn set_window(&mut self, window: u16) {
        if let Some(segment) = self.own_segment() {
            segment.window = window;
        }
    }

    fn refuse_sack(&mut self) {
        if let Some(segment) = self.own_segment()
            && let Options::Syn(options) = &mut segment.options
        {
            options.sack_permitted = false;
        }
    }

    fn set_acknowledgment(&mut self, number: Sequence) {
        if let Some(segment) = self.own_segment() {
            segment.acknowledgment = number;
        }
    }

    fn set_timestamps(&mut self, timestamps: Timestamps) {
        if let Some(segment) = self.own_segment() {
            segment.timestamps = segment.timestamps.and(Some(timestamps));
        }
    }

    fn clear_sack_blocks(&mut self) {
        if let Some(segment) = self.own_segment()
            && let Options::Sack(_) = segment.options
        {
            segment.options = Options::None;
        }
    }

    fn set_flags(&mut self, flags: Flags) {
        if let Some(segment) = self.own_segment() {
            segment.flags = flags;
        }
    }
}
