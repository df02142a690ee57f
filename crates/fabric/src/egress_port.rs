//! An egress port: a queue, the link that drains it, and the faults at the link's far end.

mod fast_forward;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

use crate::counters::{DropReason, PacketCount, StageCounters};
use crate::faults::{FaultSettings, Faults, Script};
use crate::link::Link;
use crate::packet::Packet;
use crate::queue::{Admission, Queue};
use crate::rule::Rule;
use crate::timeline::PortChange;
use fast_forward::FastForwarded;

/// A queue, the link that drains it, and the faults at the link's far end.
///
/// Faults come last, as on a cable: a lost packet has used its share of the queue and of the rate, and
/// its mark is lost with it. Duplication and jitter apply to the packets that the link delivers.
///
/// Call [`Self::send`] for each packet, and [`Self::poll_delivered`] until `None` whenever
/// [`Self::timeout`] is reached. A late call has the same result as a call in time; only the caller
/// receives it late. `now` must not run backwards.
#[derive(Debug)]
// In this order: a network has thousands of ports. The fields that each packet needs come first, so that
// they lie close together.
#[repr(C)]
pub struct EgressPort<P> {
    /// Whether there are no faults and packets pass at once: checked first.
    fault_free: bool,
    /// When the next packet reaches the far end; [`Time::MAX`] if there is none, and for packets that
    /// wait at rate zero.
    pub(crate) next_arrival: Time,
    /// Packets that the link has delivered.
    delivered: PacketCount,
    /// Every packet before the faults, in order: first those on the link, then those in the queue. A
    /// packet is added once and removed once.
    queued: VecDeque<QueuedPacket<P>>,
    /// Packets that are certain to come, in order, behind all of `queued`.
    fast_forwarded: VecDeque<FastForwarded<P>>,
    link: Link,
    queue: Queue,
    /// How many of `queued` are known to be on the link. While the queue is not watched there may be
    /// more, and the queue has no backlog count. [`Self::advance`] starts to watch it.
    started_count: usize,
    /// Packets larger than the MTU.
    oversized: PacketCount,
    /// Boxed, as most links have none.
    faults: Box<Faults<P>>,
}

/// A queued packet. Its times are set on arrival; they change only with the link.
#[derive(Debug)]
struct QueuedPacket<P> {
    /// When it leaves the queue for the link; [`Time::MAX`] at rate zero.
    start: Time,
    /// When it reaches the far end; [`Time::MAX`] at rate zero.
    arrival: Time,
    /// The length that was counted on arrival, so that the same is subtracted on departure.
    length: ByteSize,
    packet: P,
}

impl<P: Packet + Clone> EgressPort<P> {
    /// Creates a port from the three.
    pub fn new(queue: Queue, link: Link, faults: Faults<P>) -> Self {
        Self {
            queued: VecDeque::new(),
            fast_forwarded: VecDeque::new(),
            started_count: 0,
            next_arrival: Time::MAX,
            link,
            queue,
            delivered: PacketCount::ZERO,
            oversized: PacketCount::ZERO,
            fault_free: faults.pass_everything(),
            faults: Box::new(faults),
        }
    }

    /// Sends a packet, and returns the queue's decision. A packet larger than the link's MTU is dropped
    /// before the queue.
    #[inline]
    pub fn send(&mut self, now: Time, packet: P) -> Admission {
        self.send_within(now, packet, ByteSize::MAX)
    }

    /// Sends a packet where the queue, which is [watched](Self::watch), may hold no more than `room`. A
    /// packet that would exceed it is dropped as [`DropReason::Buffer`], before the queue's rules apply.
    #[inline(always)]
    pub(crate) fn send_within(&mut self, now: Time, packet: P, room: ByteSize) -> Admission {
        let length = packet.length();
        if length <= self.link.mtu() && !self.queue.tracks_backlog {
            self.queue.admit_untracked(length);
            let times = self.link.transmit(now, length);
            self.enqueue(times, length, packet);
            return Admission::Queued;
        }
        self.send_watched(now, packet, length, room)
    }

    /// Sends a packet through a watched queue.
    #[inline(never)]
    fn send_watched(
        &mut self,
        now: Time,
        mut packet: P,
        length: ByteSize,
        room: ByteSize,
    ) -> Admission {
        if length > self.link.mtu() {
            self.oversized.record(length);
            return Admission::Dropped(DropReason::Mtu);
        }
        self.start_transmissions(now);
        let admission = self.queue.arrive(now, length, packet.ecn(), room);
        match admission {
            Admission::Dropped(_) => return admission,
            Admission::Marked => packet.set_ecn(Ecn::Ce),
            Admission::Queued => {}
        }
        let times = self.link.transmit(now, length);
        if times.0 <= now && self.started_count == self.queued.len() {
            self.started_count += 1;
        } else {
            self.queue.enter(now, length);
        }
        self.enqueue(times, length, packet);
        admission
    }

