//! When losses mean that the path drops packets for their size, and not for congestion.
//!
//! A loss is suspicious where no packet at least as large, sent later, has arrived: what showed the
//! loss was smaller. Congestion does that too, where the short end of a burst finds room in a queue
//! that its full packets did not. So a few suspicious losses in a row are needed, and they must
//! span a round trip: what was sent again is lost again, while smaller packets pass.

use smallvec::SmallVec;
use weir_units::{Duration, Time};

/// How many suspicious losses in a row make a black hole.
const THRESHOLD: u32 = 3;
/// How many deliveries are remembered.
const REMEMBERED: usize = 4;

/// Watches the fate of packets above the base size.
#[derive(Clone, Debug, Default)]
pub(super) struct BlackHoleDetector {
    /// Delivered packets by number and size, of which none is both older and smaller than another.
    delivered: SmallVec<[(u64, usize); REMEMBERED]>,
    run: Option<Run>,
}

/// Suspicious losses in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first one's number.
    first: u64,
    /// When it was sent.
    began: Time,
    /// The smallest one's size.
    smallest: usize,
    count: u32,
}

impl BlackHoleDetector {
    /// A packet arrived.
    pub(super) fn on_acked(&mut self, number: u64, size: usize) {
        if self
            .run
            .is_some_and(|run| number > run.first && size >= run.smallest)
        {
            self.run = None;
        }
        if self.is_delivered_since(number, size) {
            return;
        }
        self.delivered
            .retain(|&mut (older, smaller)| older > number || smaller > size);
        if self.delivered.len() == REMEMBERED {
            // The smallest is the one that excuses the fewest losses.
            let smallest = (0..REMEMBERED).min_by_key(|&index| self.delivered[index].1);
            smallest.map(|index| self.delivered.swap_remove(index));
        }
        self.delivered.push((number, size));
    }

    /// A packet was lost. Gives the smallest size that does not pass, where that is certain enough.
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

    /// Whether a packet as large that was sent later has arrived.
    fn is_delivered_since(&self, number: u64, size: usize) -> bool {
        self.delivered
            .iter()
            .any(|&(later, larger)| later > number && larger >= size)
    }
}
