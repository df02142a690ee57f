//! An egress port: a queue, and the link that drains it.
//!
//! The time at which a packet reaches the far end is known when it is queued. The packets themselves can
//! therefore be in either of two places:
//!
//! - [`EgressPort::transmit`] returns the arrival time, and the caller keeps the packet until then. Each
//!   packet costs one event of the caller's queue.
//! - [`EgressPort::send`] gives the packet to the port, and [`EgressPort::poll_delivered`] returns it.
//!   Only such a port has faults at the link's far end, and may change while packets wait.
//!
//! A port with a [`Scheduler`](crate::Scheduler) is the exception: what happens to a packet is only known
//! when the link takes it. It always holds its packets.

mod held;
mod scheduled;
#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

use crate::counters::{DropReason, PacketCount, StageCounters};
use crate::faults::{FaultSettings, Faults, Script};
use crate::link::Link;
use crate::packet::Packet;
use crate::prefetch::prefetch;
use crate::queue::{Admission, Queue};
use crate::rule::Rule;
use crate::timeline::PortChange;
use held::HeldPackets;

/// A queue, the link that drains it, and the faults at the link's far end.
///
/// Faults come last, as on a cable: a lost packet has used its share of the queue and of the rate, and
/// its mark is lost with it. Duplication and jitter apply to the packets that the link delivers.
///
/// Call [`Self::send`] for each packet, and [`Self::poll_delivered`] until `None` whenever
/// [`Self::timeout`] is reached. A late call has the same result as a call in time; only the caller
/// receives it late. `now` must not run backwards.
///
/// The port of a caller that keeps its packets ([`Self::without_packets`]) has [`Self::transmit`] instead.
#[derive(Debug)]
// Small: a network has thousands of ports, and few of their queues are watched.
pub struct EgressPort<P> {
    link: Link,
    /// The packets and the faults; `None` if the caller keeps the packets.
    held: Option<Box<HeldPackets<P>>>,
    queue: Queue,
    /// Packets larger than the MTU.
    oversized: Option<Box<PacketCount>>,
}

/// When a packet's transmission starts, and when it arrives at the far end.
type TransmissionTimes = (Time, Time);

impl<P: Packet + Clone> EgressPort<P> {
    /// Creates a port from the three. It holds its packets.
    pub fn new(queue: Queue, link: Link, faults: Faults<P>) -> Self {
        let mut port = Self::without_packets(queue, link);
        port.hold_packets(faults);
        port
    }

    /// Creates a port whose packets the caller keeps.
    pub fn without_packets(queue: Queue, link: Link) -> Self {
        Self {
            link,
            queue,
            oversized: None,
            held: None,
        }
    }

    /// Makes an unused port hold its packets.
    pub fn hold_packets(&mut self, faults: Faults<P>) {
        self.watch();
        self.held = Some(Box::new(HeldPackets::new(faults)));
    }

    /// Whether the port holds its packets.
    #[inline]
    pub fn holds_packets(&self) -> bool {
        self.held.is_some()
    }

    /// Sends a packet, and returns the queue's decision. A packet larger than the link's MTU is dropped
    /// before the queue. A port whose packets the caller keeps drops it after the queue.
    #[inline]
    pub fn send(&mut self, now: Time, packet: P) -> Admission {
        self.send_within(now, packet, ByteSize::MAX)
    }

    /// Sends a packet where the queue, which is [watched](Self::watch), may hold no more than `room`. A
    /// packet that would exceed it is dropped as [`DropReason::Buffer`], before the queue's rules apply.
    pub(crate) fn send_within(&mut self, now: Time, mut packet: P, room: ByteSize) -> Admission {
        if self.has_scheduler() {
            return self.enqueue(now, packet, room);
        }
        let length = packet.length();
        let (admission, times) = self.admit(now, &mut packet, length, room);
        if let (Some(held), Some((_, arrival))) = (&mut self.held, times) {
            held.push(arrival, length, packet);
        }
        admission
    }

