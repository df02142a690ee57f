//! Sets of packets within a window, as a ring of bits.

/// A set of counts that differ by less than its capacity.
#[derive(Clone, Debug)]
pub(crate) struct PacketSet {
    words: Vec<u64>,
    mask: u64,
    len: usize,
}

impl PacketSet {
    /// Creates an empty set for counts in a window of `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        let bits = capacity.max(64).next_power_of_two();
        Self {
            words: vec![0; bits / 64],
            mask: bits as u64 - 1,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn place(&self, count: u64) -> (usize, u64) {
        let bit = count & self.mask;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    pub(crate) fn contains(&self, count: u64) -> bool {
        let (word, bit) = self.place(count);
        self.words[word] & bit != 0
    }

    /// Inserts a count. Returns whether it is new.
    pub(crate) fn insert(&mut self, count: u64) -> bool {
        let (word, bit) = self.place(count);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes a count. Returns whether it was in the set.
    pub(crate) fn remove(&mut self, count: u64) -> bool {
        let (word, bit) = self.place(count);
        let was_there = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        self.len -= usize::from(was_there);
        was_there
    }

    /// Returns the first count in `from..to` that is in the set.
    pub(crate) fn first_inside(&self, from: u64, to: u64) -> Option<u64> {
        self.first(from, to, 0)
    }

    /// Returns the first count in `from..to` that is not in the set.
    pub(crate) fn first_outside(&self, from: u64, to: u64) -> Option<u64> {
        self.first(from, to, u64::MAX)
    }

    /// Returns the first count in `from..to` whose bit differs from those of `skipped`, a word at a
    /// time.
    fn first(&self, from: u64, to: u64, skipped: u64) -> Option<u64> {
        let mut next = from;
        while next < to {
            let (word, _) = self.place(next);
            let offset = next % 64;
            let found = (self.words[word] ^ skipped) >> offset;
            if found != 0 {
                let count = next + u64::from(found.trailing_zeros());
                return (count < to).then_some(count);
            }
            next += 64 - offset;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_packet_set_matches_a_btree_set(
            base in 0_u64..1 << 40,
            steps in prop::collection::vec((0_u64..256, any::<bool>()), 0..200),
            from in 0_u64..256,
            length in 0_u64..256,
        ) {
            let (mut set, mut model) = (PacketSet::new(256), BTreeSet::new());
            for (offset, inserts) in steps {
                let count = base + offset;
                if inserts {
                    prop_assert_eq!(set.insert(count), model.insert(count));
                } else {
                    prop_assert_eq!(set.remove(count), model.remove(&count));
                }
                prop_assert_eq!(set.contains(count), inserts);
            }
            prop_assert_eq!(set.is_empty(), model.is_empty());
            let (from, to) = (base + from, (base + from + length).min(base + 256));
            let inside = (from..to).find(|count| model.contains(count));
            let outside = (from..to).find(|count| !model.contains(count));
            prop_assert_eq!(set.first_inside(from, to), inside);
            prop_assert_eq!(set.first_outside(from, to), outside);
        }
    }
}
