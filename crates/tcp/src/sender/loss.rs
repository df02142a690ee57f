//! Looking for losses (RFC 6582, RFC 6675, RFC 8985), and telling the controller.

use weir_congestion::{LossCause, LossSample};
use weir_units::{ByteSize, Duration, Time};

use super::recovery::Cause;
use super::{Detection, EarlyTimer, Sender};
use crate::Counters;
use crate::scoreboard::{AckSummary, DUPLICATE_THRESHOLD, DetectedLosses, RackRules};

/// How many recoveries a widened reordering window lasts (RFC 8985, section 6.2, step 4).
const WINDOW_LASTS: u32 = 16;

/// How much reordering the path is given room for (RFC 8985, section 6.2, steps 3 and 4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// Whether there has been any.
    seen: bool,
    /// The window in quarters of the shortest round trip.
    quarters: u64,
    /// How many recoveries the window stays so wide.
    lasts: u32,
    /// A duplicate has widened the window; the next one does when this has been acknowledged.
    widened_until: Option<u64>,
}

impl Default for Reordering {
    fn default() -> Self {
        Self {
            seen: false,
            quarters: 1,
            lasts: 0,
            widened_until: None,
        }
    }
}

impl Reordering {
    pub(super) fn on_ack(&mut self, news: &AckSummary, una: u64) {
        self.seen |= news.reordered;
        self.widened_until = self.widened_until.filter(|&until| una < until);
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
    /// Finds what the acknowledgments so far show to be lost:
    /// the present acknowledgment, if it is one, has `advanced`, and `delivered` so many bytes.
    pub(super) fn find_losses(
        &mut self,
        now: Time,
        advanced: bool,
        delivered: u64,
        counters: &mut Counters,
    ) {
        let prior_flight = self.board.in_flight() + delivered;
        let mut found = DetectedLosses::default();
        match self.detection {
            Detection::DuplicateAcks => self.lose_first_if_due(advanced, &mut found),
            Detection::Threshold => self.board.find_lost_by_threshold(&mut found),
            Detection::Rack => {
                let rules = RackRules {
                    now,
                    reordering_window: self.reordering_window(),
                };
                self.board.find_overdue(&rules, &mut found);
                self.await_overdue(now, found.next_overdue);
            }
        }
        if found.bytes > 0 {
            self.on_losses(now, &found, prior_flight, counters);
        }
    }

    /// RFC 6582, section 3.2: the third duplicate ACK, and in recovery every partial ACK, says that
    /// the first segment is lost.
    fn lose_first_if_due(&mut self, advanced: bool, found: &mut DetectedLosses) {
        let due = match self.recovery {
            None => self.duplicates >= DUPLICATE_THRESHOLD,
            Some(recovery) => advanced && recovery.cause == Cause::Acks,
        };
        if due {
            self.board.lose_first(found);
        }
    }

    /// RFC 8985, section 6.2, step 4.
    fn reordering_window(&self) -> Duration {
        let many_arrived = self.board.sacked() > (DUPLICATE_THRESHOLD - 1) * self.mss;
        if !self.reordering.seen && (self.recovery.is_some() || many_arrived) {
            return Duration::ZERO;
        }
        (self.rtt.min / 4 * self.reordering.quarters).min(self.rtt.smoothed)
    }

    /// Sets the reordering timer, or gives the early timer back to tail loss probes.
    fn await_overdue(&mut self, now: Time, overdue: Option<Time>) {
        if let Some(at) = overdue {
            self.early = EarlyTimer::Overdue;
            self.early_at = at;
        } else {
            self.early = EarlyTimer::Probe;
            self.early_at = Time::MAX;
            self.schedule_tail_probe(now);
        }
    }

    /// Segments were found lost by acknowledgments: the controller hears of it, and recovery begins
    /// unless it is under way. What was sent since it began is no reason for another one until what
    /// was outstanding then has been acknowledged (RFC 6675, section 5), unless the controller
    /// governs recovery by its rate and has to know when the losses were sent.
    pub(super) fn on_losses(
        &mut self,
        now: Time,
        found: &DetectedLosses,
        prior_flight: u64,
        counters: &mut Counters,
    ) {
        counters.lost += ByteSize::from_bytes(found.bytes);
        let newest = Self::told(found.newest_sent.max(found.newest_resent));
        let (anew, newest_sent) = match &self.recovery {
            Some(recovery)
                if found.newest_sent <= recovery.newest_sent || !self.pacer.of_controller =>
            {
                (false, recovery.reported)
            }
            _ => (true, newest),
        };
        self.note_losses(found, newest_sent, anew);
        self.controller.on_loss(&LossSample {
            now,
            lost: ByteSize::from_bytes(found.bytes),
            newest_sent,
            cause: LossCause::Acks,
            in_flight: ByteSize::from_bytes(self.board.in_flight()),
        });
        self.follow_controller();
        if anew {
            counters.fast_recoveries += 1;
            self.begin_recovery(Cause::Acks, newest_sent, prior_flight);
        }
    }
}
