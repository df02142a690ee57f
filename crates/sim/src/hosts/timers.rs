//! The timers of the endpoints, by host.
//!
//! Timers are lazy: an endpoint is called at the earliest time that it has asked for since its last call,
//! and asked again then. A timer that was replaced by an earlier one stays in its host's heap, and is
//! ignored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_fabric::prefetch;
use weir_network::EventQueue;
use weir_units::Time;

/// The timers of all endpoints.
#[derive(Debug)]
pub(super) struct HostTimers {
    hosts: Vec<Timers>,
    /// The first timer of each host.
    event_queue: EventQueue,
}

/// The timers of a host.
#[derive(Clone, Debug)]
struct Timers {
    /// The first one: apart, as most hosts have few endpoints.
    first: Timer,
    others: BinaryHeap<Reverse<TimerKey>>,
}

/// A time, and the position of the endpoint.
type Timer = (Time, u32);

/// A timer as one number, which heaps compare without branches: the time before the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TimerKey(u128);

impl TimerKey {
    fn new((time, position): Timer) -> Self {
        Self(u128::from(time.as_nanos()) << u32::BITS | u128::from(position))
    }

    fn timer(self) -> Timer {
        (
            Time::from_nanos((self.0 >> u32::BITS) as u64),
            self.0 as u32,
        )
    }
}

const NO_TIMER: Timer = (Time::MAX, u32::MAX);

impl HostTimers {
    pub(super) fn new(hosts: usize) -> Self {
        let none = Timers {
            first: NO_TIMER,
            others: BinaryHeap::new(),
        };
        Self {
            hosts: vec![none; hosts],
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
        let Some(timers) = self.hosts.get_mut(host as usize) else {
            return;
        };
        let timer = (time, position);
        if timer > timers.first {
            return timers.others.push(Reverse(TimerKey::new(timer)));
        }
        let before = std::mem::replace(&mut timers.first, timer);
        if before != NO_TIMER {
            timers.others.push(Reverse(TimerKey::new(before)));
        }
        self.event_queue.set(host as usize, time);
    }

    /// Returns the earliest timer and its host; without timers, a time beyond the horizon.
    #[inline]
    pub(super) fn next(&self) -> (Time, usize) {
        self.event_queue.first()
    }

    /// Returns the earliest timer of a host; [`Time::MAX`] without timers.
    #[inline]
    pub(super) fn of(&self, host: u32) -> Time {
        let timers = self.hosts.get(host as usize);
        timers.map_or(Time::MAX, |timers| timers.first.0)
    }

    /// Returns the earliest timer of a host and its endpoint; [`Time::MAX`] without timers.
    #[inline]
    pub(super) fn first(&self, host: u32) -> Timer {
        let timers = self.hosts.get(host as usize);
        timers.map_or(NO_TIMER, |timers| timers.first)
    }

    /// Has the processor fetch the timers of a host.
    #[inline]
    pub(super) fn prefetch(&self, host: u32) {
        if let Some(timers) = self.hosts.get(host as usize) {
            prefetch(timers);
        }
    }

    /// Removes the earliest timer of a host, and returns it with its endpoint.
    pub(super) fn pop(&mut self, host: usize) -> Option<Timer> {
        let timers = self.hosts.get_mut(host)?;
        let next = timers.others.pop();
        let next = next.map_or(NO_TIMER, |Reverse(key)| key.timer());
        let timer = std::mem::replace(&mut timers.first, next);
        self.event_queue.set(host, next.0);
        (timer != NO_TIMER).then_some(timer)
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
