//! Packets: headers, packet numbers, coalesced packets (RFC 9000, section 17).
//!
//! Receiving: [`Header::decode`] returns the type and the end of the first packet of a datagram.
//! The caller removes header protection in place, checks [`reserved_bits_ok`], reads the number
//! with [`read_packet_number`] and [`expand_packet_number`], opens the payload, and continues at
//! [`Header::end`]. Sending: [`write_long_header`] or [`write_short_header`], then the payload,
//! then [`LongHeader::finish`].

mod header;
mod number;
#[cfg(test)]
mod tests;
mod write;

pub use header::{Header, HeaderError, Invariants, Kind, Retry, supported_versions};
pub use number::{expand_packet_number, packet_number_length, read_packet_number};
pub use write::{
    LongFields, LongHeader, LongKind, write_control_header, write_long_header, write_retry,
    write_short_header, write_version_negotiation,
};

use crate::Version;
use crate::known_peers::{CredentialId, KeyId};

/// Returns a version of the form 0x?a?a?a?a, which no endpoint ever supports. Listing it prevents
/// peers from relying on a fixed list of versions (RFC 9000, section 15).
pub const fn reserved_version(random: u32) -> u32 {
    random & 0xf0f0_f0f0 | 0x0a0a_0a0a
}

/// Clears the fixed bit of the packet with this first byte (RFC 9287). Call it before the packet is
/// sealed, as the first byte is authenticated too.
pub(crate) fn clear_fixed_bit(first_byte: &mut u8) {
    *first_byte &= !FIXED_BIT;
}

/// Marks a long header.
const LONG_FORM: u8 = 0x80;
/// Set in every packet of versions 1 and 2, except in Version Negotiation and where the receiver
/// allows otherwise (RFC 9287).
const FIXED_BIT: u8 = 0x40;
/// The spin bit of a short header.
const SPIN_BIT: u8 = 0x20;
/// The key phase of a short header.
const KEY_PHASE_BIT: u8 = 0x04;
/// The bits of the long packet type.
const LONG_TYPE_BITS: u8 = 0x30;
/// The long packet types in the order of their numbers in version 1.
const LONG_TYPES: [Kind; 4] = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
/// The length of a Retry packet's integrity tag in bytes.
const RETRY_TAG_LENGTH: usize = 16;

/// The packet types of known peers in the order of their numbers (`docs/known-peers.md`, section 4).
const KNOWN_TYPES: [Kind; 3] = [Kind::KnownFirst, Kind::KnownAnswer, Kind::KnownControl];

/// The length of the credential and the key ID of a First packet. It stands where the length of the token
/// is in version 1: stacks that read unknown versions by version 1's layout then answer them.
const KNOWN_TOKEN_LENGTH: u8 = 24;
const _: () = assert!(KNOWN_TOKEN_LENGTH as usize == CredentialId::LENGTH + size_of::<KeyId>());

/// Returns the type in the first byte of a long header of a known peer.
const fn known_kind(first: u8) -> Option<Kind> {
    match (first & LONG_TYPE_BITS) >> 4 {
        number @ 0..=2 => Some(KNOWN_TYPES[number as usize]),
        _ => None,
    }
}

/// Returns the shift of a version's long packet types (RFC 9369, section 3.2).
const fn type_shift(version: Version) -> u8 {
    match version {
        Version::V1 => 0,
        Version::V2 => 1,
    }
}

/// Returns the type in the first byte of a long header of this version.
const fn long_kind(version: Version, first: u8) -> Kind {
    let number = ((first & LONG_TYPE_BITS) >> 4).wrapping_sub(type_shift(version)) & 0b11;
    LONG_TYPES[number as usize]
}

/// Returns the bits of a long packet type in this version; zero for types without one.
const fn long_type_bits(version: Version, kind: Kind) -> u8 {
    let number = match kind {
        Kind::Initial => 0,
        Kind::ZeroRtt => 1,
        Kind::Handshake => 2,
        Kind::Retry => 3,
        Kind::VersionNegotiation
        | Kind::OneRtt
        | Kind::KnownFirst
        | Kind::KnownAnswer
        | Kind::KnownControl => return 0,
    };
    ((number + type_shift(version)) & 0b11) << 4
}

/// Whether the reserved bits of a packet's first byte are zero. If they are not in an authentic
/// packet without protection, it is a PROTOCOL_VIOLATION (RFC 9000, sections 17.2 and 17.3.1).
pub const fn reserved_bits_ok(first_byte_unprotected: u8, long: bool) -> bool {
    first_byte_unprotected & if long { 0x0c } else { 0x18 } == 0
}

/// Returns the key phase of an unprotected short header (RFC 9001, section 6).
pub const fn key_phase(first_byte_unprotected: u8) -> bool {
    first_byte_unprotected & KEY_PHASE_BIT != 0
}
