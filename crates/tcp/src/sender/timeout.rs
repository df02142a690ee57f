//! The retransmission timer (RFC 6298), the persist timer (RFC 9293, section 3.8.6.1), and the
//! early timers.

use weir_congestion::{LossCause, LossSample};
use weir_units::{ByteSize, Time};

use super::recovery::{Cause, FrtoState};
use super::{EarlyTimer, Sender};
use crate::counters::StoredCounters;
use crate::scoreboard::DetectedLosses;

/// The result of an expired timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The connection continues.
    GoOn,
    /// The peer did not answer for too long: the connection is aborted.
    GiveUp,
}

impl Sender {
    /// Handles all expired timers.
    pub(crate) fn handle_timeout(&mut self, now: Time, counters: &mut StoredCounters) -> Expiry {
        self.pacer.handle_timeout(now);
        if self.early_at <= now {
            self.early_at = Time::MAX;
            match self.early {
                EarlyTimer::Probe => self.on_probe_time(now),
                EarlyTimer::Overdue => {
                    self.find_losses(now, false, 0, counters);
                }
            }
        }
        if self.rto_at > now {
            return Expiry::GoOn;
        }
        if self.scoreboard.is_empty() {
            self.on_persist_time(now)
        } else {
            self.on_retransmission_time(now, counters)
        }
    }

    /// The retransmission timer has expired (RFC 6298, sections 5.4 to 5.6; RFC 5681, section 3.1).
    fn on_retransmission_time(&mut self, now: Time, counters: &mut StoredCounters) -> Expiry {
        if self.scoreboard.in_flight() == 0 {
            // Lost segments are waiting for the pacer, so they cannot have been acknowledged.
            self.rto_at = self.rtt.deadline(now);
            return Expiry::GoOn;
        }
        if self.loss_state.retries >= self.config.max_retries {
            return Expiry::GiveUp;
        }
        self.loss_state.retries += 1;
        counters.rare().timeouts += 1;
        if self.scoreboard.has_reneged() {
            self.scoreboard.forget_sacks();
        }
        let mut found = DetectedLosses::default();
        self.scoreboard.mark_all_lost(&mut found);
        counters.rare().lost += ByteSize::from_bytes(found.bytes);

        // ssthresh stays if the same data times out again (RFC 5681, section 3.1).
        let newest = Self::reported_send_time(found.newest_sent.max(found.newest_resent));
        let (anew, newest_sent) = match &self.loss_state.recovery {
            Some(recovery) if found.newest_sent <= recovery.newest_sent => {
                (false, recovery.first_loss_sent)
            }
            _ => (true, newest),
        };
        self.record_losses(&found, newest_sent, anew);
        self.controller.as_dyn_mut().on_loss(&LossSample {
            now,
            lost: ByteSize::from_bytes(found.bytes),
            newest_sent,
            cause: LossCause::Timeout,
            in_flight: ByteSize::from_bytes(self.scoreboard.in_flight()),
        });
        self.follow_controller();
        let outstanding_since = self.loss_state.recovery.filter(|_| !anew);
        let doubt = if self.config.frto {
            FrtoState::Open
        } else {
            FrtoState::Genuine
        };
        self.begin_recovery(Cause::Timeout(doubt), newest_sent, 0);
        if let (Some(before), Some(recovery)) = (outstanding_since, &mut self.loss_state.recovery) {
            recovery.newest_sent = before.newest_sent;
        }
        self.loss_state.duplicates = 0;
        self.loss_state.tail_probe = None;
        self.early = EarlyTimer::Probe;
        self.early_at = Time::MAX;
        self.rtt.back_off();
        self.rto_at = self.rtt.deadline(now);
        Expiry::GoOn
    }

    /// The peer's window has been closed or too small for a while: sends a probe, or a segment that
    /// fits into it (RFC 9293, sections 3.8.6.1 and 3.8.6.2.1).
    fn on_persist_time(&mut self, now: Time) -> Expiry {
        self.rto_at = Time::MAX;
        if !self.has_unsent() {
            return Expiry::GoOn;
        }
        self.loss_state.window_probes = self.loss_state.window_probes.saturating_add(1);
        if self.edge > self.nxt {
            self.loss_state.small_segment_due = true;
        } else if self.loss_state.unanswered_probes < self.config.max_retries {
            self.loss_state.unanswered_probes += 1;
            self.loss_state.window_probe_due = true;
        } else {
            return Expiry::GiveUp;
        }
        self.rto_at = now + self.rtt.backed_off(self.loss_state.window_probes);
        Expiry::GoOn
    }

    /// Starts the persist timer if the peer's window blocks data while nothing is outstanding.
    pub(super) fn persist(&mut self, now: Time) {
        if self.scoreboard.is_empty() && self.rto_at == Time::MAX {
            self.rto_at = now + self.rtt.backed_off(self.loss_state.window_probes);
        }
    }

    /// Returns whether a window probe is due, and clears it.
    pub(crate) fn take_window_probe(&mut self) -> bool {
        let loss_state = self.loss_state.changed();
        loss_state.is_some_and(|loss_state| std::mem::take(&mut loss_state.window_probe_due))
    }
}
