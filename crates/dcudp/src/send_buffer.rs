//! The send buffer: data not sent yet, sent data not acknowledged yet, and lost packets.

use std::collections::VecDeque;

use bytes::Bytes;
use weir_congestion::PacketDelivery;
use weir_units::{ByteSize, Duration, Time};

use crate::config::LARGEST_WINDOW;
use crate::packet::MessagePosition;
use crate::packet_set::PacketSet;
use crate::sequence::MessageNumber;
use crate::stream_queue::{QueuedPayload, StreamQueue};

/// The most packets that one NAK can declare lost. The receiver repeats reports beyond it.
const MOST_LOST_AT_ONCE: u64 = 4096;

/// A data packet kept until it is acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct SentPacket {
    payload: Payload,
    pub(crate) position: MessagePosition,
    pub(crate) in_order: bool,
    /// The message count; the first count for a stream.
    pub(crate) message: u64,
    /// Time of the last transmission.
    pub(crate) sent_at: Time,
    is_retransmitted: bool,
    pub(crate) delivery: PacketDelivery,
}

impl SentPacket {
    /// Returns the length of the payload, in bytes.
    pub(crate) fn payload_length(&self) -> usize {
        self.payload.len()
    }
}

/// The payload of a data packet.
#[derive(Clone, Debug)]
enum Payload {
    /// A part of the stream, stored in the queue.
    Stream(QueuedPayload),
    /// A part of a message, or empty.
    Message(Bytes),
}

impl Payload {
    fn len(&self) -> usize {
        match self {
            Self::Stream(part) => part.len(),
            Self::Message(bytes) => bytes.len(),
        }
    }
}

/// A message that has not been sent completely.
#[derive(Debug)]
struct Queued {
    rest: Bytes,
    number: u64,
    in_order: bool,
    begun: bool,
}

/// Data packets freed by an acknowledgment or declared lost by a NAK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketBatch {
    pub(crate) packets: u64,
    /// Their UDP payloads.
    pub(crate) bytes: ByteSize,
    /// Send time of the newest of them.
    pub(crate) newest_sent: Time,
    /// Whether the newest of them was sent more than once: its acknowledgment measures no RTT.
    is_ambiguous: bool,
}

/// How long after it was sent a packet cannot be reported lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentlySent {
    /// For packets that were sent once.
    pub(crate) once: Duration,
    /// For retransmissions: a NAK may be about the first transmission.
    pub(crate) again: Duration,
}

impl PacketBatch {
    /// Returns the RTT of the newest packet, if the batch measures one (Karn's algorithm).
    pub(crate) fn rtt(&self, now: Time) -> Option<Duration> {
        (self.packets > 0 && !self.is_ambiguous).then(|| now.since(self.newest_sent))
    }
}

#[derive(Debug)]
pub(crate) struct SendBuffer {
    pub(crate) capacity: usize,
    /// Payload bytes of a full packet, and its overhead.
    payload: usize,
    overhead: usize,
    stream: StreamQueue,
    messages: VecDeque<Queued>,
    /// Bytes in `messages`.
    queued: usize,
    next_message: u64,
    pub(crate) finish_wanted: bool,
    /// The packet that ends the data.
    finish: Option<u64>,
    /// The first unacknowledged packet.
    pub(crate) base: u64,
    packets: VecDeque<SentPacket>,
    /// Payload bytes in `packets`.
    sent_bytes: usize,
    lost: PacketSet,
    /// UDP payload in flight, as far as known.
    pub(crate) in_flight: ByteSize,
}

impl SendBuffer {
    pub(crate) fn new(capacity: ByteSize, first: u64) -> Self {
        Self {
            capacity: capacity.as_usize(),
            payload: 1,
            overhead: 0,
            stream: StreamQueue::default(),
            messages: VecDeque::new(),
            queued: 0,
            next_message: MessageNumber::FIRST_COUNT,
            finish_wanted: false,
            finish: None,
            base: first,
            packets: VecDeque::new(),
            sent_bytes: 0,
            lost: PacketSet::new(LARGEST_WINDOW as usize),
            in_flight: ByteSize::ZERO,
        }
    }

