//! The fast-forward path: on a link without rules and faults, the arrival of a packet is known when it
//! is sent, so the next hop can receive it at once.
//!
//! A port without rules, occupancy statistics and faults only sends packets one after the other.
//! [`EgressPort::send_or_fast_forward`] returns such a packet with the time at which it reaches the far
//! end. [`EgressPort::fast_forward`] takes one that is certain to come later. These packets are kept in
//! order of entry, so that the port does exactly what it would have done with each in its time. If one
//! enters before others, the link transmits the others again.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};

use super::{EgressPort, QueuedPacket};
use crate::link::TransmitSnapshot;
use crate::packet::Packet;

/// A packet that is certain to enter the port.
#[derive(Debug)]
pub(super) struct FastForwarded<P> {
    /// Its entry time and ingress number: at the same time the lowest number enters first.
    order: (Time, u32),
    /// The state of the link before it is sent.
    link_before: TransmitSnapshot,
    /// When it reaches the link's far end.
    pub(super) arrival: Time,
    length: ByteSize,
    pub(super) packet: P,
}

impl<P: Packet + Clone> EgressPort<P> {
    /// Whether only the link decides about a packet of this length.
    #[inline]
    pub(crate) fn is_plain(&self, length: ByteSize) -> bool {
        self.fault_free && !self.queue.tracks_backlog && length <= self.link.mtu()
    }

    /// Sends a packet. If nothing can happen to it before it comes out, returns it with that time, as
    /// though it had been [polled](Self::poll_delivered) then. The caller guarantees that the link and its
    /// faults do not change before `until`. Otherwise the packet is [sent](Self::send), and the result is
    /// `None`.
    #[inline(always)]
    pub fn send_or_fast_forward(&mut self, now: Time, packet: P, until: Time) -> Option<(Time, P)> {
        let length = packet.length();
        let is_alone = self.queued.is_empty() && self.fast_forwarded.is_empty();
        if !is_alone || !self.is_plain(length) || self.link.delay().is_zero() {
            self.send(now, packet);
            return None;
        }
        self.queue.admit_untracked(length);
        let times = self.link.transmit(now, length);
        if times.1 >= until {
            self.enqueue(times, length, packet);
            return None;
        }
        self.delivered.record(length);
        Some((times.1, packet))
    }

    /// Takes a packet that is certain to enter at `entry`, after now, from ingress number `from`. The port
    /// [is plain](Self::is_plain) and stays so until then. Returns whether [`Self::timeout`] has changed.
    #[inline(always)]
    pub(crate) fn fast_forward(&mut self, entry: Time, from: u32, packet: P) -> bool {
        let length = packet.length();
        self.queue.admit_untracked(length);
        let mut announced = FastForwarded {
            order: (entry, from),
            link_before: self.link.snapshot(),
            arrival: Time::MAX,
            length,
            packet,
        };
        let last = self.fast_forwarded.back();
        if last.is_some_and(|last| last.order > announced.order) {
            return self.insert_fast_forwarded(announced);
        }
        (_, announced.arrival) = self.link.transmit(entry, length);
        let is_next = self.next_arrival == Time::MAX;
        self.next_arrival = self.next_arrival.min(announced.arrival);
        self.fast_forwarded.push_back(announced);
        is_next
    }

    /// Inserts a packet before others that enter later.
    #[cold]
    fn insert_fast_forwarded(&mut self, announced: FastForwarded<P>) -> bool {
        let order = announced.order;
        let slot = self
            .fast_forwarded
            .partition_point(|other| other.order <= order);
        if let Some(next) = self.fast_forwarded.get(slot) {
            self.link.restore(next.link_before);
        }
        self.fast_forwarded.insert(slot, announced);
        self.transmit_fast_forwarded(slot)
    }

    /// Transmits the packets from index `slot` on again. Returns whether [`Self::timeout`] has changed.
    fn transmit_fast_forwarded(&mut self, slot: usize) -> bool {
        for announced in self.fast_forwarded.iter_mut().skip(slot) {
            announced.link_before = self.link.snapshot();
            let entry = announced.order.0;
            (_, announced.arrival) = self.link.transmit(entry, announced.length);
        }
        let before = self.next_arrival;
        self.update_arrival();
        self.next_arrival != before
    }

    /// Returns the first fast-forwarded packet: no queued packet is before it.
    #[inline(always)]
    pub(super) fn deliver_fast_forwarded(&mut self) -> Option<P> {
        let first = self.fast_forwarded.pop_front()?;
        self.next_arrival = match self.fast_forwarded.front() {
            Some(next) => next.arrival,
            None => Time::MAX,
        };
        self.delivered.record(first.length);
        Some(first.packet)
    }

    /// Sends a packet now from ingress number `from`, before later fast-forwarded packets.
    #[cold]
    pub(crate) fn send_between(&mut self, now: Time, from: u32, packet: P) {
        while let Some(first) = self.fast_forwarded.front() {
            if first.order > (now, from) {
                break;
            }
            self.enqueue_first_fast_forwarded();
        }
        if let Some(next) = self.fast_forwarded.front() {
            self.link.restore(next.link_before);
        }
        self.send(now, packet);
        self.transmit_fast_forwarded(0);
    }

    /// Whether there are fast-forwarded packets.
    #[inline]
    pub(crate) fn has_fast_forwarded(&self) -> bool {
        !self.fast_forwarded.is_empty()
    }

    /// Queues all fast-forwarded packets, before the port is inspected or changes.
    #[inline]
    pub(super) fn enqueue_all_fast_forwarded(&mut self) {
        while self.has_fast_forwarded() {
            self.enqueue_first_fast_forwarded();
        }
    }

    /// Queues the first fast-forwarded packet.
    #[cold]
    fn enqueue_first_fast_forwarded(&mut self) {
        if let Some(first) = self.fast_forwarded.pop_front() {
            self.queued.push_back(QueuedPacket {
                start: first.link_before.free_at().max(first.order.0),
                arrival: first.arrival,
                length: first.length,
                packet: first.packet,
            });
        }
    }
}
