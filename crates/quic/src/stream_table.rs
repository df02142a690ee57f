//! Values by stream, of which one needs no allocation: many connections have one stream at a time.

use std::collections::hash_map::{self, VacantEntry};

use rustc_hash::FxHashMap;

use crate::StreamId;

/// Values by stream. The first one is in the table itself, further ones in a hash map.
#[derive(Clone, Debug)]
pub struct StreamTable<V> {
    first: Option<(StreamId, V)>,
    rest: FxHashMap<StreamId, V>,
}

/// The place of a stream in a [`StreamTable`].
pub(crate) enum Entry<'t, V> {
    Found(&'t mut V),
    Missing(Missing<'t, V>),
}

/// The place for a stream that is not in the table.
pub(crate) enum Missing<'t, V> {
    First(&'t mut Option<(StreamId, V)>, StreamId),
    Rest(VacantEntry<'t, StreamId, V>),
}

impl<'t, V> Missing<'t, V> {
    /// Adds the stream.
    pub(crate) fn insert(self, value: V) -> &'t mut V {
        match self {
            Self::First(first, id) => &mut first.insert((id, value)).1,
            Self::Rest(entry) => entry.insert(value),
        }
    }
}

impl<V> Default for StreamTable<V> {
    fn default() -> Self {
        Self {
            first: None,
            rest: FxHashMap::default(),
        }
    }
}

impl<V> StreamTable<V> {
    /// Returns the number of streams.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// Whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }

    /// Whether there is this stream.
    pub fn contains(&self, id: StreamId) -> bool {
        matches!(&self.first, Some((first, _)) if *first == id)
            || !self.rest.is_empty() && self.rest.contains_key(&id)
    }

    /// Returns the value of a stream.
    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut V> {
        match &mut self.first {
            Some((first, value)) if *first == id => Some(value),
            _ if self.rest.is_empty() => None,
            _ => self.rest.get_mut(&id),
        }
    }

    /// Returns the place of a stream.
    #[inline]
    pub(crate) fn entry(&mut self, id: StreamId) -> Entry<'_, V> {
        let is_first = matches!(&self.first, Some((first, _)) if *first == id);
        if is_first && let Some((_, ref mut value)) = self.first {
            return Entry::Found(value);
        }
        if self.first.is_none() && self.rest.is_empty() {
            return Entry::Missing(Missing::First(&mut self.first, id));
        }
        match self.rest.entry(id) {
            hash_map::Entry::Occupied(found) => Entry::Found(found.into_mut()),
            hash_map::Entry::Vacant(_) if self.first.is_none() => {
                Entry::Missing(Missing::First(&mut self.first, id))
            }
            hash_map::Entry::Vacant(place) => Entry::Missing(Missing::Rest(place)),
        }
    }

    /// Returns the value of a stream, which is `new` where there is none.
    pub fn get_or_insert_with(&mut self, id: StreamId, new: impl FnOnce() -> V) -> &mut V {
        match self.entry(id) {
            Entry::Found(value) => value,
            Entry::Missing(place) => place.insert(new()),
        }
    }

    /// Sets the value of a stream; returns the earlier one.
    pub fn insert(&mut self, id: StreamId, value: V) -> Option<V> {
        match self.entry(id) {
            Entry::Found(held) => Some(std::mem::replace(held, value)),
            Entry::Missing(place) => {
                place.insert(value);
                None
            }
        }
    }

    /// Removes a stream; returns its value.
    pub fn remove(&mut self, id: StreamId) -> Option<V> {
        if let Some((_, value)) = self.first.take_if(|(first, _)| *first == id) {
            return Some(value);
        }
        if self.rest.is_empty() {
            return None;
        }
        self.rest.remove(&id)
    }

    /// Returns the streams, in no order.
    pub fn ids(&self) -> impl Iterator<Item = StreamId> {
        let first = self.first.iter().map(|(id, _)| *id);
        first.chain(self.rest.keys().copied())
    }

    /// Returns the streams with their values, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut V)> {
        let first = self.first.iter_mut().map(|(id, value)| (*id, value));
        first.chain(self.rest.iter_mut().map(|(id, value)| (*id, value)))
    }

    /// Returns the values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Returns the values, in no order.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        let first = self.first.into_iter().map(|(_, value)| value);
        first.chain(self.rest.into_values())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{Direction, Side};

    fn id(index: u64) -> StreamId {
        StreamId::new(Side::Client, Direction::Bidirectional, index)
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Insert(u64, u8),
        GetOrInsert(u64, u8),
        Change(u64, u8),
        Remove(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        let stream = 0..6_u64;
        prop_oneof![
            (stream.clone(), any::<u8>()).prop_map(|(id, value)| Operation::Insert(id, value)),
            (stream.clone(), any::<u8>()).prop_map(|(id, value)| Operation::GetOrInsert(id, value)),
            (stream.clone(), any::<u8>()).prop_map(|(id, value)| Operation::Change(id, value)),
            stream.prop_map(Operation::Remove),
        ]
    }

    proptest! {
        #[test]
        fn it_is_as_a_map(operations in prop::collection::vec(operation(), 0..60)) {
            let mut table = StreamTable::default();
            let mut map = BTreeMap::new();
            for operation in operations {
                match operation {
                    Operation::Insert(number, value) => {
                        prop_assert_eq!(table.insert(id(number), value), map.insert(id(number), value));
                    }
                    Operation::GetOrInsert(number, value) => {
                        let held = *table.get_or_insert_with(id(number), || value);
                        prop_assert_eq!(held, *map.entry(id(number)).or_insert(value));
                    }
                    Operation::Change(number, value) => {
                        let held = table.get_mut(id(number)).map(|held| std::mem::replace(held, value));
                        let expected = map.get_mut(&id(number));
                        prop_assert_eq!(held, expected.map(|held| std::mem::replace(held, value)));
                    }
                    Operation::Remove(number) => {
                        prop_assert_eq!(table.remove(id(number)), map.remove(&id(number)));
                    }
                }
                prop_assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
                let listed: BTreeMap<_, _> = table.iter_mut().map(|(id, value)| (id, *value)).collect();
                prop_assert_eq!(&listed, &map);
                prop_assert_eq!(table.ids().count(), map.len());
                for number in 0..6 {
                    prop_assert_eq!(table.contains(id(number)), map.contains_key(&id(number)));
                }
            }
            let mut values: Vec<_> = table.into_values().collect();
            let mut expected: Vec<_> = map.into_values().collect();
            values.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(values, expected);
        }
    }

    #[test]
    fn one_stream_at_a_time_needs_no_allocation() {
        let counted = allocation_counter::measure(|| {
            let mut table = StreamTable::default();
            for number in 0..3 {
                assert_eq!(table.insert(id(number), number), None);
                assert!(!table.contains(id(number + 1)));
                assert_eq!(table.remove(id(number)), Some(number));
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}
