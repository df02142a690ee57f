//! A slab with the bytes of QUIC and DCUDP datagrams in transit. The packets themselves stay small.
//!
//! A packet holds the slot of its bytes. Mostly it is delivered, which frees the slot: the next datagram is
//! written where the caches have the last one. Packets end in other ways too (dropped by a queue or by a
//! fault) and faults copy them, so slots have no reference counts. Instead, when all slots are taken, the
//! packets in the network are searched, and slots that none of them holds become free. The work per
//! datagram is constant, as the time between two searches grows with their length.

use weir_units::Time;
use weir_wire::Ecn;

use crate::packet::{Address, Location, Network, Packet, RawDatagram};

/// The number of slots before the first search.
const FEWEST: usize = 256;

/// The bytes of datagrams, each in a slot that is reused.
#[derive(Debug, Default)]
pub(crate) struct DatagramSlab {
    slots: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// The number of slots in use at which the network is searched.
    enough: usize,
    /// A copy that a receiver may overwrite.
    received: Vec<u8>,
    /// For each slot, whether a packet holds it: used during a search.
    held: Vec<bool>,
}

/// The path of an outgoing datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramRoute {
    pub(super) from: Location,
    pub(super) to: Location,
    /// The port of the topology by which it leaves.
    pub(super) port: u32,
    pub(super) ecn: Ecn,
}

impl DatagramSlab {
    pub(crate) fn new() -> Self {
        Self {
            enough: FEWEST,
            ..Self::default()
        }
    }

    /// Sends the datagram that `fill` writes, on the path that it returns; nothing if that is `None`.
    pub(super) fn send(
        &mut self,
        now: Time,
        address: &Address,
        network: &mut Network,
        fill: impl FnOnce(&mut Vec<u8>) -> Option<DatagramRoute>,
    ) -> bool {
        if self.is_full() {
            self.keep(network.packets().map(Packet::slot));
        }
        let (slot, buffer) = self.write();
        let Some(departure) = fill(buffer) else {
            self.give_back(slot);
            return false;
        };
        let datagram = RawDatagram {
            slot,
            // The engines limit it to the maximum of UDP.
            payload: buffer.len() as u16,
            editions: [departure.from.generation, departure.to.generation],
        };
        let address = Address {
            source: departure.from.number,
            destination: departure.to.number,
            ..*address
        };
        if let Some(mut tx_port) = network.tx_port(departure.port) {
            tx_port.send_with(now, |packet| {
                packet.write_raw_datagram(datagram, departure.ecn, &address);
                true
            });
        }
        true
    }

    /// Whether [`Self::keep`] has to be called before the next [`Self::write`].
    #[inline]
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.slots.len() >= self.enough
    }

    /// Frees all slots except those that packets in the network hold. `None` stands for a packet without a
    /// slot.
    #[cold]
    fn keep(&mut self, packets: impl Iterator<Item = Option<u32>>) {
        self.held.clear();
        self.held.resize(self.slots.len(), false);
        let mut seen = 0;
        for slot in packets {
            seen += 1;
            if let Some(held) = slot.and_then(|slot| self.held.get_mut(slot as usize)) {
                *held = true;
            }
        }
        self.free.clear();
        // The lowest slot is taken first, so that few slots are in the cache.
        let free = (0..self.slots.len() as u32).rev();
        let held = &self.held;
        self.free.extend(free.filter(|slot| !held[*slot as usize]));
        let kept = self.slots.len() - self.free.len();
        self.enough = kept + seen.max(FEWEST);
    }

    /// Allocates a slot, and returns it with its empty buffer.
    #[inline]
    fn write(&mut self) -> (u32, &mut Vec<u8>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::new());
            self.slots.len() as u32 - 1
        });
        let buffer = &mut self.slots[slot as usize];
        buffer.clear();
        (slot, buffer)
    }

    /// Frees a slot to which nothing was written.
    #[inline]
    fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Returns the bytes of a packet that is delivered, for decryption, and frees their slot. If a copy of
    /// the packet holds the slot too, they are a copy, and a search will free it.
    #[inline]
    pub(super) fn take(&mut self, slot: u32, is_copied: bool) -> &mut [u8] {
        let Some(bytes) = self.slots.get_mut(slot as usize) else {
            return &mut [];
        };
        if is_copied {
            self.received.clear();
            self.received.extend_from_slice(bytes);
            return &mut self.received;
        }
        self.free.push(slot);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A network of this length loses and duplicates packets: every delivered packet has the bytes
        /// that were sent, and the number of slots stays bounded.
        #[test]
        fn delivered_datagrams_match_the_sent_ones(
            length in 1_usize..2_000,
            fates in prop::collection::vec(0_u8..8, 1..5_000),
        ) {
            let mut datagrams = DatagramSlab::new();
            let mut network: VecDeque<(u32, bool, u32)> = VecDeque::new();
            let mut most = 0;
            for (number, fate) in (0_u32..).zip(fates) {
                if datagrams.is_full() {
                    datagrams.keep(network.iter().map(|(slot, ..)| Some(*slot)));
                }
                let (slot, buffer) = datagrams.write();
                prop_assert!(buffer.is_empty());
                buffer.extend_from_slice(&number.to_be_bytes());
                match fate {
                    0 => {}
                    1 => network.extend([(slot, true, number); 2]),
                    2 => datagrams.give_back(slot),
                    _ => network.push_back((slot, false, number)),
                }
                most = most.max(network.len());
                while network.len() > length
                    && let Some((slot, is_copied, number)) = network.pop_front()
                {
                    prop_assert_eq!(datagrams.take(slot, is_copied), number.to_be_bytes());
                }
            }
            prop_assert!(datagrams.slots.len() <= 2 * most + FEWEST);
        }
    }
}
