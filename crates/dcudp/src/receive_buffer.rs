//! The receive buffer: data received and not read yet, and the gaps in it.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use crate::error::Violation;
use crate::message_order::MessageOrder;
use crate::packet::{DataHeader, MessagePosition};
use crate::packet_set::PacketSet;
use crate::received_packet::ReceivedPacket;
use crate::sequence::MessageNumber;

#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    pub(crate) window: u64,
    /// Present for messages, absent for a stream.
    order: Option<MessageOrder>,
    /// The first packet not read yet.
    head: u64,
    /// The first packet not received yet.
    pub(crate) expected: u64,
    /// One past the last packet received or known to have been sent.
    pub(crate) end: u64,
    received: PacketSet,
    /// The packets from `head` on; `None` for missing ones.
    packets: VecDeque<Option<ReceivedPacket>>,
    /// The packet that ends the data.
    finish: Option<u64>,
    /// Whether new data has become readable.
    readable: bool,
}

impl ReceiveBuffer {
    pub(crate) fn new(window: u32, messages: bool, first: u64) -> Self {
        Self {
            window: window.into(),
            order: messages.then(|| MessageOrder::new(window, first)),
            head: first,
            expected: first,
            end: first,
            received: PacketSet::new(window as usize),
            packets: VecDeque::new(),
            finish: None,
            readable: false,
        }
    }

    /// Returns the first packet beyond the window.
    pub(crate) fn limit(&self) -> u64 {
        self.head + self.window
    }

    pub(crate) fn has_missing(&self) -> bool {
        self.expected < self.end
    }

    /// Returns whether all data up to the end has been received.
    pub(crate) fn is_complete(&self) -> bool {
        self.finish.is_some_and(|finish| self.expected > finish)
    }

    /// Returns whether all data has been read.
    pub(crate) fn is_drained(&self) -> bool {
        self.finish.is_some_and(|finish| self.head >= finish)
    }

    /// Returns whether new data has become readable since the last call.
    pub(crate) fn take_readable(&mut self) -> bool {
        std::mem::take(&mut self.readable)
    }

    /// Returns the first gap in `from..to`, as a range without its end.
    pub(crate) fn next_missing(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let to = to.min(self.end);
        let first = self.received.first_outside(from.max(self.expected), to)?;
        let last = self.received.first_inside(first, to).unwrap_or(to);
        Some((first, last))
    }

    /// Processes the announcement that everything before `next` has been sent. Returns the new gap.
    pub(crate) fn announce(&mut self, next: u64) -> Result<Option<(u64, u64)>, Violation> {
        if next <= self.end {
            return Ok(None);
        }
        if next > self.limit() {
            return Err(Violation::FlowControl);
        }
        if self.finish.is_some_and(|finish| next > finish + 1) {
            return Err(Violation::DataAfterEnd);
        }
        let gap = (self.end, next);
        self.end = next;
        Ok(Some(gap))
    }

    /// Processes a data packet. Returns whether it is new, and the gap before it.
    pub(crate) fn accept(
        &mut self,
        count: u64,
        header: &DataHeader,
        payload: Bytes,
    ) -> Result<Accepted, Violation> {
        if count >= self.limit() {
            return Err(Violation::FlowControl);
        }
        if count < self.expected || self.received.contains(count) {
            return Ok(Accepted::default());
        }
        self.check_end(count, header, &payload)?;
        let message = self.check_kind(header, &payload)?;
        let gap = (count > self.end).then_some((self.end, count));
        self.end = self.end.max(count + 1);
        self.received.insert(count);
        let packet = ReceivedPacket {
            payload,
            position: header.position,
            in_order: header.in_order,
            message,
            taken: false,
        };
        if let Some(order) = &mut self.order
            && self.finish != Some(count)
        {
            self.readable |= order.note(count, &packet)?;
        }
        let index = usize::try_from(count - self.head).unwrap_or(usize::MAX);
        if self.packets.len() <= index {
            self.packets.resize_with(index + 1, || None);
        }
        self.packets[index] = Some(packet);
        if count == self.expected {
            let reached = self.received.first_outside(self.expected, self.end);
            self.expected = reached.unwrap_or(self.end);
            self.readable = true;
        }
        Ok(Accepted { is_new: true, gap })
    }

    /// Checks that no data follows the end, and that there is one end.
    fn check_end(
        &mut self,
        count: u64,
        header: &DataHeader,
        payload: &Bytes,
    ) -> Result<(), Violation> {
        let is_end = header.position == MessagePosition::Middle && payload.is_empty();
        if self.finish.is_some_and(|finish| count > finish || is_end) {
            return Err(Violation::DataAfterEnd);
        }
        if is_end {
            if count + 1 < self.end {
                return Err(Violation::DataAfterEnd);
            }
            self.finish = Some(count);
        }
        Ok(())
    }

