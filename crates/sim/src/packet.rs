//! Simulated packets: records of one size, which only options other than time stamps make allocate.

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

/// An IP packet between two simulated hosts. With its place on a link it takes one cache line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    /// The options and the payload of a segment that has [`UNUSUAL`] options. It stays for later packets in
    /// the same place.
    unusual: Option<Box<UnusualSegment>>,
    /// Of a segment that has [`TIMESTAMPS`].
    timestamps: Timestamps,
    /// Its length, which is read at every hop.
    length: u32,
    /// The number of its flow.
    pub(crate) flow: u32,
    /// The position of its destination endpoint.
    pub(crate) endpoint: u32,
    /// Positions in the topology's list of hosts.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// Of a segment, its sequence number; of a raw datagram, the slot of its bytes.
    sequence: u32,
    acknowledgment: Sequence,
    /// Of a segment, its window; of a raw datagram, the editions of its addresses.
    window: u16,
    flags: Flags,
    /// The ECN codepoint and the bits below.
    bits: u8,
}

/// The bits of the ECN codepoint.
const ECN: u8 = 0b11;
/// It is a datagram, and not a segment.
const DATAGRAM: u8 = 1 << 2;
/// It is a datagram with real bytes.
const RAW: u8 = 1 << 3;
/// It goes from the flow's initiator to its responder.
const FORWARD: u8 = 1 << 4;
/// There is a copy of it, which holds the same slot if it is a raw datagram.
const COPIED: u8 = 1 << 5;
/// A segment with the time stamps option.
const TIMESTAMPS: u8 = 1 << 6;
/// A segment with other options.
const UNUSUAL: u8 = 1 << 7;

/// The length of a TCP header without options, and of the time stamps option.
const TCP_HEADER: u32 = 20;
const TCP_TIMESTAMPS: u32 = 12;

/// What a segment has besides if it has options other than time stamps.
#[derive(Clone, Copy, Debug)]
struct UnusualSegment {
    options: Options,
    payload: u32,
}

/// The contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents {
    /// A TCP segment.
    Segment(Segment),
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

/// Returns the length of a packet with a segment without options other than time stamps.
#[inline(always)]
pub(crate) fn plain_length(segment: &Segment) -> u32 {
    let options = segment.timestamps.map_or(0, |_| TCP_TIMESTAMPS);
    IP_HEADER + TCP_HEADER + options + segment.payload
}

impl Packet {
    /// Creates a packet with a TCP segment of the endpoint with this address.
    pub(crate) fn of_segment(segment: &Segment, ecn: Ecn, address: &Address) -> Self {
        let mut packet = Self::default();
        packet.write_segment(segment, ecn, address);
        packet
    }

    /// Makes it a packet with a TCP segment.
    #[inline(always)]
    pub(crate) fn write_segment(&mut self, segment: &Segment, ecn: Ecn, address: &Address) {
        let (mut header, mut bits) = self.write_header(segment);
        if segment.options != Options::None {
            header = self.write_options(segment);
            bits |= UNUSUAL;
        }
        self.complete(bits, header + segment.payload, ecn, address);
    }

    /// Makes it a packet with a TCP segment without options other than time stamps.
    #[inline(always)]
    pub(crate) fn write_plain_segment(&mut self, segment: Segment, ecn: Ecn, address: &Address) {
        let (header, bits) = self.write_header(&segment);
        self.complete(bits, header + segment.payload, ecn, address);
    }

    /// Makes it the next packet of the endpoint that has sent it, as [`Self::write_plain_segment`] does.
    #[inline(always)]
    pub(crate) fn renew(&mut self, segment: Segment, ecn: Ecn) {
        let (header, bits) = self.write_header(&segment);
        self.length = IP_HEADER + header + segment.payload;
        self.bits = self.bits & FORWARD | bits | ecn.bits();
    }

    /// Writes all of a segment but its options, its payload, and the addresses. Returns the length of its header
    /// without options other than time stamps, and whether there are these, as a bit.
    #[inline(always)]
    fn write_header(&mut self, segment: &Segment) -> (u32, u8) {
        self.sequence = segment.sequence.number();
        self.acknowledgment = segment.acknowledgment;
        self.window = segment.window;
        self.flags = segment.flags;
        match segment.timestamps {
            Some(timestamps) => {
                self.timestamps = timestamps;
                (TCP_HEADER + TCP_TIMESTAMPS, TIMESTAMPS)
            }
            None => (TCP_HEADER, 0),
        }
    }

