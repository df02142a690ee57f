//! Recovery: from a loss to the acknowledgment of all that was outstanding then.

use weir_congestion::SpuriousLoss;
use weir_units::{ByteSize, Time};

use super::{Acknowledgment, Detection, Sender};
use crate::Counters;
use crate::scoreboard::{AckSummary, DetectedLosses, SackRange};

/// Recovery under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub(super) cause: Cause,
    /// It ends when this has been acknowledged.
    pub(super) point: u64,
    /// When the newest segment was sent that was outstanding at its start. Losses of what had been
    /// sent by then, and of its retransmissions, are no reason for another reduction.
    pub(super) newest_sent: Time,
    /// What the controller was told as the sending time of its first losses.
    pub(super) reported: Time,
    /// One segment goes without asking the window (RFC 5681, section 3.2, step 3).
    pub(super) first_due: bool,
}

/// What began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Fast retransmit.
    Acks,
    /// A time-out, and what is known about its need.
    Timeout(FrtoState),
}

/// Whether a time-out was needed (F-RTO, RFC 5682, section 3: the version with SACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrtoState {
    /// Nothing has been heard since.
    Open,
    /// The first acknowledgment came: up to two new segments go instead of retransmissions, and
    /// the next one decides.
    Probing {
        /// How many new segments may still go.
        segments: u32,
    },
    /// It was needed.
    Settled,
}

