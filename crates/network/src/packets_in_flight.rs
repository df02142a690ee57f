//! The packets on the links of ports that do not hold them.
//!
//! A packet lies in a slot, and stays there from hop to hop. A link delivers in order, so its packets are a
//! list of slots.

use weir_fabric::prefetch;
use weir_units::Time;

/// Packets in slots, and the list of each port's link.
#[derive(Clone, Debug)]
pub(crate) struct PacketsInFlight<P> {
    slots: Vec<Slot<P>>,
    /// The first free slot.
    free: u32,
    /// By port.
    links: Vec<List>,
}

/// The position of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotIndex(u32);

#[derive(Clone, Debug)]
// A simulated packet then takes one cache line.
#[repr(align(64))]
struct Slot<P> {
    /// When it reaches the far end of its link.
    arrival: Time,
    /// The next slot on the same link, or the next free one.
    next: u32,
    packet: P,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl SlotIndex {
    /// The position of no packet.
    pub(crate) const NONE: Self = Self(NIL);
}

/// The end of a list.
const NIL: u32 = u32::MAX;

impl<P> PacketsInFlight<P> {
    /// Creates the idle links of this number of ports.
    pub(crate) fn new(ports: usize) -> Self {
        let idle = List {
            first: NIL,
            last: NIL,
        };
        Self {
            slots: Vec::new(),
            free: NIL,
            links: vec![idle; ports],
        }
    }

