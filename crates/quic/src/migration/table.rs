//! The stream table ⟨StreamID, EstTime, EndTime, TotalBytes⟩ with the path that a stream was opened
//! on (DCQUIC paper, section 3.4.1), for streams whose response is not complete.
//!
//! It is a set-associative cache, not a map: a lookup is an index and at most four comparisons, and
//! memory is bounded whatever the application leaves open. It grows when a set overflows. At its
//! largest size the oldest stream of the set is evicted, which costs one sample.

use weir_units::Time;

use crate::{PathId, StreamId};

/// Streams per set.
const WAYS: usize = 4;
/// The sets of a new table.
const FEWEST_SETS: usize = 4;
/// Sets of the largest table: 512 streams.
const MOST_SETS: usize = 128;

/// The record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamRecord {
    /// StreamID.
    pub(super) id: StreamId,
    /// The path in use when it was opened (the paper's UDPSourceIP).
    pub(super) path: PathId,
    /// EstTime.
    pub(super) established: Time,
    /// When the last byte of the request was sent.
    pub(super) request_sent: Option<Time>,
    /// When the first byte of the response came.
    pub(super) first_byte: Option<Time>,
    /// EndTime: when a frame with FIN=1 came.
    pub(super) ended: Option<Time>,
    /// TotalBytes, once EndTime is known.
    pub(super) total_bytes: u64,
}

/// The streams in progress.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    /// Sets of [`WAYS`] slots, a power of two of them; none before the first stream.
    slots: Vec<Option<StreamRecord>>,
    /// Streams whose request was sent and whose response is not complete.
    pub(super) due: usize,
}

impl StreamTable {
    /// Adds an opened stream; does nothing if it is already in the table.
    pub(super) fn open(&mut self, id: StreamId, path: PathId, now: Time) {
        if self.get_mut(id).is_some() {
            return;
        }
        let record = StreamRecord {
            id,
            path,
            established: now,
            request_sent: None,
            first_byte: None,
            ended: None,
            total_bytes: 0,
        };
        let slot = self.slot_for(id);
        let Some(place) = self.slots.get_mut(slot) else {
            return;
        };
        if let Some(forgotten) = place.replace(record) {
            self.due -= usize::from(forgotten.request_sent.is_some());
        }
    }

    /// Returns the record of a stream.
    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut StreamRecord> {
        let set = self.set(id);
        self.slots
            .get_mut(set..set + WAYS)?
            .iter_mut()
            .flatten()
            .find(|record| record.id == id)
    }

    /// Records that the last byte of the request was sent.
    pub(super) fn request_sent(&mut self, id: StreamId, now: Time) {
        let Some(record) = self.get_mut(id) else {
            return;
        };
        if record.request_sent.is_none() {
            record.request_sent = Some(now);
            self.due += 1;
        }
    }

    /// Removes a stream.
    pub(super) fn remove(&mut self, id: StreamId) -> Option<StreamRecord> {
        let set = self.set(id);
        let record = self
            .slots
            .get_mut(set..set + WAYS)?
            .iter_mut()
            .find(|slot| slot.is_some_and(|record| record.id == id))?
            .take()?;
        self.due -= usize::from(record.request_sent.is_some());
        Some(record)
    }

    /// Removes all streams.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns all streams, in arbitrary order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &StreamRecord> {
        self.slots.iter().flatten()
    }

    /// Returns the capacity in streams.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the start of the set of a stream. Stream numbers are sequential, so the low bits of
    /// the index distribute them evenly.
    fn set(&self, id: StreamId) -> usize {
        let sets = (self.slots.len() / WAYS).max(1);
        (id.index() as usize & (sets - 1)) * WAYS
    }

    /// Returns a free slot for a stream, or that of the stream to be evicted.
    fn slot_for(&mut self, id: StreamId) -> usize {
        loop {
            let set = self.set(id);
            let ways = self.slots.get(set..set + WAYS).unwrap_or_default();
            if let Some(free) = ways.iter().position(Option::is_none) {
                return set + free;
            }
            if self.slots.len() >= MOST_SETS * WAYS {
                let oldest =
                    (0..WAYS).min_by_key(|&way| ways[way].map(|record| record.established));
                return set + oldest.unwrap_or_default();
            }
            self.grow();
        }
    }

    /// Doubles the sets. Each set is split in two, so that no stream changes its set position.
    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(FEWEST_SETS * WAYS);
        let records = std::mem::replace(&mut self.slots, vec![None; length]);
        for record in records.into_iter().flatten() {
            let set = self.set(record.id);
            if let Some(free) = self.slots[set..set + WAYS]
                .iter_mut()
                .find(|slot| slot.is_none())
            {
                *free = Some(record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Direction, Side};

    fn id(index: u64) -> StreamId {
        StreamId::new(Side::Client, Direction::Bidirectional, index)
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn sequential_streams_need_only_the_smallest_table() {
        let mut table = StreamTable::default();
        table.open(id(0), PathId::FIRST, at(0));
        for index in 1..1000 {
            table.open(id(index), PathId::FIRST, at(index));
            assert_eq!(table.remove(id(index)).unwrap().established, at(index));
        }
        assert!(table.get_mut(id(0)).is_some(), "a long stream stays known");
        assert_eq!(table.capacity(), FEWEST_SETS * WAYS);
    }

    #[test]
    fn the_largest_table_evicts_the_oldest_streams() {
        let mut table = StreamTable::default();
        for index in 0..5000 {
            table.open(id(index), PathId::FIRST, at(index));
            table.request_sent(id(index), at(index));
        }
        assert_eq!(table.capacity(), MOST_SETS * WAYS);
        assert_eq!(table.due, 512);
        assert_eq!(table.remove(id(4487)), None);
        assert!((4488..5000).all(|index| table.remove(id(index)).is_some()));
        assert_eq!(table.due, 0);
    }

    proptest! {
        #[test]
        fn the_count_of_due_streams_is_exact(operations in prop::collection::vec((0..4u8, 0..2000u64), 0..600)) {
            let mut table = StreamTable::default();
            for (step, (operation, index)) in operations.into_iter().enumerate() {
                let now = at(step as u64);
                match operation {
                    0 => table.open(id(index), PathId::FIRST, now),
                    1 => table.request_sent(id(index), now),
                    2 => table.open(id(index % 8 * 128), PathId::FIRST, now),
                    _ => drop(table.remove(id(index))),
                }
                let due = table.iter().filter(|record| record.request_sent.is_some()).count();
                prop_assert_eq!(table.due, due);
                prop_assert!(table.capacity() <= MOST_SETS * WAYS);
            }
        }
    }
}
