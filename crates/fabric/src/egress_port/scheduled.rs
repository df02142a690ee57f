//! Ports with a scheduler: which packet the link sends is decided when it becomes free.
//!
//! Such a port holds its packets. A packet waits in the scheduler until the link takes it, and only then its
//! arrival is known. The times at which the link takes one are therefore events of the port, beside the
//! arrivals; late calls handle each at its own time.
//!
//! The port's own [`Queue`](crate::Queue) covers all queues of the scheduler together: its rules come first,
//! and its counters and statistics are those of the port.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use super::EgressPort;
use crate::codel::CodelVerdict;
use crate::counters::DropReason;
use crate::faults::Faults;
use crate::packet::Packet;
use crate::queue::Admission;
use crate::scheduler::Scheduler;

impl<P: Packet + Clone> EgressPort<P> {
    /// Gives an unused port a scheduler. It holds its packets from then on.
    pub fn with_scheduler(mut self, scheduler: Scheduler<P>) -> Self {
        if self.held.is_none() {
            self.hold_packets(Faults::none());
        }
        if let Some(held) = &mut self.held {
            held.scheduler = Some(Box::new(scheduler));
        }
        self
    }

    /// The scheduler, if the port has one; up to date after [`Self::advance`].
    pub fn scheduler(&self) -> Option<&Scheduler<P>> {
        self.held.as_deref()?.scheduler.as_deref()
    }

    /// Queues a packet at a port with a scheduler.
    pub(super) fn enqueue(&mut self, now: Time, mut packet: P, room: ByteSize) -> Admission {
        let length = packet.length();
        if length > self.link.mtu() {
            self.count_oversized(length);
            return Admission::Dropped(DropReason::Mtu);
        }
        self.dequeue_due(now);
        let port_decides = self.queue.arrive(now, length, packet.ecn(), room);
        match port_decides {
            Admission::Dropped(_) => return port_decides,
            Admission::Marked => packet.set_ecn(Ecn::Ce),
            Admission::Queued => {}
        }
        let Some(held) = self.held.as_deref_mut() else {
            return port_decides;
        };
        let Some(scheduler) = held.scheduler.as_deref_mut() else {
            return port_decides;
        };
        let queue = scheduler.classify(&packet);
        let class_decides = scheduler.arrive(queue, now, length, packet.ecn());
        match class_decides {
            Admission::Dropped(reason) => {
                if port_decides == Admission::Marked {
                    self.queue.forget_mark(length);
                }
                self.queue.record_drop(reason, length);
                return class_decides;
            }
            Admission::Marked => {
                packet.set_ecn(Ecn::Ce);
                self.queue.record_mark(length);
            }
            Admission::Queued => {}
        }
        if scheduler.is_empty() && self.link.free_at() <= now {
            scheduler.pass(queue, now, packet.ecn());
            let (_, arrival) = self.link.transmit(now, length);
            held.push(arrival, length, packet);
        } else {
            scheduler.push(queue, now, length, packet);
            self.queue.enter(now, length);
            held.next_dequeue = self.link.free_at();
        }
        match port_decides {
            Admission::Marked => port_decides,
            _ => class_decides,
        }
    }

    /// Returns when the link takes the next packet from a scheduler; [`Time::MAX`] if none waits, at rate
    /// zero, and for ports without one.
    #[inline]
    pub(super) fn next_dequeue(&self) -> Time {
        let held = self.held.as_deref();
        held.map_or(Time::MAX, |held| held.next_dequeue)
    }

    /// Lets the link take the packets from a scheduler that are due by `now`.
    #[inline]
    pub(super) fn dequeue_due(&mut self, now: Time) {
        while self.next_dequeue() <= now && self.next_dequeue() < Time::MAX {
            self.dequeue(self.next_dequeue());
        }
    }

    /// Lets the free link take the next packet that CoDel does not drop.
    fn dequeue(&mut self, now: Time) {
        let Some(held) = self.held.as_deref_mut() else {
            return;
        };
        while let Some(dequeued) = held.scheduler.as_mut().and_then(|queues| queues.pop(now)) {
            let length = dequeued.length;
            self.queue.leave(now, length);
            match dequeued.verdict {
                CodelVerdict::Drop => {
                    self.queue.record_drop(DropReason::Codel, length);
                    continue;
                }
                CodelVerdict::Mark => self.queue.record_mark(length),
                CodelVerdict::Pass => {}
            }
            let (_, arrival) = self.link.transmit(now, length);
            held.push(arrival, length, dequeued.packet);
            break;
        }
        self.update_dequeue();
    }

    /// Computes the time of the next dequeue anew, after a change of the link or of the queues.
    pub(super) fn update_dequeue(&mut self) {
        if let Some(held) = &mut self.held
            && let Some(scheduler) = &held.scheduler
        {
            held.next_dequeue = if scheduler.is_empty() {
                Time::MAX
            } else {
                self.link.free_at()
            };
        }
    }
}
