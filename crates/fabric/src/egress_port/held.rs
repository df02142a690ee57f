//! Ports that hold their packets: delivery, faults, and changes of the link.

use std::collections::VecDeque;

use super::{
    ByteSize, Duration, EgressPort, FaultSettings, Faults, Packet, PacketCount, PortChange, Rate,
    Rule, Script, Time,
};
use crate::codel::CodelSettings;
use crate::scheduler::Scheduler;

/// The packets of a port, and its faults.
#[derive(Debug)]
pub(super) struct HeldPackets<P> {
    /// Every packet before the faults, in order: first those on the link, then those in the queue. Packets
    /// in the queues of a scheduler are not among them.
    queued: VecDeque<QueuedPacket<P>>,
    /// When the next packet reaches the far end; [`Time::MAX`] if there is none, and for packets that
    /// wait at rate zero.
    next_arrival: Time,
    /// Packets that the link has delivered.
    pub(super) delivered: PacketCount,
    /// Whether there are no faults and packets pass at once: checked first.
    is_fault_free: bool,
    faults: Faults<P>,
    /// When the link takes the next packet from the scheduler; [`Time::MAX`] if none waits.
    pub(super) next_dequeue: Time,
    pub(super) scheduler: Option<Box<Scheduler<P>>>,
}

/// A queued packet.
#[derive(Debug)]
struct QueuedPacket<P> {
    /// When it reaches the far end; [`Time::MAX`] at rate zero. It changes only with the link.
    arrival: Time,
    /// The length that was counted on arrival.
    length: ByteSize,
    packet: P,
}

impl<P: Packet + Clone> HeldPackets<P> {
    pub(super) fn new(faults: Faults<P>) -> Self {
        Self {
            queued: VecDeque::new(),
            next_arrival: Time::MAX,
            delivered: PacketCount::ZERO,
            is_fault_free: faults.pass_everything(),
            faults,
            next_dequeue: Time::MAX,
            scheduler: None,
        }
    }

    /// Appends a packet.
    #[inline]
    pub(super) fn push(&mut self, arrival: Time, length: ByteSize, packet: P) {
        self.next_arrival = self.next_arrival.min(arrival);
        self.queued.push_back(QueuedPacket {
            arrival,
            length,
            packet,
        });
    }

    /// Takes the first packet, if it has reached the link's far end by `now`.
    #[inline]
    fn pop_arrived(&mut self, now: Time) -> Option<P> {
        // A packet that never arrives has no timeout.
        if self.next_arrival > now || self.next_arrival == Time::MAX {
            return None;
        }
        let QueuedPacket { length, packet, .. } = self.queued.pop_front()?;
        self.delivered.record(length);
        self.update_arrival();
        Some(packet)
    }

    fn update_arrival(&mut self) {
        self.next_arrival = self.queued.front().map_or(Time::MAX, |first| first.arrival);
    }
}

