//! The timing of acknowledgments and the SACK blocks that they report (RFC 9293 section 3.8.6.3,
//! RFC 2018, RFC 2883).

use weir_units::Time;

use crate::DelayedAcks;
use crate::scoreboard::SackRange;

/// Number of SACK blocks stored for later acknowledgments.
const RECENT: usize = 3;

/// The delayed-ACK state and the SACK blocks of the next acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct AckState {
    delayed: Option<DelayedAcks>,
    /// Segments received but not acknowledged.
    pending: u32,
    now: bool,
    /// Expiry of the delayed-ACK timer.
    at: Time,
    /// Segments that are still to be acknowledged at once.
    quick: u32,
    /// Ranges received out of order, the most recently changed first; an empty block ends the list.
    recent: [SackRange; RECENT],
    /// A range received twice (D-SACK); reported once.
    duplicate: Option<SackRange>,
}

impl AckState {
    pub(super) fn new(delayed: Option<DelayedAcks>) -> Self {
        Self {
            delayed,
            pending: 0,
            now: false,
            at: Time::MAX,
            quick: delayed.map_or(0, |delayed| delayed.quick_segments),
            recent: [SackRange::default(); RECENT],
            duplicate: None,
        }
    }

    /// Records in-order data.
    #[inline]
    pub(super) fn on_in_order(&mut self, now: Time, payload: u32, mss: u64) {
        let Some(delayed) = self.delayed else {
            self.now = true;
            return;
        };
        let segments = if u64::from(payload) <= mss {
            1
        } else {
            u64::from(payload).div_ceil(mss.max(1)) as u32
        };
        self.pending = self.pending.saturating_add(segments);
        if self.pending >= delayed.segments || self.quick > 0 {
            self.quick = self.quick.saturating_sub(segments);
            self.now = true;
        } else if self.at == Time::MAX {
            self.at = now + delayed.timeout;
        }
    }

    /// Records out-of-order data, which is part of `run` now.
    pub(super) fn on_out_of_order(&mut self, run: SackRange) {
        self.now = true;
        let before = self.recent;
        let others = before
            .into_iter()
            .filter(|block| block.end < run.start || block.start > run.end);
        let blocks = std::iter::once(run).chain(others.filter(|block| block.end > block.start));
        let mut recent = [SackRange::default(); RECENT];
        for (place, block) in recent.iter_mut().zip(blocks) {
            *place = block;
        }
        self.recent = recent;
    }

    /// Records duplicate data.
    pub(super) fn on_duplicate(&mut self, start: u64, end: u64) {
        self.now = true;
        if end > start {
            self.duplicate = Some(SackRange { start, end });
        }
    }

    /// Drops ranges below `next`, which are acknowledged cumulatively.
    pub(super) fn drop_below(&mut self, next: u64) {
        let before = self.recent;
        let left = before.into_iter().filter(|block| block.end > next);
        let mut recent = [SackRange::default(); RECENT];
        for (place, block) in recent.iter_mut().zip(left) {
            *place = block;
        }
        self.recent = recent;
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
        self.pending = 0;
        self.now = false;
        self.at = Time::MAX;
    }

    /// Cancels pending acknowledgments.
    pub(crate) fn stop(&mut self) {
        self.on_sent();
    }

    /// Returns whether there are SACK blocks to report.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || self.recent[0].end > self.recent[0].start
    }

    /// Returns the blocks, the newest first; a duplicate before all others (RFC 2883, section 4).
    pub(crate) fn take_blocks(&mut self) -> impl Iterator<Item = SackRange> {
        let recent = self.recent;
        self.duplicate.take().into_iter().chain(
            recent
                .into_iter()
                .take_while(|block| block.end > block.start),
        )
    }
}
