//! The sender's part of the fast paths: acknowledgments of whole segments that were sent once, and full
//! segments of new data. See [`crate::connection`].

use weir_congestion::{PacketSent, PlainAck};
use weir_units::{ByteSize, Duration, Time};

use super::{Detection, EarlyTimer, OutgoingSegment, Sender};
use crate::rtt::multiple;
use crate::scoreboard::WholeSegments;
use crate::{EcnMode, Pacing};

/// What the fast path says of the next segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlainNext {
    /// No data may be sent now.
    Nothing,
    /// A [full segment](Sender::send_full) of new data.
    Full,
    /// It does not apply.
    General,
}

impl Sender {
    /// Returns whether the fast paths apply: nothing is lost, out of order or suspected lost, nothing but new
    /// data is due, and the peer answers.
    pub(crate) fn has_fast_paths(&self) -> bool {
        self.is_plain()
            && self.loss_state.retries == 0
            && self.loss_state.unanswered_probes == 0
            && !self.loss_state.window_probe_due
            && !self.scoreboard.measures_delivery()
            && self.burst() == 1
            && !self.fin
    }

    /// Processes the acknowledgment of the first segments, each whole and sent once.
    #[inline(always)]
    pub(crate) fn acknowledge_whole(
        &mut self,
        now: Time,
        upto: u64,
        segments: &WholeSegments,
        ece: bool,
    ) {
        let prior_in_flight = self.scoreboard.in_flight();
        let (oldest, newest) = (segments.oldest, segments.newest);
        self.scoreboard.take_whole(now, segments, upto);
        let acked = ByteSize::from_bytes(upto - self.una);
        self.una = upto;
        self.rtt.on_sample(now.since(oldest), &self.config);
        self.rtt.on_min_sample(now.since(newest));
        if ece {
            self.sent.ece_acknowledged += acked;
            if self.ecn != EcnMode::Off {
                self.note_reduction();
            }
        }
        let round_ended = newest >= self.round_started;
        if round_ended {
            self.round_started = now;
        }
        let reducing = self.reduction.is_active() && !self.pacer.follows_controller();
        let app_limited = newest >= self.unlimited_from || reducing;
        let before = self.cwnd;
        let (window, rate) = self.controller.on_plain_ack(&PlainAck {
            now,
            acked,
            ce_marked: if ece && self.ecn == EcnMode::Dctcp {
                acked
            } else {
                ByteSize::ZERO
            },
            ece: ece && self.ecn == EcnMode::Classic,
            rtt: now.since(newest),
            smoothed_rtt: self.rtt.smoothed,
            min_rtt: self.rtt.min,
            prior_in_flight: ByteSize::from_bytes(prior_in_flight),
            in_flight: ByteSize::from_bytes(self.scoreboard.in_flight()),
            newest_sent: Self::reported_send_time(newest),
            app_limited,
            round_ended,
        });
        self.cwnd = window.bytes();
        if self.config.pacing == Pacing::Controller {
            self.pacer.set_rate(rate);
        } else {
            self.follow_controller();
        }
        if ece && self.cwnd < before {
            self.begin_reaction_to_ece(prior_in_flight);
        }
        if self.reduction.is_active() {
            self.reduce(acked.bytes(), true);
        }
        self.rearm_plain(now);
    }

    /// Restarts the timers after new data has been acknowledged, as [`Sender::rearm`] does.
    #[inline(always)]
    fn rearm_plain(&mut self, now: Time) {
        let outstanding = self.scoreboard.without_records();
        if outstanding == 0 {
            self.rto_at = Time::MAX;
            self.early_at = Time::MAX;
            self.early = EarlyTimer::Probe;
            return;
        }
        self.rto_at = self.rtt.deadline(now);
        if self.detection == Detection::Rack {
            let config = &*self.config;
            let delay = if outstanding == 1 {
                config.min_rto
            } else {
                config.early_timer_margin
            };
            self.set_tail_probe(now, delay);
        }
    }

