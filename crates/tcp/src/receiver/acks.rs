//! The timing of acknowledgments and the SACK blocks that they report (RFC 9293 section 3.8.6.3,
//! RFC 2018, RFC 2883).
//!
//! Delayed ACKs follow Linux (`tcp_input.c`). The first segments of a connection are acknowledged at
//! once, and those after an idle time or a duplicate. So is a segment that ends a write, unless this
//! end answers each request with data: the response then carries the ACK.

use weir_units::{Duration, Time};

use crate::scoreboard::SackRange;
use crate::{Config, DelayedAcks};

/// Number of SACK blocks stored for later acknowledgments.
const RECENT: usize = 3;

/// Smaller segments are never full ones (Linux: `TCP_MIN_RCVMSS`).
const SMALLEST_FULL: u32 = 536;

/// In-order data that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrderData {
    pub(crate) payload: u32,
    /// Whether PSH is set: the segment ends a write, or its sender waits for the ACK.
    pub(crate) is_pushed: bool,
    /// How ACKs are delayed.
    pub(crate) delayed: Option<DelayedAcks>,
    /// Whether it follows an idle time.
    pub(crate) is_after_idle: bool,
}

/// The delayed-ACK state and the SACK blocks of the next acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct AckState {
    /// Expiry of the delayed-ACK timer.
    at: Time,
    /// The arrival of the last data; [`Time::MAX`] before the first.
    last_data: Time,
    /// Segments received but not acknowledged.
    pending: u32,
    /// ACKs that are still to be sent at once.
    quick: u32,
    /// The largest segment so far.
    largest: u32,
    now: bool,
    /// Whether this end has answered data with data, so that its ACKs may wait for the answer.
    is_interactive: bool,
    /// While there are blocks to report.
    blocks: Option<Box<Blocks>>,
}

/// The SACK blocks of the next acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    /// Ranges received out of order, the most recently changed first; an empty block ends the list.
    recent: [SackRange; RECENT],
    /// A range received twice (D-SACK); reported once.
    duplicate: Option<SackRange>,
}

impl Blocks {
    fn is_empty(&self) -> bool {
        self.duplicate.is_none() && self.recent[0].end <= self.recent[0].start
    }
}

impl AckState {
    pub(super) fn new(config: &Config) -> Self {
        let delayed = config.delayed_acks;
        Self {
            at: Time::MAX,
            last_data: Time::MAX,
            pending: 0,
            quick: delayed.map_or(0, |delayed| delayed.quick_segments),
            largest: SMALLEST_FULL,
            now: false,
            is_interactive: false,
            blocks: None,
        }
    }

    /// Returns the time since the last data; zero before the first.
    #[inline]
    pub(crate) fn idle_time(&self, now: Time) -> Duration {
        now.since(self.last_data)
    }

    /// Records in-order data.
    #[inline(always)]
    pub(super) fn on_in_order(&mut self, now: Time, data: &InOrderData, mss: u64) {
        let Some(delayed) = &data.delayed else {
            self.now = true;
            return;
        };
        let payload = data.payload;
        let segments = if u64::from(payload) <= mss {
            1
        } else {
            u64::from(payload).div_ceil(mss.max(1)) as u32
        };
        self.pending = self.pending.saturating_add(segments);
        self.last_data = now;
        if data.is_after_idle {
            // The sender starts again with a small window.
            self.quick = delayed.quick_segments;
            self.is_interactive = false;
        }
        // No longer than the payload.
        let length = u64::from(payload).min(mss) as u32;
        let is_full = length >= self.largest;
        self.largest = self.largest.max(length);
        // A full segment that is pushed is no request: its sender's window holds no other one.
        let at_once = if self.is_interactive {
            data.is_pushed && is_full
        } else {
            data.is_pushed || self.quick > 0
        };
        if self.pending >= delayed.segments || at_once {
            self.now = true;
        } else if self.at == Time::MAX {
            self.at = now + delayed.timeout;
        }
    }

    /// Records out-of-order data, which is part of `run` now.
    pub(super) fn on_out_of_order(&mut self, run: SackRange) {
        self.now = true;
        let blocks = self.blocks.get_or_insert_default();
        let before = blocks.recent;
        let others = before
            .into_iter()
            .filter(|block| block.end < run.start || block.start > run.end);
        let changed = std::iter::once(run).chain(others.filter(|block| block.end > block.start));
        let mut recent = [SackRange::default(); RECENT];
        for (place, block) in recent.iter_mut().zip(changed) {
            *place = block;
        }
        blocks.recent = recent;
    }

    /// Acknowledges the next segments at once: their sender has a small window, or misses ACKs.
    fn acknowledge_quickly(&mut self, delayed: Option<DelayedAcks>) {
        self.quick = delayed.map_or(0, |delayed| delayed.quick_segments);
        self.is_interactive = false;
    }

