//! Processing of arriving datagrams.

use std::net::SocketAddr;

use bytes::BytesMut;
use weir_units::Time;
use weir_wire::Ecn;

use super::close::LifeCycle;
use super::{Connection, Event};
use crate::error::Violation;
use crate::mode::Mode;
use crate::packet::{Ack, Control, ControlHeader, ControlKind, DataHeader, Header, KeepAlive};

/// Limit of ACKs that wait for their ACK2; beyond it the oldest are not answered.
const MOST_ACK2S: usize = 8;

impl Connection {
    /// Processes a datagram from `remote` with this ECN codepoint. Its payload stays in memory
    /// until the application has read it: at most as many datagrams as the receive window has
    /// packets.
    pub fn handle_datagram(&mut self, now: Time, remote: SocketAddr, ecn: Ecn, datagram: BytesMut) {
        if matches!(self.state, LifeCycle::Closed) {
            return;
        }
        // DCUDP connections do not migrate.
        if remote != self.remote {
            self.counters.foreign += 1;
            return;
        }
        let Ok((header, _)) = Header::decode(&datagram) else {
            self.counters.malformed += 1;
            return;
        };
        if let Header::Control(header) = header
            && header.kind == ControlKind::Handshake
        {
            return self.handle_handshake(now, &datagram);
        }
        if self.client.is_some() || !self.is_for_us(&header) {
            self.counters.early += 1;
            return;
        }
        // If both ends have the same socket id by chance, early data seems to answer our response
        // and would yield a wrong RTT sample.
        let knows_us =
            header.destination() == self.channel.local && self.channel.local != self.channel.peer;
        let Some((header, body)) = self.channel.open(datagram) else {
            self.counters.unauthentic += 1;
            return;
        };
        self.on_peer_packet(now, knows_us);
        if self.is_closing() {
            return self.handle_when_closing(&header);
        }
        let outcome = match header {
            Header::Data(header) => self.handle_data(now, &header, ecn, body),
            Header::Control(header) => self.handle_control(now, &header, &body),
        };
        match outcome {
            Ok(()) => self.after_receipt(now),
            Err(violation) => self.violate(now, violation),
        }
    }

    /// Returns whether a packet carries our socket id, or is a client's early data without it.
    fn is_for_us(&self, header: &Header) -> bool {
        let is_early = matches!(header, Header::Data(_))
            && self.response.is_some()
            && header.destination() == self.channel.peer;
        is_early || header.destination() == self.channel.local
    }

    /// Records a packet from the peer. `knows_us`: the peer has received our response.
    fn on_peer_packet(&mut self, now: Time, knows_us: bool) {
        self.counters.datagrams_received += 1;
        self.timers.on_heard(now);
        if knows_us
            && let Some(response) = &mut self.response
            && let Some(sent_at) = response.sent_at.take()
        {
            self.rtt.on_sample(now.since(sent_at));
        }
    }

    fn handle_data(
        &mut self,
        now: Time,
        header: &DataHeader,
        ecn: Ecn,
        body: BytesMut,
    ) -> Result<(), Violation> {
        if body.len() + self.channel.overhead() > self.config.packet_size.as_usize() {
            return Err(Violation::PacketTooLarge);
        }
        let is_marked = ecn == Ecn::Ce;
        let payload = body.freeze();
        let receiver = &mut self.receiver;
        let is_new = receiver.on_data(now, header, payload, is_marked, &self.rtt)?;
        self.counters.data_received += 1;
        self.counters.duplicates += u64::from(!is_new);
        self.counters.marked += u64::from(is_marked);
        Ok(())
    }

