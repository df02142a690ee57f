//! Black hole detection: whether losses are caused by packet size, not by congestion.
//!
//! A loss is suspicious if no packet of at least the same size, sent later, has arrived: the
//! packets that revealed the loss were smaller. Congestion does that too, if the short end of a
//! burst fits in a queue that its full packets did not. Therefore several consecutive suspicious
//! losses are required, and they must span an RTT: retransmissions are lost again while smaller
//! packets pass.

use smallvec::SmallVec;
use weir_units::{Duration, Time};

/// The consecutive suspicious losses that make a black hole.
const THRESHOLD: u32 = 3;
/// The number of stored deliveries.
const REMEMBERED: usize = 4;

/// Tracks packets above the base size.
#[derive(Clone, Debug, Default)]
pub(super) struct BlackHoleDetector {
    /// Delivered packets by number and size; none is both older and smaller than another.
    delivered: SmallVec<[(u64, usize); REMEMBERED]>,
    run: Option<Run>,
}

/// Consecutive suspicious losses.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The number of the first one.
    first: u64,
    /// When the first one was sent.
    began: Time,
    /// The size of the smallest one.
    smallest: usize,
    count: u32,
}

impl BlackHoleDetector {
    /// Records a delivered packet.
    pub(super) fn on_acked(&mut self, number: u64, size: usize) {
        if self
            .run
            .is_some_and(|run| number > run.first && size >= run.smallest)
        {
            self.run = None;
        }
        // Mostly packets of one size arrive in order.
        if let [only] = &mut self.delivered[..]
            && only.0 <= number
            && only.1 <= size
        {
            *only = (number, size);
            return;
        }
        if self.is_delivered_since(number, size) {
            return;
        }
        self.delivered
            .retain(|&mut (older, smaller)| older > number || smaller > size);
        if self.delivered.len() == REMEMBERED {
            // The smallest one explains the fewest losses.
            let smallest = (0..REMEMBERED).min_by_key(|&index| self.delivered[index].1);
            smallest.map(|index| self.delivered.swap_remove(index));
        }
        self.delivered.push((number, size));
    }

    /// Records a lost packet. Returns the smallest size that does not pass, once it is certain
    /// enough.
    pub(super) fn on_lost(
        &mut self,
        number: u64,
        size: usize,
        sent_at: Time,
        round_trip: Duration,
    ) -> Option<usize> {
        if self.is_delivered_since(number, size) {
            return None;
        }
        let run = self.run.get_or_insert(Run {
            first: number,
            began: sent_at,
            smallest: size,
            count: 0,
        });
        run.count = run.count.saturating_add(1);
        run.smallest = run.smallest.min(size);
        let certain = run.count >= THRESHOLD && sent_at.since(run.began) >= round_trip;
        certain.then_some(run.smallest)
    }

    /// Whether a packet of at least this size, sent later, has arrived.
    fn is_delivered_since(&self, number: u64, size: usize) -> bool {
        self.delivered
            .iter()
            .any(|&(later, larger)| later > number && larger >= size)
    }
}