    /// Records that data is sent.
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now: Time, delayed: Option<&DelayedAcks>) {
        if self.last_data != Time::MAX
            && let Some(delayed) = delayed
        {
            self.is_interactive |= now.since(self.last_data) < delayed.timeout;
        }
    }

    /// Records duplicate data.
    pub(super) fn on_duplicate(&mut self, start: u64, end: u64, delayed: Option<DelayedAcks>) {
        self.now = true;
        self.acknowledge_quickly(delayed);
        if end > start {
            self.blocks.get_or_insert_default().duplicate = Some(SackRange { start, end });
        }
    }

    /// Drops ranges below `next`, which are acknowledged cumulatively.
    pub(super) fn drop_below(&mut self, next: u64) {
        let Some(blocks) = &mut self.blocks else {
            return;
        };
        let before = blocks.recent;
        let left = before.into_iter().filter(|block| block.end > next);
        let mut recent = [SackRange::default(); RECENT];
        for (place, block) in recent.iter_mut().zip(left) {
            *place = block;
        }
        blocks.recent = recent;
        self.drop_empty_blocks();
    }

    fn drop_empty_blocks(&mut self) {
        if self.blocks.as_ref().is_some_and(|blocks| blocks.is_empty()) {
            self.blocks = None;
        }
    }

    /// Schedules an immediate acknowledgment.
    #[inline]
    pub(crate) fn ack_now(&mut self) {
        self.now = true;
    }

    /// Returns whether data waits for its acknowledgment.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Returns whether an acknowledgment is due.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.now
    }

    /// Returns the expiry of the delayed-ACK timer.
    #[inline]
    pub(crate) fn timeout(&self) -> Time {
        self.at
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.at <= now {
            self.at = Time::MAX;
            self.now = true;
        }
    }

    /// Records that an acknowledgment of all received data is sent.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.now = false;
        // The timer waits with segments only.
        if self.pending > 0 {
            self.quick = self.quick.saturating_sub(1);
            self.pending = 0;
            self.at = Time::MAX;
        }
    }

    /// Cancels pending acknowledgments.
    pub(crate) fn stop(&mut self) {
        self.on_sent();
    }

    /// Returns whether there are SACK blocks to report.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// Returns the blocks, the newest first; a duplicate before all others (RFC 2883, section 4).
    pub(crate) fn take_blocks(&mut self) -> impl Iterator<Item = SackRange> {
        let blocks = self.blocks.as_deref().copied().unwrap_or_default();
        if let Some(left) = &mut self.blocks {
            left.duplicate = None;
        }
        self.drop_empty_blocks();
        blocks.duplicate.into_iter().chain(
            blocks
                .recent
                .into_iter()
                .take_while(|block| block.end > block.start),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_millis(200);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Delivers a full segment, or one of so many bytes; returns whether its ACK is due at once.
    fn deliver(acks: &mut AckState, now: Time, is_pushed: bool) -> bool {
        deliver_bytes(acks, now, 1448, is_pushed)
    }

    fn deliver_bytes(acks: &mut AckState, now: Time, payload: u32, is_pushed: bool) -> bool {
        let data = InOrderData {
            payload,
            is_pushed,
            delayed: Config::default().delayed_acks,
            is_after_idle: acks.idle_time(now) > RTO,
        };
        acks.on_in_order(now, &data, 1448);
        let is_due = acks.is_due();
        if is_due {
            acks.on_sent();
        }
        is_due
    }

    /// Returns the state after the quick ACKs of the start.
    fn started() -> AckState {
        let mut acks = AckState::new(&Config::default());
        assert!((0..16).all(|_| deliver(&mut acks, at(1), false)));
        acks
    }

    #[test]
    fn after_the_start_every_second_segment_is_acknowledged() {
        let mut acks = started();
        let due: Vec<bool> = (0..4).map(|_| deliver(&mut acks, at(2), false)).collect();
        assert_eq!(due, [false, true, false, true]);
        assert!(!deliver(&mut acks, at(3), false));
        assert_eq!(acks.timeout(), at(43));
    }

    #[test]
    fn a_pushed_segment_is_acknowledged_at_once_unless_the_answer_will_carry_it() {
        let mut acks = started();
        assert!(deliver(&mut acks, at(2), true));
        acks.on_data_sent(at(3), Config::default().delayed_acks.as_ref());
        assert!(!deliver_bytes(&mut acks, at(4), 500, true));
        acks.on_sent();
        // A full one is not the end of a request, but all that a small window holds.
        assert!(deliver(&mut acks, at(5), true));
        // An answer that comes later than the timer does not count.
        let mut slow = started();
        slow.on_data_sent(at(60), Config::default().delayed_acks.as_ref());
        assert!(deliver(&mut slow, at(61), true));
    }

    #[test]
    fn segments_after_an_idle_time_or_a_duplicate_are_acknowledged_at_once() {
        let mut acks = started();
        assert!(!deliver(&mut acks, at(100), false));
        acks.on_sent();
        assert!(deliver(&mut acks, at(301), false));
        let mut acks = started();
        acks.on_data_sent(at(2), Config::default().delayed_acks.as_ref());
        acks.on_duplicate(0, 1448, Config::default().delayed_acks);
        acks.on_sent();
        assert!(deliver(&mut acks, at(3), false));
    }
}
