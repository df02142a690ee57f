//! Right edges of the windows that were advertised to a sender.

use weir_units::{Duration, Time};
use weir_wire::tcp::Sequence;

use crate::flight::distance;

/// Two right edges: one that the sender has had the time to use, and a newer one that it may not have
/// yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdvertisedWindow {
    known: Sequence,
    next: Option<(Time, Sequence)>,
}

impl AdvertisedWindow {
    /// Creates the state before any window was advertised; `first` is the sequence number of the first
    /// byte.
    pub(crate) fn new(first: Sequence) -> Self {
        Self {
            known: first,
            next: None,
        }
    }

    /// Notes that a window that ends at `edge` is advertised to the sender.
    pub(crate) fn on_forwarded(&mut self, now: Time, edge: Sequence) {
        if self.next.is_none() {
            self.next = Some((now, edge));
        }
    }

    /// Returns how many bytes the sender, having sent up to `nxt`, has left unused of a window that it
    /// has known for longer than `patience`.
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