    /// Keeps the options of a segment. Returns the length of its header.
    #[inline(never)]
    fn write_options(&mut self, segment: &Segment) -> u32 {
        let unusual = UnusualSegment {
            options: segment.options,
            payload: segment.payload,
        };
        match &mut self.unusual {
            Some(earlier) => **earlier = unusual,
            none => *none = Some(Box::new(unusual)),
        }
        segment.header_length().bytes() as u32
    }

    /// Creates a packet with a UDP datagram.
    pub(crate) fn of_datagram(datagram: Datagram, ecn: Ecn, address: &Address) -> Self {
        let mut packet = Self::default();
        packet.complete(DATAGRAM, UDP_HEADER + datagram.payload, ecn, address);
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
        self.sequence = datagram.slot;
        self.window = u16::from_ne_bytes(datagram.editions);
        let length = UDP_HEADER + u32::from(datagram.payload);
        self.complete(DATAGRAM | RAW, length, ecn, address);
    }

    #[inline(always)]
    fn complete(&mut self, bits: u8, length: u32, ecn: Ecn, address: &Address) {
        self.length = IP_HEADER + length;
        self.flow = address.flow.number;
        self.endpoint = address.peer;
        self.source = address.source;
        self.destination = address.destination;
        let forward = if address.initiator { FORWARD } else { 0 };
        self.bits = bits | forward | ecn.bits();
    }

    #[inline]
    fn has(&self, bits: u8) -> bool {
        self.bits & bits != 0
    }

    /// Whether there is a copy of it, which holds the same slot if it is a raw datagram.
    #[inline]
    pub(crate) fn is_copied(&self) -> bool {
        self.has(COPIED)
    }

