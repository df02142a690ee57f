//! The virtio-net header that TAP devices and packet sockets put before a frame.

use thiserror::Error;

/// The offload work left for a frame: the header of virtio-net (VIRTIO 1.2, section 5.1.6) as Linux
/// exchanges it with TAP devices and packet sockets, in the machine's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// The partial checksum, if there is one.
    pub checksum: Option<PartialChecksum>,
    /// How to segment the frame, if it is a super-packet.
    pub gso: Option<Gso>,
    /// The length of all headers together, in bytes: a hint.
    pub headers: u16,
}

/// A checksum that holds only the pseudo-header's sum so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The start of the covered data: an offset from the Ethernet header.
    pub start: u16,
    /// The checksum field: an offset from `start`.
    pub field: u16,
}

/// How to segment a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// The kind of segments.
    pub kind: GsoKind,
    /// The payload of each segment but the last, in bytes; not zero.
    pub size: u16,
    /// Whether the first segment has CWR; the others must not have it.
    pub cwr: bool,
}

/// The kind of segments of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP segments over IPv4.
    TcpV4,
    /// TCP segments over IPv6.
    TcpV6,
    /// UDP datagrams.
    Udp,
}

/// The header is invalid, or describes an offload that this crate does not request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum VnetError {
    /// The bytes end before the header does.
    #[error("the bytes end before the virtio-net header does")]
    Truncated,
    /// An offload that was not requested.
    #[error("segmentation of type {0} is not known")]
    Kind(u8),
    /// Segments without payload.
    #[error("the super-packet has segments of 0 bytes")]
    NoSize,
    /// A super-packet without a partial checksum to complete for each segment.
    #[error("the super-packet has a checksum that cannot be finished for its segments")]
    NoChecksum,
}

const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

impl VnetHeader {
    /// Its length, in bytes.
    pub const LENGTH: usize = 10;

    /// Reads the header before a frame.
    ///
    /// # Errors
    /// Too few bytes, or an offload that [`Tap`](crate::port::Tap) does not request.
    pub fn parse(bytes: &[u8]) -> Result<Self, VnetError> {
        let &[flags, kind, h0, h1, g0, g1, s0, s1, o0, o1] = bytes
            .first_chunk::<{ Self::LENGTH }>()
            .ok_or(VnetError::Truncated)?;
        let checksum = (flags & NEEDS_CHECKSUM != 0).then(|| PartialChecksum {
            start: u16::from_ne_bytes([s0, s1]),
            field: u16::from_ne_bytes([o0, o1]),
        });
        let gso = match kind & !GSO_ECN {
            0 => None,
            GSO_TCP_V4 => Some(GsoKind::TcpV4),
            GSO_TCP_V6 => Some(GsoKind::TcpV6),
            GSO_UDP => Some(GsoKind::Udp),
            other => return Err(VnetError::Kind(other)),
        };
        let size = u16::from_ne_bytes([g0, g1]);
        let cwr = kind & GSO_ECN != 0;
        if gso.is_some() && size == 0 {
            return Err(VnetError::NoSize);
        }
        if gso.is_some() && checksum.is_none() {
            return Err(VnetError::NoChecksum);
        }
        Ok(Self {
            checksum,
            gso: gso.map(|kind| Gso { kind, size, cwr }),
            headers: u16::from_ne_bytes([h0, h1]),
        })
    }

    /// Adds `by` bytes to the offsets in the header at the beginning of `bytes`, as far as they point into
    /// the frame after it.
    pub(super) fn shift(bytes: &mut [u8], by: u16) {
        let Some([flags, _, h0, h1, _, _, s0, s1, ..]) =
            bytes.first_chunk_mut::<{ Self::LENGTH }>()
        else {
            return;
        };
        let shifted = |bytes| u16::from_ne_bytes(bytes).saturating_add(by).to_ne_bytes();
        if *flags & NEEDS_CHECKSUM != 0 {
            [*s0, *s1] = shifted([*s0, *s1]);
        }
        if [*h0, *h1] != [0, 0] {
            [*h0, *h1] = shifted([*h0, *h1]);
        }
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let (start, field) = self
            .checksum
            .map_or((0, 0), |checksum| (checksum.start, checksum.field));
        let (kind, size) = self.gso.map_or((0, 0), |gso| (gso.bits(), gso.size));
        let [h0, h1] = self.headers.to_ne_bytes();
        let [g0, g1] = size.to_ne_bytes();
        let [s0, s1] = start.to_ne_bytes();
        let [o0, o1] = field.to_ne_bytes();
        let flags = match self.checksum {
            Some(_) => NEEDS_CHECKSUM,
            None => 0,
        };
        [flags, kind, h0, h1, g0, g1, s0, s1, o0, o1]
    }
}

impl Gso {
    fn bits(self) -> u8 {
        let kind = match self.kind {
            GsoKind::TcpV4 => GSO_TCP_V4,
            GsoKind::TcpV6 => GSO_TCP_V6,
            GsoKind::Udp => GSO_UDP,
        };
        if self.cwr { kind | GSO_ECN } else { kind }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn vnet_headers_round_trip(mut bytes: [u8; VnetHeader::LENGTH]) {
            // Flags without effect here, and existing types.
            bytes[0] &= NEEDS_CHECKSUM;
            bytes[1] &= 0x87;
            if let Ok(header) = VnetHeader::parse(&bytes) {
                prop_assert_eq!(VnetHeader::parse(&header.emit()), Ok(header));
                if header.gso.is_some() {
                    prop_assert_eq!(header.emit(), bytes);
                }
            }
        }
    }

    #[test]
    fn invalid_vnet_headers_are_refused() {
        let mut bytes = [0; VnetHeader::LENGTH];
        assert_eq!(VnetHeader::parse(&bytes), Ok(VnetHeader::default()));
        bytes[1] = 3;
        assert_eq!(VnetHeader::parse(&bytes), Err(VnetError::Kind(3)));
        bytes[1] = GSO_TCP_V6;
        assert_eq!(VnetHeader::parse(&bytes), Err(VnetError::NoSize));
        bytes[4] = 1;
        assert_eq!(VnetHeader::parse(&bytes), Err(VnetError::NoChecksum));
        assert_eq!(VnetHeader::parse(&bytes[1..]), Err(VnetError::Truncated));
    }
}
