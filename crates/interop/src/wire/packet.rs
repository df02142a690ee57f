//! Classifies packets without keys (RFC 8999; RFC 9000, section 17.2; RFC 9369, section 3.2).

use weir_quic::KNOWN_PEERS_VERSION;

/// The kind of the first packet in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketKind {
    VersionNegotiation,
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    /// A packet without a handshake, of known peers (`docs/known-peers.md`).
    Known,
    /// A short header: 1-RTT.
    Short,
}

const VERSION_2: u32 = 0x6b33_43cf;

impl PacketKind {
    /// Returns the kind of the first packet; `None` if the datagram holds none.
    pub(crate) fn of(datagram: &[u8]) -> Option<Self> {
        let (first, rest) = datagram.split_first()?;
        if first & 0x80 == 0 {
            return Some(Self::Short);
        }
        let version = u32::from_be_bytes(*rest.first_chunk()?);
        let kind = (first >> 4) & 3;
        // Version 2 numbers the types from Retry (0) on.
        let kind = if version == VERSION_2 {
            kind.wrapping_sub(1) & 3
        } else {
            kind
        };
        Some(match (version, kind) {
            (0, _) => Self::VersionNegotiation,
            (KNOWN_PEERS_VERSION, _) => Self::Known,
            (_, 0) => Self::Initial,
            (_, 1) => Self::ZeroRtt,
            (_, 2) => Self::Handshake,
            _ => Self::Retry,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_determine_the_packet_kind() {
        let cases: [(&[u8], Option<PacketKind>); 9] = [
            (&[], None),
            (&[0xc0, 0, 0], None),
            (&[0x40], Some(PacketKind::Short)),
            (&[0x80, 0, 0, 0, 0], Some(PacketKind::VersionNegotiation)),
            (&[0xc0, 0, 0, 0, 1], Some(PacketKind::Initial)),
            (&[0xd0, 0, 0, 0, 1], Some(PacketKind::ZeroRtt)),
            (&[0xf0, 0, 0, 0, 1], Some(PacketKind::Retry)),
            (&[0xc0, 0x57, 0x45, 0x49, 1], Some(PacketKind::Known)),
            (&[0xc0, 0x6b, 0x33, 0x43, 0xcf], Some(PacketKind::Retry)),
        ];
        for (bytes, kind) in cases {
            assert_eq!(PacketKind::of(bytes), kind, "{bytes:x?}");
        }
    }
}
