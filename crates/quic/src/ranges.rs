//! A set of integers as sorted ranges: bytes of a stream, packet numbers.
//!
//! Designed for sets with few ranges that change at their ends: inserting at the back, removing at
//! the front and extending the last range take constant time, everything else a binary search and a
//! move of the elements behind.

use std::collections::VecDeque;
use std::ops::Range;

/// Disjoint ranges with gaps between them, smallest first. An empty set allocates no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: VecDeque<Range<u64>>,
    covered: u64,
}

impl RangeSet {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
            covered: 0,
        }
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges.
    pub(crate) fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the number of integers.
    pub(crate) const fn covered(&self) -> u64 {
        self.covered
    }

    /// Returns the ranges, smallest first.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator {
        self.ranges.iter().cloned()
    }

    /// Returns the smallest range.
    pub(crate) fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// Removes and returns the smallest range.
    pub(crate) fn pop_front(&mut self) -> Option<Range<u64>> {
        let range = self.ranges.pop_front()?;
        self.covered -= range.end - range.start;
        Some(range)
    }

    /// Whether the set contains `value`.
    #[cfg(test)]
    pub(crate) fn contains(&self, value: u64) -> bool {
        self.ranges
            .get(self.first_ending_after(value))
            .is_some_and(|range| range.start <= value)
    }

    /// Returns the ranges that overlap `range`, smallest first.
    pub(crate) fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        self.ranges
            .range(self.first_ending_after(range.start)..)
            .take_while(move |held| held.start < range.end)
            .cloned()
    }

    /// Inserts a range; returns how many of its integers are new.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Adjacent ranges merge with the new one, including those that end at its start.
        let from = match self.ranges.back() {
            Some(last) if last.end < range.start => self.ranges.len(),
            Some(last) if last.start <= range.start => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|held| held.end < range.start),
        };
        let mut merged = range;
        let mut held = 0;
        let mut to = from;
        while let Some(next) = self.ranges.get(to).filter(|next| next.start <= merged.end) {
            held += next.end - next.start;
            merged.start = merged.start.min(next.start);
            merged.end = merged.end.max(next.end);
            to += 1;
        }
        let new = merged.end - merged.start - held;
        self.covered += new;
        if to == from {
            self.ranges.insert(from, merged);
        } else {
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
        }
        new
    }

    /// Removes a range; returns how many of its integers were in the set.
    pub(crate) fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let mut index = self.first_ending_after(range.start);
        let before = self.covered;
        while let Some(held) = self.ranges.get_mut(index) {
            if held.start >= range.end {
                break;
            }
            let cut = held.start.max(range.start)..held.end.min(range.end);
            self.covered -= cut.end - cut.start;
            match (cut.start == held.start, cut.end == held.end) {
                (true, true) => {
                    self.ranges.remove(index);
                }
                (true, false) => {
                    held.start = cut.end;
                    break;
                }
                (false, true) => {
                    held.end = cut.start;
                    index += 1;
                }
                (false, false) => {
                    let rest = cut.end..held.end;
                    held.end = cut.start;
                    self.ranges.insert(index + 1, rest);
                    break;
                }
            }
        }
        before - self.covered
    }

    /// Removes all ranges.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    fn first_ending_after(&self, value: u64) -> usize {
        match self.ranges.front() {
            Some(first) if first.end > value => 0,
            _ => self.ranges.partition_point(|held| held.end <= value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn adjacent_ranges_are_merged() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(10..20), 10);
        assert_eq!(set.insert(30..40), 10);
        assert_eq!(set.insert(20..30), 10);
        assert_eq!((set.iter().len(), set.first()), (1, Some(10..40)));
        assert_eq!(set.insert(0..50), 20);
        assert_eq!(set.remove(5..6), 1);
        assert_eq!(set.pop_front(), Some(0..5));
        assert_eq!((set.first(), set.covered()), (Some(6..50), 44));
    }

    #[test]
    fn empty_ranges_change_nothing() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(5..5), 0);
        assert_eq!(set.remove(5..5), 0);
        assert!(set.is_empty());
        assert_eq!(set.pop_front(), None);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(Range<u64>),
        Remove(Range<u64>),
        PopFront,
    }

    fn op() -> impl Strategy<Value = Op> {
        let range = || (0..100u64, 0..30u64).prop_map(|(start, length)| start..start + length);
        prop_oneof![
            4 => range().prop_map(Op::Insert),
            3 => range().prop_map(Op::Remove),
            1 => Just(Op::PopFront),
        ]
    }

    proptest! {
        #[test]
        fn the_range_set_matches_a_set_of_integers(ops in prop::collection::vec(op(), 0..60)) {
            let mut set = RangeSet::new();
            let mut model = BTreeSet::new();
            for op in ops {
                let before = model.len();
                match op {
                    Op::Insert(range) => {
                        let new = set.insert(range.clone());
                        model.extend(range);
                        prop_assert_eq!(new as usize, model.len() - before);
                    }
                    Op::Remove(range) => {
                        let gone = set.remove(range.clone());
                        model.retain(|value| !range.contains(value));
                        prop_assert_eq!(gone as usize, before - model.len());
                    }
                    Op::PopFront => {
                        for value in set.pop_front().into_iter().flatten() {
                            prop_assert_eq!(model.pop_first(), Some(value));
                        }
                    }
                }
                let held: Vec<u64> = set.iter().flatten().collect();
                prop_assert_eq!(&held, &model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.covered() as usize, model.len());
                let apart = set.iter().zip(set.iter().skip(1)).all(|(low, high)| low.end < high.start);
                prop_assert!(apart, "{:?}", set);
                prop_assert!((0..130).all(|value| set.contains(value) == model.contains(&value)));
                let within = 20..40u64;
                let overlapping: Vec<_> = set.overlapping(within.clone()).collect();
                let expected: Vec<_> = set
                    .iter()
                    .filter(|held| held.clone().any(|value| within.contains(&value)))
                    .collect();
                prop_assert_eq!(overlapping, expected);
            }
        }
    }
}
