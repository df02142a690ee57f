//! Writes pending data as batches of datagrams (RFC 9000, sections 12.2 and 14; RFC 9002, section
//! 7).
//!
//! A batch is one buffer of datagrams of equal size, the last one possibly shorter, as UDP
//! segmentation offload requires. Packets are written, sealed and protected in that buffer.

use rand_core::Rng;
use weir_units::Time;
use weir_wire::{Ecn, Transmit};

use super::Connection;
use super::close::{CloseMessage, LifeCycle};
use super::packet_builder::{SMALLEST_ROOM, SentPacketInfo};
use crate::frame::write;
use crate::interfaces::SMALLEST_MAX_UDP_PAYLOAD;
use crate::recovery::{SentFrame, SentFrames, SentPacket};
use crate::{Level, Space};

/// The most segments that the kernel takes in one batch (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;
/// A batch must fit one IPv4 packet: the kernel rejects larger ones with EMSGSIZE.
const MAX_BATCH: usize = 65_507;
/// Stream data that follows a handshake datagram in the same batch, in datagrams of 1200 bytes.
const SHORT_DATA: u64 = 12 * 1024;
/// One in this many ACK-only packets asks for an acknowledgment, so that ACK ranges can be dropped
/// (RFC 9000, section 13.2.4).
const PING_EVERY: u32 = 32;

/// The settings common to the datagrams of a batch.
#[derive(Clone, Copy)]
struct BatchHeader {
    now: Time,
    ecn: Ecn,
    /// Data is held back by the pacer, or by an MTU probe that has waited too long.
    paced: bool,
}

/// The frames that a packet may carry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketAllowance {
    /// All pending frames.
    All,
    /// ACKs only: the window, the pacer or the address limit holds data back.
    AcksOnly,
}