    /// Queues a packet that the caller keeps, and returns when it reaches the link's far end;
    /// [`Time::MAX`] (never) at rate zero. `None` if it is dropped. The packet is marked here, if it is.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, packet: &mut P) -> Option<Time> {
        match self.transmit_unwatched(now, packet.length()) {
            None => self.transmit_within(now, packet, ByteSize::MAX),
            arrival => arrival,
        }
    }

    /// Queues a packet of this length as [`Self::transmit`] does, if nobody watches the queue and the link carries
    /// it: then nothing else of the packet matters, and it is not changed. Otherwise it does nothing, and returns
    /// `None`.
    #[inline(always)]
    pub fn transmit_unwatched(&mut self, now: Time, length: ByteSize) -> Option<Time> {
        if self.queue.is_watched() || length > self.link.mtu() {
            return None;
        }
        self.queue.admit_untracked(length);
        Some(self.link.transmit(now, length).1)
    }

    /// Queues a packet as [`Self::transmit`] does where [`Self::transmit_unwatched`] does nothing.
    #[inline(never)]
    pub fn transmit_watched(&mut self, now: Time, packet: &mut P) -> Option<Time> {
        self.transmit_within(now, packet, ByteSize::MAX)
    }

    /// Queues a packet that the caller keeps where the queue may hold no more than `room`.
    #[inline]
    pub(crate) fn transmit_within(
        &mut self,
        now: Time,
        packet: &mut P,
        room: ByteSize,
    ) -> Option<Time> {
        let length = packet.length();
        let (_, times) = self.admit(now, packet, length, room);
        times.map(|(_, arrival)| arrival)
    }

    /// Decides about a packet, marks it, and returns its times on the link unless it is dropped.
    #[inline(always)]
    fn admit(
        &mut self,
        now: Time,
        packet: &mut P,
        length: ByteSize,
        room: ByteSize,
    ) -> (Admission, Option<TransmissionTimes>) {
        if length > self.link.mtu() {
            self.count_oversized(length);
            return (Admission::Dropped(DropReason::Mtu), None);
        }
        let ecn = packet.ecn();
        let admission = self.queue.start_and_arrive(now, length, ecn, room);
        match admission {
            Admission::Dropped(_) => return (admission, None),
            Admission::Marked => packet.set_ecn(Ecn::Ce),
            Admission::Queued => {}
        }
        let times = self.link.transmit(now, length);
        self.queue.push(now, times.0, length);
        (admission, Some(times))
    }

    #[cold]
    fn count_oversized(&mut self, length: ByteSize) {
        let oversized = self.oversized.get_or_insert_with(Box::default);
        oversized.record(length);
    }

    fn oversized(&self) -> PacketCount {
        let oversized = self.oversized.as_deref();
        oversized.copied().unwrap_or_default()
    }

    /// Has the processor fetch what a packet needs at a port whose queue nobody watches.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self);
    }

    /// Keeps the queue's backlog up to date from now on. Packets that were sent before do not count.
    pub fn watch(&mut self) {
        self.queue.keep_backlog();
    }

    /// Removes the packets from the queue whose transmission has started by `now`.
    #[inline]
    pub(crate) fn start_transmissions(&mut self, now: Time) {
        self.queue.start(now);
    }

    /// Starts every transmission that is due by `now`, of a port with a scheduler too.
    #[inline]
    pub(crate) fn start_queued(&mut self, now: Time) {
        self.start_transmissions(now);
        self.dequeue_due(now);
    }

    /// Advances the port to `now`, so that its counters are up to date, the queue's
    /// [`Occupancy`](crate::Occupancy) included.
    pub fn advance(&mut self, now: Time) {
        self.start_queued(now);
        self.apply_faults(now);
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

    /// The queue; up to date after [`Self::advance`], as is the rest.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns when the next queued packet starts on the link; `None` if none waits, and at rate zero.
    #[inline]
    pub fn next_departure(&self) -> Option<Time> {
        let next = match self.queue.waiting().front() {
            Some(first) => first.start,
            None => self.next_dequeue(),
        };
        (next < Time::MAX).then_some(next)
    }

    /// Returns when the link will have sent everything that waits, if no more comes; [`Time::MAX`] at rate
    /// zero.
    #[inline]
    pub fn drained_at(&self) -> Time {
        let free = self.link.free_at();
        if self.has_scheduler() {
            let PacketCount { packets, size } = self.queue.backlog();
            return free
                + self
                    .link
                    .rate()
                    .time_for(size + self.link.framing() * packets);
        }
        free
    }

    /// Returns the packets that left the queue for the link: sent, or being sent.
    pub fn sent(&self) -> PacketCount {
        self.queue.departed()
    }

    /// Returns the packets on the link: being sent, in transit, or arrived and not yet polled. None if the
    /// caller keeps the packets.
    pub fn in_flight(&self) -> PacketCount {
        self.queue.departed() - self.delivered()
    }

    fn delivered(&self) -> PacketCount {
        match &self.held {
            Some(held) => held.delivered,
            None => self.queue.departed(),
        }
    }

    /// Returns the packets that wait, are in transit or are delayed.
    pub fn inside(&self) -> PacketCount {
        let delayed = self.faults().map_or(PacketCount::ZERO, Faults::delayed);
        self.queue.backlog() + self.in_flight() + delayed
    }

    /// Returns the counters. They balance with [`Self::inside`].
    pub fn counters(&self) -> StageCounters {
        let queue = self.queue.counters();
        let faults = self
            .faults()
            .map_or(StageCounters::default(), |faults| *faults.counters());
        // Packets that met no faults went straight on.
        let passed = self.delivered() - faults.arrived;
        let mut dropped = queue.dropped + faults.dropped;
        dropped.add(DropReason::Mtu, self.oversized());
        StageCounters {
            arrived: queue.arrived + self.oversized(),
            duplicated: faults.duplicated,
            departed: faults.departed + passed,
            dropped,
            ..StageCounters::default()
        }
    }
}
