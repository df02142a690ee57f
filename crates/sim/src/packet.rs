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
const SERVICE_PORT: u16 = 50_000;
const SERVICE_PORTS: u32 = 4000;
const INITIATOR_PORT: u16 = 60_002;
const INITIATOR_PORTS: u32 = u16::MAX as u32 - INITIATOR_PORT as u32 + 1;

/// The network of simulated packets.
pub(crate) type Network = weir_network::Network<Packet>;

/// An IP packet between two simulated hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) contents: Contents,
    /// Its length, which is read at every hop.
    length: u32,
    /// The number of its flow.
    pub(crate) flow: u32,
    /// The position of its destination endpoint.
    pub(crate) endpoint: u32,
    /// Positions in the topology's list of hosts.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) ecn: Ecn,
    /// Whether it goes from the flow's initiator to its responder.
    pub(crate) forward: bool,
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

impl Default for Contents {
    fn default() -> Self {
        Self::Datagram(Datagram::default())
    }
}

/// A UDP datagram of a flow without congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Datagram {
    /// The length of its data, in bytes.
    pub(crate) payload: u32,
}

/// A UDP datagram with real bytes, in the slab of the QUIC and DCUDP hosts.
#[derive(Clone, Copy, Debug)]
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

impl Contents {
    /// Returns the length after the IP header.
    #[inline]
    fn length(&self) -> u32 {
        match self {
            Self::Segment(segment) => segment.header_length().bytes() as u32 + segment.payload,
            Self::Datagram(datagram) => UDP_HEADER + datagram.payload,
            Self::RawDatagram(datagram) => UDP_HEADER + u32::from(datagram.payload),
        }
    }
}

impl Packet {
    /// Creates a packet of the endpoint with this address.
    #[inline(always)]
    pub(crate) fn new(contents: Contents, ecn: Ecn, address: &Address) -> Self {
        Self {
            length: IP_HEADER + contents.length(),
            contents,
            flow: address.flow.number,
            endpoint: address.peer,
            source: address.source,
            destination: address.destination,
            ecn,
            forward: address.initiator,
        }
    }

    /// Returns its source and destination.
    pub(crate) fn locations(&self) -> [Location; 2] {
        let editions = match self.contents {
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
            content: match self.contents {
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
            protocol: match self.contents {
                Contents::Segment(_) => FlowKey::TCP,
                Contents::Datagram(_) | Contents::RawDatagram(_) => FlowKey::UDP,
            },
        }
    }

    fn tcp(&self) -> Option<Segment> {
        match self.contents {
            Contents::Segment(segment) => Some(segment),
            Contents::Datagram(_) | Contents::RawDatagram(_) => None,
        }
    }

    fn set_window(&mut self, window: u16) {
        if let Contents::Segment(segment) = &mut self.contents {
            segment.window = window;
        }
    }

    fn refuse_sack(&mut self) {
        if let Contents::Segment(segment) = &mut self.contents
            && let Options::Syn(options) = &mut segment.options
        {
            options.sack_permitted = false;
        }
    }

    fn set_acknowledgment(&mut self, number: Sequence) {
        if let Contents::Segment(segment) = &mut self.contents {
            segment.acknowledgment = number;
        }
    }

    fn set_timestamps(&mut self, timestamps: Timestamps) {
        if let Contents::Segment(segment) = &mut self.contents {
            segment.timestamps = segment.timestamps.and(Some(timestamps));
        }
    }

    fn clear_sack_blocks(&mut self) {
        if let Contents::Segment(segment) = &mut self.contents
            && let Options::Sack(_) = segment.options
        {
            segment.options = Options::None;
        }
    }

    fn set_flags(&mut self, flags: Flags) {
        if let Contents::Segment(segment) = &mut self.contents {
            segment.flags = flags;
        }
    }
}
