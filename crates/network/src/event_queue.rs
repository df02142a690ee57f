//! The event queue: a tournament tree over event sources, each with the time of its next event.
//!
//! Links with constant delay deliver in order and timers are lazy. The queue therefore holds one entry
//! per link or timer and none per packet, and does not grow during a simulation. Each entry is one word,
//! the time in the high bits and the source in the low ones, so that a match is the minimum of words.
//! Setting an entry costs one such step per level, without a branch. At equal times the lower source
//! number comes first.

use weir_fabric::prefetch;
use weir_units::Time;

/// The next event of each source.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A complete tree of matches: the root at 0, its children at 1 to 8, and so on; the sources from
    /// `first_leaf` on.
    matches: Vec<Match>,
    first_leaf: usize,
    /// The number of entries down to those of groups.
    group_entries: usize,
    /// The winner at the root: its time and its source.
    first: (Time, usize),
    /// The low bits of an entry, which hold the source.
    source_bits: u32,
    /// Times from here on count as never.
    horizon: Time,
}

/// The entry of a source without an event.
const NEVER: u64 = u64::MAX;
/// The number of bits for an entry's index in its match.
const MATCH_BITS: u32 = 3;
/// The number of entries in a match.
const MATCH: usize = 1 << MATCH_BITS;

/// Entries of which the smallest wins: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Match([u64; MATCH]);

impl Match {
    #[inline(always)]
    fn winner(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        let (ab, cd, ef, gh) = (a.min(b), c.min(d), e.min(f), g.min(h));
        ab.min(cd).min(ef.min(gh))
    }
}

/// With this many groups, most of their earliest events come after several others.
const LEAST_GROUPS: usize = 32;

impl EventQueue {
    /// Creates a queue for sources numbered from zero, without events.
    pub fn new(sources: usize) -> Self {
        let source_bits = source_bits(sources);
        let tree_bits = source_bits.next_multiple_of(MATCH_BITS);
        // All matches but those of the sources: 1 + 8 + 64 + …
        let leaves = 1 << (tree_bits - MATCH_BITS);
        let first_leaf = (leaves - 1) / (MATCH - 1);
        Self {
            matches: vec![Match([NEVER; MATCH]); first_leaf + leaves],
            first_leaf,
            group_entries: group_entries(sources, tree_bits),
            first: decoded(NEVER, source_bits),
            source_bits,
            horizon: Time::from_nanos(NEVER >> source_bits),
        }
    }

    /// Returns the time from which on times count as never: 2^64 ns divided by the number of sources.
    #[inline]
    pub fn horizon(&self) -> Time {
        self.horizon
    }

    /// Returns the time of the source's next event.
    #[inline]
    pub fn time(&self, source: usize) -> Option<Time> {
        let entry = self.matches[self.first_leaf + source / MATCH].0[source % MATCH];
        (entry != NEVER).then(|| Time::from_nanos(entry >> self.source_bits))
    }

    /// Sets the time of the source's next event; [`Time::MAX`] for none.
    #[inline]
    pub fn set(&mut self, source: usize, time: Time) {
        let mut winner = if time < self.horizon {
            time.as_nanos() << self.source_bits | source as u64
        } else {
            NEVER
        };
        // The children of match `n` are the matches from `8 n + 1` on.
        let (mut number, mut index) = (self.first_leaf + source / MATCH, source % MATCH);
        while let Some(entries) = self.matches.get_mut(number) {
            entries.0[index % MATCH] = winner;
            winner = entries.winner();
            let Some(next) = number.checked_sub(1) else {
                break;
            };
            (number, index) = (next / MATCH, next % MATCH);
        }
        self.first = decoded(winner, self.source_bits);
    }

    /// Has the processor fetch the entries that change with the event of a source.
    #[inline]
    pub(crate) fn prefetch(&self, source: usize) {
        let mut entry = self.first_leaf + source / MATCH;
        for _ in 0..2 {
            if let Some(entries) = self.matches.get(entry) {
                prefetch(entries);
            }
            entry = entry.saturating_sub(1) / MATCH;
        }
    }

