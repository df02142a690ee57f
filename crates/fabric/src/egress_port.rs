//! A pipe: one direction between two hosts, read from left to right: queue, link, faults.

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

/// A queue, the link that empties it, and the faults at the link's far end.
///
/// Faults come last, as they do on a cable: a lost packet has taken its share of the queue and of
/// the rate, and its mark is lost with it; duplication and jitter act on what the link delivers.
///
/// Drive it by [`Self::send`], and by [`Self::receive`] until `None` whenever [`Self::timeout`]
/// is reached. Called late, it does what would have happened in time; only the caller sees it late.
/// `now` must not run backwards.
#[derive(Debug)]
// In this order: a network has thousands of pipes, and what each packet needs of one comes first, so that it
// lies close together.
#[repr(C)]
pub struct EgressPort<P> {
    /// Whether there are no faults and packets pass at once: what everybody asks first.
    fault_free: bool,
    /// When the next packet reaches the far end; [`Time::MAX`] if there is none, and for what waits at
    /// rate zero.
    pub(crate) next_arrival: Time,
    /// What the link has delivered.
    delivered: PacketCount,
    /// Everything before the faults, in order: first what is on the link, then what waits. A packet
    /// is put here once and taken out once.
    queued: VecDeque<QueuedPacket<P>>,
    /// What is certain to come, in order: all behind what is in the line.
    fast_forwarded: VecDeque<FastForwarded<P>>,
    link: Link,
    queue: Queue,
    /// How many of `line` are known to be on the link. Where nobody watches the queue it may be more,
    /// and the queue knows nothing of what waits: whoever [settles](Self::settle) watches from then on.
    started: usize,
    /// What was larger than the MTU.
    oversized: PacketCount,
    /// Apart, as most links have none.
    faults: Box<Faults<P>>,
}

/// A packet in the line. Its times are settled when it comes: they change only with the link.
#[derive(Debug)]
struct QueuedPacket<P> {
    /// When it leaves the queue for the link; [`Time::MAX`] at rate zero.
    start: Time,
    /// When it reaches the far end; [`Time::MAX`] at rate zero.
    arrival: Time,
    /// What was counted when it came, so that the same is counted when it goes.
    length: ByteSize,
    packet: P,
}

impl<P: Packet + Clone> EgressPort<P> {
    /// Puts the three in a row.
    pub fn new(queue: Queue, link: Link, faults: Faults<P>) -> Self {
        Self {
            queued: VecDeque::new(),
            fast_forwarded: VecDeque::new(),
            started: 0,
            next_arrival: Time::MAX,
            link,
            queue,
            delivered: PacketCount::ZERO,
            oversized: PacketCount::ZERO,
            fault_free: faults.pass_everything(),
            faults: Box::new(faults),
        }
    }

    /// A packet enters, and this is what the queue did with it. One larger than the link's MTU is
    /// dropped before the queue.
    #[inline]
    pub fn send(&mut self, now: Time, packet: P) -> Admission {
        self.send_within(now, packet, ByteSize::MAX)
    }

    /// The same where the queue, which is [watched](Self::watch), may hold no more than `room`: what
    /// would exceed it is dropped as [`DropReason::Buffer`], before the queue's rules are asked.
    #[inline(always)]
    pub(crate) fn send_within(&mut self, now: Time, packet: P, room: ByteSize) -> Admission {
        let length = packet.length();
        if length <= self.link.mtu() && !self.queue.watched {
            self.queue.pass(length);
            let times = self.link.transmit(now, length);
            self.enqueue(times, length, packet);
            return Admission::Queued;
        }
        self.send_watched(now, packet, length, room)
    }

