//! A recency list of slots: a doubly linked list whose links are stored by slot number.

/// Slots in order of an event. A slot is in the list at most once.
#[derive(Clone, Debug, Default)]
pub(super) struct RecencyList {
    links: Vec<RecencyLink>,
    /// The links before the first slot and behind the last.
    ends: RecencyLink,
}

#[derive(Clone, Copy, Debug)]
struct RecencyLink {
    previous: u32,
    next: u32,
}

/// No slot: the beginning or the end.
const NONE: u32 = u32::MAX;

impl Default for RecencyLink {
    fn default() -> Self {
        Self {
            previous: NONE,
            next: NONE,
        }
    }
}

impl RecencyList {
    /// Returns the first slot.
    pub(super) fn first(&self) -> Option<u32> {
        Some(self.ends.next).filter(|slot| *slot != NONE)
    }

    /// Returns the last slot.
    pub(super) fn last(&self) -> Option<u32> {
        Some(self.ends.previous).filter(|slot| *slot != NONE)
    }

    /// Appends a slot that is not in the list.
    pub(super) fn push(&mut self, slot: u32) {
        let index = slot as usize;
        if self.links.len() <= index {
            self.links.resize(index + 1, RecencyLink::default());
        }
        let last = self.ends.previous;
        *self.link(slot) = RecencyLink {
            previous: last,
            next: NONE,
        };
        self.link(last).next = slot;
        self.ends.previous = slot;
    }

    /// Removes a slot that is in the list.
    pub(super) fn remove(&mut self, slot: u32) {
        let RecencyLink { previous, next } = std::mem::take(self.link(slot));
        self.link(previous).next = next;
        self.link(next).previous = previous;
    }

    /// Returns the link of a slot; for [`NONE`], that of the ends.
    fn link(&mut self, slot: u32) -> &mut RecencyLink {
        match self.links.get_mut(slot as usize) {
            Some(link) => link,
            None => &mut self.ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl RecencyList {
        fn slots(&self) -> Vec<u32> {
            let mut slot = self.first();
            std::iter::from_fn(|| {
                let this = slot?;
                slot = Some(self.links[this as usize].next).filter(|next| *next != NONE);
                Some(this)
            })
            .collect()
        }
    }

    proptest! {
        #[test]
        fn the_recency_list_matches_a_vector_model(slots in prop::collection::vec(0_u32..20, 0..200)) {
            let (mut order, mut list) = (RecencyList::default(), Vec::new());
            for slot in slots {
                match list.iter().position(|other| *other == slot) {
                    Some(index) => {
                        list.remove(index);
                        order.remove(slot);
                    }
                    None => {
                        list.push(slot);
                        order.push(slot);
                    }
                }
                prop_assert_eq!(order.slots(), list.clone());
                prop_assert_eq!(order.first(), list.first().copied());
                prop_assert_eq!(order.last(), list.last().copied());
            }
        }
    }
}