    /// Returns the message of a packet.
    fn check_kind(&self, header: &DataHeader, payload: &Bytes) -> Result<u64, Violation> {
        let Some(order) = &self.order else {
            let is_end = header.position == MessagePosition::Middle && payload.is_empty();
            let is_data = header.position == MessagePosition::Only && !payload.is_empty();
            return if is_end || is_data {
                Ok(MessageNumber::FIRST_COUNT)
            } else {
                Err(Violation::NotAStream)
            };
        };
        order.expand(header.message)
    }

    /// Removes the packet at the head, which must have been received.
    fn advance(&mut self) {
        if let (Some(Some(packet)), Some(order)) = (self.packets.pop_front(), &mut self.order) {
            order.on_passed(self.head, packet.message);
        }
        self.received.remove(self.head);
        self.head += 1;
    }

    /// Copies received stream data to `target`. Returns the number of bytes.
    pub(crate) fn read(&mut self, target: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < target.len() && self.head < self.expected && !self.is_drained() {
            let Some(Some(packet)) = self.packets.front_mut() else {
                break;
            };
            let length = packet.payload.len().min(target.len() - filled);
            packet
                .payload
                .copy_to_slice(&mut target[filled..filled + length]);
            filled += length;
            if packet.payload.is_empty() {
                self.advance();
            }
        }
        filled
    }

    /// Returns the next part of the stream as received, of at most `most` bytes.
    pub(crate) fn read_chunk(&mut self, most: usize) -> Option<Bytes> {
        if self.head >= self.expected || self.is_drained() || most == 0 {
            return None;
        }
        let payload = &mut self.packets.front_mut()?.as_mut()?.payload;
        let chunk = payload.split_to(payload.len().min(most));
        if payload.is_empty() {
            self.advance();
        }
        Some(chunk)
    }

    /// Appends the next message to `target`. Returns whether there was one.
    pub(crate) fn read_message(&mut self, target: &mut Vec<u8>) -> Result<bool, Violation> {
        if let Some((first, last)) = self.order.as_mut().and_then(MessageOrder::next_ready) {
            let index = usize::try_from(first - self.head).unwrap_or(usize::MAX);
            let length = usize::try_from(last - first + 1).unwrap_or(usize::MAX);
            let packets = self.packets.iter_mut().skip(index).take(length);
            for packet in packets.flatten() {
                target.extend_from_slice(&packet.payload);
                packet.payload = Bytes::new();
                packet.taken = true;
            }
            self.skip_taken();
            return Ok(true);
        }
        self.skip_taken();
        let Some(length) = self.whole_at_head()? else {
            return Ok(false);
        };
        for _ in 0..length {
            if let Some(Some(packet)) = self.packets.front() {
                target.extend_from_slice(&packet.payload);
            }
            self.advance();
        }
        self.skip_taken();
        Ok(true)
    }

    /// Skips packets that were read out of order.
    fn skip_taken(&mut self) {
        while let Some(Some(packet)) = self.packets.front()
            && packet.taken
        {
            self.advance();
        }
    }

    /// Returns the number of packets of the message at the head, once all have been received.
    fn whole_at_head(&mut self) -> Result<Option<usize>, Violation> {
        if self.is_drained() {
            return Ok(None);
        }
        let (head, expected, window) = (self.head, self.expected, self.window);
        let Some(order) = self.order.as_mut() else {
            return Ok(None);
        };
        while order.scanned < expected {
            let scanned = order.scanned;
            let index = usize::try_from(scanned - head).unwrap_or(usize::MAX);
            let Some(Some(packet)) = self.packets.get(index) else {
                return Err(Violation::Message);
            };
            if self.finish == Some(scanned) {
                return Err(Violation::Message);
            }
            if !packet.in_order {
                // It would have been read when complete, so it is incomplete.
                return match index {
                    0 => Ok(None),
                    _ => Err(Violation::Message),
                };
            }
            let is_last = order.scan(packet, index == 0)?;
            if is_last {
                return Ok(Some(index + 1));
            }
            if index as u64 + 1 >= window {
                return Err(Violation::Message);
            }
        }
        Ok(None)
    }
}

/// The result of processing a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Whether it was not a duplicate.
    pub(crate) is_new: bool,
    /// The gap that it reveals, as a range without its end.
    pub(crate) gap: Option<(u64, u64)>,
}
