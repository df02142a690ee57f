//! The replay window of a path secret: which key IDs were used (`docs/known-peers.md`, section 4).

use super::KeyId;

/// The state of a key ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Never used.
    Fresh,
    /// Used before.
    Used,
    /// Before the window: nobody knows.
    TooOld,
}

/// A bit for each of the last key IDs, up to the largest used one.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    /// One more than the largest used ID; zero while there is none.
    end: KeyId,
    /// The bit of an ID is at the ID modulo the number of bits.
    bits: Box<[u64]>,
}

impl ReplayWindow {
    /// Creates a window of this many IDs, rounded up to a multiple of 64.
    pub(crate) fn new(ids: u32) -> Self {
        let words = ids.div_ceil(u64::BITS).max(1) as usize;
        Self {
            end: 0,
            bits: vec![0; words].into(),
        }
    }

    fn length(&self) -> u64 {
        self.bits.len() as u64 * u64::from(u64::BITS)
    }

    fn position(&self, id: KeyId) -> (usize, u64) {
        let bit = id % self.length();
        let word = (bit / u64::from(u64::BITS)) as usize;
        (word, 1 << (bit % u64::from(u64::BITS)))
    }

    /// Returns the state of a key ID.
    pub(crate) fn judge(&self, id: KeyId) -> Verdict {
        if id >= self.end {
            return Verdict::Fresh;
        }
        if self.end - id > self.length() {
            return Verdict::TooOld;
        }
        let (word, bit) = self.position(id);
        if self.bits[word] & bit == 0 {
            Verdict::Fresh
        } else {
            Verdict::Used
        }
    }

    /// Returns the state of a key ID, and marks it as used if it was fresh.
    pub(crate) fn mark(&mut self, id: KeyId) -> Verdict {
        let verdict = self.judge(id);
        if verdict != Verdict::Fresh {
            return verdict;
        }
        if id >= self.end {
            let skipped = self.end..id;
            if id - self.end >= self.length() {
                self.bits.fill(0);
            } else {
                for skipped in skipped {
                    let (word, bit) = self.position(skipped);
                    self.bits[word] &= !bit;
                }
            }
            self.end = id.saturating_add(1);
        }
        let (word, bit) = self.position(id);
        self.bits[word] |= bit;
        Verdict::Fresh
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set that forgets nothing: no ID is fresh twice, and none is refused without a
        /// reason.
        #[test]
        fn no_id_is_fresh_twice_and_only_old_ones_are_refused(
            ids in prop::collection::vec(prop_oneof![0..300_u64, 0..10_000_u64, any::<u32>().prop_map(u64::from)], 0..300),
            length in 1..400_u32,
        ) {
            let mut window = ReplayWindow::new(length);
            let mut used = BTreeSet::new();
            for id in ids {
                let largest = used.last().copied();
                let judged = window.judge(id);
                prop_assert_eq!(window.mark(id), judged);
                match judged {
                    Verdict::Fresh => prop_assert!(used.insert(id)),
                    Verdict::Used => prop_assert!(used.contains(&id)),
                    Verdict::TooOld => {
                        prop_assert!(largest.unwrap() - id >= u64::from(length));
                    }
                }
            }
        }
    }

    #[test]
    fn ids_at_the_edges_are_judged() {
        let mut window = ReplayWindow::new(64);
        assert_eq!(window.mark(0), Verdict::Fresh);
        assert_eq!(window.mark(63), Verdict::Fresh);
        assert_eq!(window.judge(0), Verdict::Used);
        assert_eq!(window.mark(64), Verdict::Fresh);
        assert_eq!(window.judge(0), Verdict::TooOld);
        assert_eq!(window.judge(1), Verdict::Fresh);
        assert_eq!(window.mark(u64::MAX - 1), Verdict::Fresh);
        assert_eq!(window.judge(64), Verdict::TooOld);
        assert_eq!(window.mark(u64::MAX - 1), Verdict::Used);
    }
}