/// What a recovery did that may have to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Bytes that the controller was told are lost, without those that were revoked.
    pub(super) lost: u64,
    /// When the newest of these was sent.
    pub(super) newest_sent: Time,
    /// Bytes that were sent again without the peer saying that they came twice.
    pub(super) resent: u64,
    /// When the first of these was sent again.
    pub(super) first_resent: Option<Time>,
    /// From where to where these lie.
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Undo {
    /// A lost segment is sent again.
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
    /// What an acknowledgment means for losses: those that were none, those that are over, and new
    /// ones.
    pub(super) fn recover(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        news: &AckSummary,
        advanced: bool,
        counters: &mut Counters,
    ) {
        self.count_duplicates(ack, news, advanced);
        self.reordering.on_ack(news, self.una);
        if news.falsely_lost > 0 {
            self.revoke_arrived(now, news.falsely_lost, counters);
        }
        self.doubt_timeout(now, ack, news, advanced, counters);
        self.compare_time_stamps(now, ack, news, counters);
        if let Some(block) = ack.duplicate {
            self.on_duplicate(now, block, counters);
        }
        self.settle_tail_probe(now, ack, advanced, counters);
        if self
            .recovery
            .is_some_and(|recovery| self.una >= recovery.point)
        {
            self.end_recovery();
        }
        self.find_losses(now, advanced, news.delivered, counters);
    }

    /// Without SACK, a duplicate ACK says that some segment has arrived (RFC 5681, section 3.2).
    fn count_duplicates(&mut self, ack: &Acknowledgment<'_>, news: &AckSummary, advanced: bool) {
        if self.detection != Detection::DuplicateAcks {
            return;
        }
        if advanced {
            // The first segment filled the gap; the others had come before (RFC 6582).
            let arrived = (news.delivered / self.mss).saturating_sub(1);
            self.duplicates = match self.recovery {
                Some(recovery) if self.una < recovery.point => {
                    self.duplicates.saturating_sub(arrived)
                }
                _ => 0,
            };
        } else if ack.repeats && !self.board.records.is_empty() {
            self.duplicates += 1;
        }
    }

    /// Whether losses are being repaired without a time-out.
    #[inline]
    pub(super) fn is_in_fast_recovery(&self) -> bool {
        self.recovery
            .is_some_and(|recovery| recovery.cause == Cause::Acks)
    }

    pub(super) fn end_recovery(&mut self) {
        self.recovery = None;
        self.reduction = None;
        self.duplicates = 0;
        self.reordering.on_recovery_end();
        self.follow_controller();
    }

    /// Recovery begins, or begins anew for what was sent since.
    pub(super) fn begin_recovery(&mut self, cause: Cause, reported: Time, prior_flight: u64) {
        self.recovery = Some(Recovery {
            cause,
            point: self.nxt,
            newest_sent: self.last_sent.unwrap_or(Time::ZERO),
            reported,
            first_due: cause == Cause::Acks,
        });
        self.begin_reduction(cause, prior_flight);
    }

    /// Notes losses that the controller is told about.
    pub(super) fn note_losses(&mut self, found: &DetectedLosses, newest: Time, anew: bool) {
        let undo = self.undo.get_or_insert_default();
        if anew {
            *undo = Undo::default();
        }
        undo.lost += found.bytes;
        undo.newest_sent = undo.newest_sent.max(newest);
    }

    /// Segments have arrived that were declared lost and not sent again.
    fn revoke_arrived(&mut self, now: Time, bytes: u64, counters: &mut Counters) {
        let Some(undo) = &mut self.undo else {
            return;
        };
        let bytes = bytes.min(undo.lost);
        undo.lost -= bytes;
        let (newest_sent, over) = (undo.newest_sent, undo.lost == 0 && undo.resent == 0);
        self.tell_spurious(now, bytes, newest_sent);
        if over && self.recovery.is_some() {
            counters.spurious_recoveries += 1;
            self.undo = None;
            self.end_recovery();
        }
    }

    /// F-RTO: a segment that was sent once has arrived although it timed out.
    fn doubt_timeout(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        news: &AckSummary,
        advanced: bool,
        counters: &mut Counters,
    ) {
        let Some(Recovery {
            cause: Cause::Timeout(doubt),
            point,
            ..
        }) = self.recovery
        else {
            return;
        };
        if doubt == FrtoState::Settled {
            return;
        }
        if news.falsely_lost > 0 {
            self.revoke(now, counters);
            return;
        }
        // With SACK, duplicates are no proof: the answer to what was sent again is waited for.
        let proves = advanced || (ack.repeats && self.detection == Detection::DuplicateAcks);
        let next = match doubt {
            FrtoState::Open if advanced && self.una < point && self.may_send_new() => {
                FrtoState::Probing { segments: 2 }
            }
            FrtoState::Open if !proves => FrtoState::Open,
            _ => FrtoState::Settled,
        };
        if let Some(recovery) = &mut self.recovery {
            recovery.cause = Cause::Timeout(next);
        }
    }

    /// The time-out counts as needed.
    pub(super) fn settle_doubt(&mut self) {
        if let Some(recovery) = &mut self.recovery {
            recovery.cause = Cause::Timeout(FrtoState::Settled);
        }
    }

    /// The Eifel test (RFC 3522): the acknowledgment is for a segment that this recovery sent again,
    /// but answers one that was sent before any was sent again, so the first sending had arrived.
    fn compare_time_stamps(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        news: &AckSummary,
        counters: &mut Counters,
    ) {
        if self.recovery.is_none() {
            return;
        }
        let first_resent = self.undo.and_then(|undo| undo.first_resent);
        if let (Some(echoed), Some(first), Some(resent)) =
            (ack.echoed, first_resent, news.first_resent)
            && echoed < first
            && first <= resent
        {
            self.revoke(now, counters);
        }
    }

    /// Something arrived twice: the reordering window grows, and once all that was sent again did,
    /// nothing had been lost (RFC 3708, section 2).
    fn on_duplicate(&mut self, now: Time, block: SackRange, counters: &mut Counters) {
        if self.is_tail_probe(block) {
            return;
        }
        self.reordering.on_duplicate(self.nxt);
        let Some(undo) = &mut self.undo else {
            return;
        };
        let was_resent = undo.from <= block.start && block.end <= undo.to;
        if undo.resent == 0 || !was_resent {
            return;
        }
        undo.resent = undo.resent.saturating_sub(block.end - block.start);
        if undo.resent == 0 && self.board.lost() == 0 {
            self.revoke(now, counters);
        }
    }

    /// The last recovery was not needed: its losses are taken back.
    fn revoke(&mut self, now: Time, counters: &mut Counters) {
        self.board.revoke_losses();
        if let Some(undo) = self.undo.take() {
            counters.spurious_recoveries += 1;
            self.tell_spurious(now, undo.lost, undo.newest_sent);
        }
        if self.recovery.is_some() {
            self.end_recovery();
        }
    }

    fn tell_spurious(&mut self, now: Time, bytes: u64, newest_sent: Time) {
        if bytes > 0 {
            self.controller.on_spurious_loss(&SpuriousLoss {
                now,
                bytes: ByteSize::from_bytes(bytes),
                newest_sent,
            });
            self.follow_controller();
        }
    }
}