    /// Sets the packet size once it is negotiated.
    pub(crate) fn set_packet_size(&mut self, packet: usize, overhead: usize) {
        self.payload = packet.saturating_sub(overhead).max(1);
        self.overhead = overhead;
    }

    /// Returns the next packet that has never been sent.
    pub(crate) fn next(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Returns the UDP payload of a full packet.
    pub(crate) fn packet_size(&self) -> usize {
        self.payload + self.overhead
    }

    /// Returns the bytes that can still be written.
    pub(crate) fn room(&self) -> usize {
        let used = self.stream.len() + self.queued + self.sent_bytes;
        self.capacity.saturating_sub(used)
    }

    /// Returns the bytes not acknowledged yet.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.stream.len() + self.queued + self.sent_bytes
    }

    pub(crate) fn has_outstanding(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Returns whether there is data that has never been sent.
    pub(crate) fn has_new(&self) -> bool {
        !self.stream.is_empty()
            || !self.messages.is_empty()
            || (self.finish_wanted && self.finish.is_none())
    }

    /// Returns how many of the unacknowledged packets are not known to be lost.
    pub(crate) fn not_lost(&self) -> u64 {
        (self.packets.len() as u64).saturating_sub(self.lost.len() as u64)
    }

    /// Returns the time of the last transmission of the newest packet.
    pub(crate) fn newest_sent(&self) -> Time {
        self.packets
            .back()
            .map_or(Time::ZERO, |packet| packet.sent_at)
    }

    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Writes as much of `data` as fits. Returns the number of bytes.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        let data = data.get(..taken).unwrap_or_default();
        self.stream.write(data);
        taken
    }

    /// Takes as much of `data` over as fits. Returns the number of bytes. What is too short for a packet
    /// is copied.
    pub(crate) fn write_bytes(&mut self, data: &mut Bytes) -> usize {
        let taken = data.split_to(data.len().min(self.room()));
        if taken.len() < self.payload {
            self.stream.write(&taken);
        } else {
            self.stream.share(taken.clone());
        }
        taken.len()
    }

