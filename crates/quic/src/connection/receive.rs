//! Processes received datagrams and their frames (RFC 9000, sections 12 and 13; RFC 9001, 5.4 and
//! 5.5).

use std::net::SocketAddr;
use std::ops::Range;

use weir_units::Time;
use weir_wire::Ecn;

use super::Connection;
use super::close::LifeCycle;
use super::handshake::FEW_PACKETS;
use super::paths::DatagramMeta;
use crate::crypto::{DirectionKeys, OpenError};
use crate::event::EndpointEvent;
use crate::frame::{Ack, Frame, Frames, Stream};
use crate::observe::{DropReason, Packet};
use crate::packet::{self, Header, Kind};
use crate::stateless_reset;
use crate::streams::Received;
use crate::{Code, Level, PathId, Side, Space, TransportError};

/// A packet with its protection removed.
struct OpenedPacket {
    level: Level,
    number: u64,
    payload: Range<usize>,
    reserved_bits_ok: bool,
}

/// A summary of a packet's frames.
struct PacketSummary {
    ack_eliciting: bool,
    /// Only probing frames (RFC 9000, section 9.1).
    probing: bool,
}

impl Connection {
    /// Processes a received datagram. It is decrypted in place.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let reset = stateless_reset::candidate(datagram);
        let length = datagram.len();
        if self.is_drained() {
            return;
        }
        let index = self.find_path(remote, local);
        let mut arrival = DatagramMeta {
            remote,
            local,
            length,
            path: index.map(|index| self.paths[index].id),
        };
        match index {
            Some(index) => self.paths[index].on_datagram_received(length),
            None if self.accepts_new_addresses() => {}
            None => return self.drop_packet(now, length, DropReason::UnexpectedAddress),
        }
        self.batch_bytes += length as u64;
        let mut rest = datagram;
        while !rest.is_empty() {
            let opened = if Header::is_short(rest) {
                // Nothing follows it.
                let packet = std::mem::take(&mut rest);
                self.handle_short_packet(now, &mut arrival, ecn, packet)
            } else {
                self.handle_long_packet(now, &mut arrival, ecn, &mut rest)
            };
            if !opened
                && let Some(candidate) = reset
                && self.is_reset(&candidate)
            {
                return self.on_reset(now);
            }
        }
    }

    /// Processes a 1-RTT packet; `false`: it is not authentic, and may be a stateless reset. It is
    /// compiled for this level alone: half of the decisions depend on the level only.
    #[inline(never)]
    fn handle_short_packet(
        &mut self,
        now: Time,
        arrival: &mut DatagramMeta,
        ecn: Ecn,
        packet: &mut [u8],
    ) -> bool {
        match Header::decode_short(packet, self.local_ids.layout.length()) {
            Ok(header) => self.handle_packet(now, &header, arrival, ecn, packet),
            Err(_) => {
                self.drop_packet(now, packet.len(), DropReason::Malformed);
                true
            }
        }
    }

    /// Processes the first packet of `rest`, which has a long header, and removes it; `false`: it is
    /// not authentic.
    #[inline(never)]
    fn handle_long_packet(
        &mut self,
        now: Time,
        arrival: &mut DatagramMeta,
        ecn: Ecn,
        rest: &mut &mut [u8],
    ) -> bool {
        let datagram = std::mem::take(rest);
        let Ok(header) = Header::decode(datagram, self.local_ids.layout.length()) else {
            self.drop_packet(now, datagram.len(), DropReason::Malformed);
            return true;
        };
        let (packet, tail) = datagram.split_at_mut(header.end.min(datagram.len()));
        *rest = tail;
        self.handle_packet(now, &header, arrival, ecn, packet)
    }

    /// Ends a receive batch: decides what must be acknowledged at once.
    pub fn end_batch(&mut self, now: Time) {
        let finished = std::mem::take(&mut self.batch_finished);
        let bytes = std::mem::take(&mut self.batch_bytes);
        let received = &mut self.received[Space::Data as usize];
        let is_exact = self.recovery.precision.is_always_exact();
        received.end_batch(now, bytes, finished, is_exact);
        if received.largest() > Some(FEW_PACKETS) {
            self.want_spare_ids();
        }
        self.decide(now);
        self.report_changes(now);
    }

    /// Processes a packet; returns whether it was authentic. Compiled into the two functions above, as
    /// is all that it does up to the frames.
    #[inline(always)]
    fn handle_packet(
        &mut self,
        now: Time,
        header: &Header,
        arrival: &mut DatagramMeta,
        ecn: Ecn,
        packet: &mut [u8],
    ) -> bool {
        if header.kind == Kind::VersionNegotiation {
            self.on_version_negotiation(now, header, packet);
            return true;
        }
        if !header.fixed_bit && !self.config.grease_quic_bit {
            self.drop_packet(now, packet.len(), DropReason::Malformed);
            return false;
        }
        if header.kind == Kind::Retry {
            self.on_retry(now, header, packet);
            return true;
        }
        if header.kind == Kind::KnownControl {
            self.on_refusal(now, header, packet);
            return true;
        }
        self.prepare_for_version(header);
        let opened = match self.unprotect(header, packet) {
            Ok(opened) => opened,
            Err(reason) => {
                self.drop_packet(now, packet.len(), reason);
                self.check_integrity_limit(now);
                return false;
            }
        };
        self.handle_opened(now, header, arrival, ecn, opened, packet);
        true
    }

    #[inline(always)]
    fn handle_opened(
        &mut self,
        now: Time,
        header: &Header,
        arrival: &mut DatagramMeta,
        ecn: Ecn,
        opened: OpenedPacket,
        packet: &[u8],
    ) {
        if !matches!(self.state, LifeCycle::Open) {
            return self.on_packet_after_close(now, &opened, packet);
        }
        let index = match arrival.path.and_then(|path| self.index_of(path)) {
            Some(index) => index,
            // Only an authentic packet creates a path, and only after the handshake.
            None if opened.level == Level::OneRtt && self.accepts_new_addresses() => {
                self.add_peer_path(now, arrival)
            }
            None => return self.drop_packet(now, packet.len(), DropReason::UnexpectedAddress),
        };
        let path = self.paths[index].id;
        arrival.path = Some(path);
        let payload = &packet[opened.payload];
        if let Some(reporter) = &mut self.reporter {
            let packet = Packet {
                level: opened.level,
                number: opened.number,
                size: packet.len(),
                path,
                ecn,
                is_mtu_probe: false,
                frames: Frames::new(payload),
            };
            reporter.packet_received(now, packet);
        }
        self.on_authentic(now, header, opened.level, index);
        // Checked on authentic packets only (RFC 9000, section 17.2).
        if !opened.reserved_bits_ok {
            return self.close_with(now, violation("reserved header bits are set"));
        }
        if self.keys.updated_too_early() {
            let reason = "keys updated again before the last update was acknowledged";
            return self.close_with(now, key_update_error(reason));
        }
        match self.on_payload(now, header, opened.level, opened.number, path, payload) {
            Ok(Some(contents)) => {
                let space = opened.level.space();
                self.received[space as usize].on_received(
                    now,
                    opened.number,
                    contents.ack_eliciting,
                    ecn,
                );
                if space == Space::Data
                    && !contents.probing
                    && self.on_non_probing(now, path, opened.number)
                {
                    let index = self.find_path(arrival.remote, arrival.local);
                    arrival.path = index.map(|index| self.paths[index].id);
                }
            }
            Ok(None) => self.drop_packet(now, packet.len(), DropReason::NoRoom),
            Err(error) => self.close_with(now, error),
        }
    }

    /// Removes a packet's protection, or returns why it is dropped.
    #[inline(always)]
    fn unprotect(
        &mut self,
        header: &Header,
        packet: &mut [u8],
    ) -> Result<OpenedPacket, DropReason> {
        let level = header.kind.level().ok_or(DropReason::Malformed)?;
        if !self.accepts_destination(header) {
            return Err(DropReason::UnknownConnectionId);
        }
        // RFC 9001, section 5.7: application data waits for the handshake.
        if level == Level::OneRtt && !self.handshake.complete {
            return Err(DropReason::KeyUnavailable);
        }
        let header_key = match level {
            Level::OneRtt => self.keys.one_rtt.as_ref().map(|keys| &keys.remote_header),
            _ => self
                .long_header_keys(header, level)
                .map(|keys| &keys.header),
        };
        let number_length = header_key
            .ok_or(DropReason::KeyUnavailable)?
            .unprotect(header.number_offset, packet)
            .ok_or(DropReason::Malformed)?;
        let space = level.space();
        let received = &self.received[space as usize];
        let expected = received.largest().map_or(0, |largest| largest + 1);
        let header_length = header.number_offset + number_length;
        let truncated = packet::read_packet_number(packet, header.number_offset, number_length)
            .ok_or(DropReason::Malformed)?;
        let number = packet::expand_packet_number(truncated, number_length, expected);
        if received.is_duplicate(number) {
            return Err(DropReason::Duplicate);
        }
        let first = packet[0];
        let (head, payload) = packet.split_at_mut(header_length);
        let length = match self.open_payload(header, level, number, head, payload) {
            Ok(length) => length,
            Err(OpenError) => {
                self.counters.packets_not_authentic += 1;
                return Err(DropReason::DecryptionFailure);
            }
        };
        Ok(OpenedPacket {
            level,
            number,
            payload: header_length..header_length + length,
            reserved_bits_ok: packet::reserved_bits_ok(first, header.kind != Kind::OneRtt),
        })
    }

    #[inline(always)]
    fn open_payload(
        &mut self,
        header: &Header,
        level: Level,
        number: u64,
        head: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        if level != Level::OneRtt {
            let keys = self.long_header_keys(header, level).ok_or(OpenError)?;
            return keys.packet.open(number, head, payload);
        }
        let next_sent = self.recovery.next_number(Space::Data);
        let keys = self.keys.one_rtt.as_mut().ok_or(OpenError)?;
        let phase = head.first().is_some_and(|first| packet::key_phase(*first));
        let (key, opened) = keys.remote(phase, number);
        let length = key.open(number, head, payload)?;
        keys.on_opened(opened, phase, number, next_sent);
        Ok(length)
    }

    /// Returns the keys that decrypt a long-header packet. Early data uses the version of the
    /// client's first packets. All other packets use the connection's, but Initial packets may
    /// still use either one during negotiation.
    fn long_header_keys(&self, header: &Header, level: Level) -> Option<&DirectionKeys> {
        let version = match level {
            Level::ZeroRtt => self.first_version,
            _ => self.version,
        };
        if header.version == Some(version) {
            return self.keys.remote(level, self.side);
        }
        let other = self.keys.other_initial.as_ref();
        other.filter(|_| level == Level::Initial)
    }

    /// Whether the packet is addressed to this connection: all packets of a datagram must be
    /// (RFC 9000, section 12.2).
    #[inline(always)]
    fn accepts_destination(&self, header: &Header) -> bool {
        self.local_ids.contains(&header.destination)
            || (self.side == Side::Server
                && matches!(
                    header.kind,
                    Kind::Initial | Kind::ZeroRtt | Kind::KnownFirst
                )
                && header.destination == self.original_destination)
    }

    /// Handles an authentic packet before its frames.
    #[inline(always)]
    fn on_authentic(&mut self, now: Time, header: &Header, level: Level, path: usize) {
        if let Some(version) = header.version {
            self.follow_version(version);
        }
        self.timers.on_received(now);
        self.unreachable.on_received();
        self.counters.authenticated = true;
        self.paths[path].stats.packets_received += 1;
        self.watch_received(now, path);
        if level == Level::OneRtt {
            return self.on_known_packet(now, header, path);
        }
        match level {
            Level::Initial if self.handshake.peer_source.is_none() => {
                self.handshake.peer_source = Some(header.source);
                self.remote_ids.set_handshake_id(header.source);
            }
            Level::Handshake if self.side == Side::Server => {
                // RFC 9000, section 8.1 and RFC 9001, section 4.9.1.
                self.path_mut().validated = true;
                self.discard(Space::Initial);
                self.endpoint_events
                    .push_back(EndpointEvent::IdRetired(self.original_destination));
            }
            _ => {}
        }
    }

    /// Handles all frames. `None`: treat the packet as if it had not arrived.
    #[inline(always)]
    fn on_payload(
        &mut self,
        now: Time,
        header: &Header,
        level: Level,
        number: u64,
        path: PathId,
        payload: &[u8],
    ) -> Result<Option<PacketSummary>, TransportError> {
        if payload.is_empty() {
            return Err(violation("a packet without frames"));
        }
        let mut contents = PacketSummary {
            ack_eliciting: false,
            probing: true,
        };
        for next in Frames::new(payload) {
            // It stays where it is: a copy would cost more than the rest.
            let frame = match &next {
                Ok(frame) => frame,
                Err(error) => return Err(error.clone()),
            };
            if !frame.allowed_in(level) {
                return Err(violation("a frame that packets of this type may not carry")
                    .in_frame(frame.frame_type()));
            }
            contents.ack_eliciting |= frame.ack_eliciting();
            contents.probing &= frame.is_probing();
            // Most frames carry data of streams.
            match frame {
                Frame::Stream(stream) => {
                    if !self.on_stream(now, level, stream)? {
                        return Ok(None);
                    }
                }
                Frame::GoAway(streams) => self
                    .on_go_away(number, *streams)
                    .map_err(|error| error.in_frame(frame.frame_type()))?,
                _ => self.on_frame(now, header, level, path, frame)?,
            }
        }
        Ok(Some(contents))
    }

    /// Handles a STREAM frame; `false`: treat the packet as lost.
    fn on_stream(
        &mut self,
        now: Time,
        level: Level,
        stream: &Stream<'_>,
    ) -> Result<bool, TransportError> {
        self.batch_finished = stream.fin;
        self.table.used = true;
        if level == Level::ZeroRtt {
            let count = &mut self.early_streams[stream.id.direction() as usize];
            *count = (*count).max(stream.id.index() + 1);
        }
        let buffered = self.streams.on_stream(stream)? == Received::Buffered;
        if buffered && self.is_watched() {
            self.watch_response(now, stream);
        }
        Ok(buffered)
    }

    /// Handles any frame but STREAM.
    fn on_frame(
        &mut self,
        now: Time,
        header: &Header,
        level: Level,
        path: PathId,
        frame: &Frame<'_>,
    ) -> Result<(), TransportError> {
        let streams = &mut self.streams;
        match frame {
            // Handled by the caller.
            Frame::Stream(_) | Frame::GoAway(_) => {}
            Frame::Ack(ack) => self.on_ack(now, level, ack)?,
            Frame::Crypto { offset, data } => self.on_crypto(now, level, *offset, data)?,
            Frame::Padding | Frame::Ping => {}
            Frame::ResetStream(reset) => {
                streams.on_reset_stream(reset)?;
                self.watch_abandoned(reset.id);
            }
            Frame::StopSending { id, code } => {
                streams.on_stop_sending(*id, *code)?;
                self.watch_abandoned(*id);
            }
            Frame::MaxData(limit) => streams.on_max_data(*limit),
            Frame::MaxStreamData { id, limit } => streams.on_max_stream_data(*id, *limit)?,
            Frame::MaxStreams { direction, limit } => streams.on_max_streams(*direction, *limit),
            Frame::StreamDataBlocked { id, .. } => streams.on_stream_data_blocked(*id)?,
            Frame::DataBlocked(_) | Frame::StreamsBlocked { .. } => {}
            Frame::NewConnectionId(id) => {
                self.remote_ids.on_new(*id)?;
                self.want_spare_ids();
                self.open_standby_paths(now);
            }
            Frame::RetireConnectionId(sequence) => self.on_retire(*sequence, header)?,
            Frame::PathChallenge(data) => {
                self.on_path_challenge(path, *data);
                self.want_spare_ids();
            }
            Frame::PathResponse(data) => self.on_path_response(now, *data),
            Frame::NewToken(token) => self.on_new_token(token)?,
            Frame::HandshakeDone => {
                if self.side == Side::Server {
                    return Err(violation("HANDSHAKE_DONE from a client"));
                }
                self.on_confirmed(now);
            }
            Frame::Close(close) => self.on_close(now, level, close),
            Frame::Datagram(data) => self.on_datagram(data)?,
            Frame::AckFrequency(request) => self.on_ack_frequency(request)?,
            Frame::ImmediateAck => self.received[Space::Data as usize].acknowledge_now(now),
            Frame::PathSecret(offer) => self.on_path_secret(now, offer)?,
            Frame::PathKey(key) => self.on_path_key(now, key)?,
            Frame::PathKeyAnswer { key, secret } => self.on_path_key_answer(now, key, secret)?,
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Time, level: Level, ack: &Ack<'_>) -> Result<(), TransportError> {
        let space = level.space();
        if level == Level::OneRtt && self.keys.acks_new_under_old(ack.largest) {
            return Err(key_update_error("new packets acknowledged under old keys"));
        }
        let exponent = match space {
            Space::Data => self.peer.ack_delay_exponent,
            _ => 0,
        };
        let micros = ack
            .delay
            .checked_shl(u32::from(exponent))
            .unwrap_or(u64::MAX);
        let delay = weir_units::Duration::from_micros(micros);
        let confirmed = self.handshake.confirmed;
        let (recovery, paths, mut fates) = self.recovery_parts();
        let path = &mut paths[0];
        let outcome = recovery.on_ack(now, space, ack, delay, path, confirmed, &mut fates)?;
        self.probes[space as usize] = 0;
        if space == Space::Data {
            self.after_data_ack(now);
            if let Some(rtt) = outcome.rtt {
                self.watch_rtt(now, rtt);
            }
        }
        Ok(())
    }

    fn on_retire(&mut self, sequence: u64, header: &Header) -> Result<(), TransportError> {
        let largest = self.control.largest_id_sent;
        let retired = self
            .local_ids
            .retire(sequence, largest, &header.destination)?;
        if let Some(id) = retired {
            self.control.forget_id(sequence);
            self.endpoint_events.push_back(EndpointEvent::IdRetired(id));
            self.issue_ids();
        }
        Ok(())
    }

    /// Closes the connection at the integrity limit (RFC 9001, section 6.6).
    fn check_integrity_limit(&mut self, now: Time) {
        let Some(keys) = &self.keys.one_rtt else {
            return;
        };
        if self.counters.packets_not_authentic >= keys.integrity_limit() {
            self.close_with(
                now,
                TransportError::new(
                    Code::AEAD_LIMIT_REACHED,
                    "too many packets are not authentic",
                ),
            );
        }
    }

    fn on_packet_after_close(&mut self, now: Time, opened: &OpenedPacket, packet: &[u8]) {
        self.on_packet_while_closing();
        let close = Frames::new(&packet[opened.payload.clone()])
            .map_while(Result::ok)
            .find_map(|frame| match frame {
                Frame::Close(close) => Some(close),
                _ => None,
            });
        if let (Some(close), LifeCycle::Closing { .. }) = (close, &self.state) {
            self.on_close(now, opened.level, &close);
        }
    }
}

fn key_update_error(reason: &'static str) -> TransportError {
    TransportError::new(Code::KEY_UPDATE_ERROR, reason)
}

pub(super) fn violation(reason: &'static str) -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, reason)
}
