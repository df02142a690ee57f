//! Recovery: from a loss to the acknowledgment of all data outstanding at that time.

use weir_congestion::SpuriousLoss;
use weir_units::{ByteSize, Time};

use super::{Acknowledgment, Detection, Sender};
use crate::counters::StoredCounters;
use crate::scoreboard::{AckSummary, DetectedLosses, SackRange};

/// A recovery in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub(super) cause: Cause,
    /// Recovery ends when this offset has been acknowledged.
    pub(super) recovery_point: u64,
    /// Send time of the newest segment outstanding at the start. Losses of segments sent until
    /// then, and of their retransmissions, cause no further reduction.
    pub(super) newest_sent: Time,
    /// The send time of the first losses, as reported to the controller.
    pub(super) first_loss_sent: Time,
    /// The first retransmission ignores the window (RFC 5681, section 3.2, step 3).
    pub(super) first_due: bool,
    /// The last segment may be sent again once, in case nothing after it tells that it is missing (RFC 6675,
    /// section 4, `NextSeg`, rule 4).
    pub(super) rescue_due: bool,
    /// Whether a partial ACK has arrived.
    pub(super) has_partial_ack: bool,
}

/// The cause of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Fast retransmit.
    Acks,
    /// A timeout, with the F-RTO state.
    Timeout(FrtoState),
}

/// Whether a timeout was spurious (F-RTO, RFC 5682, section 3: the version with SACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrtoState {
    /// No acknowledgment has arrived since.
    Open,
    /// After the first acknowledgment, up to two new segments are sent instead of retransmissions.
    /// The next acknowledgment decides.
    Probing {
        /// Number of new segments that may still be sent.
        segments: u32,
    },
    /// The timeout was genuine.
    Genuine,
}

/// The state needed to undo a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Bytes reported to the controller as lost, without those revoked.
    pub(super) lost: u64,
    /// Send time of the newest of these bytes.
    pub(super) newest_sent: Time,
    /// Retransmitted bytes that the peer has not reported as duplicates.
    pub(super) resent: u64,
    /// Time of the first of these retransmissions.
    pub(super) first_resent: Option<Time>,
    /// The range of offsets of these bytes.
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Undo {
    /// Records the retransmission of a lost segment.
    pub(super) fn on_resent(&mut self, now: Time, start: u64, end: u64) {
        if self.first_resent.is_none() {
            self.first_resent = Some(now);
            self.from = start;
        }
        self.from = self.from.min(start);
        self.to = self.to.max(end);
        self.resent += end - start;
    }
}

impl Sender {
    /// Processes an acknowledgment for recovery: spurious losses, the end of recovery, and new
    /// losses. Returns whether there are new losses.
    pub(super) fn recover(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        summary: &AckSummary,
        advanced: bool,
        counters: &mut StoredCounters,
    ) -> bool {
        self.count_duplicates(ack, summary, advanced);
        self.loss_state.reordering.on_ack(summary, self.una);
        if summary.spuriously_lost > 0 {
            self.revoke_arrived(now, summary.spuriously_lost, counters);
        }
        self.check_frto(now, ack, summary, advanced, counters);
        self.compare_time_stamps(now, ack, summary, counters);
        if let Some(block) = ack.duplicate {
            self.on_duplicate(now, block, counters);
        }
        self.settle_tail_probe(now, ack, advanced, counters);
        if self
            .loss_state
            .recovery
            .is_some_and(|recovery| self.una >= recovery.recovery_point)
        {
            self.end_recovery();
        }
        self.find_losses(now, advanced, summary.delivered, counters)
    }

    /// Counts duplicate ACKs without SACK: each reports the arrival of a segment (RFC 5681, section
    /// 3.2).
    fn count_duplicates(&mut self, ack: &Acknowledgment<'_>, summary: &AckSummary, advanced: bool) {
        if self.detection != Detection::DuplicateAcks {
            return;
        }
        if advanced {
            // The first segment filled the gap; the others had arrived before (RFC 6582).
            let arrived = (summary.delivered / self.mss).saturating_sub(1);
            self.loss_state.duplicates = match self.loss_state.recovery {
                Some(recovery) if self.una < recovery.recovery_point => {
                    self.loss_state.duplicates.saturating_sub(arrived)
                }
                _ => 0,
            };
        } else if ack.repeats && !self.scoreboard.is_empty() {
            self.loss_state.duplicates += 1;
        }
    }

    /// Returns whether losses are being repaired without a timeout.
    #[inline]
    pub(super) fn is_in_fast_recovery(&self) -> bool {
        self.loss_state
            .recovery
            .is_some_and(|recovery| recovery.cause == Cause::Acks)
    }

    pub(super) fn end_recovery(&mut self) {
        self.loss_state.recovery = None;
        self.reduction.end();
        self.loss_state.duplicates = 0;
        self.loss_state.reordering.on_recovery_end();
        self.follow_controller();
    }

