//! Outgoing datagrams.

use std::io::IoSlice;

use weir_units::Time;
use weir_wire::{BatchContents, Ecn, Transmit};

use super::Connection;
use super::close::LifeCycle;
use crate::channel::DataFields;
use crate::mode::Mode;
use crate::packet::{
    Ack, Control, HEADER_LENGTH, HeaderFlags, KeepAlive, LossRange, LossRanges, SocketId,
    write_loss_range,
};
use crate::send_buffer::SentPacket;
use crate::sequence::SequenceNumber;

/// The kernel's limit of segments per batch (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;
/// A batch must fit into one IPv4 packet: larger ones fail with EMSGSIZE.
const MAX_BATCH: usize = 65_507;

/// A data packet that is sent from where its payload was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketInPlace {
    count: u64,
    header: [u8; HEADER_LENGTH],
}

/// The next datagrams to send.
enum NextTransmit {
    /// The datagrams already written, if any: their ECN codepoint, and the size of each datagram if
    /// there may be several.
    Written(Ecn, Option<usize>),
    /// Data packets, if any.
    Data,
}

impl Connection {
    /// Appends the next batch of datagrams to `buffer`: at most `max_datagrams`, and never more
    /// than fits into one IP packet. Call it until it returns `None`.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<Transmit> {
        let begin = buffer.len();
        let (ecn, segment) = match self.write_due(now, buffer, max_datagrams) {
            NextTransmit::Written(ecn, segment) => (ecn, segment),
            NextTransmit::Data => {
                let segment = self.transmit_data(now, buffer, max_datagrams);
                (Ecn::Ect0, segment)
            }
        };
        self.batch(now, buffer.len() - begin, ecn, segment)
    }

    /// Like [`Self::poll_transmit`], but returns the batch itself. Unprotected data packets are not
    /// copied into `buffer`, but sent from where they were written.
    pub fn poll_transmit_in_place<'a>(
        &'a mut self,
        now: Time,
        buffer: &'a mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<(Transmit, BatchContents<'a>)> {
        let begin = buffer.len();
        let (ecn, segment) = match self.write_due(now, buffer, max_datagrams) {
            NextTransmit::Written(ecn, segment) => (ecn, segment),
            NextTransmit::Data if self.channel.is_protected() => {
                let segment = self.transmit_data(now, buffer, max_datagrams);
                (Ecn::Ect0, segment)
            }
            NextTransmit::Data => {
                let (size, segment) = self.transmit_in_place(now, max_datagrams);
                let transmit = self.batch(now, size, Ecn::Ect0, segment)?;
                return Some((transmit, BatchContents::Parts(self.parts())));
            }
        };
        let transmit = self.batch(now, buffer.len() - begin, ecn, segment)?;
        Some((transmit, BatchContents::Whole(buffer.get(begin..)?)))
    }

    /// Writes the packets that precede data.
    fn write_due(&mut self, now: Time, buffer: &mut Vec<u8>, max_datagrams: usize) -> NextTransmit {
        match self.state {
            LifeCycle::Closed => {}
            LifeCycle::Closing(_) => {
                self.transmit_shutdown(now, buffer);
            }
            LifeCycle::Open => {
                if self.transmit_handshake(now, buffer) {
                    return NextTransmit::Written(Ecn::NotEct, None);
                }
                if let Some(client) = &self.client {
                    let room = client.early_room().min(max_datagrams);
                    let segment = self.transmit_early(now, buffer, room);
                    return NextTransmit::Written(Ecn::Ect0, segment);
                }
                if !self.transmit_control(now, buffer) {
                    return NextTransmit::Data;
                }
            }
        }
        NextTransmit::Written(Ecn::Ect0, None)
    }

    /// Returns the transmission of a batch of this size, if it is not empty.
    fn batch(
        &mut self,
        now: Time,
        size: usize,
        ecn: Ecn,
        segment: Option<usize>,
    ) -> Option<Transmit> {
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

    /// Writes the next control packet that is due. Returns whether there was one.
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

    /// Returns the flags of data packets, ACK2 and OBS-change: the sender's mode.
    fn sender_marks(&self) -> HeaderFlags {
        HeaderFlags {
            obs: self.sender.mode == Mode::Congestion,
            ..HeaderFlags::default()
        }
    }

    /// Returns the flags of ACK, NAK and keep-alive packets: the mode that the receiver requests.
    fn receiver_marks(&self) -> HeaderFlags {
        HeaderFlags {
            obs: self.receiver.requests_congestion_mode(),
            ..HeaderFlags::default()
        }
    }

    fn transmit_ack(&mut self, now: Time, buffer: &mut Vec<u8>) {
        let marks = HeaderFlags {
            ece: self.receiver.echo,
            ..self.receiver_marks()
        };
        let ack = Ack {
            expected: SequenceNumber::of(self.receiver.buffer.expected),
            window: self.receiver.room(),
            rtt: self.rtt.smoothed,
            received: self.receiver.received,
            marked: self.receiver.marked,
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
            // A gap's first report and its repetition may share a packet; ranges must ascend.
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
            expected: SequenceNumber::of(self.receiver.buffer.expected),
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

    /// Writes data packets of a client that waits for the response. They carry its own socket id.
    fn transmit_early(&mut self, now: Time, buffer: &mut Vec<u8>, room: usize) -> Option<usize> {
        if room == 0 {
            return None;
        }
        self.channel.peer = self.channel.local;
        let begin = buffer.len();
        let segment = self.transmit_data(now, buffer, room);
        // Handshake packets carry no destination id.
        self.channel.peer = SocketId::NONE;
        let sent = segment.map_or(0, |segment| (buffer.len() - begin).div_ceil(segment));
        if let Some(client) = &mut self.client {
            client.on_early_sent(sent);
        }
        segment
    }

    /// Returns the maximum number of data packets per batch.
    fn most_packets(&self, max_datagrams: usize) -> usize {
        let largest = self.packet_size.as_usize();
        max_datagrams
            .min(MAX_SEGMENTS)
            .min((MAX_BATCH / largest).max(1))
    }

    /// Writes data packets of equal size, except for a shorter last one. Returns the size of the
    /// first.
    fn transmit_data(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<usize> {
        self.take_data(now, max_datagrams, |connection, fields| {
            let sent = &connection.sender.buffer;
            if let Some(packet) = sent.packet(fields.count) {
                let payload = sent.payload(packet);
                connection.channel.write_data(now, fields, payload, buffer);
            }
        })
    }

    /// Writes the headers of the data packets that [`Self::parts`] returns. Returns the size of all
    /// packets and that of the first.
    fn transmit_in_place(&mut self, now: Time, max_datagrams: usize) -> (usize, Option<usize>) {
        self.in_place.clear();
        let mut size = 0;
        let segment = self.take_data(now, max_datagrams, |connection, fields| {
            let packet = connection.sender.buffer.packet(fields.count);
            size += HEADER_LENGTH + packet.map_or(0, SentPacket::payload_length);
            let header = connection.channel.data_header(now, fields).to_bytes();
            connection.in_place.push(PacketInPlace {
                count: fields.count,
                header,
            });
        });
        (size, segment)
    }

    /// Returns the parts of the packets that are sent in place.
    fn parts(&self) -> Vec<IoSlice<'_>> {
        let sent = &self.sender.buffer;
        let mut parts = Vec::with_capacity(3 * self.in_place.len());
        for PacketInPlace { count, header } in &self.in_place {
            parts.push(IoSlice::new(header));
            if let Some(packet) = sent.packet(*count) {
                parts.extend(sent.payload(packet).map(IoSlice::new));
            }
        }
        parts
    }

    /// Takes the packets of a batch: of equal size, except for a shorter last one. Calls `write` for
    /// each. Returns the size of the first.
    fn take_data(
        &mut self,
        now: Time,
        max_datagrams: usize,
        mut write: impl FnMut(&mut Self, &DataFields),
    ) -> Option<usize> {
        let mut segment = None;
        for _ in 0..self.most_packets(max_datagrams) {
            let size = self.sender.next_size();
            if segment.is_some_and(|segment| size > segment) {
                break;
            }
            let Some(count) = self.sender.next_packet(now) else {
                break;
            };
            let Some(fields) = self.on_data(now, count) else {
                break;
            };
            write(self, &fields);
            if size < *segment.get_or_insert(size) {
                break;
            }
        }
        self.sender.after_batch(now, &self.rtt);
        segment
    }

    /// Records that a data packet is sent. Returns its header fields.
    fn on_data(&mut self, now: Time, count: u64) -> Option<DataFields> {
        let reduced = self.sender.on_sent(now, count, &self.rtt);
        let marks = HeaderFlags {
            cwr: reduced,
            ..self.sender_marks()
        };
        let packet = self.sender.buffer.packet(count)?;
        self.counters.data_sent += 1;
        self.counters.payload_sent += packet.payload_length() as u64;
        Some(DataFields {
            count,
            position: packet.position,
            in_order: packet.in_order,
            flags: marks,
            message: packet.message,
        })
    }
}
