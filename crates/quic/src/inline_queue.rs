//! A queue that holds its first element without an allocation: most queues of a short connection never
//! have a second one.

use std::collections::VecDeque;
use std::{iter, mem};

/// A FIFO queue. The further elements are in a ring, which is allocated for the second one.
#[derive(Debug)]
pub(crate) struct InlineQueue<T> {
    /// `None` only where `rest` is empty too.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        Self {
            first: None,
            rest: VecDeque::new(),
        }
    }
}

impl<T> From<T> for InlineQueue<T> {
    fn from(only: T) -> Self {
        Self {
            first: Some(only),
            rest: VecDeque::new(),
        }
    }
}

impl<T> InlineQueue<T> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn push_back(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        mem::replace(&mut self.first, self.rest.pop_front())
    }

    pub(crate) fn pop_back(&mut self) -> Option<T> {
        self.rest.pop_back().or_else(|| self.first.take())
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    pub(crate) fn back(&self) -> Option<&T> {
        self.rest.back().or(self.first.as_ref())
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    /// Returns an element by its place in the queue.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(index) => self.rest.get(index),
        }
    }

    /// Returns an element by its place in the queue.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(1) {
            None => self.first.as_mut(),
            Some(index) => self.rest.get_mut(index),
        }
    }

    /// Returns how many elements `is_before` holds for, which it holds for up to some place only.
    pub(crate) fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        match &self.first {
            Some(first) if is_before(first) => 1 + self.rest.partition_point(is_before),
            _ => 0,
        }
    }

    /// Removes the element at a place in the queue.
    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        match index.checked_sub(1) {
            None => self.pop_front(),
            Some(index) => self.rest.remove(index),
        }
    }

    /// Moves the first element to the end.
    pub(crate) fn rotate(&mut self) {
        if let Some(first) = self.pop_front() {
            self.push_back(first);
        }
    }

    /// Keeps the elements for which `keep` holds.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.rest.retain(&mut keep);
        if self.first.as_ref().is_some_and(|first| !keep(first)) {
            self.pop_front();
        }
    }

    /// Removes the elements one by one, in their order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        iter::from_fn(|| self.pop_front())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }
}

impl<T> Extend<T> for InlineQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements
            .into_iter()
            .for_each(|element| self.push_back(element));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Operation {
        PushBack(u8),
        PopFront,
        PopBack,
        Remove(usize),
        Rotate,
        Retain(u8),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => any::<u8>().prop_map(Operation::PushBack),
            2 => Just(Operation::PopFront),
            1 => Just(Operation::PopBack),
            1 => (0..5_usize).prop_map(Operation::Remove),
            1 => Just(Operation::Rotate),
            1 => (1..5_u8).prop_map(Operation::Retain),
        ]
    }

    proptest! {
        #[test]
        fn it_is_as_a_ring(operations in prop::collection::vec(operation(), 0..60)) {
            let mut queue = InlineQueue::default();
            let mut ring = VecDeque::new();
            for operation in operations {
                match operation {
                    Operation::PushBack(element) => {
                        queue.push_back(element);
                        ring.push_back(element);
                    }
                    Operation::PopFront => prop_assert_eq!(queue.pop_front(), ring.pop_front()),
                    Operation::PopBack => prop_assert_eq!(queue.pop_back(), ring.pop_back()),
                    Operation::Remove(index) => {
                        prop_assert_eq!(queue.remove(index), ring.remove(index));
                    }
                    Operation::Rotate => {
                        queue.rotate();
                        if !ring.is_empty() {
                            ring.rotate_left(1);
                        }
                    }
                    Operation::Retain(divisor) => {
                        queue.retain(|element| element % divisor == 0);
                        ring.retain(|element| element % divisor == 0);
                    }
                }
                prop_assert_eq!(queue.len(), ring.len());
                prop_assert_eq!(queue.is_empty(), ring.is_empty());
                prop_assert_eq!(queue.front(), ring.front());
                prop_assert_eq!(queue.back(), ring.back());
                prop_assert_eq!(queue.front_mut().copied(), ring.front().copied());
                prop_assert_eq!(queue.back_mut().copied(), ring.back().copied());
                for index in 0..=ring.len() {
                    prop_assert_eq!(queue.get(index), ring.get(index));
                    prop_assert_eq!(queue.get_mut(index), ring.get_mut(index));
                }
                prop_assert!(queue.iter().eq(&ring));
            }
            prop_assert!(queue.drain().eq(ring.drain(..)));
            prop_assert!(queue.is_empty());
        }

        #[test]
        fn the_place_of_a_value_is_found(count in 0..20_u8, value in 0..20_u8) {
            let mut queue = InlineQueue::default();
            queue.extend(0..count);
            let place = queue.partition_point(|element| *element < value);
            prop_assert_eq!(place, usize::from(value.min(count)));
        }
    }

    #[test]
    fn one_element_needs_no_allocation() {
        let counted = allocation_counter::measure(|| {
            let mut queue = InlineQueue::default();
            for number in 0..3 {
                queue.push_back(number);
                assert_eq!(queue.pop_front(), Some(number));
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}
