//! Writes headers. Every function appends to a datagram.

use super::{
    FIXED_BIT, KEY_PHASE_BIT, KNOWN_TOKEN_LENGTH, Kind, LONG_FORM, SPIN_BIT, long_type_bits,
};
use crate::codec::put_varint;
use crate::known_peers::{CredentialId, KNOWN_PEERS_VERSION};
use crate::{ConnectionId, Version};

/// The largest value of a Length field of two bytes.
const SHORT_LENGTH_MAX: usize = 0x3fff;

/// The type of a packet with a long header and a packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKind<'a> {
    /// The start of the handshake.
    Initial {
        /// The token of a server, or nothing.
        token: &'a [u8],
    },
    /// The client's early data.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// The First packet of a known peer.
    KnownFirst {
        /// The path secret.
        credential: CredentialId,
        /// The connection's key ID.
        key_id: u64,
    },
    /// The Answer packet of a known peer.
    KnownAnswer,
}

/// The bits of the long packet type of a known peer's Answer.
const ANSWER_BITS: u8 = 0x10;
/// The bits of the long packet type of a Control packet.
const CONTROL_BITS: u8 = 0x20;

/// The input of [`write_long_header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongFields<'a> {
    /// The version of QUIC; packets of known peers have their own.
    pub version: Version,
    /// The packet type.
    pub kind: LongKind<'a>,
    /// The peer's connection ID.
    pub destination: ConnectionId,
    /// Our connection ID.
    pub source: ConnectionId,
    /// The packet number.
    pub number: u64,
    /// The encoded length of the packet number, 1 to 4: see
    /// [`packet_number_length`](super::packet_number_length).
    pub number_length: usize,
    /// The largest size of the packet in bytes. The Length field takes two bytes, or four if this
    /// is above 16,383.
    pub size_limit: usize,
}

/// The offsets of a long header in the datagram. Its Length field is still zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeader {
    /// The start of the packet.
    pub start: usize,
    /// The offset of the Length field.
    pub length_offset: usize,
    /// The offset of the packet number.
    pub number_offset: usize,
}

/// Writes a long header (RFC 9000, section 17.2), unprotected.
pub fn write_long_header(out: &mut Vec<u8>, fields: &LongFields<'_>) -> LongHeader {
    let start = out.len();
    let in_version = |kind| {
        (
            fields.version.as_u32(),
            long_type_bits(fields.version, kind),
        )
    };
    let (version, type_bits) = match fields.kind {
        LongKind::Initial { .. } => in_version(Kind::Initial),
        LongKind::ZeroRtt => in_version(Kind::ZeroRtt),
        LongKind::Handshake => in_version(Kind::Handshake),
        LongKind::KnownFirst { .. } => (KNOWN_PEERS_VERSION, 0),
        LongKind::KnownAnswer => (KNOWN_PEERS_VERSION, ANSWER_BITS),
    };
    out.push(LONG_FORM | FIXED_BIT | type_bits | number_length_bits(fields.number_length));
    put_version_and_ids(
        out,
        version,
        fields.destination.as_bytes(),
        fields.source.as_bytes(),
    );
    match fields.kind {
        LongKind::Initial { token } => {
            put_varint(out, token.len() as u64);
            out.extend_from_slice(token);
        }
        LongKind::KnownFirst { credential, key_id } => {
            out.push(KNOWN_TOKEN_LENGTH);
            out.extend_from_slice(credential.as_bytes());
            out.extend_from_slice(&key_id.to_be_bytes());
        }
        LongKind::ZeroRtt | LongKind::Handshake | LongKind::KnownAnswer => {}
    }
    let length_offset = out.len();
    if fields.size_limit > SHORT_LENGTH_MAX {
        out.extend_from_slice(&0x8000_0000_u32.to_be_bytes());
    } else {
        out.extend_from_slice(&0x4000_u16.to_be_bytes());
    }
    let number_offset = out.len();
    put_packet_number(out, fields.number, fields.number_length);
    LongHeader {
        start,
        length_offset,
        number_offset,
    }
}