    /// Writes a whole message or nothing. An empty buffer accepts a message larger than its
    /// capacity.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool) -> bool {
        if data.len() > self.room() && self.unacknowledged() > 0 {
            return false;
        }
        self.messages.push_back(Queued {
            rest: Bytes::copy_from_slice(data),
            number: self.next_message,
            in_order,
            begun: false,
        });
        self.queued += data.len();
        self.next_message += 1;
        true
    }

    /// Ends the data.
    pub(crate) fn finish(&mut self) {
        self.finish_wanted = true;
    }

    /// Returns whether the end, and thus all data, has been acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some_and(|finish| finish < self.base)
    }

    /// Drops all data.
    pub(crate) fn clear(&mut self) {
        self.stream = StreamQueue::default();
        self.messages = VecDeque::new();
        self.queued = 0;
        self.packets = VecDeque::new();
        self.sent_bytes = 0;
        self.lost = PacketSet::new(0);
        self.in_flight = ByteSize::ZERO;
    }

    /// Returns the UDP payload of the packet that [`Self::cut`] would create.
    pub(crate) fn next_size(&self) -> usize {
        let waiting = match self.messages.front() {
            _ if !self.stream.is_empty() => self.stream.len(),
            Some(message) => message.rest.len(),
            None => 0,
        };
        waiting.min(self.payload) + self.overhead
    }

    /// Creates the next packet from new data. Returns `None` if there is none.
    pub(crate) fn cut(&mut self) -> Option<u64> {
        let count = self.next();
        let packet = if let Some(part) = self.stream.cut(self.payload) {
            let payload = Payload::Stream(part);
            outgoing(
                payload,
                MessagePosition::Only,
                true,
                MessageNumber::FIRST_COUNT,
            )
        } else if let Some(message) = self.messages.front_mut() {
            let length = message.rest.len().min(self.payload);
            let payload = Payload::Message(message.rest.split_to(length));
            self.queued -= length;
            let is_last = message.rest.is_empty();
            let position = MessagePosition::new(!message.begun, is_last);
            message.begun = true;
            let packet = outgoing(payload, position, message.in_order, message.number);
            if is_last {
                self.messages.pop_front();
            }
            packet
        } else if self.finish_wanted && self.finish.is_none() {
            self.finish = Some(count);
            let payload = Payload::Message(Bytes::new());
            outgoing(payload, MessagePosition::Middle, true, self.next_message)
        } else {
            return None;
        };
        self.sent_bytes += packet.payload.len();
        self.packets.push_back(packet);
        Some(count)
    }

    pub(crate) fn first_lost(&self) -> Option<u64> {
        if self.lost.is_empty() {
            return None;
        }
        self.lost.first_inside(self.base, self.next())
    }

    pub(crate) fn packet(&self, count: u64) -> Option<&SentPacket> {
        self.packets.get(self.index(count)?)
    }

    /// Returns the payload of a packet, in one part or more.
    pub(crate) fn payload<'a>(&'a self, packet: &'a SentPacket) -> impl Iterator<Item = &'a [u8]> {
        let (stream, message) = match &packet.payload {
            Payload::Stream(part) => (Some(self.stream.get(*part)), None),
            Payload::Message(bytes) => (None, Some(bytes.as_ref())),
        };
        stream.into_iter().flatten().chain(message)
    }

    fn index(&self, count: u64) -> Option<usize> {
        usize::try_from(count.checked_sub(self.base)?).ok()
    }

    /// Returns the UDP payload of a packet, in bytes.
    pub(crate) fn size_of(&self, packet: &SentPacket) -> ByteSize {
        ByteSize::from_bytes((packet.payload.len() + self.overhead) as u64)
    }

    /// Records a transmission of the packet.
    pub(crate) fn on_sent(&mut self, now: Time, count: u64, delivery: PacketDelivery) {
        self.lost.remove(count);
        let Some(index) = self.index(count) else {
            return;
        };
        let Some(packet) = self.packets.get_mut(index) else {
            return;
        };
        packet.is_retransmitted |= packet.sent_at > Time::ZERO;
        packet.sent_at = now;
        packet.delivery = delivery;
        self.in_flight += ByteSize::from_bytes((packet.payload.len() + self.overhead) as u64);
    }

    /// Frees all packets before `expected` and calls `each` for them. Returns `None` if `expected`
    /// was never sent.
    pub(crate) fn acknowledge(
        &mut self,
        expected: u64,
        mut each: impl FnMut(&SentPacket, ByteSize),
    ) -> Option<PacketBatch> {
        if expected > self.next() {
            return None;
        }
        let mut batch = PacketBatch::default();
        while self.base < expected {
            let Some(packet) = self.packets.pop_front() else {
                break;
            };
            let size = self.size_of(&packet);
            if !self.lost.remove(self.base) {
                self.in_flight -= size;
            }
            self.sent_bytes -= packet.payload.len();
            if let Payload::Stream(part) = packet.payload {
                self.stream.release(part);
            }
            self.base += 1;
            batch.packets += 1;
            batch.bytes += size;
            if packet.sent_at >= batch.newest_sent {
                batch.newest_sent = packet.sent_at;
                batch.is_ambiguous = packet.is_retransmitted;
            }
            each(&packet, size);
        }
        Some(batch)
    }

    /// Declares the packets `first..=last` lost. Returns `None` if they were never sent. Packets
    /// sent recently are still in flight: the NAK predates them.
    pub(crate) fn mark_lost(
        &mut self,
        now: Time,
        recent: RecentlySent,
        first: u64,
        last: u64,
    ) -> Option<PacketBatch> {
        if last >= self.next() {
            return None;
        }
        let mut batch = PacketBatch::default();
        let first = first.max(self.base);
        for count in first..(last + 1).min(first + MOST_LOST_AT_ONCE) {
            let Some(packet) = self.packet(count) else {
                break;
            };
            let (sent_at, size) = (packet.sent_at, self.size_of(packet));
            let recent = if packet.is_retransmitted {
                recent.again
            } else {
                recent.once
            };
            if now.since(sent_at) < recent || !self.lost.insert(count) {
                continue;
            }
            self.in_flight -= size;
            batch.packets += 1;
            batch.bytes += size;
            batch.newest_sent = batch.newest_sent.max(sent_at);
        }
        Some(batch)
    }
}

