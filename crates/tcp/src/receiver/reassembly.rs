//! Reassembly of data received out of order.

use crate::scoreboard::SackRange;

/// The most ranges stored. A sender with this many gaps retransmits the rest.
pub(super) const MAX_RUNS: usize = 16_384;

/// Separate ranges of bytes, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    pub(super) runs: Vec<SackRange>,
}

impl Reassembly {
    /// Returns the end of the received data; 0 without any.
    pub(super) fn highest(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// Adds a range. Returns the merged range that contains it; `None` if it cannot be stored.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> Option<SackRange> {
        // Most arrivals extend the last range or begin one behind it.
        let first = match self.runs.last() {
            Some(last) if last.start <= start && start <= last.end => self.runs.len() - 1,
            _ => self.runs.partition_point(|run| run.end < start),
        };
        let touched = self
            .runs
            .iter()
            .skip(first)
            .take_while(|run| run.start <= end)
            .count();
        if touched == 0 {
            if self.runs.len() >= MAX_RUNS {
                return None;
            }
            let run = SackRange { start, end };
            self.runs.insert(first, run);
            return Some(run);
        }
        let last = self.runs.get(first + touched - 1)?.end;
        let run = self.runs.get_mut(first)?;
        run.start = run.start.min(start);
        run.end = last.max(end);
        let run = *run;
        self.runs.drain(first + 1..first + touched);
        Some(run)
    }

    /// Returns the first overlap of a stored range with `start..end`.
    pub(super) fn overlap(&self, start: u64, end: u64) -> Option<SackRange> {
        let first = self.runs.partition_point(|run| run.end <= start);
        let run = self.runs.get(first).filter(|run| run.start < end)?;
        Some(SackRange {
            start: run.start.max(start),
            end: run.end.min(end),
        })
    }

    /// Removes the ranges reached by `next`. Returns the end of the last one.
    pub(super) fn take_up_to(&mut self, next: u64) -> Option<u64> {
        let reached = self.runs.partition_point(|run| run.start <= next);
        let end = self.runs.get(reached.checked_sub(1)?)?.end;
        self.runs.drain(..reached);
        Some(end.max(next))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares against a set of single bytes.
        #[test]
        fn runs_hold_exactly_the_received_bytes(
            arrivals in prop::collection::vec((1u64..200, 1u64..20), 1..60),
            next in 0u64..60,
        ) {
            let (mut runs, mut bytes) = (Reassembly::default(), BTreeSet::new());
            for (start, length) in arrivals {
                let end = start + length;
                let shared = (start..end).find(|byte| bytes.contains(byte));
                prop_assert_eq!(runs.overlap(start, end).map(|block| block.start), shared);
                bytes.extend(start..end);
                let run = runs.insert(start, end).unwrap();
                prop_assert!((run.start..run.end).all(|byte| bytes.contains(&byte)));
                prop_assert!(!bytes.contains(&(run.start - 1)) && !bytes.contains(&run.end));
                let kept: Vec<u64> =
                    runs.runs.iter().flat_map(|run| run.start..run.end).collect();
                prop_assert!(kept.iter().eq(bytes.iter()));
                prop_assert!(runs.runs.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            let reached = runs.take_up_to(next);
            let mut expected = next;
            while bytes.contains(&expected) {
                expected += 1;
            }
            prop_assert_eq!(reached.unwrap_or(next), expected);
            prop_assert!(runs.runs.iter().all(|run| run.start > next));
        }
    }

    #[test]
    fn the_number_of_runs_is_bounded() {
        let mut runs = Reassembly::default();
        for number in 0..MAX_RUNS as u64 {
            assert!(runs.insert(10 * number, 10 * number + 1).is_some());
        }
        assert_eq!(runs.insert(u64::MAX - 1, u64::MAX), None);
        assert!(runs.insert(1, 5).is_some());
        assert_eq!(runs.runs.len(), MAX_RUNS);
    }
}
