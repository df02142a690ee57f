//! Builds one packet: the header is written, frames follow, then the packet is padded, sealed and
//! protected in place (RFC 9001, sections 5.3 and 5.4).

use rand_core::Rng;
use weir_units::Time;
use weir_wire::Ecn;

use super::Connection;
use crate::frame::Frames;
use crate::known_peers::CredentialId;
use crate::observe::Packet;
use crate::packet::{self, LongFields, LongHeader, LongKind};
use crate::{Code, ConnectionId, Level, PathId, TransportError};

/// A packet needs room for its header, its tag and a useful frame.
pub(super) const SMALLEST_ROOM: usize = 96;
/// The header protection sample starts four bytes after the packet number and has 16 bytes.
const SAMPLE_OFFSET: usize = 4;

/// The credential and the key ID in a First packet, with their length.
const CREDENTIAL_LENGTH: usize = 1 + CredentialId::LENGTH + size_of::<u64>();

/// A packet without frames so far.
pub(super) struct PacketBuilder {
    pub(super) level: Level,
    path: PathId,
    number: u64,
    number_length: usize,
    header: PacketHeader,
    /// Its start in the buffer.
    start: usize,
    payload_start: usize,
    /// The limit of its frames.
    pub(super) limit: usize,
    tag_length: usize,
}

enum PacketHeader {
    Long(LongHeader),
    Short { number_offset: usize },
}

/// Details of a sent packet for the observer.
#[derive(Clone, Copy)]
pub(super) struct SentPacketInfo {
    pub(super) now: Time,
    pub(super) ecn: Ecn,
    pub(super) is_mtu_probe: bool,
}

/// A finished packet.
pub(super) struct BuiltPacket {
    /// Its size in bytes.
    pub(super) size: usize,
    /// Whether PADDING was added, which makes it count as in flight (RFC 9002, section 2).
    pub(super) padded: bool,
}

impl Connection {
    /// Starts a packet that ends at `end` at the latest; `None` if there is no room or there are no
    /// keys.
    ///
    /// # Errors
    /// AEAD_LIMIT_REACHED if the keys have reached their limit.
    pub(super) fn begin_packet(
        &mut self,
        level: Level,
        buffer: &mut Vec<u8>,
        end: usize,
    ) -> Result<Option<PacketBuilder>, TransportError> {
        self.begin_packet_on(self.paths[0].id, level, buffer, end)
    }

    /// Starts a packet for a path, with the path's connection ID.
    ///
    /// # Errors
    /// As [`Self::begin_packet`].
    pub(super) fn begin_packet_on(
        &mut self,
        path: PathId,
        level: Level,
        buffer: &mut Vec<u8>,
        end: usize,
    ) -> Result<Option<PacketBuilder>, TransportError> {
        self.start_packet(path, level, buffer, end)
    }

    /// The same, compiled into its caller.
    ///
    /// # Errors
    /// As [`Self::begin_packet`].
    #[inline(always)]
    pub(super) fn start_packet(
        &mut self,
        path: PathId,
        level: Level,
        buffer: &mut Vec<u8>,
        end: usize,
    ) -> Result<Option<PacketBuilder>, TransportError> {
        let start = buffer.len();
        let Some((_, key)) = self.keys.local(level, self.side) else {
            return Ok(None);
        };
        let tag_length = key.tag_length();
        let token_length = match level {
            Level::Initial => self.validation.token.len(),
            Level::OneRtt if self.known.is_unconfirmed() => CREDENTIAL_LENGTH,
            _ => 0,
        };
        if end < start + SMALLEST_ROOM + token_length {
            return Ok(None);
        }
        let space = level.space();
        let number = self.recovery.next_number(space);
        let largest_acked = self.recovery.largest_acked(space);
        if let (Level::OneRtt, Some(keys)) = (level, &mut self.keys.one_rtt) {
            keys.before_seal(number, largest_acked, self.handshake.confirmed);
            if keys.limit_reached() {
                let reason = "the keys have protected all the packets that they may";
                return Err(TransportError::new(Code::AEAD_LIMIT_REACHED, reason));
            }
        }
        let number_length = packet::packet_number_length(number, largest_acked);
        let ids = &self.remote_ids;
        let destination = if path == self.paths[0].id {
            *ids.current()
        } else {
            *ids.of(path).unwrap_or(ids.current())
        };
        let header = self.write_header(level, destination, number, number_length, buffer);
        // A server that has taken the place of the known one drops a First packet without the bit.
        if self.peer.grease_quic_bit
            && self.config.grease_quic_bit
            && self.rng.next_u32() & 1 == 0
            && !self.known.is_unconfirmed()
        {
            packet::clear_fixed_bit(&mut buffer[start]);
        }
        Ok(Some(PacketBuilder {
            level,
            path,
            number,
            number_length,
            header,
            start,
            payload_start: buffer.len(),
            limit: end - tag_length,
            tag_length,
        }))
    }