    /// The same where the queue decides, and keeps account.
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
        if times.0 <= now && self.started == self.queued.len() {
            self.started += 1;
        } else {
            self.queue.enter(now, length);
        }
        self.enqueue(times, length, packet);
        admission
    }

    /// Puts a packet behind the others: when its transmission starts, and when it arrives.
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

    /// Whether nothing is on the way to the link's far end: only then a packet that is sent changes
    /// [`Self::timeout`], if none is announced.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.next_arrival == Time::MAX
    }

    /// From now on the queue knows at any time what waits.
    pub(crate) fn watch(&mut self) {
        if !self.queue.watched {
            let waiting = self.queued.iter().skip(self.started);
            let lengths = waiting.map(|place| place.length);
            self.queue.watch(lengths);
        }
    }

    /// When [`Self::receive`] may have something next; `None` while nothing is on the way.
    #[inline]
    pub fn timeout(&self) -> Option<Time> {
        // What never arrives has no time.
        let arrival = (self.next_arrival < Time::MAX).then_some(self.next_arrival);
        if self.fault_free {
            return arrival;
        }
        let release = self.faults.timeout();
        [arrival, release].into_iter().flatten().min()
    }

    /// The next packet that has come out by `now`.
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

    /// Does what is due by `now` inside the pipe, so that what is read from it is up to date, the
    /// queue's [`Occupancy`](crate::Occupancy) included.
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

    /// Settles, and lets the queue's [`Occupancy`](crate::Occupancy) begin anew: the end of a warm-up.
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
        let follows = self.queued.get(self.started).map(|first| first.start);
        self.link
            .set_rate(now, rate, follows, self.last_in_flight_arrival());
        for place in self.queued.iter_mut().skip(self.started) {
            (place.start, place.arrival) = self.link.transmit(now, place.length);
        }
        self.update_arrival();
        self.start_transmissions(now);
    }

    /// Changes the propagation delay from `now` on, for packets whose transmission starts then. Under
    /// a shorter delay these do not overtake: they arrive with the last one that is on the way.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.enqueue_all_fast_forwarded();
        self.start_transmissions(now);
        let mut last_arrival = self.last_in_flight_arrival();
        // What waits is sent without a gap: each ends when the next one starts.
        let starts = self.queued.iter().skip(self.started + 1);
        let mut ends: Vec<Time> = starts.map(|place| place.start).collect();
        ends.push(self.link.free_at());
        for (place, end) in self.queued.iter_mut().skip(self.started).zip(ends) {
            if place.arrival < Time::MAX {
                last_arrival = last_arrival.max(end + delay);
                place.arrival = last_arrival;
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

    /// The queue; up to date after [`Self::settle`], as is the rest.
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

    /// When the next packet leaves the queue for the link; `None` while none waits, and at rate zero.
    #[inline]
    pub fn next_departure(&self) -> Option<Time> {
        let first = self.queued.get(self.started)?;
        (first.start < Time::MAX).then_some(first.start)
    }

    /// What left the queue for the link: what it has sent, or is sending.
    pub fn sent(&self) -> PacketCount {
        self.queue.departed()
    }

    /// What is on the link: being sent, on the way, or there and not yet fetched.
    pub fn in_flight(&self) -> PacketCount {
        self.queue.departed() - self.delivered
    }

    /// What waits, is on the way or is delayed.
    pub fn inside(&self) -> PacketCount {
        self.queue.backlog() + self.in_flight() + self.faults.delayed()
    }

    /// Each packet of [`Self::inside`], in no order: for whoever keeps something about packets beside
    /// them.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let line = self.queued.iter().map(|place| &place.packet);
        let announced = self
            .fast_forwarded
            .iter()
            .map(|announced| &announced.packet);
        line.chain(announced).chain(self.faults.packets())
    }

    /// What became of the packets that entered. These counters balance with [`Self::inside`].
    pub fn counters(&self) -> StageCounters {
        let queue = self.queue.counters();
        let faults = self.faults.counters();
        // What met no faults went straight on.
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

    /// Lets out of the queue what the link has started to send by `now`.
    #[inline]
    pub(crate) fn start_transmissions(&mut self, now: Time) {
        while let Some(place) = self.queued.get(self.started) {
            if place.start > now || place.start == Time::MAX {
                break;
            }
            if self.queue.watched {
                self.queue.leave(place.start, place.length);
            }
            self.started += 1;
        }
    }

    /// When the last packet on the link arrives.
    fn last_in_flight_arrival(&self) -> Time {
        let last = self.started.checked_sub(1);
        let last = last.and_then(|last| self.queued.get(last));
        last.map_or(Time::ZERO, |place| place.arrival)
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

    /// The next packet that has reached the link's far end by `now`.
    #[inline(always)]
    fn deliver(&mut self, now: Time) -> Option<P> {
        // What never arrives has no time.
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
        match self.started.checked_sub(1) {
            Some(started) => self.started = started,
            None if self.queue.watched => self.queue.leave(start, length),
            None => {}
        }
        self.update_arrival();
        self.delivered.record(length);
        Some(packet)
    }

    /// Hands to the faults what has reached the link's far end by `now`.
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