impl<P: Packet + Clone> EgressPort<P> {
    /// Whether the port has a scheduler.
    #[inline]
    pub fn has_scheduler(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.scheduler.is_some())
    }

    /// Returns when the next packet reaches the far end or leaves the queues of a scheduler; [`Time::MAX`] if
    /// there is none. Only if this changes, a sent packet changes [`Self::timeout`].
    #[inline]
    pub(crate) fn next_event(&self) -> Time {
        self.next_arrival().min(self.next_dequeue())
    }

    /// Returns when the next packet reaches the far end; [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn next_arrival(&self) -> Time {
        self.held
            .as_ref()
            .map_or(Time::MAX, |held| held.next_arrival)
    }

    /// Returns when [`Self::poll_delivered`] may return a packet next, or has to be called for a scheduler;
    /// `None` while nothing is on the link.
    #[inline]
    pub fn timeout(&self) -> Option<Time> {
        let held = self.held.as_deref()?;
        let next = held.next_arrival.min(held.next_dequeue);
        // A packet that never arrives has no timeout.
        let next = (next < Time::MAX).then_some(next);
        if held.is_fault_free {
            return next;
        }
        let release = held.faults.timeout();
        [next, release].into_iter().flatten().min()
    }

    /// Returns the next packet that has come out by `now`.
    #[inline]
    pub fn poll_delivered(&mut self, now: Time) -> Option<P> {
        self.dequeue_due(now);
        if self.held.as_ref()?.is_fault_free {
            return self.deliver(now);
        }
        self.apply_faults(now);
        let held = self.held.as_mut()?;
        let packet = held.faults.poll_released(now);
        held.is_fault_free = held.faults.pass_everything();
        packet
    }

    /// Returns the next packet that has reached the link's far end by `now`.
    #[inline]
    fn deliver(&mut self, now: Time) -> Option<P> {
        let held = self.held.as_mut()?;
        let packet = held.pop_arrived(now)?;
        if self.queue.waiting().len() > held.queued.len() {
            self.queue.start_first();
        }
        Some(packet)
    }

    /// Passes the packets to the faults that have reached the link's far end by `now`, if there are any.
    pub(super) fn apply_faults(&mut self, now: Time) {
        if self.held.as_ref().is_none_or(|held| held.is_fault_free) {
            return;
        }
        self.pass_to_faults(now);
    }

    fn pass_to_faults(&mut self, now: Time) {
        while self.next_arrival() <= now {
            let arrival = self.next_arrival();
            let Some(packet) = self.deliver(now) else {
                return;
            };
            if let Some(held) = &mut self.held {
                held.faults.send(arrival, packet);
                held.is_fault_free = false;
            }
        }
    }

    /// The faults, if the port holds its packets.
    pub fn faults(&self) -> Option<&Faults<P>> {
        self.held.as_deref().map(|held| &held.faults)
    }

    /// Iterates over the packets of [`Self::inside`] that the port holds, in no order, for callers that
    /// keep state per packet.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        self.held.iter().flat_map(|held| {
            let queued = held.queued.iter().map(|slot| &slot.packet);
            let waiting = held.scheduler.iter().flat_map(|queues| queues.packets());
            queued.chain(waiting).chain(held.faults.packets())
        })
    }

    /// Applies a change from a [`Timeline`](crate::Timeline) as of `now`. Only a port that holds its
    /// packets has faults; on any other, changes of the link apply to later packets.
    pub fn apply(&mut self, now: Time, change: PortChange) {
        let mut faults = self
            .faults()
            .map_or_else(FaultSettings::default, Faults::settings);
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
        self.start_queued(now);
        let follows = self.queue.waiting().front().map(|first| first.start);
        self.link
            .set_rate(now, rate, follows, self.last_in_flight_arrival());
        let on_link = self.on_link();
        let held = self.held.iter_mut();
        let mut queued = held.flat_map(|held| held.queued.iter_mut().skip(on_link));
        let link = &mut self.link;
        self.queue.change_waiting(|waiting| {
            let (start, arrival) = link.transmit(now, waiting.length);
            waiting.start = start;
            if let Some(slot) = queued.next() {
                slot.arrival = arrival;
            }
        });
        self.update_arrival();
        self.update_dequeue();
        self.start_queued(now);
    }

    /// Changes the propagation delay from `now` on, for packets whose transmission starts then. Under
    /// a shorter delay these do not overtake: they arrive with the last one on the link.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.start_queued(now);
        let mut last_arrival = self.last_in_flight_arrival();
        // Queued packets are sent without a gap: each ends when the next one starts.
        let starts = self.queue.waiting().iter().skip(1);
        let mut ends: Vec<Time> = starts.map(|waiting| waiting.start).collect();
        ends.push(self.link.free_at());
        let on_link = self.on_link();
        let held = self.held.iter_mut();
        let queued = held.flat_map(|held| held.queued.iter_mut().skip(on_link));
        for (slot, end) in queued.zip(ends) {
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
        self.link.set_mtu(mtu);
    }

    /// Replaces the queue's rules for packets to come.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        self.watch();
        self.queue.set_rules(rules);
    }

    /// Changes the queue's rules for packets to come, as [`Queue::change_rules`](crate::Queue::change_rules) does.
    /// Those of a port with a scheduler are the rules of each of its queues.
    pub fn change_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        let rules = rules.into();
        match self.scheduler_mut() {
            Some(scheduler) => scheduler.change_rules(&rules),
            None => {
                self.watch();
                self.queue.change_rules(rules);
            }
        }
    }

    /// Changes the target and the interval of CoDel, if the port's scheduler has it.
    pub fn change_codel(&mut self, now: Time, settings: CodelSettings) {
        self.dequeue_due(now);
        if let Some(scheduler) = self.scheduler_mut() {
            scheduler.change_codel(settings);
        }
    }

    fn scheduler_mut(&mut self) -> Option<&mut Scheduler<P>> {
        self.held.as_deref_mut()?.scheduler.as_deref_mut()
    }

    /// Changes the random faults for packets that reach the link's far end after `now`.
    pub fn set_faults(&mut self, now: Time, settings: FaultSettings) {
        self.update_faults(now, |faults| faults.set(settings));
    }

    /// Starts or ends a script, for packets that reach the link's far end after `now`.
    pub fn set_script(&mut self, now: Time, script: Option<Script<P>>) {
        self.update_faults(now, |faults| faults.set_script(script));
    }

    fn update_faults(&mut self, now: Time, update: impl FnOnce(&mut Faults<P>)) {
        self.dequeue_due(now);
        self.pass_to_faults(now);
        if let Some(held) = &mut self.held {
            update(&mut held.faults);
            held.is_fault_free = held.faults.pass_everything();
        }
    }

    /// Returns the arrival and the length of the packets before the faults.
    #[cfg(test)]
    pub(super) fn queued(&self) -> Vec<(Time, ByteSize)> {
        let held = self.held.iter().flat_map(|held| &held.queued);
        held.map(|slot| (slot.arrival, slot.length)).collect()
    }

    /// Returns how many of the packets that the port holds are known to be on the link.
    fn on_link(&self) -> usize {
        let queued = self.held.as_ref().map_or(0, |held| held.queued.len());
        queued.saturating_sub(self.queue.waiting().len())
    }

    /// Returns when the last packet on the link arrives.
    fn last_in_flight_arrival(&self) -> Time {
        let last = self.on_link().checked_sub(1);
        let held = self.held.as_deref();
        let last = held
            .zip(last)
            .and_then(|(held, last)| held.queued.get(last));
        last.map_or(Time::ZERO, |slot| slot.arrival)
    }

    fn update_arrival(&mut self) {
        if let Some(held) = &mut self.held {
            held.update_arrival();
        }
    }
}