    #[inline(always)]
    fn write_header(
        &self,
        level: Level,
        destination: ConnectionId,
        number: u64,
        number_length: usize,
        buffer: &mut Vec<u8>,
    ) -> PacketHeader {
        let kind = match level {
            Level::Initial => LongKind::Initial {
                token: &self.validation.token,
            },
            Level::ZeroRtt => LongKind::ZeroRtt,
            Level::Handshake => LongKind::Handshake,
            Level::OneRtt if let Some(kind) = self.known.long_header() => kind,
            Level::OneRtt => {
                let phase = self.keys.one_rtt.as_ref().is_some_and(|keys| keys.phase);
                let number_offset = packet::write_short_header(
                    buffer,
                    &destination,
                    false,
                    phase,
                    number,
                    number_length,
                );
                return PacketHeader::Short { number_offset };
            }
        };
        let version = match level {
            Level::ZeroRtt => self.first_version,
            _ => self.version,
        };
        let fields = LongFields {
            version,
            kind,
            destination,
            source: self.local_ids.handshake,
            number,
            number_length,
            size_limit: self.datagram_limit(),
        };
        PacketHeader::Long(packet::write_long_header(buffer, &fields))
    }

    /// Pads the packet to end at `pad_to` or later, then seals and protects it.
    pub(super) fn finish_packet(
        &mut self,
        draft: &PacketBuilder,
        buffer: &mut Vec<u8>,
        pad_to: usize,
        leaving: SentPacketInfo,
    ) -> BuiltPacket {
        self.complete_packet(draft, buffer, pad_to, leaving)
    }

    /// The same, compiled into its caller.
    #[inline(always)]
    pub(super) fn complete_packet(
        &mut self,
        draft: &PacketBuilder,
        buffer: &mut Vec<u8>,
        pad_to: usize,
        leaving: SentPacketInfo,
    ) -> BuiltPacket {
        let sampled = draft.payload_start + SAMPLE_OFFSET.saturating_sub(draft.number_length);
        let frames_end = buffer.len().max(sampled);
        let payload_end = frames_end
            .max(pad_to.saturating_sub(draft.tag_length))
            .min(draft.limit);
        buffer.resize(payload_end + draft.tag_length, 0);
        let number_offset = match &draft.header {
            PacketHeader::Long(header) => {
                let end = buffer.len();
                header.finish(buffer, end);
                header.number_offset
            }
            PacketHeader::Short { number_offset } => *number_offset,
        };
        if let Some(reporter) = &mut self.reporter {
            let packet = Packet {
                level: draft.level,
                number: draft.number,
                size: buffer.len() - draft.start,
                path: draft.path,
                ecn: leaving.ecn,
                is_mtu_probe: leaving.is_mtu_probe,
                frames: Frames::new(&buffer[draft.payload_start..payload_end]),
            };
            reporter.packet_sent(leaving.now, packet);
        }
        if let Some((header_key, packet_key)) = self.keys.local(draft.level, self.side) {
            let packet = &mut buffer[draft.start..];
            packet_key.seal(draft.number, draft.payload_start - draft.start, packet);
            header_key.protect(number_offset - draft.start, packet);
        }
        BuiltPacket {
            size: buffer.len() - draft.start,
            padded: payload_end > frames_end,
        }
    }

    /// Discards a packet without frames.
    pub(super) fn abandon_packet(draft: &PacketBuilder, buffer: &mut Vec<u8>) {
        buffer.truncate(draft.start);
    }
}

impl PacketBuilder {
    /// Whether no frame has been written yet.
    pub(super) fn is_empty(&self, buffer: &[u8]) -> bool {
        buffer.len() == self.payload_start
    }
}