    /// Appends a packet with the start of its transmission and its arrival.
    #[inline(always)]
    fn enqueue(&mut self, (start, arrival): (Time, Time), length: ByteSize, packet: P) {
        self.next_arrival = self.next_arrival.min(arrival);
        self.queued.push_back(QueuedPacket {
            start,
            arrival,
            length,
            packet,
        });
    }

    /// Whether nothing is on the link. Only then a sent packet changes [`Self::timeout`], if none is
    /// fast-forwarded.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.next_arrival == Time::MAX
    }

    /// Keeps the queue's backlog up to date from now on.
    pub(crate) fn watch(&mut self) {
        if !self.queue.tracks_backlog {
            let waiting = self.queued.iter().skip(self.started_count);
            let lengths = waiting.map(|slot| slot.length);
            self.queue.track_backlog(lengths);
        }
    }

    /// Returns when [`Self::poll_delivered`] may return a packet next; `None` while nothing is on the link.
    #[inline]
    pub fn timeout(&self) -> Option<Time> {
        // A packet that never arrives has no timeout.
        let arrival = (self.next_arrival < Time::MAX).then_some(self.next_arrival);
        if self.fault_free {
            return arrival;
        }
        let release = self.faults.timeout();
        [arrival, release].into_iter().flatten().min()
    }

    /// Returns the next packet that has come out by `now`.
    #[inline(always)]
    pub fn poll_delivered(&mut self, now: Time) -> Option<P> {
        if self.fault_free {
            self.deliver(now)
        } else {
            self.poll_delivered_with_faults(now)
        }
    }

    #[cold]
    fn poll_delivered_with_faults(&mut self, now: Time) -> Option<P> {
        self.apply_faults(now);
        let packet = self.faults.poll_released(now);
        self.fault_free = self.faults.pass_everything();
        packet
    }

    /// Advances the port to `now`, so that its counters are up to date, the queue's
    /// [`Occupancy`](crate::Occupancy) included.
    pub fn advance(&mut self, now: Time) {
        self.enqueue_all_fast_forwarded();
        self.start_transmissions(now);
        self.watch();
        if !self.fault_free {
            self.apply_faults(now);
        }
        if let Some(occupancy) = self.queue.occupancy_mut() {
            occupancy.advance(now);
        }
    }

    /// Advances to `now` and restarts the queue's [`Occupancy`](crate::Occupancy): the end of a warm-up.
    pub fn reset_occupancy(&mut self, now: Time) {
        self.advance(now);
        if let Some(occupancy) = self.queue.occupancy_mut() {
            occupancy.reset(now);
        }
    }

    /// Applies a change from a [`Timeline`](crate::Timeline) as of `now`.
    pub fn apply(&mut self, now: Time, change: PortChange) {
        let mut faults = self.faults.settings();
        match change {
            PortChange::Rate(rate) => return self.set_rate(now, rate),
            PortChange::Delay(delay) => return self.set_delay(now, delay),
            PortChange::Mtu(mtu) => return self.set_mtu(mtu),
            PortChange::Down(down) => faults.down = down,
            PortChange::Loss(loss) => faults.loss = loss,
            PortChange::Duplication(duplication) => faults.duplication = duplication,
            PortChange::Corruption(corruption) => faults.corruption = corruption,
            PortChange::Reordering(reordering) => faults.reordering = reordering,
            PortChange::AddedDelay(delay) => faults.delay = delay,
            PortChange::Jitter(jitter) => faults.jitter = jitter,
        }
        self.set_faults(now, faults);
    }

    /// Changes the link's rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.enqueue_all_fast_forwarded();
        self.start_transmissions(now);
        let follows = self.queued.get(self.started_count).map(|first| first.start);
        self.link
            .set_rate(now, rate, follows, self.last_in_flight_arrival());
        for slot in self.queued.iter_mut().skip(self.started_count) {
            (slot.start, slot.arrival) = self.link.transmit(now, slot.length);
        }
        self.update_arrival();
        self.start_transmissions(now);
    }

    /// Changes the propagation delay from `now` on, for packets whose transmission starts then. Under
    /// a shorter delay these do not overtake: they arrive with the last one on the link.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.enqueue_all_fast_forwarded();
        self.start_transmissions(now);
        let mut last_arrival = self.last_in_flight_arrival();
        // Queued packets are sent without a gap: each ends when the next one starts.
        let starts = self.queued.iter().skip(self.started_count + 1);
        let mut ends: Vec<Time> = starts.map(|slot| slot.start).collect();
        ends.push(self.link.free_at());
        for (slot, end) in self.queued.iter_mut().skip(self.started_count).zip(ends) {
            if slot.arrival < Time::MAX {
                last_arrival = last_arrival.max(end + delay);
                slot.arrival = last_arrival;
            }
        }
        self.link.set_delay(delay, last_arrival);
        self.update_arrival();
    }

    /// Changes the link's MTU for packets to come.
    pub fn set_mtu(&mut self, mtu: ByteSize) {
        self.enqueue_all_fast_forwarded();
        self.link.set_mtu(mtu);
    }

    /// Replaces the queue's rules for packets to come.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        self.enqueue_all_fast_forwarded();
        self.watch();
        self.queue.set_rules(rules);
    }

    /// Changes the random faults for packets that reach the link's far end after `now`.
    pub fn set_faults(&mut self, now: Time, settings: FaultSettings) {
        self.enqueue_all_fast_forwarded();
        self.apply_faults(now);
        self.faults.set(settings);
        self.fault_free = self.faults.pass_everything();
    }

    /// Starts or ends a script, for packets that reach the link's far end after `now`.
    pub fn set_script(&mut self, now: Time, script: Option<Script<P>>) {
        self.enqueue_all_fast_forwarded();
        self.apply_faults(now);
        self.faults.set_script(script);
        self.fault_free = self.faults.pass_everything();
    }

    /// The queue; up to date after [`Self::advance`], as is the rest.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The faults.
    pub fn faults(&self) -> &Faults<P> {
        &self.faults
    }

    /// Returns when the next queued packet starts on the link; `None` if none waits, and at rate zero.
    #[inline]
    pub fn next_departure(&self) -> Option<Time> {
        let first = self.queued.get(self.started_count)?;
        (first.start < Time::MAX).then_some(first.start)
    }

    /// Returns the packets that left the queue for the link: sent, or being sent.
    pub fn sent(&self) -> PacketCount {
        self.queue.departed()
    }

    /// Returns the packets on the link: being sent, in transit, or arrived and not yet polled.
    pub fn in_flight(&self) -> PacketCount {
        self.queue.departed() - self.delivered
    }

    /// Returns the packets that wait, are in transit or are delayed.
    pub fn inside(&self) -> PacketCount {
        self.queue.backlog() + self.in_flight() + self.faults.delayed()
    }

    /// Iterates over the packets of [`Self::inside`], in no order, for callers that keep state per
    /// packet.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let line = self.queued.iter().map(|slot| &slot.packet);
        let announced = self
            .fast_forwarded
            .iter()
            .map(|announced| &announced.packet);
        line.chain(announced).chain(self.faults.packets())
    }

    /// Returns the counters. They balance with [`Self::inside`].
    pub fn counters(&self) -> StageCounters {
        let queue = self.queue.counters();
        let faults = self.faults.counters();
        // Packets that met no faults went straight on.
        let passed = self.delivered - faults.arrived;
        let mut dropped = queue.dropped + faults.dropped;
        dropped.add(DropReason::Mtu, self.oversized);
        StageCounters {
            arrived: queue.arrived + self.oversized,
            duplicated: faults.duplicated,
            departed: faults.departed + passed,
            dropped,
            ..StageCounters::default()
        }
    }

    /// Removes the packets from the queue whose transmission has started by `now`.
    #[inline]
    pub(crate) fn start_transmissions(&mut self, now: Time) {
        while let Some(slot) = self.queued.get(self.started_count) {
            if slot.start > now || slot.start == Time::MAX {
                break;
            }
            if self.queue.tracks_backlog {
                self.queue.leave(slot.start, slot.length);
            }
            self.started_count += 1;
        }
    }

    /// Returns when the last packet on the link arrives.
    fn last_in_flight_arrival(&self) -> Time {
        let last = self.started_count.checked_sub(1);
        let last = last.and_then(|last| self.queued.get(last));
        last.map_or(Time::ZERO, |slot| slot.arrival)
    }

    #[inline]
    fn update_arrival(&mut self) {
        self.next_arrival = match self.queued.front() {
            Some(first) => first.arrival,
            None => self
                .fast_forwarded
                .front()
                .map_or(Time::MAX, |first| first.arrival),
        };
    }

    /// Returns the next packet that has reached the link's far end by `now`.
    #[inline(always)]
    fn deliver(&mut self, now: Time) -> Option<P> {
        // A packet that never arrives has no timeout.
        if self.next_arrival > now || self.next_arrival == Time::MAX {
            return None;
        }
        let Some(QueuedPacket {
            start,
            length,
            packet,
            ..
        }) = self.queued.pop_front()
        else {
            return self.deliver_fast_forwarded();
        };
        match self.started_count.checked_sub(1) {
            Some(started) => self.started_count = started,
            None if self.queue.tracks_backlog => self.queue.leave(start, length),
            None => {}
        }
        self.update_arrival();
        self.delivered.record(length);
        Some(packet)
    }

    /// Passes the packets to the faults that have reached the link's far end by `now`.
    fn apply_faults(&mut self, now: Time) {
        while self.next_arrival <= now {
            let arrival = self.next_arrival;
            let Some(packet) = self.deliver(now) else {
                return;
            };
            self.faults.send(arrival, packet);
            self.fault_free = false;
        }
    }
}
