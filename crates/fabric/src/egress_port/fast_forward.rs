//! The short way: where nothing can happen to a packet on a link, it is known when it is sent when it
//! will come out, and it can be told at once to whoever is next.
//!
//! A pipe without rules, account and faults does nothing but to send packets one after the other.
//! [`EgressPort::send_through`] hands such a packet back with the time at which it reaches the far end, and
//! [`EgressPort::announce`] takes one that is certain to come later. What is announced is kept in the order in
//! which it comes, so that the pipe does exactly what it would have done had each packet come in its time:
//! should one be announced that comes before others, these are given to the link anew.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};

use super::{EgressPort, QueuedPacket};
use crate::link::TransmitSnapshot;
use crate::packet::Packet;

/// A packet that is certain to come.
#[derive(Debug)]
pub(super) struct FastForwarded<P> {
    /// When it comes, and where: of those that come at the same time the lowest number is the first.
    order: (Time, u32),
    /// The link before it is sent.
    link_before: TransmitSnapshot,
    /// When it reaches the link's far end.
    pub(super) arrival: Time,
    length: ByteSize,
    pub(super) packet: P,
}

impl<P: Packet + Clone> EgressPort<P> {
    /// Whether nothing but the link decides what becomes of a packet of this length.
    #[inline]
    pub(crate) fn is_plain(&self, length: ByteSize) -> bool {
        self.fault_free && !self.queue.watched && length <= self.link.mtu()
    }

    /// A packet enters. Where nothing can happen to it before it has come out, it is given back with
    /// the time at which it does, as though it had been [received](Self::receive) then; the caller
    /// answers for it that the link and its faults do not change before `until`. Otherwise it is
    /// [sent](Self::send).
    #[inline(always)]
    pub fn send_or_fast_forward(&mut self, now: Time, packet: P, until: Time) -> Option<(Time, P)> {
        let length = packet.length();
        let is_alone = self.queued.is_empty() && self.fast_forwarded.is_empty();
        if !is_alone || !self.is_plain(length) || self.link.delay().is_zero() {
            self.send(now, packet);
            return None;
        }
        self.queue.pass(length);
        let times = self.link.transmit(now, length);
        if times.1 >= until {
            self.enqueue(times, length, packet);
            return None;
        }
        self.delivered.record(length);
        Some((times.1, packet))
    }

    /// A packet is certain to come at `entry`, after now, by the way in with the number `from`; the pipe
    /// [is plain](Self::is_plain) and will be until then. Tells whether [`Self::timeout`] has changed.
    #[inline(always)]
    pub(crate) fn fast_forward(&mut self, entry: Time, from: u32, packet: P) -> bool {
        let length = packet.length();
        self.queue.pass(length);
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

    /// Puts a packet before others that come later.
    #[cold]
    fn insert_fast_forwarded(&mut self, announced: FastForwarded<P>) -> bool {
        let order = announced.order;
        let place = self
            .fast_forwarded
            .partition_point(|other| other.order <= order);
        if let Some(next) = self.fast_forwarded.get(place) {
            self.link.restore(next.link_before);
        }
        self.fast_forwarded.insert(place, announced);
        self.transmit_fast_forwarded(place)
    }

    /// Gives those from a place on to the link anew. Tells whether [`Self::timeout`] has changed.
    fn transmit_fast_forwarded(&mut self, place: usize) -> bool {
        for announced in self.fast_forwarded.iter_mut().skip(place) {
            announced.link_before = self.link.snapshot();
            let entry = announced.order.0;
            (_, announced.arrival) = self.link.transmit(entry, announced.length);
        }
        let before = self.next_arrival;
        self.update_arrival();
        self.next_arrival != before
    }

    /// The first packet that was announced comes and goes: nobody is before it.
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

    /// Lets a packet enter now by the way in with the number `from`, before others that were announced.
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

    /// Whether packets have been announced.
    #[inline]
    pub(crate) fn has_fast_forwarded(&self) -> bool {
        !self.fast_forwarded.is_empty()
    }

    /// Takes in all that was announced: the pipe is looked at, or changes.
    #[inline]
    pub(super) fn enqueue_all_fast_forwarded(&mut self) {
        while self.has_fast_forwarded() {
            self.enqueue_first_fast_forwarded();
        }
    }

    /// Puts the first packet that was announced into the line.
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