    /// Whether it is too long for a segment without data, or for a small datagram.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.length > IP_HEADER + TCP_HEADER + TCP_TIMESTAMPS
    }

    /// Returns the segment, if it is one.
    #[inline(always)]
    pub(crate) fn segment(&self) -> Option<Segment> {
        if self.has(DATAGRAM) {
            return None;
        }
        let mut segment = self.header();
        if self.has(UNUSUAL)
            && let Some(unusual) = self.unusual.as_deref()
        {
            (segment.options, segment.payload) = (unusual.options, unusual.payload);
        }
        Some(segment)
    }

    /// Returns the segment, if it is one without options other than time stamps.
    #[inline(always)]
    pub(crate) fn plain_segment(&self) -> Option<Segment> {
        (!self.has(DATAGRAM | UNUSUAL)).then(|| self.header())
    }

    /// Returns the segment without options other than time stamps.
    #[inline(always)]
    fn header(&self) -> Segment {
        let timestamps = self.has(TIMESTAMPS).then_some(self.timestamps);
        let options = timestamps.map_or(0, |_| TCP_TIMESTAMPS);
        Segment {
            sequence: Sequence::new(self.sequence),
            acknowledgment: self.acknowledgment,
            payload: self.length.wrapping_sub(IP_HEADER + TCP_HEADER + options),
            window: self.window,
            flags: self.flags,
            timestamps,
            options: Options::None,
        }
    }

    /// Returns its contents.
    #[inline(always)]
    pub(crate) fn contents(&self) -> Contents {
        match self.segment() {
            Some(segment) => Contents::Segment(segment),
            None if self.has(RAW) => Contents::RawDatagram(self.raw_datagram()),
            None => Contents::Datagram(Datagram {
                payload: self.length - IP_HEADER - UDP_HEADER,
            }),
        }
    }

    /// Returns the slot of its bytes, if it has any.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.has(RAW).then_some(self.sequence)
    }

    #[inline]
    fn raw_datagram(&self) -> RawDatagram {
        RawDatagram {
            slot: self.sequence,
            // It had 16 bits before.
            payload: (self.length - IP_HEADER - UDP_HEADER) as u16,
            editions: self.window.to_ne_bytes(),
        }
    }

    /// Returns the options that a segment has besides time stamps, for changes.
    fn options_mut(&mut self) -> Option<&mut Options> {
        if !self.has(UNUSUAL) {
            return None;
        }
        self.unusual.as_mut().map(|unusual| &mut unusual.options)
    }

    /// Returns its source and destination.
    pub(crate) fn locations(&self) -> [Location; 2] {
        let editions = if self.has(RAW) {
            self.raw_datagram().editions
        } else {
            [0; 2]
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
            ecn: self.ecn(),
            hops: HOPS,
            // It has no meaning in packets that must not be fragmented (RFC 6864).
            identification: 0,
            content: match self.contents() {
                Contents::Segment(segment) => Content::Tcp(segment),
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
        Ecn::from_bits(self.bits)
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.bits = self.bits & !ECN | ecn.bits();
    }

    #[inline]
    fn destination(&self) -> u32 {
        self.destination
    }

    fn duplicate(&mut self) -> Self {
        self.bits |= COPIED;
        self.clone()
    }

    fn flow(&self) -> FlowKey {
        let (initiator, service) = ports(self.flow);
        let [source, destination] = self.locations();
        let (source_port, destination_port) = if self.has(FORWARD) {
            (initiator, service)
        } else {
            (service, initiator)
        };
        FlowKey {
            source: source.ip(),
            destination: destination.ip(),
            source_port,
            destination_port,
            protocol: if self.has(DATAGRAM) {
                FlowKey::UDP
            } else {
                FlowKey::TCP
            },
        }
    }

    fn tcp(&self) -> Option<Segment> {
        self.segment()
    }

    fn set_window(&mut self, window: u16) {
        if !self.has(DATAGRAM) {
            self.window = window;
        }
    }

    fn refuse_sack(&mut self) {
        if let Some(Options::Syn(options)) = self.options_mut() {
            options.sack_permitted = false;
        }
    }

    fn set_acknowledgment(&mut self, number: Sequence) {
        if !self.has(DATAGRAM) {
            self.acknowledgment = number;
        }
    }

    fn set_timestamps(&mut self, timestamps: Timestamps) {
        if self.has(TIMESTAMPS) {
            self.timestamps = timestamps;
        }
    }

    fn clear_sack_blocks(&mut self) {
        if let Some(options) = self.options_mut()
            && let Options::Sack(_) = options
        {
            *options = Options::None;
        }
    }

    fn set_flags(&mut self, flags: Flags) {
        if !self.has(DATAGRAM) {
            self.flags = flags;
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_wire::tcp::{SackBlock, SynOptions};

    use super::*;

    const ADDRESS: Address = Address {
        flow: FlowId { slot: 1, number: 2 },
        position: 3,
        host: 4,
        peer: 5,
        source: 6,
        destination: 7,
        port: 8,
        initiator: true,
    };

    /// The slot of a packet on a link has 16 more.
    #[test]
    fn a_packet_on_a_link_fits_into_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 48);
    }

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let syn = SynOptions {
            maximum_segment_size: 1460,
            window_scale: Some(7),
            sack_permitted: true,
        };
        let block = SackBlock {
            start: Sequence::new(20),
            end: Sequence::new(30),
        };
        let stamps = Timestamps { value: 9, echo: 11 };
        let mut packet = Packet::default();
        for options in [
            Options::Syn(syn),
            Options::None,
            Options::Sack([block].into_iter().collect()),
        ] {
            for timestamps in [None, Some(stamps)] {
                for payload in [0, 1, 70_000] {
                    let segment = Segment {
                        sequence: Sequence::new(u32::MAX),
                        acknowledgment: Sequence::new(5),
                        payload,
                        window: u16::MAX,
                        flags: Flags::ACK | Flags::ECE,
                        timestamps,
                        options,
                    };
                    packet.write_segment(&segment, Ecn::Ect0, &ADDRESS);
                    packet.set_ecn(Ecn::Ce);
                    assert_eq!((packet.tcp(), packet.ecn()), (Some(segment), Ecn::Ce));
                    let length = segment.header_length().bytes() + u64::from(payload) + 20;
                    assert_eq!(packet.length().bytes(), length);
                    packet.clear_sack_blocks();
                    packet.refuse_sack();
                    assert_eq!(packet.tcp().map(|segment| segment.payload), Some(payload));
                    assert_eq!(packet.length().bytes(), length);
                }
            }
        }
    }

    #[test]
    fn a_datagram_after_a_segment_is_none() {
        let mut packet = Packet::default();
        packet.write_segment(&Segment::default(), Ecn::Ect0, &ADDRESS);
        let datagram = RawDatagram {
            slot: u32::MAX,
            payload: u16::MAX,
            editions: [1, 2],
        };
        packet.write_raw_datagram(datagram, Ecn::NotEct, &ADDRESS);
        assert!(packet.tcp().is_none() && !packet.is_copied());
        let Contents::RawDatagram(read) = packet.duplicate().contents() else {
            panic!("{packet:?}");
        };
        assert_eq!((read.slot, read.payload), (u32::MAX, u16::MAX));
        let editions = packet.locations().map(|location| location.generation);
        assert_eq!((packet.is_copied(), editions), (true, [1, 2]));
        assert_eq!(packet.flow().protocol, FlowKey::UDP);
    }
}
