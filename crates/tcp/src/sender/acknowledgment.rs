//! Processing of acknowledgments, and the reports to the controller.

use weir_congestion::AckSample;
use weir_units::{ByteSize, Duration, Time};

use super::recovery::Cause;
use super::{Detection, EarlyTimer, Sender};
use crate::counters::StoredCounters;
use crate::scoreboard::{AckSummary, SackRange};
use crate::{EcnMode, PartialAckTimer};

/// An acceptable acknowledgment, in offsets of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgment<'a> {
    /// The next byte that the peer expects.
    pub(crate) upto: u64,
    /// Whether ECE is set.
    pub(crate) ece: bool,
    /// SACK blocks above `upto`, within the data sent.
    pub(crate) blocks: &'a [SackRange],
    /// Data that arrived at the peer twice (D-SACK, RFC 2883).
    pub(crate) duplicate: Option<SackRange>,
    /// Whether it is a duplicate ACK: no data, and the same window and acknowledgment as before
    /// (RFC 5681, section 2).
    pub(crate) repeats: bool,
    /// The send time of the segment that the timestamp echo answers, to the precision of a tick.
    pub(crate) echoed: Option<Time>,
}

impl Sender {
    /// Processes an acknowledgment of new data, while [`Sender::is_plain`].
    #[inline]
    pub(crate) fn on_plain_ack(&mut self, now: Time, upto: u64, ece: bool) {
        let prior_in_flight = self.scoreboard.in_flight();
        let mut summary = self.scoreboard.new_summary(self.rtt.min);
        self.scoreboard.acknowledge_plain(now, upto, &mut summary);
        if self.scoreboard.starts_below(upto) {
            self.scoreboard.acknowledge(now, upto, &mut summary);
        }
        self.una = upto;
        if let Some(loss_state) = self.loss_state.changed() {
            loss_state.retries = 0;
        }
        if let Some((oldest, newest)) = summary.once_sent {
            self.sample_once_sent(now, oldest, newest);
        }
        let reducing = self.reduction.is_active();
        self.report_ack(now, ece, &summary, prior_in_flight, reducing);
        if self.reduction.is_active() {
            self.reduce(summary.delivered, true);
        }
        self.rearm(now);
    }

