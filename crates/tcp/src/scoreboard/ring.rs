//! Outstanding segments while nothing is known of them but that they were sent: 8 bytes each.

use weir_units::Time;

/// The bits of a slot that hold a segment's length, less one.
const LENGTH_BITS: u32 = 16;

/// The number of slots of a ring with few segments.
const FEWEST_SLOTS: usize = 4;

/// One that holds less than a segment for so many slots is shortened.
const SPARSE: usize = 8;

/// Segments that follow each other in the stream, each sent once. Of each it holds the send time and the
/// length.
#[derive(Clone, Debug, Default)]
pub(super) struct SentRing {
    /// A power of two of slots, or none.
    slots: Box<[u64]>,
    first: u32,
    len: u32,
}

/// The first segments of a ring, up to an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeSegments {
    count: u32,
    /// The send times of the first and the last one.
    pub(crate) oldest: Time,
    pub(crate) newest: Time,
}

#[inline]
fn sent_at(slot: u64) -> Time {
    Time::from_nanos(slot >> LENGTH_BITS)
}

#[inline]
fn length(slot: u64) -> u32 {
    (slot & ((1 << LENGTH_BITS) - 1)) as u32 + 1
}

impl SentRing {
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<u64> {
        if number >= self.len {
            return None;
        }
        let mask = (self.slots.len() as u32).wrapping_sub(1);
        let index = self.first.wrapping_add(number) & mask;
        self.slots.get(index as usize).copied()
    }

    /// Adds a segment. Returns whether it fits in a slot: times up to 78 hours, lengths up to 64 KiB.
    #[inline(always)]
    pub(super) fn push(&mut self, now: Time, length: u32) -> bool {
        let (time, length) = (now.as_nanos(), length.wrapping_sub(1));
        if time >> (u64::BITS - LENGTH_BITS) | u64::from(length >> LENGTH_BITS) != 0 {
            return false;
        }
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let mask = (self.slots.len() as u32).wrapping_sub(1);
        let index = self.first.wrapping_add(self.len) & mask;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = time << LENGTH_BITS | u64::from(length);
            self.len += 1;
        }
        true
    }

    #[cold]
    fn grow(&mut self) {
        self.move_to((2 * self.slots.len()).max(FEWEST_SLOTS));
    }

    /// Frees most of the slots of an earlier burst.
    #[cold]
    fn shrink(&mut self) {
        let count = (self.len as usize + 1).next_power_of_two();
        self.move_to(count.max(FEWEST_SLOTS));
    }

    /// Moves the segments to this number of slots, a power of two.
    fn move_to(&mut self, count: usize) {
        let mut slots = Vec::with_capacity(count);
        slots.extend((0..self.len).filter_map(|number| self.slot(number)));
        slots.resize(count, 0);
        self.slots = slots.into();
        self.first = 0;
    }

    /// Returns the first segments, if they have `bytes` in all and none is cut by them.
    #[inline(always)]
    pub(super) fn whole_segments(&self, bytes: u64) -> Option<WholeSegments> {
        let first = self.slot(0)?;
        let (mut last, mut count, mut sum) = (first, 1, u64::from(length(first)));
        while sum < bytes {
            last = self.slot(count)?;
            count += 1;
            sum += u64::from(length(last));
        }
        (sum == bytes).then_some(WholeSegments {
            count,
            oldest: sent_at(first),
            newest: sent_at(last),
        })
    }

    /// Removes the first segments.
    #[inline(always)]
    pub(super) fn take(&mut self, segments: &WholeSegments) {
        self.first = self.first.wrapping_add(segments.count);
        self.len -= segments.count.min(self.len);
        if self.slots.len() > 2 * FEWEST_SLOTS && self.len as usize * SPARSE < self.slots.len() {
            self.shrink();
        }
    }

    /// Returns the send time and the length of the first segment.
    pub(super) fn first(&self) -> Option<(Time, u32)> {
        let slot = self.slot(0)?;
        Some((sent_at(slot), length(slot)))
    }

    /// Returns the send time and the length of the last segment.
    pub(super) fn last(&self) -> Option<(Time, u32)> {
        let slot = self.slot(self.len.checked_sub(1)?)?;
        Some((sent_at(slot), length(slot)))
    }

    /// Removes all segments. Returns their send times and lengths.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Time, u32)> {
        let ring = std::mem::take(self);
        (0..ring.len)
            .filter_map(move |number| ring.slot(number))
            .map(|slot| (sent_at(slot), length(slot)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_ring_is_a_queue(steps in prop::collection::vec((1_u32..65_537, 0_usize..4), 1..200)) {
            let (mut ring, mut queue) = (SentRing::default(), VecDeque::new());
            for (number, (length, taken)) in steps.into_iter().enumerate() {
                let now = Time::from_nanos(number as u64 * 77);
                prop_assert!(ring.push(now, length));
                queue.push_back((now, length));
                prop_assert_eq!(ring.last(), Some((now, length)));
                let taken: Vec<_> = queue.drain(..taken.min(queue.len())).collect();
                let bytes: u64 = taken.iter().map(|&(_, length)| u64::from(length)).sum();
                if let (Some(first), Some(last)) = (taken.first(), taken.last()) {
                    prop_assert!(ring.whole_segments(bytes - 1).is_none() || taken.len() > 1);
                    let whole = ring.whole_segments(bytes).unwrap();
                    prop_assert_eq!((whole.oldest, whole.newest), (first.0, last.0));
                    ring.take(&whole);
                }
                prop_assert_eq!(ring.len() as usize, queue.len());
            }
            prop_assert!(ring.drain().eq(queue));
            prop_assert_eq!(ring.len(), 0);
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut ring = SentRing::default();
        assert!(!ring.push(Time::from_nanos(1 << 48), 1));
        assert!(!ring.push(Time::ZERO, 65_537) && !ring.push(Time::ZERO, 0));
        assert!(ring.push(Time::from_nanos((1 << 48) - 1), 65_536));
        assert_eq!(ring.last(), Some((Time::from_nanos((1 << 48) - 1), 65_536)));
    }
}
