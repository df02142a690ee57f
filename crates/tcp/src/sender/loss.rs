//! Loss detection (RFC 6582, RFC 6675, RFC 8985), and the reports to the controller.

use weir_congestion::{LossCause, LossSample};
use weir_units::{ByteSize, Duration, Time};

use super::recovery::Cause;
use super::{Detection, EarlyTimer, Sender};
use crate::counters::StoredCounters;
use crate::scoreboard::{AckSummary, DUPLICATE_THRESHOLD, DetectedLosses, RackRules};

/// Number of recoveries for which a widened reordering window lasts (RFC 8985, section 6.2, step
/// 4).
const WINDOW_LASTS: u32 = 16;

/// The tolerated reordering of the path (RFC 8985, section 6.2, steps 3 and 4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// Whether reordering has been seen.
    seen: bool,
    /// The window in quarters of the minimum RTT.
    quarters: u64,
    /// Number of recoveries for which the window stays this wide.
    lasts: u32,
    /// A duplicate has widened the window; it can widen again once this offset is acknowledged.
    widened_until: Option<u64>,
}

impl Reordering {
    pub(super) const INITIAL: Self = Self {
        seen: false,
        quarters: 1,
        lasts: 0,
        widened_until: None,
    };

    pub(super) fn on_ack(&mut self, summary: &AckSummary, una: u64) {
        self.seen |= summary.reordered;
        self.widened_until = self.widened_until.filter(|&until| una < until);
    }

    /// Later segments have passed for a loss: the first one was only late (Linux: `tcp_try_undo_partial`).
    pub(super) fn on_spurious_recovery(&mut self) {
        self.seen = true;
    }

    pub(super) fn on_duplicate(&mut self, nxt: u64) {
        if self.widened_until.is_none() {
            self.widened_until = Some(nxt);
            self.quarters += 1;
            self.lasts = WINDOW_LASTS;
        }
    }

    pub(super) fn on_recovery_end(&mut self) {
        self.lasts = self.lasts.saturating_sub(1);
        if self.lasts == 0 {
            self.quarters = 1;
        }
    }
}

impl Sender {
    /// Detects losses from the acknowledgments so far. `advanced`: whether the current
    /// acknowledgment has advanced `una`. `delivered`: the bytes that it delivered. Returns whether it
    /// found any.
    pub(super) fn find_losses(
        &mut self,
        now: Time,
        advanced: bool,
        delivered: u64,
        counters: &mut StoredCounters,
    ) -> bool {
        let prior_flight = self.scoreboard.in_flight() + delivered;
        let mut found = DetectedLosses::default();
        match self.detection {
            Detection::DuplicateAcks => self.lose_first_if_due(advanced, &mut found),
            Detection::Threshold => self.scoreboard.find_lost_by_threshold(&mut found),
            Detection::Rack => {
                let rules = RackRules {
                    now,
                    reordering_window: self.reordering_window(),
                };
                self.scoreboard.find_overdue(&rules, &mut found);
                self.set_reordering_timer(now, found.next_overdue);
            }
        }
        if found.bytes > 0 {
            self.on_losses(now, &found, prior_flight, counters);
        }
        found.bytes > 0
    }

    /// RFC 6582, section 3.2: the first segment is lost on the third duplicate ACK, and in recovery
    /// on every partial ACK.
    fn lose_first_if_due(&mut self, advanced: bool, found: &mut DetectedLosses) {
        let due = match self.loss_state.recovery {
            None => self.loss_state.duplicates >= DUPLICATE_THRESHOLD,
            Some(recovery) => advanced && recovery.cause == Cause::Acks,
        };
        if due {
            self.scoreboard.mark_first_lost(found);
        }
    }

    /// The reordering window (RFC 8985, section 6.2, step 4).
    fn reordering_window(&self) -> Duration {
        let many_arrived = self.scoreboard.sacked() > (DUPLICATE_THRESHOLD - 1) * self.mss;
        if !self.loss_state.reordering.seen && (self.loss_state.recovery.is_some() || many_arrived)
        {
            return Duration::ZERO;
        }
        (self.rtt.min / 4 * self.loss_state.reordering.quarters).min(self.rtt.smoothed)
    }

    /// Sets the reordering timer, or else returns the early timer to tail loss probes.
    fn set_reordering_timer(&mut self, now: Time, overdue: Option<Time>) {
        if let Some(at) = overdue {
            self.early = EarlyTimer::Overdue;
            self.early_at = at + self.config.early_timer_margin;
        } else {
            self.early = EarlyTimer::Probe;
            self.early_at = Time::MAX;
            self.schedule_tail_probe(now);
        }
    }

    /// Handles losses detected by acknowledgments: reports them to the controller, and starts
    /// recovery unless one is in progress. Losses of segments sent during a recovery start another
    /// one only after the data outstanding at its start has been acknowledged (RFC 6675, section
    /// 5). A controller that controls recovery by its rate needs the send times of all losses and
    /// is the exception.
    pub(super) fn on_losses(
        &mut self,
        now: Time,
        found: &DetectedLosses,
        prior_flight: u64,
        counters: &mut StoredCounters,
    ) {
        counters.rare().lost += ByteSize::from_bytes(found.bytes);
        let newest = Self::reported_send_time(found.newest_sent.max(found.newest_resent));
        let (anew, newest_sent) = match &self.loss_state.recovery {
            Some(recovery)
                if found.newest_sent <= recovery.newest_sent
                    || !self.pacer.follows_controller() =>
            {
                (false, recovery.first_loss_sent)
            }
            _ => (true, newest),
        };
        self.record_losses(found, newest_sent, anew);
        self.controller.as_dyn_mut().on_loss(&LossSample {
            now,
            lost: ByteSize::from_bytes(found.bytes),
            newest_sent,
            cause: LossCause::Acks,
            in_flight: ByteSize::from_bytes(self.scoreboard.in_flight()),
        });
        self.follow_controller();
        if anew {
            counters.rare().fast_recoveries += 1;
            self.begin_recovery(Cause::Acks, newest_sent, prior_flight);
        }
    }
}