    fn handle_control(
        &mut self,
        now: Time,
        header: &ControlHeader,
        body: &[u8],
    ) -> Result<(), Violation> {
        let Ok(control) = Control::decode(header.kind, body) else {
            self.counters.malformed += 1;
            return Ok(());
        };
        if header.kind == ControlKind::Ack2 {
            return self.handle_ack2(now, header);
        }
        let is_newest = self.channel.is_newest(header.number);
        match control {
            Control::KeepAlive(keep_alive) => {
                self.handle_keep_alive(now, header, &keep_alive, is_newest)
            }
            Control::Ack(ack) => self.handle_ack(now, header, &ack, is_newest),
            Control::Nak(ranges) => {
                self.process_obs(now, header, is_newest)?;
                self.counters.naks_received += 1;
                self.sender.on_nak(now, &ranges, &self.rtt)
            }
            Control::ObsChange => {
                if is_newest {
                    self.receiver.on_change(now, header.flags.obs);
                }
                Ok(())
            }
            Control::Shutdown(shutdown) => self.handle_shutdown(now, &shutdown),
            Control::Handshake(_) | Control::Ack2 => Ok(()),
        }
    }

    /// Processes the OBS bit of a receiver's packet, unless the packet is old.
    fn process_obs(
        &mut self,
        now: Time,
        header: &ControlHeader,
        is_newest: bool,
    ) -> Result<(), Violation> {
        if is_newest
            && self
                .sender
                .on_requested_mode(now, header.flags.obs, &self.rtt)?
        {
            self.events.push_back(Event::Mode(self.sender.mode));
        }
        Ok(())
    }

    fn handle_keep_alive(
        &mut self,
        now: Time,
        header: &ControlHeader,
        keep_alive: &KeepAlive,
        is_newest: bool,
    ) -> Result<(), Violation> {
        self.process_obs(now, header, is_newest)?;
        if let Some(answered) = keep_alive.answers
            && let Some(sample) = self.sender.on_answer(now, answered)
        {
            self.rtt.on_sample(sample);
        }
        let (expected, window) = (keep_alive.expected, keep_alive.window);
        self.sender.on_progress(now, expected, window, &self.rtt)?;
        self.receiver
            .on_announced(now, keep_alive.next, &self.rtt)?;
        if keep_alive.request {
            self.answer = Some(header.number);
        }
        Ok(())
    }

    fn handle_ack(
        &mut self,
        now: Time,
        header: &ControlHeader,
        ack: &Ack,
        is_newest: bool,
    ) -> Result<(), Violation> {
        self.counters.acks_received += 1;
        self.process_obs(now, header, is_newest)?;
        if self.sender.answers_ack() {
            if self.ack2s.len() == MOST_ACK2S {
                self.ack2s.pop_front();
            }
            self.ack2s.push_back(header.number);
        }
        let sender = &mut self.sender;
        if !header.flags.obs && sender.mode == Mode::Udp {
            // The receiver still waits for the report of the mode change.
            sender.change_due = true;
        }
        let progress = sender.on_progress(now, ack.expected, ack.window, &self.rtt)?;
        let sample = progress.batch.rtt(now);
        match sample.filter(|_| !self.config.udp_mode) {
            Some(sample) => self.rtt.on_sample(sample),
            // The receiver measures the RTT too, also while a packet is missing, and reports it.
            None => self.rtt.adopt(ack.rtt),
        }
        if is_newest {
            let echo = header.flags.ece;
            self.sender.on_ack(now, ack, echo, progress, &self.rtt);
        }
        Ok(())
    }

    fn handle_ack2(&mut self, now: Time, header: &ControlHeader) -> Result<(), Violation> {
        let next = self.channel.next_control;
        let number = header.number.expand(next);
        if number >= next {
            return Err(Violation::Ack2OfUnsent);
        }
        self.receiver.on_ack2(now, number, &mut self.rtt);
        Ok(())
    }

    /// Queues events for blocked reads and writes.
    fn after_receipt(&mut self, now: Time) {
        let is_readable = self.receiver.buffer.take_readable();
        if is_readable && self.read_blocked {
            self.read_blocked = false;
            self.events.push_back(Event::Readable);
        }
        if self.write_blocked && self.sender.buffer.room() > 0 {
            self.write_blocked = false;
            self.events.push_back(Event::Writable);
        }
        // An end that has sent and received the end of all data closes.
        self.close_if_finished(now);
    }
}