fn outgoing(
    payload: Payload,
    position: MessagePosition,
    in_order: bool,
    message: u64,
) -> SentPacket {
    SentPacket {
        payload,
        position,
        in_order,
        message,
        sent_at: Time::ZERO,
        is_retransmitted: false,
        delivery: PacketDelivery::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = 1 << 32;

    fn buffer() -> SendBuffer {
        let mut buffer = SendBuffer::new(ByteSize::from_bytes(1000), FIRST);
        buffer.set_packet_size(116, 16);
        buffer
    }

    fn send_all(buffer: &mut SendBuffer, now: Time) {
        while let Some(count) = buffer.cut() {
            buffer.on_sent(now, count, PacketDelivery::default());
        }
    }

    #[test]
    fn a_stream_is_split_into_full_packets_and_freed_by_acks() {
        let mut buffer = buffer();
        assert_eq!(buffer.write(&[7; 1200]), 1000);
        assert_eq!(buffer.room(), 0);
        buffer.finish();
        send_all(&mut buffer, Time::from_nanos(5));
        assert_eq!(buffer.next(), FIRST + 11);
        assert_eq!(buffer.in_flight, ByteSize::from_bytes(1000 + 11 * 16));
        assert_eq!(buffer.acknowledge(FIRST + 12, |_, _| {}), None);
        let batch = buffer.acknowledge(FIRST + 3, |_, _| {}).unwrap();
        assert_eq!((batch.packets, buffer.room()), (3, 300));
        assert!(!buffer.is_finished());
        buffer.acknowledge(FIRST + 11, |_, _| {});
        assert!(buffer.is_finished() && buffer.in_flight.is_zero());
    }

    #[test]
    fn a_loss_is_counted_once_and_not_for_recent_packets() {
        let mut buffer = buffer();
        buffer.write(&[7; 1000]);
        send_all(&mut buffer, Time::from_nanos(1000));
        let recent = RecentlySent {
            once: Duration::from_nanos(500),
            again: Duration::from_nanos(500),
        };
        let lose = |buffer: &mut SendBuffer, nanos, first, last| {
            let now = Time::from_nanos(nanos);
            let batch = buffer.mark_lost(now, recent, FIRST + first, FIRST + last);
            batch.map(|batch| batch.packets)
        };
        assert_eq!(lose(&mut buffer, 1100, 2, 4), Some(0));
        assert_eq!(lose(&mut buffer, 1500, 2, 4), Some(3));
        assert_eq!(lose(&mut buffer, 1600, 3, 5), Some(1));
        assert_eq!(lose(&mut buffer, 1600, 9, 10), None);
        assert_eq!(buffer.first_lost(), Some(FIRST + 2));
        buffer.on_sent(Time::from_nanos(1700), FIRST + 2, PacketDelivery::default());
        assert_eq!(buffer.first_lost(), Some(FIRST + 3));
        assert_eq!(lose(&mut buffer, 1800, 2, 2), Some(0));
        buffer.acknowledge(FIRST + 10, |_, _| {});
        assert!(!buffer.has_lost() && buffer.in_flight.is_zero());
    }

    #[test]
    fn messages_have_a_first_and_a_last_packet() {
        let mut buffer = buffer();
        for length in [250, 0, 100] {
            assert!(buffer.write_message(&vec![1; length], true));
        }
        assert!(!buffer.write_message(&[1; 900], true));
        send_all(&mut buffer, Time::ZERO);
        let packets: Vec<_> = (FIRST..buffer.next())
            .map(|count| buffer.packet(count).unwrap())
            .map(|packet| {
                let message = packet.message - MessageNumber::FIRST_COUNT;
                (packet.position, packet.payload.len(), message)
            })
            .collect();
        let expected = [
            (MessagePosition::First, 100, 0),
            (MessagePosition::Middle, 100, 0),
            (MessagePosition::Last, 50, 0),
            (MessagePosition::Only, 0, 1),
            (MessagePosition::Only, 100, 2),
        ];
        assert_eq!(packets, expected);
    }
}