    /// Sets the timer of the tail loss probe, whose conditions hold.
    #[inline(always)]
    fn set_tail_probe(&mut self, now: Time, delay: Duration) {
        let timeout = if self.rtt.sampled {
            multiple(self.rtt.smoothed, 2) + delay
        } else {
            self.rtt.rto()
        };
        let at = now + timeout.max(Duration::from_nanos(1));
        self.early_at = at.min(self.rto_at);
    }

    /// Returns whether all written data has been sent.
    #[inline]
    pub(crate) fn has_sent_data(&self) -> bool {
        self.nxt >= self.written
    }

    /// Returns whether the window has no room for the next data.
    #[inline(always)]
    pub(crate) fn waits_plainly(&mut self, now: Time) -> bool {
        let (data, flight) = (self.written - self.nxt, self.scoreboard.in_flight());
        let waits = flight > 0 && flight + self.mss.min(data) > self.window();
        if waits {
            self.note_limit(now);
        }
        waits
    }

    /// Returns whether a full segment of new data is next, and the sender has not been idle.
    #[inline(always)]
    pub(crate) fn next_plain(&mut self, now: Time, is_ack_due: bool) -> PlainNext {
        let (data, flight) = (self.written - self.nxt, self.scoreboard.in_flight());
        let waits = flight > 0 && flight + self.mss.min(data) > self.window();
        if waits && !is_ack_due {
            self.note_limit(now);
            return PlainNext::Nothing;
        }
        let edge = self.edge.min(self.una.saturating_add(self.send_buffer()));
        let is_full = data >= self.mss && edge.saturating_sub(self.nxt) >= self.mss;
        let was_idle = flight == 0 && now.since(self.last_sent) > self.rtt.rto();
        if waits || !is_full || was_idle {
            return PlainNext::General;
        }
        if self.pacer.holds(now) {
            self.note_limit(now);
            return PlainNext::Nothing;
        }
        PlainNext::Full
    }

    /// Starts the timers for the first outstanding segment.
    #[inline(never)]
    fn start_timers(&mut self, now: Time) {
        if let Some(loss_state) = self.loss_state.changed() {
            loss_state.window_probes = 0;
            loss_state.small_segment_due = false;
        }
        self.rto_at = self.rtt.deadline(now);
        self.schedule_tail_probe(now);
    }

    /// Sends a full segment of new data. `follows_ack`: right after [`Self::acknowledge_whole`].
    #[inline(always)]
    pub(crate) fn send_full(&mut self, now: Time, follows_ack: bool) -> OutgoingSegment {
        let (start, mss) = (self.nxt, self.mss);
        self.scoreboard.push(now, start, mss as u32);
        self.nxt += mss;
        self.last_sent = now;
        self.pacer.on_sent(now, mss);
        if let Some(reduction) = self.reduction.get_mut() {
            reduction.on_sent(mss);
        }
        if self.controller.counts_sent() {
            let in_flight = ByteSize::from_bytes(self.scoreboard.in_flight());
            self.controller.as_dyn_mut().on_sent(&PacketSent {
                now,
                size: ByteSize::from_bytes(mss),
                in_flight,
            });
        }
        self.sent.data_segments += 1;
        let cwr = std::mem::take(&mut self.cwr_due);
        self.sent.cwr += u64::from(cwr);
        if self.rto_at == Time::MAX || self.scoreboard.is_single() {
            self.start_timers(now);
        } else if self.detection == Detection::Rack {
            // With two more segments outstanding, an acknowledgment has just set it to the same time.
            if !(follows_ack && self.scoreboard.without_records() > 2) {
                self.set_tail_probe(now, self.config.early_timer_margin);
            }
        } else {
            self.early_at = Time::MAX;
        }
        OutgoingSegment {
            start,
            payload: mss as u32,
            fin: false,
            push: self.nxt == self.written,
            new: true,
            cwr,
        }
    }
}