    /// Puts a packet into a slot.
    #[inline]
    pub(crate) fn store(&mut self, packet: P) -> SlotIndex {
        SlotIndex(match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                slot.packet = packet;
                std::mem::replace(&mut self.free, slot.next)
            }
            None => self.grow(packet),
        })
    }

    /// Puts the packet into a slot that `fill` writes, unless it returns false.
    #[inline(always)]
    pub(crate) fn store_with(&mut self, fill: impl FnOnce(&mut P) -> bool) -> Option<SlotIndex>
    where
        P: Default,
    {
        if self.free == NIL {
            self.free = self.grow(P::default());
        }
        let free = self.free;
        let slot = self.slots.get_mut(free as usize)?;
        if !fill(&mut slot.packet) {
            return None;
        }
        self.free = slot.next;
        Some(SlotIndex(free))
    }

    #[cold]
    fn grow(&mut self, packet: P) -> u32 {
        self.slots.push(Slot {
            arrival: Time::ZERO,
            next: NIL,
            packet,
        });
        self.slots.len() as u32 - 1
    }

    /// Puts a stored packet on the link of a port, behind all others. Returns whether it is the only one.
    #[inline(always)]
    pub(crate) fn push(&mut self, port: u32, SlotIndex(slot): SlotIndex, arrival: Time) -> bool {
        let entry = &mut self.slots[slot as usize];
        (entry.arrival, entry.next) = (arrival, NIL);
        let link = &mut self.links[port as usize];
        let last = std::mem::replace(&mut link.last, slot);
        match self.slots.get_mut(last as usize) {
            Some(last) => {
                last.next = slot;
                false
            }
            None => {
                link.first = slot;
                true
            }
        }
    }

    /// Whether no packet is on the link of a port.
    #[inline]
    pub(crate) fn is_idle(&self, port: u32) -> bool {
        self.links[port as usize].first == NIL
    }

    /// Puts a stored packet on the link of a port, before those that arrive later. Returns whether it is the
    /// first.
    pub(crate) fn insert(&mut self, port: u32, slot: SlotIndex, arrival: Time) -> bool {
        let last = self.slots.get(self.links[port as usize].last as usize);
        if last.is_none_or(|last| last.arrival <= arrival) {
            return self.push(port, slot, arrival);
        }
        let mut before = None;
        let mut next = self.links[port as usize].first;
        while let Some(entry) = self
            .slots
            .get(next as usize)
            .filter(|entry| entry.arrival <= arrival)
        {
            before = Some(next);
            next = entry.next;
        }
        let entry = &mut self.slots[slot.0 as usize];
        (entry.arrival, entry.next) = (arrival, next);
        match before.and_then(|before| self.slots.get_mut(before as usize)) {
            Some(before) => {
                before.next = slot.0;
                false
            }
            None => {
                self.links[port as usize].first = slot.0;
                true
            }
        }
    }

    /// Takes the first packet from the link of a port. Returns it with the arrival of the next one,
    /// [`Time::MAX`] if there is none. It stays in its slot until it is [pushed](Self::push) to another link
    /// or [released](Self::release).
    #[inline]
    pub(crate) fn pop(&mut self, port: u32) -> Option<(SlotIndex, Time)> {
        let link = &mut self.links[port as usize];
        let first = link.first;
        let next = self.slots.get(first as usize)?.next;
        link.first = next;
        let arrival = match self.slots.get(next as usize) {
            Some(next) => next.arrival,
            None => {
                link.last = NIL;
                Time::MAX
            }
        };
        Some((SlotIndex(first), arrival))
    }

    /// Returns the first packet on the link of a port, and when it arrives.
    pub(crate) fn first(&self, port: u32) -> Option<(SlotIndex, Time)> {
        let first = self.links[port as usize].first;
        let entry = self.slots.get(first as usize)?;
        Some((SlotIndex(first), entry.arrival))
    }

    /// Returns the first packet on the link of a port, without a look at it.
    #[inline]
    pub(crate) fn head(&self, port: u32) -> Option<SlotIndex> {
        let first = self.links[port as usize].first;
        (first != NIL).then_some(SlotIndex(first))
    }

    /// Returns the packet behind another one on the same link.
    #[inline]
    pub(crate) fn after(&self, SlotIndex(slot): SlotIndex) -> Option<SlotIndex> {
        let next = self.slots[slot as usize].next;
        (next != NIL).then_some(SlotIndex(next))
    }

    /// Has the processor fetch the ends of a link's list.
    #[inline]
    pub(crate) fn prefetch_link(&self, port: u32) {
        prefetch(&self.links[port as usize]);
    }

    /// Has the processor fetch the packet of a slot.
    #[inline]
    pub(crate) fn prefetch(&self, SlotIndex(slot): SlotIndex) {
        prefetch(&self.slots[slot as usize]);
    }

    /// The packet of a slot.
    #[inline]
    pub(crate) fn packet(&self, SlotIndex(slot): SlotIndex) -> &P {
        &self.slots[slot as usize].packet
    }

    /// The packet of a slot, for changes.
    #[inline]
    pub(crate) fn packet_mut(&mut self, SlotIndex(slot): SlotIndex) -> &mut P {
        &mut self.slots[slot as usize].packet
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn release(&mut self, SlotIndex(slot): SlotIndex) {
        self.slots[slot as usize].next = self.free;
        self.free = slot;
    }

    /// Iterates over the packets on all links.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        let slot = |index: u32| self.slots.get(index as usize);
        self.links.iter().flat_map(move |link| {
            let slots = std::iter::successors(slot(link.first), move |entry| slot(entry.next));
            slots.map(|entry| &entry.packet)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_are_inserted_in_order_of_arrival(arrivals in prop::collection::vec(0_u64..20, 1..50)) {
            let mut packets = PacketsInFlight::new(1);
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, arrival) in arrivals.into_iter().enumerate() {
                let is_first = model.iter().all(|(other, _)| arrival < *other);
                let slot = packets.store(number);
                prop_assert_eq!(packets.insert(0, slot, Time::from_nanos(arrival)), is_first);
                model.push((arrival, number));
                model.sort_unstable();
            }
            prop_assert!(packets.iter().eq(model.iter().map(|(_, number)| number)));
            for (arrival, number) in model {
                let (slot, time) = packets.first(0).unwrap();
                packets.pop(0);
                prop_assert_eq!((time.as_nanos(), *packets.packet(slot)), (arrival, number));
            }
            prop_assert!(packets.is_idle(0));
        }

        /// Each link is a FIFO, and slots are reused.
        #[test]
        fn links_deliver_in_order(
            steps in prop::collection::vec((0_u32..3, 0_u8..4), 1..200),
        ) {
            let at = Time::from_nanos;
            let mut packets = PacketsInFlight::new(3);
            let mut model = vec![VecDeque::new(); 3];
            let mut most = 0;
            for (number, (port, action)) in (0_u64..).zip(steps) {
                let link = &mut model[port as usize];
                if action < 2 {
                    let slot = packets.store(number);
                    prop_assert_eq!(packets.push(port, slot, at(number)), link.is_empty());
                    link.push_back((number, number));
                } else {
                    let taken = packets.pop(port);
                    let expected = link.pop_front();
                    prop_assert_eq!(taken.is_some(), expected.is_some());
                    let (Some((slot, next)), Some((expected, _))) = (taken, expected) else {
                        continue;
                    };
                    prop_assert_eq!(*packets.packet(slot), expected);
                    prop_assert_eq!(next, link.front().map_or(Time::MAX, |(_, arrival)| at(*arrival)));
                    if action == 2 {
                        packets.release(slot);
                    } else {
                        // On to the next link.
                        let (port, arrival) = ((port + 1) % 3, number);
                        packets.push(port, slot, at(arrival));
                        model[port as usize].push_back((expected, arrival));
                    }
                }
                let in_flight = model.iter().flatten().map(|(packet, _)| packet);
                prop_assert!(packets.iter().eq(in_flight));
                most = most.max(packets.iter().count());
            }
            prop_assert!(packets.slots.len() <= most.max(1));
        }
    }
}
