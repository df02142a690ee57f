//! The timers of the endpoints, by host.
//!
//! Timers are lazy: an endpoint is called at the earliest time that it has asked for since its last call,
//! and asked again then. A timer that was replaced by an earlier one stays in its host's heap, and is
//! ignored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_network::EventQueue;
use weir_units::Time;

/// The timers of all endpoints.
#[derive(Debug)]
pub(super) struct HostTimers {
    /// By host: time and position of the endpoint.
    heaps: Vec<BinaryHeap<Reverse<(Time, u32)>>>,
    /// The first timer of each host; [`Time::MAX`] without timers.
    first: Vec<Time>,
    event_queue: EventQueue,
}

impl HostTimers {
    pub(super) fn new(hosts: usize) -> Self {
        Self {
            heaps: vec![BinaryHeap::new(); hosts],
            first: vec![Time::MAX; hosts],
            event_queue: EventQueue::new(hosts),
        }
    }

    /// Returns the first time that cannot be simulated.
    pub(super) fn horizon(&self) -> Time {
        self.event_queue.horizon()
    }

    /// Sets a timer of the endpoint at `position` of a host.
    #[inline]
    pub(super) fn set(&mut self, host: u32, position: u32, time: Time) {
        if time >= self.event_queue.horizon() {
            return;
        }
        let Some(heap) = self.heaps.get_mut(host as usize) else {
            return;
        };
        heap.push(Reverse((time, position)));
        if time < self.first[host as usize] {
            self.set_first(host as usize, time);
        }
    }

    fn set_first(&mut self, host: usize, time: Time) {
        self.first[host] = time;
        self.event_queue.set(host, time);
    }

    /// Returns the earliest timer and its host; without timers, a time beyond the horizon.
    #[inline]
    pub(super) fn next(&self) -> (Time, usize) {
        self.event_queue.first()
    }

    /// Returns the earliest timer of a host; [`Time::MAX`] without timers.
    #[inline]
    pub(super) fn of(&self, host: u32) -> Time {
        self.first.get(host as usize).copied().unwrap_or(Time::MAX)
    }

    /// Removes the earliest timer of a host, and returns it with its endpoint.
    pub(super) fn pop(&mut self, host: usize) -> Option<(Time, u32)> {
        let heap = self.heaps.get_mut(host)?;
        let Reverse(timer) = heap.pop()?;
        let next = heap.peek().map_or(Time::MAX, |Reverse((time, _))| *time);
        self.set_first(host, next);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timers_of_each_host_are_in_order() {
        let at = Time::from_nanos;
        let mut timers = HostTimers::new(3);
        assert!(timers.next().0 >= timers.horizon());
        timers.set(2, 7, at(50));
        timers.set(0, 1, at(60));
        timers.set(2, 3, at(40));
        timers.set(2, 5, Time::MAX);
        assert_eq!(timers.next(), (at(40), 2));
        assert_eq!(timers.of(0), at(60));
        assert_eq!(timers.of(1), Time::MAX);
        assert_eq!(timers.pop(2), Some((at(40), 3)));
        assert_eq!(timers.next(), (at(50), 2));
        assert_eq!(timers.pop(2), Some((at(50), 7)));
        assert_eq!(timers.next(), (at(60), 0));
        assert_eq!(timers.pop(2), None);
    }
}
