//! From what is due to datagrams.

use std::net::SocketAddr;

use weir_units::Time;
use weir_wire::Ecn;

use super::Connection;
use super::close::State;
use crate::channel::DataFields;
use crate::mode::Mode;
use crate::packet::{
    Ack, Control, KeepAlive, LossRange, LossRanges, Marks, SocketId, write_loss_range,
};
use crate::sequence::SequenceNumber;

/// The kernel takes this many segments of one batch (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;
/// A batch must fit one IPv4 packet: larger ones vanish with EMSGSIZE.
const MAX_BATCH: usize = 65_507;

/// A batch of datagrams to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub remote: SocketAddr,
    /// From which of our addresses, where that is known.
    pub local: Option<SocketAddr>,
    /// The ECN codepoint of all of them.
    pub ecn: Ecn,
    /// Bytes in all.
    pub size: usize,
    /// The size of each datagram but the last, where there are several.
    pub segment_size: Option<usize>,
}

impl Connection {
    /// Writes the next batch of datagrams to the end of `buffer`: at most `max_datagrams`, and never
    /// more than fits one IP packet. To be called until it gives `None`.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<Transmit> {
        let begin = buffer.len();
        let mut ecn = Ecn::Ect0;
        let mut segment = None;
        match self.state {
            State::Closed => return None,
            State::Closing(_) => {
                self.transmit_shutdown(now, buffer);
            }
            State::Open => {
                if self.transmit_handshake(now, buffer) {
                    ecn = Ecn::NotEct;
                } else if let Some(client) = &self.client {
                    let room = client.early_room().min(max_datagrams);
                    segment = self.transmit_early(now, buffer, room);
                } else if !self.transmit_control(now, buffer) {
                    segment = self.transmit_data(now, buffer, max_datagrams);
                }
            }
        }
        let size = buffer.len() - begin;
        if size == 0 {
            return None;
        }
        self.timers.on_sent(now);
        self.counters.datagrams_sent += segment.map_or(1, |segment| size.div_ceil(segment) as u64);
        Some(Transmit {
            remote: self.remote,
            local: self.local,
            ecn,
            size,
            segment_size: segment.filter(|segment| *segment < size),
        })
    }

    /// Writes the control packet that is due first: whether there was one.
    fn transmit_control(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        if let Some(number) = self.ack2s.pop_front() {
            let marks = self.sender_marks();
            let number = number.value().into();
            self.channel
                .write_numbered(now, number, marks, &Control::Ack2, buffer);
            return true;
        }
        if self.receiver.ack_due {
            self.transmit_ack(now, buffer);
            return true;
        }
        if self.receiver.nak_is_due() && self.transmit_nak(now, buffer) {
            return true;
        }
        if self.sender.change_due {
            self.sender.change_due = false;
            let marks = self.sender_marks();
            self.channel
                .write_control(now, marks, &Control::ObsChange, buffer);
            return true;
        }
        let due = self.keep_alive_due
            || self.answer.is_some()
            || self.receiver.update_due
            || self.sender.request_is_due();
        if due {
            self.transmit_keep_alive(now, buffer);
        }
        due
    }

    /// What data packets, ACK2 and OBS-change say of the sender's mode.
    fn sender_marks(&self) -> Marks {
        Marks {
            observe: self.sender.mode() == Mode::Congestion,
            ..Marks::default()
        }
    }

    /// What ACK, NAK and keep-alive packets say of the mode that the receiver wants.
    fn receiver_marks(&self) -> Marks {
        Marks {
            observe: self.receiver.observes(),
            ..Marks::default()
        }
    }

    fn transmit_ack(&mut self, now: Time, buffer: &mut Vec<u8>) {
        let marks = Marks {
            echo: self.receiver.echo(),
            ..self.receiver_marks()
        };
        let ack = Ack {
            expected: SequenceNumber::of(self.receiver.buffer.expected()),
            window: self.receiver.room(),
            rtt: self.rtt.smoothed(),
            received: self.receiver.received(),
            marked: self.receiver.marked(),
        };
        let control = Control::Ack(ack);
        let number = self.channel.write_control(now, marks, &control, buffer);
        self.receiver.on_ack_sent(now, number, &self.rtt);
        self.counters.acks_sent += 1;
    }

    fn transmit_nak(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        let mut list = std::mem::take(&mut self.scratch);
        list.clear();
        let room = self
            .packet_size
            .as_usize()
            .saturating_sub(self.channel.overhead());
        let mut reached = 0;
        while let Some((first, end)) = self.receiver.next_loss() {
            // The first report of a gap and its repetition may meet in one packet; ranges go upwards.
            let fits = first >= reached && list.len() + 8 <= room;
            if !fits {
                self.receiver.put_back((first, end));
                break;
            }
            reached = end;
            let range = LossRange {
                first: SequenceNumber::of(first),
                last: SequenceNumber::of(end - 1),
            };
            write_loss_range(&mut list, range);
        }
        let ranges = LossRanges::decode(&list);
        let is_nak = ranges.is_ok();
        if let Ok(ranges) = ranges {
            let marks = self.receiver_marks();
            self.channel
                .write_control(now, marks, &Control::Nak(ranges), buffer);
            self.counters.naks_sent += 1;
        }
        self.scratch = list;
        is_nak
    }

    fn transmit_keep_alive(&mut self, now: Time, buffer: &mut Vec<u8>) {
        let request = self.sender.request_is_due();
        let keep_alive = KeepAlive {
            expected: SequenceNumber::of(self.receiver.buffer.expected()),
            window: self.receiver.room(),
            next: SequenceNumber::of(self.sender.buffer.next()),
            request,
            answers: self.answer.take(),
        };
        let marks = self.receiver_marks();
        let control = Control::KeepAlive(keep_alive);
        let number = self.channel.write_control(now, marks, &control, buffer);
        if request {
            self.sender.on_request_sent(now, number, &self.rtt);
            self.counters.requests_sent += 1;
        }
        self.receiver.on_advertised();
        self.keep_alive_due = false;
    }

    /// Writes data packets of a client that waits for the response. They carry its own name.
    fn transmit_early(&mut self, now: Time, buffer: &mut Vec<u8>, room: usize) -> Option<usize> {
        if room == 0 {
            return None;
        }
        self.channel.peer = self.channel.local;
        let begin = buffer.len();
        let segment = self.transmit_data(now, buffer, room);
        // Handshake packets go to no name.
        self.channel.peer = SocketId::NONE;
        let sent = segment.map_or(0, |segment| (buffer.len() - begin).div_ceil(segment));
        if let Some(client) = &mut self.client {
            client.on_early_sent(sent);
        }
        segment
    }

    /// Writes data packets of equal size, the last one possibly shorter: the size of the first one.
    fn transmit_data(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<usize> {
        let largest = self.packet_size.as_usize();
        let most = max_datagrams
            .min(MAX_SEGMENTS)
            .min((MAX_BATCH / largest).max(1));
        let mut segment = None;
        for _ in 0..most {
            if segment.is_some_and(|segment| self.sender.next_size() > segment) {
                break;
            }
            let Some(count) = self.sender.next_packet(now) else {
                break;
            };
            let start = buffer.len();
            self.write_data(now, count, buffer);
            let length = buffer.len() - start;
            if length < *segment.get_or_insert(length) {
                break;
            }
        }
        self.sender.after_batch(now, &self.rtt);
        segment
    }

    fn write_data(&mut self, now: Time, count: u64, buffer: &mut Vec<u8>) {
        let reduced = self.sender.on_sent(now, count, &self.rtt);
        let marks = Marks {
            reduced,
            ..self.sender_marks()
        };
        let Some(packet) = self.sender.buffer.packet(count) else {
            return;
        };
        let payload = self.sender.buffer.payload(packet);
        let fields = DataFields {
            count,
            position: packet.position,
            in_order: packet.in_order,
            marks,
            message: packet.message,
        };
        self.channel.write_data(now, &fields, payload, buffer);
        self.counters.data_sent += 1;
        self.counters.payload_sent += payload.len() as u64;
    }
}