impl LongHeader {
    /// Writes the Length field of a packet in `out` that ends, with its AEAD tag, at offset
    /// `packet_end`. Call it before the packet is sealed: the header is authenticated too.
    pub fn finish(&self, out: &mut [u8], packet_end: usize) {
        let length = packet_end.saturating_sub(self.number_offset);
        let Some(field) = out.get_mut(self.length_offset..self.number_offset) else {
            return;
        };
        if let Ok(field) = <&mut [u8; 2]>::try_from(&mut *field) {
            debug_assert!(length <= SHORT_LENGTH_MAX, "packet above its size limit");
            *field = (length as u16 | 0x4000).to_be_bytes();
        } else if let Ok(field) = <&mut [u8; 4]>::try_from(field) {
            *field = (length as u32 | 0x8000_0000).to_be_bytes();
        }
    }
}

/// Writes a short header (RFC 9000, section 17.3), unprotected, and returns the offset of the
/// packet number in `out`. The number is encoded in `number_length` bytes, 1 to 4.
pub fn write_short_header(
    out: &mut Vec<u8>,
    destination: &ConnectionId,
    spin: bool,
    key_phase: bool,
    number: u64,
    number_length: usize,
) -> usize {
    let spin = if spin { SPIN_BIT } else { 0 };
    let key_phase = if key_phase { KEY_PHASE_BIT } else { 0 };
    // Written as a whole: appending parts costs more than they do.
    let mut header = [0; 1 + ConnectionId::MAX_LENGTH + size_of::<u64>()];
    header[0] = FIXED_BIT | spin | key_phase | number_length_bits(number_length);
    header[1..=ConnectionId::MAX_LENGTH].copy_from_slice(destination.padded());
    let end_of_id = 1 + destination.len();
    let unused = size_of::<u64>() - number_length.min(size_of::<u64>());
    let bytes = (number << (8 * unused)).to_be_bytes();
    header[end_of_id..end_of_id + size_of::<u64>()].copy_from_slice(&bytes);
    let number_offset = out.len() + end_of_id;
    out.extend_from_slice(&header[..end_of_id + number_length]);
    number_offset
}

/// Writes a Version Negotiation packet (RFC 9000, section 17.2.1) in answer to a packet whose
/// [`Invariants`](super::Invariants) have `source` as our destination and `destination` as our
/// source, each up to 255 bytes. `random` fills the unused bits, so that peers do not rely on them.
pub fn write_version_negotiation(
    out: &mut Vec<u8>,
    destination: &[u8],
    source: &[u8],
    versions: &[u32],
    random: u8,
) {
    out.push(LONG_FORM | FIXED_BIT | random);
    put_version_and_ids(out, 0, destination, source);
    for version in versions {
        out.extend_from_slice(&version.to_be_bytes());
    }
}

/// Writes the header of a Control packet (`docs/known-peers.md`, section 5), which has no packet
/// number: its content follows.
pub fn write_control_header(out: &mut Vec<u8>, destination: &[u8], source: &[u8]) {
    out.push(LONG_FORM | FIXED_BIT | CONTROL_BITS);
    put_version_and_ids(out, KNOWN_PEERS_VERSION, destination, source);
}

/// Writes a Retry packet (RFC 9000, section 17.2.5) without its integrity tag: the caller appends
/// the result of [`retry_tag`](crate::crypto::Provider::retry_tag). `random` fills the four unused
/// bits.
pub fn write_retry(
    out: &mut Vec<u8>,
    version: Version,
    destination: &ConnectionId,
    source: &ConnectionId,
    token: &[u8],
    random: u8,
) {
    out.push(LONG_FORM | FIXED_BIT | long_type_bits(version, Kind::Retry) | random & 0x0f);
    put_version_and_ids(
        out,
        version.as_u32(),
        destination.as_bytes(),
        source.as_bytes(),
    );
    out.extend_from_slice(token);
}

fn put_version_and_ids(out: &mut Vec<u8>, version: u32, destination: &[u8], source: &[u8]) {
    out.extend_from_slice(&version.to_be_bytes());
    for id in [destination, source] {
        debug_assert!(id.len() <= 255, "a connection ID of {} bytes", id.len());
        out.push(id.len() as u8);
        out.extend_from_slice(id);
    }
}

fn number_length_bits(number_length: usize) -> u8 {
    debug_assert!((1..=4).contains(&number_length));
    (number_length as u8).wrapping_sub(1) & 0x03
}

/// Writes the lowest bytes of `number`.
fn put_packet_number(out: &mut Vec<u8>, number: u64, number_length: usize) {
    let bytes = number.to_be_bytes();
    out.extend_from_slice(&bytes[bytes.len().saturating_sub(number_length)..]);
}