    /// Processes an acknowledgment between `una` and `nxt`.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        tick: Duration,
        counters: &mut StoredCounters,
    ) {
        let prior_in_flight = self.scoreboard.in_flight();
        let plain = ack.blocks.is_empty() && ack.duplicate.is_none() && self.is_plain();
        let mut summary = self.scoreboard.new_summary(self.rtt.min);
        if !plain {
            self.scoreboard.sack(now, ack.blocks, &mut summary);
        }
        let advanced = ack.upto > self.una;
        if advanced {
            self.scoreboard.acknowledge(now, ack.upto, &mut summary);
            self.una = ack.upto;
            if let Some(loss_state) = self.loss_state.changed() {
                loss_state.retries = 0;
            }
        }
        if summary.delivered > 0 {
            self.sample_rtt(now, &summary, ack, tick);
        }
        let reducing = self.is_in_fast_recovery() || self.reduction.is_active();
        let new_losses = (!plain || (!advanced && ack.repeats))
            && self.recover(now, ack, &summary, advanced, counters);
        if summary.delivered > 0 {
            self.report_ack(now, ack.ece, &summary, prior_in_flight, reducing);
        }
        if self.reduction.is_active() {
            let delivered = self.delivered_for_reduction(ack, &summary, advanced);
            self.reduce(delivered, advanced && !new_losses);
        }
        if advanced {
            if !self.keeps_timer() {
                self.rearm(now);
            }
            let loss_state = self.loss_state.changed();
            if let Some(recovery) = loss_state.and_then(|loss_state| loss_state.recovery.as_mut()) {
                recovery.has_partial_ack = true;
            }
        }
    }

    /// Returns whether the retransmission timer goes on in fast recovery without SACK, since a partial ACK
    /// has restarted it before (RFC 6582, section 4).
    pub(super) fn keeps_timer(&self) -> bool {
        self.detection == Detection::DuplicateAcks
            && self.config.partial_ack_timer == PartialAckTimer::First
            && self
                .loss_state
                .recovery
                .is_some_and(|recovery| recovery.cause == Cause::Acks && recovery.has_partial_ack)
    }

    /// Returns whether nothing is lost, out of order or suspected lost, so that the fast path
    /// applies.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.loss_state.recovery.is_none()
            && self.scoreboard.sacked() == 0
            && self.scoreboard.lost() == 0
            && self.loss_state.tail_probe.is_none()
            && self.loss_state.duplicates == 0
            && self.early != EarlyTimer::Overdue
    }

    /// Samples the RTT from segments sent once (Karn). The oldest one feeds the RTO, because it
    /// includes the peer's delayed ACK (RFC 7323, section 4). The newest one feeds the minimum RTT.
    /// If all were retransmitted, the timestamp echo identifies the transmission that arrived.
    #[inline]
    fn sample_rtt(
        &mut self,
        now: Time,
        summary: &AckSummary,
        ack: &Acknowledgment<'_>,
        tick: Duration,
    ) {
        if let Some((oldest, newest)) = summary.once_sent {
            self.sample_once_sent(now, oldest, newest);
        } else if let Some(sent) = ack.echoed {
            let rtt = now.since(sent);
            if rtt >= tick {
                self.rtt.on_sample(rtt, &self.config);
            }
        }
    }

    #[inline]
    fn sample_once_sent(&mut self, now: Time, oldest: Time, newest: Time) {
        self.rtt.on_sample(now.since(oldest), &self.config);
        self.rtt.on_min_sample(now.since(newest));
    }

    #[inline]
    fn report_ack(
        &mut self,
        now: Time,
        echo: bool,
        summary: &AckSummary,
        prior_in_flight: u64,
        reducing: bool,
    ) {
        let acked = ByteSize::from_bytes(summary.delivered);
        let (mut ce_marked, mut ece) = (ByteSize::ZERO, false);
        if echo {
            self.sent.ece_acknowledged += acked;
            match self.ecn {
                EcnMode::Off => {}
                EcnMode::Classic => ece = true,
                EcnMode::Dctcp => ce_marked = acked,
            }
            if self.ecn != EcnMode::Off {
                self.note_reduction();
            }
        }
        let min_rtt = self.rtt.min;
        let delivery = self.scoreboard.delivery_rate().and_then(|rate| {
            // Without an RTT sample there is no minimum interval for a rate sample.
            rate.sample(if min_rtt == Duration::MAX {
                Duration::ZERO
            } else {
                min_rtt
            })
        });
        let round_ended = summary.newest_sent >= self.round_started;
        if round_ended {
            self.round_started = now;
        }
        let unlimited = summary.newest_sent >= self.unlimited_from;
        self.controller.as_dyn_mut().on_ack(&AckSample {
            now,
            acked,
            ce_marked,
            ece,
            rtt: summary.once_sent.map(|(_, newest)| now.since(newest)),
            smoothed_rtt: self.rtt.smoothed,
            min_rtt,
            prior_in_flight: ByteSize::from_bytes(prior_in_flight),
            in_flight: ByteSize::from_bytes(self.scoreboard.in_flight()),
            newest_sent: Self::reported_send_time(summary.newest_sent),
            delivery,
            // In fast recovery the window must not grow (RFC 5681 section 3.2, RFC 9937), nor while
            // it falls after ECE (Linux), unless the controller controls recovery by its rate. After
            // a timeout, slow start repairs the losses (RFC 5681 section 3.1).
            app_limited: unlimited || (reducing && !self.pacer.follows_controller()),
            is_recovering: self.loss_state.recovery.is_some(),
            round_ended,
        });
        let before = self.cwnd;
        self.follow_controller();
        if echo && self.cwnd < before {
            self.begin_reaction_to_ece(prior_in_flight);
        }
    }

    /// Schedules CWR on the next new segment for an ECE echo beyond the last reduction: it reports
    /// the new reduction to the peer (RFC 3168, section 6.1.2; RFC 8257, section 3.4).
    pub(super) fn note_reduction(&mut self) {
        if self.una > self.reduced_up_to || self.reduced_up_to == 0 {
            self.reduced_up_to = self.nxt;
            self.cwr_due = true;
        }
    }

    /// Restarts the timers after new data has been acknowledged (RFC 6298, section 5.3; RFC 8985,
    /// section 7.2).
    #[inline]
    pub(super) fn rearm(&mut self, now: Time) {
        if self.scoreboard.is_empty() {
            self.rto_at = Time::MAX;
            self.early_at = Time::MAX;
            self.early = EarlyTimer::Probe;
            return;
        }
        self.rto_at = self.rtt.deadline(now);
        if self.detection == Detection::Rack && self.early == EarlyTimer::Probe {
            self.schedule_tail_probe(now);
        }
    }
}