impl Connection {
    /// Writes the next batch of datagrams to the end of `buffer`: at most `max_datagrams`, and
    /// never more than fits one IP packet. Call it until it returns `None`.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<Transmit> {
        let transmit = self.next_batch(now, buffer, max_datagrams);
        if transmit.is_some() {
            self.report_changes(now);
        }
        transmit
    }

    fn next_batch(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<Transmit> {
        self.close_when_done(now);
        match self.state {
            LifeCycle::Open => {}
            LifeCycle::Closing { due: true, .. } => return self.transmit_close(now, buffer),
            LifeCycle::Closing { .. } | LifeCycle::Closed => return None,
        }
        if !self.draw_key_id(now) {
            return None;
        }
        if let Some(index) = self.due_probe()
            && let Some(transmit) = self.transmit_probe(now, index, buffer)
        {
            return Some(transmit);
        }
        self.update_packet_size(now);
        let begin = buffer.len();
        let ecn = self.path().ecn.codepoint();
        let limit = self.datagram_limit();
        let count = match max_datagrams {
            0 | 1 => max_datagrams,
            // A division takes long.
            _ => max_datagrams
                .min(MAX_SEGMENTS)
                .min((MAX_BATCH / limit).max(1)),
        };
        let mut segment = limit;
        let batch = BatchHeader {
            now,
            ecn,
            paced: self.pacer_waits(now) || self.makes_room_for_mtu_probe(now),
        };
        for index in 0..count {
            let start = buffer.len();
            if !self.write_datagram(batch, buffer, start + segment) {
                break;
            }
            let length = buffer.len() - start;
            self.path_mut().on_datagram_sent(length);
            if index == 0 {
                if length < limit
                    && !self.keys.is_only_one_rtt()
                    && !self.short_data_follows(length)
                {
                    break;
                }
                segment = length;
            } else if length < segment {
                break;
            }
        }
        self.note_limits();
        let size = buffer.len() - begin;
        if size == 0 {
            self.note_waiting_handshake(now);
            return self.transmit_mtu_probe(now, buffer);
        }
        let path = self.path();
        Some(Transmit {
            remote: path.remote,
            local: path.local,
            ecn,
            size,
            segment_size: (size > segment).then_some(segment),
        })
    }

    /// Whether a batch that begins with a handshake datagram of this length is to go on with
    /// datagrams of the same length. Handshake datagrams stay small, later ones need not; but a short
    /// request or answer may follow at once.
    fn short_data_follows(&self, length: usize) -> bool {
        let has_keys =
            self.keys.one_rtt.is_some() || self.keys.local(Level::ZeroRtt, self.side).is_some();
        let pending = self.streams.pending_bytes();
        has_keys && (1..=SHORT_DATA).contains(&pending) && length == SMALLEST_MAX_UDP_PAYLOAD
    }

    /// Writes a datagram with a path challenge, a response, or both (RFC 9000, section 8.2).
    fn transmit_probe(
        &mut self,
        now: Time,
        index: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let begin = buffer.len();
        let path = &self.paths[index];
        let budget = usize::try_from(path.amplification_budget()).unwrap_or(usize::MAX);
        let (path_id, remote, local) = (path.id, path.remote, path.local);
        let end = begin + SMALLEST_MAX_UDP_PAYLOAD.min(budget);
        let draft = match self.begin_packet_on(path_id, Level::OneRtt, buffer, end) {
            Ok(draft) => draft?,
            Err(error) => {
                self.close_with(now, error);
                return None;
            }
        };
        let challenge = self.rng.next_u64().to_be_bytes();
        let path = &mut self.paths[index];
        if let Some(data) = path.response.take() {
            write::path_response(buffer, data);
        }
        if path.validation.due {
            write::path_challenge(buffer, challenge);
            path.validation.on_sent(now, challenge);
        }
        // The padding also tests whether the path carries the smallest packets of QUIC.
        let leaving = SentPacketInfo {
            now,
            ecn: Ecn::NotEct,
            is_mtu_probe: false,
        };
        let size = self.finish_packet(&draft, buffer, end, leaving).size;
        self.paths[index].on_datagram_sent(size);
        self.note_probe(now, index, size);
        Some(Transmit {
            remote,
            local,
            ecn: Ecn::NotEct,
            size,
            segment_size: None,
        })
    }

    /// Returns the largest datagram size now. Before the peer's parameters arrive it is the
    /// smallest size that a peer must accept.
    pub(super) fn datagram_limit(&self) -> usize {
        if self.peer_known {
            self.path().mtu
        } else {
            SMALLEST_MAX_UDP_PAYLOAD
        }
    }

    /// Writes one datagram that ends at `end` at the latest.
    fn write_datagram(&mut self, batch: BatchHeader, buffer: &mut Vec<u8>, end: usize) -> bool {
        let begin = buffer.len();
        let budget = self.path().amplification_budget();
        let end = end.min(begin.saturating_add(usize::try_from(budget).unwrap_or(usize::MAX)));
        if end < begin + SMALLEST_ROOM {
            return false;
        }
        let may_send = !batch.paced && self.path().can_send((end - begin) as u64);
        if self.keys.is_only_one_rtt() {
            // The last probe of a probe timeout is small: if only it arrives, packets are lost
            // because of their size.
            let probes = self.probes[Space::Data as usize];
            let end = match probes {
                1 => end.min(begin + SMALLEST_MAX_UDP_PAYLOAD),
                _ => end,
            };
            // A server that does not know the version answers only a datagram of this size (RFC 9000,
            // section 6.1).
            let pad_to = if self.known.asks_for_version(probes > 0) {
                end.min(begin + SMALLEST_MAX_UDP_PAYLOAD)
            } else {
                0
            };
            let Some(allowance) = self.allowance(batch.now, Level::OneRtt, may_send) else {
                return false;
            };
            self.write_one_rtt_packet(batch, allowance, buffer, end, pad_to);
        } else {
            self.write_coalesced(batch, may_send, buffer, end);
        }
        buffer.len() > begin
    }

    /// Writes a datagram of the handshake: packets of several levels (RFC 9000, section 12.2).
    fn write_coalesced(
        &mut self,
        batch: BatchHeader,
        may_send: bool,
        buffer: &mut Vec<u8>,
        end: usize,
    ) {
        let data_level = if self.keys.one_rtt.is_some() {
            Level::OneRtt
        } else {
            Level::ZeroRtt
        };
        let levels = [Level::Initial, Level::Handshake, data_level].map(|level| {
            self.keys.local(level, self.side)?;
            let allowance = self.allowance(batch.now, level, may_send)?;
            Some((level, allowance))
        });
        // The handshake must also work over a path that does not carry large packets.
        let end = match levels {
            [None, None, _] => end,
            _ => end.min(buffer.len() + SMALLEST_MAX_UDP_PAYLOAD),
        };
        let last = levels.iter().flatten().last().map(|(level, _)| *level);
        // RFC 9000, section 14.1: datagrams with ack-eliciting Initial packets are padded.
        let has_initial = levels[0].is_some_and(|(_, allowance)| {
            self.side.is_client() || allowance == PacketAllowance::All
        });
        let pad_to = if has_initial {
            (buffer.len() + SMALLEST_MAX_UDP_PAYLOAD).min(end)
        } else {
            0
        };
        for wanted in levels.into_iter().flatten() {
            let is_last = Some(wanted.0) == last;
            self.write_handshake_packet(batch, wanted, buffer, end, (pad_to, is_last));
        }
    }

    /// Returns the allowance of a packet of this level; `None` if there is nothing to send.
    fn allowance(&self, now: Time, level: Level, may_send: bool) -> Option<PacketAllowance> {
        let space = level.space() as usize;
        if self.probes[space] > 0 || (may_send && self.data_waits(level.space())) {
            return Some(PacketAllowance::All);
        }
        let ack_due = level != Level::ZeroRtt && self.received[space].ack_due(now);
        ack_due.then_some(PacketAllowance::AcksOnly)
    }

    /// Whether anything but ACKs is pending in a space.
    #[inline]
    pub(super) fn data_waits(&self, space: Space) -> bool {
        self.crypto[space as usize].wants_to_send()
            || (space == Space::Data
                && (self.streams.wants_to_send()
                    || self.datagrams.wants_to_send()
                    || self.control.are_due(&self.remote_ids)
                    || self.timers.ping_due))
    }

    /// Whether the pacer holds stream data back. Checked once per batch: a batch is sent as a
    /// whole.
    fn pacer_waits(&mut self, now: Time) -> bool {
        if self.timers.paced_until.is_some_and(|until| now < until) {
            return true;
        }
        self.timers.paced_until = None;
        let pending = self.streams.pending_bytes() + self.datagrams.pending_bytes();
        let path = &mut self.paths[0];
        if self.config.pacing && pending > 0 && path.can_send(path.mtu as u64) {
            let batch = pending.min(path.window_room());
            self.timers.paced_until = path.pacing_delay(now, batch);
        }
        self.timers.paced_until.is_some()
    }

    /// Writes a 1-RTT packet, the only one of its datagram. It is compiled for this level alone:
    /// half of the decisions depend on the level only.
    #[inline(never)]
    fn write_one_rtt_packet(
        &mut self,
        batch: BatchHeader,
        allowance: PacketAllowance,
        buffer: &mut Vec<u8>,
        end: usize,
        pad_to: usize,
    ) {
        let wanted = (Level::OneRtt, allowance);
        self.write_packet(batch, wanted, buffer, end, (pad_to, true));
    }

    /// Writes a packet of any level during the handshake.
    #[inline(never)]
    fn write_handshake_packet(
        &mut self,
        batch: BatchHeader,
        wanted: (Level, PacketAllowance),
        buffer: &mut Vec<u8>,
        end: usize,
        padding: (usize, bool),
    ) {
        self.write_packet(batch, wanted, buffer, end, padding);
    }

    /// Writes a packet with the pending frames of `level`. The last packet of a datagram is padded
    /// up to `pad_to`.
    #[inline(always)]
    fn write_packet(
        &mut self,
        BatchHeader { now, ecn, .. }: BatchHeader,
        (level, allowance): (Level, PacketAllowance),
        buffer: &mut Vec<u8>,
        end: usize,
        (pad_to, is_last): (usize, bool),
    ) {
        let space = level.space();
        if level == Level::OneRtt {
            self.skip_number_sometimes();
        }
        let draft = match self.start_packet(self.paths[0].id, level, buffer, end) {
            Ok(Some(draft)) => draft,
            Ok(None) => return,
            Err(error) => return self.close_with(now, error),
        };
        let mut frames = SentFrames::new();
        let ack_eliciting =
            self.fill_packet(now, level, allowance, buffer, draft.limit, &mut frames);
        if draft.is_empty(buffer) {
            return Self::abandon_packet(&draft, buffer);
        }
        let is_last = is_last || draft.limit < buffer.len() + SMALLEST_ROOM;
        let pad_to = if is_last { pad_to } else { 0 };
        let leaving = SentPacketInfo {
            now,
            ecn,
            is_mtu_probe: false,
        };
        let finished = self.complete_packet(&draft, buffer, pad_to, leaving);
        self.note_sent(now, space, ack_eliciting);
        if self.is_watched() {
            self.watch_sent(now, &frames, ack_eliciting);
        }
        let packet = SentPacket {
            sent_at: now,
            size: finished.size as u32,
            path: self.paths[0].id,
            ack_eliciting,
            in_flight: ack_eliciting || finished.padded,
            ecn,
            frames,
            ..SentPacket::default()
        };
        self.recovery.on_sent(space, &mut self.paths[0], packet);
        if level == Level::Handshake && self.side.is_client() {
            // RFC 9001, section 4.9.1.
            self.discard(Space::Initial);
        }
    }

    /// Skips a packet number at growing intervals. A peer that acknowledges a skipped number
    /// acknowledges a packet that it has not received (RFC 9000, section 21.4).
    fn skip_number_sometimes(&mut self) {
        let next = self.recovery.next_number(Space::Data);
        if next >= self.skip_at {
            self.recovery.skip_number(Space::Data);
            self.skip_at = next + 1 + (next | 0xff) / 2 + u64::from(self.rng.next_u32() & 0xff);
        }
    }

    /// Writes frames up to `limit`; returns whether the packet is ack-eliciting.
    #[inline(always)]
    fn fill_packet(
        &mut self,
        now: Time,
        level: Level,
        allowance: PacketAllowance,
        buffer: &mut Vec<u8>,
        limit: usize,
        frames: &mut SentFrames,
    ) -> bool {
        let space = level.space() as usize;
        let probing = self.probes[space] > 0;
        let received = &mut self.received[space];
        let mut has_ack = false;
        if level != Level::ZeroRtt
            && received.ack_pending()
            && let Some(ack) = received.write_ack(now, buffer, limit.saturating_sub(buffer.len()))
        {
            self.keys.note_ack_sent(level, &ack);
            frames.push(ack);
            has_ack = true;
        }
        let after_ack = buffer.len();
        let urgent =
            probing || allowance == PacketAllowance::All && self.fills_window(limit - after_ack);
        if urgent
            && level == Level::OneRtt
            && self.peer.min_ack_delay.is_some()
            && buffer.len() < limit
        {
            // The ACK of a probe should not be delayed (draft-ietf-quic-ack-frequency-14, section
            // 7), nor one for which the sender waits.
            write::immediate_ack(buffer);
        }
        if allowance == PacketAllowance::All {
            self.crypto[space].fill(buffer, limit, |frame| frames.push(frame));
            if level.space() == Space::Data {
                if level == Level::OneRtt && self.control.are_due(&self.remote_ids) {
                    let sent = |frame| frames.push(frame);
                    (self.control).fill(&mut self.remote_ids, buffer, limit, sent);
                }
                if level == Level::OneRtt && self.datagrams.wants_to_send() {
                    self.fill_datagrams(buffer, limit);
                }
                self.streams.fill(buffer, limit, frames);
            }
        }
        let ping = level.space() == Space::Data && self.timers.ping_due
            || self.ack_only_streak >= PING_EVERY && level == Level::OneRtt;
        if buffer.len() == after_ack && (probing || ping) && buffer.len() < limit {
            write::ping(buffer);
        }
        let ack_eliciting = buffer.len() > after_ack;
        let has_data = (frames.iter()).any(|frame| matches!(frame, SentFrame::Stream { .. }));
        if has_ack {
            self.received[space].on_ack_sent(!has_data);
        } else if has_data {
            self.received[space].on_data_sent(now);
        }
        ack_eliciting
    }

    /// Whether a packet with `room` bytes of frames is the last one that the window allows, and
    /// more data wait. Where the receiver's ACKs follow a request of ours, they are frequent enough.
    fn fills_window(&self, room: usize) -> bool {
        let path = self.path();
        self.streams.pending_bytes() > room as u64
            && path.in_flight.saturating_add(2 * path.mtu as u64) > path.window().bytes()
            && !self.control.ack_requests.is_active()
    }

    fn note_sent(&mut self, now: Time, space: Space, ack_eliciting: bool) {
        if ack_eliciting {
            self.timers.on_sent_ack_eliciting(now);
            self.timers.ping_due &= space != Space::Data;
            self.ack_only_streak = 0;
            if space == Space::Data {
                self.received[space as usize].on_eliciting_sent();
                self.recovery.precision.on_sent();
            }
            let probes = &mut self.probes[space as usize];
            *probes = probes.saturating_sub(1);
        } else {
            self.ack_only_streak += 1;
            self.counters.ack_packets_sent += 1;
        }
    }

    /// Records after a batch whether the sender is application-limited.
    fn note_limits(&mut self) {
        if !self.streams.wants_to_send()
            && !self.datagrams.wants_to_send()
            && self.timers.paced_until.is_none()
        {
            self.path_mut().on_nothing_to_send();
        }
    }

    /// Writes a datagram with CONNECTION_CLOSE at every level that the peer may be able to decrypt
    /// (RFC 9000, section 10.2.3).
    fn transmit_close(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let LifeCycle::Closing { message, due, .. } = &mut self.state else {
            return None;
        };
        *due = false;
        let message = message.clone();
        let begin = buffer.len();
        let budget = usize::try_from(self.path().amplification_budget()).unwrap_or(usize::MAX);
        let end = begin + self.datagram_limit().min(budget);
        let levels = [Level::Initial, Level::Handshake, Level::OneRtt].map(|level| {
            let readable = level != Level::OneRtt || self.handshake.complete;
            (readable && self.keys.local(level, self.side).is_some()).then_some(level)
        });
        let last = levels.into_iter().flatten().last();
        for level in levels.into_iter().flatten() {
            let pads = levels[0].is_some() && Some(level) == last;
            let pad_to = if pads {
                (begin + SMALLEST_MAX_UDP_PAYLOAD).min(end)
            } else {
                0
            };
            self.write_close_packet(now, level, &message, buffer, end, pad_to);
        }
        let size = buffer.len() - begin;
        let path = self.path_mut();
        path.on_datagram_sent(size);
        (size > 0).then_some(Transmit {
            remote: path.remote,
            local: path.local,
            ecn: Ecn::NotEct,
            size,
            segment_size: None,
        })
    }

    fn write_close_packet(
        &mut self,
        now: Time,
        level: Level,
        message: &CloseMessage,
        buffer: &mut Vec<u8>,
        end: usize,
        pad_to: usize,
    ) {
        // If the keys have reached their limit, the peer cannot be notified.
        let Ok(Some(draft)) = self.begin_packet(level, buffer, end) else {
            return;
        };
        self.write_last_go_away(level, buffer, draft.limit);
        write::close(buffer, &message.frame(level == Level::OneRtt), draft.limit);
        let leaving = SentPacketInfo {
            now,
            ecn: Ecn::NotEct,
            is_mtu_probe: false,
        };
        let finished = self.finish_packet(&draft, buffer, pad_to, leaving);
        let packet = SentPacket {
            sent_at: now,
            size: finished.size as u32,
            path: self.paths[0].id,
            ..SentPacket::default()
        };
        self.recovery
            .on_sent(level.space(), &mut self.paths[0], packet);
    }
}