    /// Returns the earliest source of the group that this one belongs to; an arbitrary one if none of the
    /// group has an event. There are some dozens of groups.
    #[inline]
    pub(crate) fn earliest_near(&self, source: usize) -> usize {
        let mut entry = MATCH * self.first_leaf + source;
        while entry >= self.group_entries {
            entry = entry / MATCH - 1;
        }
        let entries = self.matches.get(entry / MATCH);
        let entry = entries.map_or(NEVER, |entries| entries.0[entry % MATCH]);
        decoded(entry, self.source_bits).1
    }

    /// Returns the earliest event and its source; without events, [`Self::horizon`] and an arbitrary source.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        self.first
    }
}

/// Returns the time and the source of an entry.
#[inline(always)]
fn decoded(entry: u64, source_bits: u32) -> (Time, usize) {
    let source = entry & ((1 << source_bits) - 1);
    (Time::from_nanos(entry >> source_bits), source as usize)
}

/// Returns the number of bits for this number of sources.
fn source_bits(sources: usize) -> u32 {
    sources.max(2).next_power_of_two().trailing_zeros()
}

/// Returns the number of entries down to the first level on which `LEAST_GROUPS` are in use.
fn group_entries(sources: usize, tree_bits: u32) -> usize {
    let (mut entries, mut level, mut bits) = (MATCH, MATCH, tree_bits - MATCH_BITS);
    while bits > 0 && sources >> bits < LEAST_GROUPS {
        bits -= MATCH_BITS;
        level *= MATCH;
        entries += level;
    }
    entries
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn the_earliest_event_is_first_and_ties_go_by_source() {
        let mut event_queue = EventQueue::new(3);
        assert_eq!(event_queue.first().0, event_queue.horizon());
        event_queue.set(2, at(5));
        event_queue.set(1, at(5));
        event_queue.set(0, at(7));
        assert_eq!(event_queue.first(), (Time::from_nanos(5), 1));
        event_queue.set(1, Time::MAX);
        assert_eq!(event_queue.first(), (Time::from_nanos(5), 2));
        event_queue.set(2, at(8));
        assert_eq!(event_queue.first(), (Time::from_nanos(7), 0));
    }

    #[test]
    fn a_queue_with_one_or_no_source_works() {
        let mut event_queue = EventQueue::new(1);
        event_queue.set(0, at(9));
        assert_eq!(event_queue.first(), (Time::from_nanos(9), 0));
        let empty = EventQueue::new(0);
        assert_eq!(empty.first().0, empty.horizon());
    }

    #[test]
    fn times_beyond_the_horizon_are_never_due() {
        let mut event_queue = EventQueue::new(4);
        let horizon = event_queue.horizon();
        assert_eq!(horizon, Time::from_nanos(u64::MAX / 4));
        event_queue.set(3, horizon);
        assert_eq!(event_queue.first().0, horizon);
        event_queue.set(3, at(horizon.as_nanos() - 1));
        let last = Time::from_nanos(horizon.as_nanos() - 1);
        assert_eq!(event_queue.first(), (last, 3));
    }

    proptest! {
        #[test]
        fn the_first_event_equals_that_of_a_linear_search(
            sources in 1_usize..70,
            events in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(0_u64..50)), 0..200),
        ) {
            let mut event_queue = EventQueue::new(sources);
            let mut times = vec![None; sources];
            for (source, time) in events {
                let source = source.index(sources);
                times[source] = time.map(Time::from_nanos);
                event_queue.set(source, times[source].unwrap_or(Time::MAX));
                let expected = (0..sources).filter_map(|source| Some((times[source]?, source))).min();
                let first = Some(event_queue.first()).filter(|(time, _)| *time < event_queue.horizon());
                prop_assert_eq!(first, expected);
                prop_assert_eq!(event_queue.time(source), times[source]);
                if let Some((_, source)) = first {
                    prop_assert_eq!(event_queue.earliest_near(source), source);
                }
            }
        }
    }
}
