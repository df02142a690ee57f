//! Encodes a packet as an Ethernet frame.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6Header, UdpHeader,
};
use weir_units::ByteSize;
use weir_wire::tcp::{Ports, Segment};
use weir_wire::{Checksum, Ecn};

use super::{CapturedPacket, Content};

/// Writes the frame's first `snap` bytes to `frame` and returns the length of the whole frame.
///
/// # Errors
/// The addresses are of different families, or the packet exceeds IP's length field.
pub(super) fn write(packet: &CapturedPacket, snap: usize, frame: &mut Vec<u8>) -> io::Result<u32> {
    let (header, payload) = lengths(&packet.content);
    let carried = header.saturating_add(payload);
    frame.clear();
    let addresses = (packet.source.ip(), packet.destination.ip());
    match addresses {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ethernet(frame, addresses, EtherType::IPV4);
            ipv4(frame, packet, (source, destination), carried)?;
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ethernet(frame, addresses, EtherType::IPV6);
            ipv6(frame, packet, (source, destination), carried)?;
        }
        _ => return Err(invalid("a packet between addresses of two families")),
    }
    match packet.content {
        Content::Tcp(segment) => tcp(frame, packet, &segment),
        Content::Udp(_) => udp(frame, packet, carried)?,
    }
    let whole = frame.len().saturating_add(payload);
    frame.resize(whole.min(snap), 0);
    u32::try_from(whole).map_err(|_| too_long())
}

/// Returns the lengths of the transport header and of the payload.
fn lengths(content: &Content) -> (usize, usize) {
    match content {
        Content::Tcp(segment) => (
            segment.header_length().as_usize(),
            ByteSize::from_bytes(segment.payload.into()).as_usize(),
        ),
        Content::Udp(size) => (UdpHeader::LEN, size.as_usize()),
    }
}

fn ethernet(frame: &mut Vec<u8>, (source, destination): (IpAddr, IpAddr), ether_type: EtherType) {
    let header = Ethernet2Header {
        source: hardware_address(source),
        destination: hardware_address(destination),
        ether_type,
    };
    frame.extend_from_slice(&header.to_bytes());
}

/// Returns a locally administered MAC address for a host, from the last bytes of its IP address.
fn hardware_address(address: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => (u128::from(address) as u32).to_be_bytes(),
    };
    [2, 0, a, b, c, d]
}

fn ipv4(
    frame: &mut Vec<u8>,
    packet: &CapturedPacket,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    carried: usize,
) -> io::Result<()> {
    let carried = u16::try_from(carried).map_err(|_| too_long())?;
    let mut header = Ipv4Header::new(
        carried,
        packet.hops,
        protocol(&packet.content),
        source.octets(),
        destination.octets(),
    )
    .map_err(|_| too_long())?;
    header.dscp = IpDscp::ZERO;
    header.ecn = ecn(packet.ecn);
    header.identification = packet.identification;
    header.dont_fragment = true;
    header.header_checksum = header.calc_header_checksum();
    frame.extend_from_slice(&header.to_bytes());
    Ok(())
}

fn ipv6(
    frame: &mut Vec<u8>,
    packet: &CapturedPacket,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    carried: usize,
) -> io::Result<()> {
    let header = Ipv6Header {
        traffic_class: packet.ecn.bits(),
        payload_length: u16::try_from(carried).map_err(|_| too_long())?,
        next_header: protocol(&packet.content),
        hop_limit: packet.hops,
        source: source.octets(),
        destination: destination.octets(),
        ..Ipv6Header::default()
    };
    frame.extend_from_slice(&header.to_bytes());
    Ok(())
}

fn tcp(frame: &mut Vec<u8>, packet: &CapturedPacket, segment: &Segment) {
    let (source, destination) = (packet.source, packet.destination);
    let mut header = segment.emit(Ports {
        source: source.port(),
        destination: destination.port(),
    });
    header.set_checksum(source.ip(), destination.ip(), segment.payload);
    frame.extend_from_slice(header.as_bytes());
}

fn udp(frame: &mut Vec<u8>, packet: &CapturedPacket, length: usize) -> io::Result<()> {
    let (source, destination) = (packet.source, packet.destination);
    let length = u16::try_from(length).map_err(|_| too_long())?;
    let mut header = UdpHeader {
        source_port: source.port(),
        destination_port: destination.port(),
        length,
        checksum: 0,
    };
    let protocol = IpNumber::UDP.0;
    let (source, destination) = (source.ip(), destination.ip());
    let mut sum = Checksum::of_pseudo_header(source, destination, protocol, length.into());
    sum.add(&header.to_bytes());
    // Zero would mean "no checksum" (RFC 768).
    header.checksum = match sum.finish() {
        0 => u16::MAX,
        sum => sum,
    };
    frame.extend_from_slice(&header.to_bytes());
    Ok(())
}

fn protocol(content: &Content) -> IpNumber {
    match content {
        Content::Tcp(_) => IpNumber::TCP,
        Content::Udp(_) => IpNumber::UDP,
    }
}

fn ecn(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::ZERO,
        Ecn::Ect1 => IpEcn::ONE,
        Ecn::Ect0 => IpEcn::TWO,
        Ecn::Ce => IpEcn::THREE,
    }
}

fn too_long() -> io::Error {
    invalid("a packet that is longer than IP can say")
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
