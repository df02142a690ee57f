//! Which messages are complete: those that wait for their turn, and those that need not.

use std::collections::VecDeque;

use crate::error::Violation;
use crate::received_packet::ReceivedPacket;
use crate::sequence::MessageNumber;

/// What is known of a message that need not wait for its turn.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    number: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// The lowest and the highest of its packets that have come, and how many.
    lowest: u64,
    highest: u64,
    packets: u64,
}

#[derive(Debug)]
pub(crate) struct MessageOrder {
    window: u64,
    /// The message of the last packet that has left the buffer: those to come are no lower.
    base: u64,
    /// By number modulo the window; empty until the first message comes that need not wait.
    entries: Vec<Entry>,
    /// Complete messages that need not wait: first and last packet.
    ready: VecDeque<(u64, u64)>,
    /// The packet up to which the message at the head has been looked at, and its number.
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

    /// The message that a number on the wire means: no more than a window ahead, as each message has a
    /// packet at least.
    pub(crate) fn expand(&self, number: MessageNumber) -> Result<u64, Violation> {
        let count = number.expand(self.base);
        if count >= self.base && count <= self.base + self.window {
            Ok(count)
        } else {
            Err(Violation::Message)
        }
    }

    /// A packet has come. Whether it completes a message that need not wait.
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
        // Nothing lies before the first packet or after the last one, so that as many as lie between
        // them are all of them.
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

    /// The next complete message that need not wait.
    pub(crate) fn next_ready(&mut self) -> Option<(u64, u64)> {
        self.ready.pop_front()
    }

    /// The packet `count`, of this message, has left the buffer.
    pub(crate) fn on_passed(&mut self, count: u64, message: u64) {
        self.scanned = self.scanned.max(count + 1);
        self.base = self.base.max(message);
    }

    /// Looks at the next packet of the message at the head: whether it is its last one.
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
