//! Which server of a pool gets a call. Every call passes here: without a lock or an allocation.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_units::Time;

use super::{Balancing, Member, Pool};
use crate::protocol::Link;

/// What speaks against a server, less important last: it was tried, it is avoided.
type Faults = (bool, bool);

const NONE: Faults = (false, false);

/// A server whose connection was usable just now. Connections end at any time: it is not asked again.
pub(super) struct Candidate<'a, L> {
    pub(super) member: &'a Member<L>,
    pub(super) link: &'a L,
    index: usize,
    faults: Faults,
}

/// Random numbers that tasks share, by xorshift64* (Vigna, 2016). Two calls at the same time may get
/// the same number: it only spreads them.
#[derive(Debug)]
pub(super) struct Choices(AtomicU64);

impl Choices {
    pub(super) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed | 1))
    }

    /// Returns a random index below a count.
    fn below(&self, count: usize) -> usize {
        let mut state = self.0.load(Ordering::Relaxed);
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0.store(state, Ordering::Relaxed);
        let number = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(number) * count as u128) >> 64) as usize
    }
}

impl<L: Link> Pool<L> {
    pub(super) fn choose(
        &self,
        tried: &[SocketAddr],
        now: impl Fn() -> Time,
    ) -> Option<Candidate<'_, L>> {
        let candidate = |index: usize| {
            let member = self.members.get(index)?;
            let link = member.usable()?;
            let was_tried = tried.contains(&member.server.address);
            Some(Candidate {
                member,
                link,
                index,
                faults: (was_tried, member.server.is_avoided(&now)),
            })
        };
        match self.balancing {
            Balancing::LeastLoaded if self.members.len() > 1 => self.less_loaded(candidate),
            Balancing::RoundRobin if self.members.len() > 1 => self.next_in_turn(candidate),
            _ => self.best_from(0, candidate),
        }
    }

    /// Returns the first candidate with the fewest faults, from an index on and then from the
    /// beginning.
    fn best_from<'a>(
        &self,
        start: usize,
        candidate: impl Fn(usize) -> Option<Candidate<'a, L>>,
    ) -> Option<Candidate<'a, L>> {
        let count = self.members.len();
        let start = start.min(count);
        let mut best: Option<Candidate<'a, L>> = None;
        for candidate in (start..count).chain(0..start).filter_map(candidate) {
            if candidate.faults == NONE {
                return Some(candidate);
            }
            let is_better = |best: &Candidate<'a, L>| candidate.faults < best.faults;
            if best.as_ref().is_none_or(is_better) {
                best = Some(candidate);
            }
        }
        best
    }

    fn next_in_turn<'a>(
        &self,
        candidate: impl Fn(usize) -> Option<Candidate<'a, L>>,
    ) -> Option<Candidate<'a, L>> {
        loop {
            let start = self.next.load(Ordering::Relaxed);
            let chosen = self.best_from(start, &candidate)?;
            let next = chosen.index + 1;
            // Another call may have had the same turn.
            let (set, unset) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.next.compare_exchange(start, next, set, unset).is_ok() {
                return Some(chosen);
            }
        }
    }

    /// Returns the less loaded one of two candidates at random.
    fn less_loaded<'a>(
        &self,
        candidate: impl Fn(usize) -> Option<Candidate<'a, L>>,
    ) -> Option<Candidate<'a, L>> {
        let count = self.members.len();
        let one = self.choices.below(count);
        let other = (one + 1 + self.choices.below(count - 1)) % count;
        if let Some(one) = candidate(one).filter(|one| one.faults == NONE)
            && let Some(other) = candidate(other).filter(|other| other.faults == NONE)
        {
            return Some(one.or_less_loaded(other));
        }
        // Not all are without fault: of those with the fewest, two at random (reservoir sampling).
        let mut sample: Option<(Candidate<'a, L>, Option<Candidate<'a, L>>)> = None;
        let mut seen = 0;
        for candidate in (0..count).filter_map(candidate) {
            let Some((one, other)) = &mut sample else {
                (sample, seen) = (Some((candidate, None)), 1);
                continue;
            };
            match candidate.faults.cmp(&one.faults) {
                Less => (sample, seen) = (Some((candidate, None)), 1),
                Greater => {}
                Equal => {
                    seen += 1;
                    match self.choices.below(seen) {
                        // The second one comes first or last: the load does not decide between equals.
                        0 if other.is_none() => *other = Some(std::mem::replace(one, candidate)),
                        0 => *one = candidate,
                        1 => *other = Some(candidate),
                        _ => {}
                    }
                }
            }
        }
        let (one, other) = sample?;
        Some(match other {
            Some(other) => one.or_less_loaded(other),
            None => one,
        })
    }
}

impl<L> Candidate<'_, L> {
    fn or_less_loaded(self, other: Self) -> Self {
        let load = |candidate: &Self| candidate.member.server.outstanding();
        if load(&other) < load(&self) {
            other
        } else {
            self
        }
    }
}
