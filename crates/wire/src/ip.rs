//! The header of an IP packet, version 4 (RFC 791) or 6 (RFC 8200): its fields, and the rewrites of
//! some of them in flight.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_units::ByteSize;

use crate::{Checksum, Ecn};

/// Length of the fixed part of an IPv4 header.
const V4_LENGTH: usize = 20;
const V6_LENGTH: usize = 40;
/// The 16 bits with flags and fragment offset, without the reserved bit and "don't fragment".
const V4_FRAGMENT: u16 = 0x3FFF;

/// The fields of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// The IANA protocol number of the payload. Extension headers of version 6 are not followed.
    pub protocol: u8,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// The length of this header with its options, but without extension headers.
    pub header_length: ByteSize,
    /// The length of the packet with this header.
    pub length: ByteSize,
    /// Whether the packet is a fragment; in version 6 an extension header marks it.
    pub fragment: bool,
}

/// Why bytes are no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes end before the header does, or before the packet.
    #[error("the bytes end before the IP packet does")]
    Truncated,
    /// The version is neither 4 nor 6.
    #[error("IP version {0} is not known")]
    Version(u8),
    /// The lengths contradict each other.
    #[error("the IP packet says that it is {length} bytes long, and its header {header}")]
    Lengths {
        /// The length of the header.
        header: u16,
        /// The length of the packet.
        length: u16,
    },
}

impl Header {
    /// Parses the header of a packet. Bytes after the packet's end are ignored; the checksum is not
    /// verified.
    ///
    /// # Errors
    /// Truncated bytes, an inconsistent header.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let version = bytes.first().ok_or(ParseError::Truncated)? >> 4;
        let header = match version {
            4 => Self::parse_v4(bytes)?,
            6 => Self::parse_v6(bytes)?,
            other => return Err(ParseError::Version(other)),
        };
        if header.length.bytes() > bytes.len() as u64 {
            Err(ParseError::Truncated)
        } else {
            Ok(header)
        }
    }

    fn parse_v4(bytes: &[u8]) -> Result<Self, ParseError> {
        let &[
            first,
            tos,
            l0,
            l1,
            _,
            _,
            f0,
            f1,
            _,
            protocol,
            _,
            _,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ] = bytes
            .first_chunk::<V4_LENGTH>()
            .ok_or(ParseError::Truncated)?;
        let header = u16::from(first & 0xF) * 4;
        let length = u16::from_be_bytes([l0, l1]);
        if usize::from(header) < V4_LENGTH || length < header {
            return Err(ParseError::Lengths { header, length });
        }
        Ok(Self {
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            protocol,
            ecn: Ecn::from_bits(tos),
            dscp: tos >> 2,
            header_length: ByteSize::from_bytes(u64::from(header)),
            length: ByteSize::from_bytes(u64::from(length)),
            fragment: u16::from_be_bytes([f0, f1]) & V4_FRAGMENT != 0,
        })
    }

    fn parse_v6(bytes: &[u8]) -> Result<Self, ParseError> {
        let fixed = bytes
            .first_chunk::<V6_LENGTH>()
            .ok_or(ParseError::Truncated)?;
        let (&[version, class, _, _, l0, l1, protocol, _], rest) = fixed
            .split_first_chunk::<8>()
            .ok_or(ParseError::Truncated)?;
        let (source, destination) = rest
            .split_first_chunk::<16>()
            .and_then(|(source, rest)| Some((source, rest.first_chunk::<16>()?)))
            .ok_or(ParseError::Truncated)?;
        let payload = u64::from(u16::from_be_bytes([l0, l1]));
        Ok(Self {
            source: Ipv6Addr::from(*source).into(),
            destination: Ipv6Addr::from(*destination).into(),
            protocol,
            ecn: Ecn::from_bits(class >> 4),
            dscp: (version << 4 | class >> 4) >> 2,
            header_length: ByteSize::from_bytes(V6_LENGTH as u64),
            length: ByteSize::from_bytes(V6_LENGTH as u64 + payload),
            fragment: false,
        })
    }
}

/// Rewrites the fields that differ between the segments of a large packet: the length, this header
/// included, the ECN codepoint, and in version 4 the header's checksum and the identification, to
/// which `part` is added as Linux does (RFC 791 requires it to be unique among fragments). `header`
/// is the header with its options only; bytes that [`Header::parse`] would reject stay as they are.
pub fn rewrite(header: &mut [u8], length: ByteSize, ecn: Ecn, part: u16) {
    // A larger length is no length of an IP packet.
    let field = |length: u64| u16::try_from(length).unwrap_or(u16::MAX);
    let length = length.bytes();
    match header.first().map(|first| first >> 4) {
        Some(4) => rewrite_v4(header, field(length), ecn, part),
        Some(6) => rewrite_v6(header, field(length.saturating_sub(V6_LENGTH as u64)), ecn),
        _ => {}
    }
}

fn rewrite_v4(header: &mut [u8], length: u16, ecn: Ecn, part: u16) {
    let Some([_, tos, l0, l1, i0, i1, _, _, _, _, c0, c1, ..]) =
        header.first_chunk_mut::<V4_LENGTH>()
    else {
        return;
    };
    *tos = *tos & !0b11 | ecn.bits();
    [*l0, *l1] = length.to_be_bytes();
    let identification = u16::from_be_bytes([*i0, *i1]).wrapping_add(part);
    [*i0, *i1] = identification.to_be_bytes();
    [*c0, *c1] = [0, 0];
    let mut sum = Checksum::default();
    sum.add(header);
    if let Some([_, _, _, _, _, _, _, _, _, _, c0, c1, ..]) = header.first_chunk_mut::<V4_LENGTH>()
    {
        [*c0, *c1] = sum.finish().to_be_bytes();
    }
}

fn rewrite_v6(header: &mut [u8], payload: u16, ecn: Ecn) {
    if let Some([_, class, _, _, l0, l1, ..]) = header.first_chunk_mut::<V6_LENGTH>() {
        *class = *class & !0x30 | ecn.bits() << 4;
        [*l0, *l1] = payload.to_be_bytes();
    }
}
