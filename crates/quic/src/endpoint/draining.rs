//! Connections in their draining period, of which only the keys are kept that late packets are found
//! by: connection IDs and the peer's reset tokens. Such packets are dropped without an answer (RFC
//! 9000, section 10.2.2).

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use weir_units::Time;

use crate::ConnectionId;
use crate::secret::ResetTokenDigest;

/// The most entries; then the oldest are forgotten, and a late packet may get a stateless reset.
const MOST: usize = 64 * 1024;

/// A connection ID of ours, or a reset token of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum DrainingKey {
    Id(ConnectionId),
    Reset(ResetTokenDigest),
}

/// The keys of ended connections, each until the end of its draining period.
#[derive(Default)]
pub(super) struct Draining {
    keys: FxHashSet<DrainingKey>,
    /// In the order of their addition.
    queue: VecDeque<(Time, DrainingKey)>,
}

impl Draining {
    pub(super) fn add(&mut self, until: Time, key: DrainingKey) {
        if self.queue.len() == MOST {
            self.forget_oldest();
        }
        self.keys.insert(key);
        self.queue.push_back((until, key));
    }

    /// Whether the key is listed. Forgets those whose period has ended.
    pub(super) fn contains(&mut self, now: Time, key: &DrainingKey) -> bool {
        while self.queue.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
        self.keys.contains(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.queue.pop_front() {
            self.keys.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> DrainingKey {
        DrainingKey::Id(ConnectionId::new(&number.to_be_bytes()).unwrap())
    }

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn keys_are_listed_until_the_end_of_their_period() {
        let mut draining = Draining::default();
        draining.add(at(10), id(1));
        draining.add(at(20), id(2));
        assert!(draining.contains(at(9), &id(1)));
        assert!(!draining.contains(at(10), &id(1)));
        assert!(draining.contains(at(19), &id(2)));
        assert!(!draining.contains(at(20), &id(2)));
        assert!(draining.keys.is_empty() && draining.queue.is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let mut draining = Draining::default();
        (0..=MOST).for_each(|number| draining.add(Time::MAX, id(number)));
        assert_eq!(draining.keys.len(), MOST);
        assert!(!draining.contains(at(0), &id(0)));
        assert!(draining.contains(at(0), &id(MOST)));
    }
}
