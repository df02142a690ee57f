//! The packets that wait in a queue: first in, first out.

use weir_units::{ByteSize, Time};

use crate::prefetch::prefetch;

/// A packet in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitingPacket {
    /// When it leaves the queue for the link; [`Time::MAX`] at rate zero.
    pub(crate) start: Time,
    /// The length that was counted on arrival, so that the same is subtracted on departure.
    pub(crate) length: ByteSize,
}

/// Packets in order, in a ring: a packet enters and leaves it in a few instructions.
#[derive(Clone, Debug)]
pub(crate) struct WaitingPackets {
    /// A power of two of slots, or none.
    slots: Vec<WaitingPacket>,
    /// The slot of the first packet, modulo the number of slots.
    first: u32,
    len: u32,
    /// When the first packet starts; [`Time::MAX`] if there is none.
    next_start: Time,
}

/// The number of slots of a queue with few packets.
const FEWEST_SLOTS: usize = 4;

/// A queue of more packets does not stay in the processor's inner caches until its turn.
const LONG_QUEUE: u32 = 1_000;

/// How many packets before its turn a packet of a long queue is fetched.
const PREFETCHED: u32 = 8;

impl WaitingPackets {
    /// Creates an empty queue.
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            first: 0,
            len: 0,
            next_start: Time::MAX,
        }
    }

    /// Returns when the first packet starts; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_start(&self) -> Time {
        self.next_start
    }

    /// Returns the number of packets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn index(&self, number: u32) -> usize {
        let mask = (self.slots.len() as u32).wrapping_sub(1);
        (self.first.wrapping_add(number) & mask) as usize
    }

    /// Returns the first packet.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&WaitingPacket> {
        if self.len == 0 {
            return None;
        }
        self.slots.get(self.index(0))
    }

    /// Removes the first packet.
    #[inline(always)]
    pub(crate) fn pop_front(&mut self) {
        if self.len > 0 {
            self.len -= 1;
            self.first = self.first.wrapping_add(1);
            if self.len >= LONG_QUEUE
                && let Some(packet) = self.slots.get(self.index(PREFETCHED))
            {
                prefetch(packet);
            }
            self.update_start();
        }
    }

    #[inline(always)]
    fn update_start(&mut self) {
        self.next_start = self.front().map_or(Time::MAX, |first| first.start);
    }

    /// Appends a packet.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, packet: WaitingPacket) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        if self.len == 0 {
            self.next_start = packet.start;
        }
        let index = self.index(self.len);
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = packet;
            self.len += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let count = (2 * self.slots.len()).max(FEWEST_SLOTS);
        let mut slots = Vec::with_capacity(count);
        slots.extend(self.iter());
        slots.resize(count, WaitingPacket::default());
        self.slots = slots;
        self.first = 0;
    }

    /// Iterates over the packets in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WaitingPacket> + Clone {
        (0..self.len).filter_map(|number| self.slots.get(self.index(number)))
    }

    /// Lets `change` change each packet, in order.
    pub(crate) fn change(&mut self, change: impl FnMut(&mut WaitingPacket)) {
        let count = self.slots.len();
        let first = self.first as usize & count.saturating_sub(1);
        let (wrapped, from_first) = self.slots.split_at_mut(first.min(count));
        let packets = from_first.iter_mut().chain(wrapped);
        packets.take(self.len as usize).for_each(change);
        self.update_start();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec((0_u64..100, 0_u8..5), 1..300)) {
            let (mut waiting, mut model) = (WaitingPackets::new(), VecDeque::new());
            for (number, action) in steps {
                match action {
                    0..3 => {
                        let packet = WaitingPacket {
                            start: Time::from_nanos(number),
                            length: ByteSize::from_bytes(number),
                        };
                        waiting.push_back(packet);
                        model.push_back(packet);
                    }
                    3 => {
                        waiting.pop_front();
                        model.pop_front();
                    }
                    _ => {
                        waiting.change(|packet| packet.start = Time::from_nanos(number));
                        model.iter_mut().for_each(|packet| packet.start = Time::from_nanos(number));
                    }
                }
                prop_assert_eq!(waiting.front(), model.front());
                let next_start = model.front().map_or(Time::MAX, |first| first.start);
                prop_assert_eq!(waiting.next_start(), next_start);
                prop_assert!(waiting.iter().eq(&model));
                prop_assert_eq!(waiting.len(), model.len());
                prop_assert_eq!(waiting.is_empty(), model.is_empty());
            }
        }
    }
}