    /// Starts recovery, or restarts it for losses of newer segments.
    pub(super) fn begin_recovery(&mut self, cause: Cause, reported: Time, prior_flight: u64) {
        self.loss_state.recovery = Some(Recovery {
            cause,
            recovery_point: self.nxt,
            newest_sent: self.last_sent,
            first_loss_sent: reported,
            first_due: cause == Cause::Acks,
            rescue_due: cause == Cause::Acks && self.detection == Detection::Threshold,
            has_partial_ack: false,
        });
        self.begin_reduction(cause, prior_flight);
    }

    /// Records losses that are reported to the controller.
    pub(super) fn record_losses(&mut self, found: &DetectedLosses, newest: Time, anew: bool) {
        let undo = self.loss_state.undo.get_or_insert_default();
        if anew {
            *undo = Undo::default();
        }
        undo.lost += found.bytes;
        undo.newest_sent = undo.newest_sent.max(newest);
    }

    /// Revokes losses of segments that arrived without a retransmission.
    fn revoke_arrived(&mut self, now: Time, bytes: u64, counters: &mut StoredCounters) {
        let Some(undo) = &mut self.loss_state.undo else {
            return;
        };
        let bytes = bytes.min(undo.lost);
        undo.lost -= bytes;
        let (newest_sent, over) = (undo.newest_sent, undo.lost == 0 && undo.resent == 0);
        self.report_spurious_loss(now, bytes, newest_sent);
        if over && self.loss_state.recovery.is_some() {
            counters.rare().spurious_recoveries += 1;
            self.loss_state.undo = None;
            self.end_recovery();
        }
    }

    /// F-RTO: checks whether a segment sent once has arrived after its timeout.
    fn check_frto(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        summary: &AckSummary,
        advanced: bool,
        counters: &mut StoredCounters,
    ) {
        let Some(Recovery {
            cause: Cause::Timeout(doubt),
            recovery_point: point,
            ..
        }) = self.loss_state.recovery
        else {
            return;
        };
        if doubt == FrtoState::Genuine {
            return;
        }
        if summary.spuriously_lost > 0 {
            self.undo_recovery(now, counters);
            return;
        }
        // With SACK, a duplicate proves nothing: wait for the acknowledgment of a retransmission.
        let proves = advanced || (ack.repeats && self.detection == Detection::DuplicateAcks);
        let next = match doubt {
            FrtoState::Open if advanced && self.una < point && self.may_send_new() => {
                FrtoState::Probing { segments: 2 }
            }
            FrtoState::Open if !proves => FrtoState::Open,
            _ => FrtoState::Genuine,
        };
        if let Some(recovery) = &mut self.loss_state.recovery {
            recovery.cause = Cause::Timeout(next);
        }
    }

    /// Treats the timeout as genuine.
    pub(super) fn confirm_timeout(&mut self) {
        if let Some(recovery) = &mut self.loss_state.recovery {
            recovery.cause = Cause::Timeout(FrtoState::Genuine);
        }
    }

    /// The Eifel test (RFC 3522): the acknowledgment covers a retransmitted segment, but its
    /// timestamp echo predates the first retransmission. So the original transmission had arrived.
    fn compare_time_stamps(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        summary: &AckSummary,
        counters: &mut StoredCounters,
    ) {
        if self.loss_state.recovery.is_none() {
            return;
        }
        let first_resent = self.loss_state.undo.and_then(|undo| undo.first_resent);
        if let (Some(echoed), Some(first), Some(resent)) =
            (ack.echoed, first_resent, summary.first_resent)
            && echoed < first
            && first <= resent
        {
            self.undo_recovery(now, counters);
        }
    }

    /// Processes a duplicate report: widens the reordering window. Once all retransmissions were
    /// duplicates, nothing had been lost (RFC 3708, section 2).
    fn on_duplicate(&mut self, now: Time, block: SackRange, counters: &mut StoredCounters) {
        if self.is_tail_probe(block) {
            return;
        }
        self.loss_state.reordering.on_duplicate(self.nxt);
        let Some(undo) = &mut self.loss_state.undo else {
            return;
        };
        let was_resent = undo.from <= block.start && block.end <= undo.to;
        if undo.resent == 0 || !was_resent {
            return;
        }
        undo.resent = undo.resent.saturating_sub(block.end - block.start);
        if undo.resent == 0 && self.scoreboard.lost() == 0 {
            self.undo_recovery(now, counters);
        }
    }

    /// Undoes the last recovery, whose losses were spurious.
    fn undo_recovery(&mut self, now: Time, counters: &mut StoredCounters) {
        self.scoreboard.revoke_losses();
        if self.is_in_fast_recovery() {
            self.loss_state.reordering.on_spurious_recovery();
        }
        if let Some(undo) = self.loss_state.undo.take() {
            counters.rare().spurious_recoveries += 1;
            self.report_spurious_loss(now, undo.lost, undo.newest_sent);
        }
        if self.loss_state.recovery.is_some() {
            self.end_recovery();
        }
    }

    fn report_spurious_loss(&mut self, now: Time, bytes: u64, newest_sent: Time) {
        if bytes > 0 {
            self.controller
                .as_dyn_mut()
                .on_spurious_loss(&SpuriousLoss {
                    now,
                    bytes: ByteSize::from_bytes(bytes),
                    newest_sent,
                });
            self.follow_controller();
        }
    }
}
