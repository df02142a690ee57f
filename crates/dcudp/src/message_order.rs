//! Message reassembly: detects complete messages, ordered and unordered.

use std::collections::VecDeque;

use crate::error::Violation;
use crate::received_packet::ReceivedPacket;
use crate::sequence::MessageNumber;

/// The state of an unordered message.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    number: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// The lowest and highest of its received packets, and their number.
    lowest: u64,
    highest: u64,
    packets: u64,
}

#[derive(Debug)]
pub(crate) struct MessageOrder {
    window: u64,
    /// The message of the last packet that has left the buffer; later packets have no lower
    /// message.
    base: u64,
    /// Indexed by number modulo the window; empty until the first unordered message arrives.
    entries: Vec<Entry>,
    /// Complete unordered messages: first and last packet.
    ready: VecDeque<(u64, u64)>,
    /// The packet up to which the message at the head has been scanned, and its number.
    pub(crate) scanned: u64,
    scanning: u64,
}

impl MessageOrder {
    pub(crate) fn new(window: u32, first: u64) -> Self {
        Self {
            window: window.into(),
            base: MessageNumber::FIRST_COUNT,
            entries: Vec::new(),
            ready: VecDeque::new(),
            scanned: first,
            scanning: 0,
        }
    }

    /// Returns the message of a wire number. It is at most a window ahead, because each message has
    /// at least one packet.
    pub(crate) fn expand(&self, number: MessageNumber) -> Result<u64, Violation> {
        let count = number.expand(self.base);
        if count >= self.base && count <= self.base + self.window {
            Ok(count)
        } else {
            Err(Violation::Message)
        }
    }

    /// Records a packet. Returns whether it completes an unordered message.
    pub(crate) fn note(&mut self, count: u64, packet: &ReceivedPacket) -> Result<bool, Violation> {
        if packet.in_order {
            return Ok(false);
        }
        if self.entries.is_empty() {
            self.entries = vec![Entry::default(); self.window as usize + 1];
        }
        let index = (packet.message % self.entries.len() as u64) as usize;
        let entry = &mut self.entries[index];
        if entry.number != packet.message || entry.packets == 0 {
            *entry = Entry {
                number: packet.message,
                lowest: count,
                highest: count,
                ..Entry::default()
            };
        }
        entry.packets += 1;
        entry.lowest = entry.lowest.min(count);
        entry.highest = entry.highest.max(count);
        if packet.position.is_first() && entry.first.replace(count).is_some() {
            return Err(Violation::Message);
        }
        if packet.position.is_last() && entry.last.replace(count).is_some() {
            return Err(Violation::Message);
        }
        // Nothing lies before the first packet or after the last one. So the message is complete
        // once the number of packets equals the range.
        let outside = entry.first.is_some_and(|first| entry.lowest < first)
            || entry.last.is_some_and(|last| entry.highest > last);
        if outside {
            return Err(Violation::Message);
        }
        let (Some(first), Some(last)) = (entry.first, entry.last) else {
            return Ok(false);
        };
        let is_complete = entry.packets == last - first + 1;
        if is_complete {
            self.ready.push_back((first, last));
        }
        Ok(is_complete)
    }

    /// Returns the next complete unordered message.
    pub(crate) fn next_ready(&mut self) -> Option<(u64, u64)> {
        self.ready.pop_front()
    }

    /// Records that the packet `count` of this message has left the buffer.
    pub(crate) fn on_passed(&mut self, count: u64, message: u64) {
        self.scanned = self.scanned.max(count + 1);
        self.base = self.base.max(message);
    }

    /// Scans the next packet of the message at the head. Returns whether it is the last one.
    pub(crate) fn scan(
        &mut self,
        packet: &ReceivedPacket,
        is_head: bool,
    ) -> Result<bool, Violation> {
        if is_head {
            self.scanning = packet.message;
        }
        let fits = packet.position.is_first() == is_head && packet.message == self.scanning;
        if !fits {
            return Err(Violation::Message);
        }
        self.scanned += 1;
        Ok(packet.position.is_last())
    }
}
