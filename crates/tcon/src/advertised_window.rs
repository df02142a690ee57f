//! Where the windows ended that a sender was shown.

use weir_units::{Duration, Time};
use weir_wire::tcp::Sequence;

use crate::flight::distance;

/// Right edges of windows: one that the sender has had the time to use, and one that it may not have yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdvertisedWindow {
    known: Sequence,
    next: Option<(Time, Sequence)>,
}

impl AdvertisedWindow {
    /// The sender has been shown nothing; `first` is the number of its first byte.
    pub(crate) fn new(first: Sequence) -> Self {
        Self {
            known: first,
            next: None,
        }
    }

    /// The sender is shown a window that ends at `edge`.
    pub(crate) fn tell(&mut self, now: Time, edge: Sequence) {
        if self.next.is_none() {
            self.next = Some((now, edge));
        }
    }

    /// How many bytes the sender has left unused of a window that it has known for longer than `patience`,
    /// having sent up to `nxt`.
    pub(crate) fn room(&mut self, now: Time, patience: Duration, nxt: Sequence) -> u64 {
        if let Some((told_at, edge)) = self.next
            && now.since(told_at) > patience
        {
            self.known = edge;
            self.next = None;
        }
        distance(self.known, nxt)
    }
}
