//! A queue of an application's timers.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use weir_units::Time;

/// Timers by time; at the same time, in the order in which they were set.
#[derive(Debug)]
pub(super) struct TimerQueue<T> {
    entries: BinaryHeap<Entry<T>>,
    next_number: u64,
}

#[derive(Debug)]
struct Entry<T> {
    time: Time,
    number: u64,
    what: T,
}

impl<T> TimerQueue<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: BinaryHeap::new(),
            next_number: 0,
        }
    }

    /// Sets a timer at `time`.
    pub(super) fn note(&mut self, time: Time, what: T) {
        self.entries.push(Entry {
            time,
            number: self.next_number,
            what,
        });
        self.next_number += 1;
    }

    /// Moves all timers; their order stays.
    pub(super) fn move_all(&mut self, to: impl Fn(Time) -> Time) {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let moved = entries.map(|entry| Entry {
            time: to(entry.time),
            ..entry
        });
        self.entries = moved.collect();
    }

    /// Iterates over all timers, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.what)
    }

    /// Returns the time of the next timer.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.entries.peek().map(|entry| entry.time)
    }

    /// Returns the next timer that is due by `now`.
    pub(super) fn due(&mut self, now: Time) -> Option<T> {
        self.timeout().filter(|&time| time <= now)?;
        self.entries.pop().map(|entry| entry.what)
    }
}

impl<T> Entry<T> {
    fn rank(&self) -> (Time, u64) {
        (self.time, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// Inverted, as the heap returns its greatest entry: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_due_in_order_of_time_and_insertion() {
        let at = Time::from_nanos;
        let mut agenda = TimerQueue::new();
        for (time, what) in [(5, 'b'), (3, 'a'), (5, 'c'), (9, 'd')] {
            agenda.note(at(time), what);
        }
        assert_eq!(agenda.timeout(), Some(at(3)));
        let due: String = std::iter::from_fn(|| agenda.due(at(5))).collect();
        assert_eq!(due, "abc");
        assert_eq!(agenda.timeout(), Some(at(9)));
    }
}
