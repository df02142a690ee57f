//! Schedules the streams: chooses which one sends next.
//!
//! Streams with data to send are in queues: one for control frames, one for lost data (or the end
//! of a stream alone), one for new data. The last two are ordered by priority; streams of the same
//! priority take turns. A stream is in a queue exactly while it has something for it, so the check
//! for pending data needs no scan of streams.

use smallvec::SmallVec;

use super::stream::{SendDemand, Stream};
use crate::StreamId;
use crate::inline_queue::InlineQueue;

/// The bytes that a stream sends before the next one of the same priority.
const TURN: u64 = 16 * 1024;
/// Empty levels are kept up to this number of levels, to reuse their memory.
const KEPT_LEVELS: usize = 8;

/// The queues and their sums.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    pub(super) control: InlineQueue<StreamId>,
    pub(super) retransmissions: PriorityQueue,
    pub(super) fresh: PriorityQueue,
    /// Lost bytes waiting.
    pub(super) lost_bytes: u64,
    /// New bytes waiting that their streams' flow control allows.
    pub(super) fresh_bytes: u64,
    /// New bytes waiting.
    pub(super) unsent_bytes: u64,
}

impl Scheduler {
    /// Call it whenever a stream's demand may have changed.
    pub(super) fn update(&mut self, id: StreamId, stream: &mut Stream) {
        let new = stream.demand();
        let old = std::mem::replace(&mut stream.scheduled, new);
        if new == old {
            return;
        }
        self.lost_bytes = self.lost_bytes - old.lost + new.lost;
        self.fresh_bytes = self.fresh_bytes - old.fresh + new.fresh;
        self.unsent_bytes = self.unsent_bytes - old.unsent + new.unsent;
        match (old.control, new.control) {
            (false, true) => self.control.push_back(id),
            (true, false) => remove(&mut self.control, id),
            _ => {}
        }
        let priority = stream.priority;
        self.retransmissions
            .set(id, priority, old.retransmission, new.retransmission);
        self.fresh.set(id, priority, old.fresh > 0, new.fresh > 0);
    }

    /// Records that the stream sent `length` new bytes. If it may send more, nothing else changes:
    /// the common case in the middle of a stream. `false`: call [`update`](Self::update).
    pub(super) fn sent_part(&mut self, stream: &mut Stream, length: u64) -> bool {
        let demand = &mut stream.scheduled;
        if demand.fresh <= length {
            return false;
        }
        demand.fresh -= length;
        demand.unsent -= length;
        self.fresh_bytes -= length;
        self.unsent_bytes -= length;
        debug_assert_eq!(stream.scheduled, stream.demand());
        true
    }

    /// Changes the priority of a stream.
    pub(super) fn set_priority(&mut self, id: StreamId, stream: &mut Stream, priority: i32) {
        let old = std::mem::replace(&mut stream.priority, priority);
        if old == priority {
            return;
        }
        let SendDemand {
            retransmission: repair,
            fresh,
            ..
        } = stream.scheduled;
        for (queue, queued) in [
            (&mut self.retransmissions, repair),
            (&mut self.fresh, fresh > 0),
        ] {
            queue.set(id, old, queued, false);
            queue.set(id, priority, false, queued);
        }
    }
}

/// Streams by priority, in turn within a priority.
#[derive(Debug, Default)]
pub(super) struct PriorityQueue {
    /// Highest priority first.
    levels: SmallVec<[Level; 1]>,
    length: usize,
}

#[derive(Debug)]
struct Level {
    priority: i32,
    queue: InlineQueue<StreamId>,
    /// Bytes that the first stream in the queue has sent in its turn.
    turn: u64,
}

impl PriorityQueue {
    /// Whether the queue is empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the stream whose turn it is.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.levels
            .iter()
            .find_map(|level| level.queue.front().copied())
    }

    /// Records that the stream at the front has sent that many bytes and has more.
    pub(super) fn advance_turn(&mut self, bytes: u64) {
        let Some(level) = self.levels.iter_mut().find(|level| !level.queue.is_empty()) else {
            return;
        };
        level.turn += bytes;
        if level.turn >= TURN {
            level.turn = 0;
            level.queue.rotate();
        }
    }

    fn set(&mut self, id: StreamId, priority: i32, was: bool, is: bool) {
        match (was, is) {
            (false, true) => self.push(id, priority),
            (true, false) => self.remove(id, priority),
            _ => {}
        }
    }

    fn push(&mut self, id: StreamId, priority: i32) {
        self.length += 1;
        let index = self
            .levels
            .partition_point(|level| level.priority > priority);
        if let Some(level) = self.levels.get_mut(index)
            && level.priority == priority
        {
            return level.queue.push_back(id);
        }
        let level = Level {
            priority,
            queue: InlineQueue::from(id),
            turn: 0,
        };
        self.levels.insert(index, level);
        if self.levels.len() > KEPT_LEVELS {
            self.levels.retain(|level| !level.queue.is_empty());
        }
    }

    fn remove(&mut self, id: StreamId, priority: i32) {
        let Some(level) = self
            .levels
            .iter_mut()
            .find(|level| level.priority == priority)
        else {
            return;
        };
        self.length -= 1;
        if level.queue.front() == Some(&id) {
            level.turn = 0;
        }
        remove(&mut level.queue, id);
    }
}

/// Usually the first is removed; a stream in the middle of the queue was reset.
fn remove(queue: &mut InlineQueue<StreamId>, id: StreamId) {
    let index = queue.iter().position(|&queued| queued == id);
    if let Some(index) = index {
        queue.remove(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Side};

    fn id(index: u64) -> StreamId {
        StreamId::new(Side::Client, Direction::Bidirectional, index)
    }

    #[test]
    fn higher_priorities_go_first_and_equal_ones_are_round_robin() {
        let mut queue = PriorityQueue::default();
        queue.push(id(0), 0);
        queue.push(id(1), 0);
        queue.push(id(2), 5);
        assert_eq!(queue.front(), Some(id(2)));
        queue.advance_turn(TURN);
        assert_eq!(queue.front(), Some(id(2)));
        queue.remove(id(2), 5);
        queue.advance_turn(TURN - 1);
        assert_eq!(queue.front(), Some(id(0)));
        queue.advance_turn(1);
        assert_eq!(queue.front(), Some(id(1)));
        queue.remove(id(1), 0);
        queue.remove(id(0), 0);
        assert!(queue.is_empty() && queue.front().is_none());
    }

    #[test]
    fn unused_priority_levels_are_removed() {
        let mut queue = PriorityQueue::default();
        for index in 0..1000 {
            queue.push(id(index), index as i32);
            queue.remove(id(index), index as i32);
        }
        assert!(
            queue.levels.len() <= KEPT_LEVELS + 1,
            "{}",
            queue.levels.len()
        );
    }
}
