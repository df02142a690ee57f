//! What late packets of ended connections can be recognized by: the connection IDs, and the peer's
//! reset tokens. Such packets are dropped without an answer (RFC 9000, section 10.2.2), and the
//! connections themselves are not kept for that.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use weir_units::Time;

use crate::ConnectionId;
use crate::secret::ResetTokenDigest;

/// The most entries; then the oldest are forgotten, and a late packet may get a stateless reset.
const MOST: usize = 64 * 1024;

/// A connection ID of ours, or a reset token of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trace {
    Id(ConnectionId),
    Reset(ResetTokenDigest),
}

/// The traces of ended connections, each until the end of its draining period.
#[derive(Default)]
pub(super) struct Draining {
    traces: FxHashSet<Trace>,
    /// In the order of their addition.
    queue: VecDeque<(Time, Trace)>,
}

impl Draining {
    pub(super) fn add(&mut self, until: Time, trace: Trace) {
        if self.queue.len() == MOST {
            self.forget_oldest();
        }
        self.traces.insert(trace);
        self.queue.push_back((until, trace));
    }

    /// Whether the trace is listed. Forgets those whose period has ended.
    pub(super) fn contains(&mut self, now: Time, trace: &Trace) -> bool {
        while self.queue.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
        self.traces.contains(trace)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    fn forget_oldest(&mut self) {
        if let Some((_, trace)) = self.queue.pop_front() {
            self.traces.remove(&trace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Trace {
        Trace::Id(ConnectionId::new(&number.to_be_bytes()).unwrap())
    }

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn traces_are_listed_until_the_end_of_their_period() {
        let mut draining = Draining::default();
        draining.add(at(10), id(1));
        draining.add(at(20), id(2));
        assert!(draining.contains(at(9), &id(1)));
        assert!(!draining.contains(at(10), &id(1)));
        assert!(draining.contains(at(19), &id(2)));
        assert!(!draining.contains(at(20), &id(2)));
        assert!(draining.traces.is_empty() && draining.queue.is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let mut draining = Draining::default();
        (0..=MOST).for_each(|number| draining.add(Time::MAX, id(number)));
        assert_eq!(draining.traces.len(), MOST);
        assert!(!draining.contains(at(0), &id(0)));
        assert!(draining.contains(at(0), &id(MOST)));
    }
}
