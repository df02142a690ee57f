//! Selection of the next segment to send.

use weir_congestion::PacketSent;
use weir_units::{ByteSize, Time};

use super::recovery::{Cause, FrtoState, Recovery};
use super::{Detection, Sender};
use crate::counters::StoredCounters;
use crate::scoreboard::SentSegment;

/// A segment to be sent, in offsets of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutgoingSegment {
    pub(crate) start: u64,
    /// Bytes of data in the segment.
    pub(crate) payload: u32,
    pub(crate) fin: bool,
    /// Whether it ends the written data.
    pub(crate) push: bool,
    /// Whether it is the first transmission.
    pub(crate) new: bool,
    /// Whether it carries CWR.
    pub(crate) cwr: bool,
}

impl Sender {
    /// Returns the next segment, if one may be sent now.
    #[inline]
    pub(crate) fn next(
        &mut self,
        now: Time,
        counters: &mut StoredCounters,
    ) -> Option<OutgoingSegment> {
        if self.is_tail_probe_due() {
            return self.next_tail_probe(now, counters);
        }
        if self.scoreboard.lost() > 0 {
            return self.next_in_recovery(now, counters);
        }
        let new = self.next_new(now);
        if new.is_none() && self.repeats_unsure_segments() {
            return self.next_unsure(now, counters);
        }
        new
    }

    /// Whether segments that are perhaps lost may be sent again where nothing else is left to send: by the
    /// duplicate threshold, fewer than three segments behind a lost one never tell.
    #[inline]
    fn repeats_unsure_segments(&self) -> bool {
        self.detection == Detection::Threshold && self.is_in_fast_recovery()
    }

    /// Returns a segment that is perhaps lost (RFC 6675, section 4, `NextSeg`, rules 3 and 4).
    fn next_unsure(&mut self, now: Time, counters: &mut StoredCounters) -> Option<OutgoingSegment> {
        if self.may_send_new() {
            // It waits for the window.
            return None;
        }
        let missing = self.scoreboard.first_missing();
        let rescue = || {
            let due = self
                .loss_state
                .recovery
                .is_some_and(|recovery| recovery.rescue_due);
            due.then(|| self.scoreboard.last_outstanding()).flatten()
        };
        let record = missing.or_else(rescue)?;
        if !self.admits(now, u64::from(record.length)) {
            return None;
        }
        if missing.is_none()
            && let Some(recovery) = &mut self.loss_state.recovery
        {
            recovery.rescue_due = false;
        }
        if let Some(undo) = &mut self.loss_state.undo {
            undo.on_resent(now, record.start, record.end());
        }
        Some(self.resend(now, record, counters))
    }

    /// Fast path: returns whether the window has no room for another segment and nothing else could
    /// be sent.
    #[inline]
    pub(crate) fn waits_for_window(&mut self, now: Time) -> bool {
        let flight = self.scoreboard.in_flight();
        let size = self.mss.min(self.written.saturating_sub(self.nxt));
        let waits = flight > 0
            && flight + size > self.window()
            && size > 0
            && self.scoreboard.lost() == 0
            && self.loss_state.tail_probe.is_none()
            && self.loss_state.duplicates == 0;
        if waits {
            self.note_limit(now);
        }
        waits
    }

    /// Returns whether nothing can be sent at any time, and no limit has to be recorded.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.scoreboard.lost() == 0
            && self.loss_state.tail_probe.is_none()
            && self.has_sent_all()
            && !self.repeats_unsure_segments()
            && !self.loss_state.window_probe_due
            && !self.scoreboard.measures_delivery()
    }

    /// Returns whether there is no new data to send.
    #[inline]
    fn has_sent_all(&self) -> bool {
        self.nxt >= self.written + u64::from(self.fin)
    }

    /// Returns the next segment in recovery. Lost segments come first, except for F-RTO's up to two
    /// new segments, whose acknowledgments it waits for (RFC 5682, section 3.1, step 2).
    fn next_in_recovery(
        &mut self,
        now: Time,
        counters: &mut StoredCounters,
    ) -> Option<OutgoingSegment> {
        if let Some(Recovery {
            cause: Cause::Timeout(FrtoState::Probing { segments }),
            ..
        }) = self.loss_state.recovery
        {
            let new = (segments > 0).then(|| self.next_new(now)).flatten();
            if new.is_some() || self.scoreboard.in_flight() > 0 {
                return new;
            }
            self.confirm_timeout();
        }
        self.next_retransmission(now, counters)
    }

    /// Returns the bytes in flight that count against the window. Without SACK, each duplicate ACK
    /// reports that a segment has left the network. Without limited transmit, duplicates do not
    /// count until recovery starts (RFC 3042, RFC 6675).
    #[inline]
    pub(super) fn effective_flight(&self) -> u64 {
        let flight = self.scoreboard.in_flight();
        if self.loss_state.duplicates == 0
            && (self.config.limited_transmit || self.scoreboard.sacked() == 0)
        {
            return flight;
        }
        // Losses found in a recovery may be left when it ends; nothing else would repair them.
        if self.loss_state.recovery.is_none()
            && !self.config.limited_transmit
            && self.scoreboard.lost() == 0
        {
            return flight + self.scoreboard.sacked();
        }
        if self.detection == Detection::DuplicateAcks {
            return flight.saturating_sub(self.loss_state.duplicates * self.mss);
        }
        flight
    }

    /// Returns whether the window and the pacer permit `bytes`. A window below one segment permits
    /// one segment in flight at a time.
    #[inline]
    fn admits(&mut self, now: Time, bytes: u64) -> bool {
        let flight = self.effective_flight();
        if flight > 0 && flight + bytes > self.window() || self.pacer.holds(now) {
            // A sender limited only by pacing makes full use of its window.
            self.note_limit(now);
            return false;
        }
        true
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.has_sent_all()
    }

    /// Returns whether there is new data within the peer's window.
    pub(super) fn may_send_new(&self) -> bool {
        self.has_unsent() && self.nxt < self.edge
    }

    #[inline(always)]
    fn next_new(&mut self, now: Time) -> Option<OutgoingSegment> {
        let data = self.written.saturating_sub(self.nxt);
        if self.has_sent_all() {
            self.on_nothing_to_send();
            return None;
        }
        let edge = self.edge.min(self.una.saturating_add(self.send_buffer()));
        let allowed = edge.saturating_sub(self.nxt);
        let size = self.mss.min(data).min(allowed);
        if size < self.mss && !self.admits_small(now, size, data, allowed) {
            return None;
        }
        if self.scoreboard.is_empty() {
            self.restart_if_idle(now);
        }
        if !self.admits(now, size.max(1)) {
            return None;
        }
        let length = self.burst_length(size, data.min(allowed));
        Some(self.send_new(now, length))
    }

    /// Returns whether a segment below the full size may be sent: silly window avoidance at the
    /// sender (RFC 9293, section 3.8.6.2.1) and Nagle's algorithm (section 3.7.4).
    fn admits_small(&mut self, now: Time, size: u64, data: u64, allowed: u64) -> bool {
        if size == data {
            // The last data, or FIN alone, which needs room in the window too.
            let fits = allowed > 0;
            let waits = self.config.nagle && !self.fin && !self.scoreboard.is_empty();
            if !fits {
                self.on_window_closed(now);
            }
            return fits && !waits;
        }
        let most = self.largest_window.min(self.send_buffer());
        if size > 0 && (size >= most / 2 || self.loss_state.small_segment_due) {
            return true;
        }
        self.on_window_closed(now);
        false
    }

    fn on_window_closed(&mut self, now: Time) {
        self.persist(now);
        self.on_nothing_to_send();
    }

    /// Returns the bytes to send at once: full segments up to the length of a burst.
    #[inline]
    fn burst_length(&self, size: u64, available: u64) -> u64 {
        if self.burst() == 1 || size < self.mss {
            return size;
        }
        let room = self.window().saturating_sub(self.effective_flight());
        let segments = (available.min(room) / self.mss).clamp(1, self.probing_limit());
        segments * self.mss
    }

    fn probing_limit(&self) -> u64 {
        match self.loss_state.recovery {
            Some(Recovery {
                cause: Cause::Timeout(FrtoState::Probing { segments }),
                ..
            }) => u64::from(segments).clamp(1, self.burst()),
            _ => self.burst(),
        }
    }

    #[inline(always)]
    fn send_new(&mut self, now: Time, length: u64) -> OutgoingSegment {
        let start = self.nxt;
        let was_empty = self.scoreboard.is_empty();
        let fin = self.fin && start + length == self.written;
        let total = length + u64::from(fin);
        // FIN is part of the last segment.
        let (mut left, mut segments) = (total, 1);
        while left > self.mss + u64::from(fin) {
            self.scoreboard.on_sent(now, self.nxt, self.mss as u32);
            self.nxt += self.mss;
            left -= self.mss;
            segments += 1;
        }
        self.scoreboard.on_sent(now, self.nxt, left as u32);
        self.nxt += left;
        self.on_sent(now, total);
        self.note_probing(segments as u32);
        self.sent.data_segments += segments;
        let cwr = std::mem::take(&mut self.cwr_due);
        self.sent.cwr += u64::from(cwr);
        if was_empty || self.rto_at == Time::MAX {
            if let Some(loss_state) = self.loss_state.changed() {
                loss_state.window_probes = 0;
                loss_state.small_segment_due = false;
            }
            self.rto_at = self.rtt.deadline(now);
        }
        self.schedule_tail_probe(now);
        OutgoingSegment {
            start,
            payload: length as u32,
            fin,
            push: start + length == self.written,
            new: true,
            cwr,
        }
    }

    /// Records that a segment of `bytes` is in flight now.
    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u64) {
        self.last_sent = now;
        self.pacer.on_sent(now, bytes);
        if let Some(reduction) = self.reduction.get_mut() {
            reduction.on_sent(bytes);
        }
        self.controller.as_dyn_mut().on_sent(&PacketSent {
            now,
            size: ByteSize::from_bytes(bytes),
            in_flight: ByteSize::from_bytes(self.scoreboard.in_flight()),
        });
    }

    /// Counts the new segments that F-RTO has sent.
    fn note_probing(&mut self, sent: u32) {
        if let Some(Recovery {
            cause: Cause::Timeout(FrtoState::Probing { segments }),
            ..
        }) = self
            .loss_state
            .changed()
            .and_then(|loss_state| loss_state.recovery.as_mut())
        {
            *segments = segments.saturating_sub(sent);
        }
    }

    fn next_retransmission(
        &mut self,
        now: Time,
        counters: &mut StoredCounters,
    ) -> Option<OutgoingSegment> {
        let record = self.scoreboard.next_lost()?;
        let first = self
            .loss_state
            .recovery
            .as_mut()
            .is_some_and(|recovery| std::mem::take(&mut recovery.first_due));
        if !first && !self.admits(now, u64::from(record.length)) {
            return None;
        }
        if let Some(undo) = &mut self.loss_state.undo {
            undo.on_resent(now, record.start, record.end());
        }
        Some(self.resend(now, record, counters))
    }

    fn resend(
        &mut self,
        now: Time,
        record: SentSegment,
        counters: &mut StoredCounters,
    ) -> OutgoingSegment {
        self.scoreboard.on_resent(now, record.start);
        self.on_sent(now, u64::from(record.length));
        let is_oldest = record.start == self.una;
        if (is_oldest && !self.keeps_timer()) || self.rto_at == Time::MAX {
            // RFC 6298, section 5.1: the timer covers the oldest segment.
            self.rto_at = self.rtt.deadline(now);
        }
        let fin = record.end() > self.written;
        let payload = record.length - u32::from(fin);
        self.sent.data_segments += 1;
        counters.rare().retransmitted_segments += 1;
        counters.rare().retransmitted += ByteSize::from_bytes(u64::from(payload));
        OutgoingSegment {
            start: record.start,
            payload,
            fin,
            push: record.end() >= self.written,
            new: false,
            cwr: false,
        }
    }

    /// RFC 8985, section 7.3: the probe is a segment of new data, or else the last one again. It
    /// ignores cwnd.
    fn next_tail_probe(
        &mut self,
        now: Time,
        counters: &mut StoredCounters,
    ) -> Option<OutgoingSegment> {
        counters.rare().tail_loss_probes += 1;
        let data = self.written.saturating_sub(self.nxt);
        let size = self.mss.min(data);
        if size > 0 && self.nxt + size <= self.edge {
            let outgoing = self.send_new(now, size);
            self.on_tail_probe_sent(None);
            return Some(outgoing);
        }
        let Some(record) = self.scoreboard.last_outstanding() else {
            self.loss_state.tail_probe = None;
            return None;
        };
        self.on_tail_probe_sent(Some((u64::from(record.length), record.sent_at)));
        Some(self.resend(now, record, counters))
    }

    /// RFC 5681, section 4.1.
    fn restart_if_idle(&mut self, now: Time) {
        // Before the first segment, no time has passed.
        let idle = now.since(self.last_sent) > self.rtt.rto();
        if idle && self.config.idle_restart {
            self.controller.as_dyn_mut().on_idle_restart(now);
            self.follow_controller();
            // Only once per pause.
            self.last_sent = now;
        }
    }

    /// Marks the delivery rate as application-limited: the application or the peer's window is the
    /// limit.
    #[inline]
    fn on_nothing_to_send(&mut self) {
        if !self.scoreboard.measures_delivery() {
            return;
        }
        let flight = self.scoreboard.in_flight();
        if flight + self.mss <= self.window()
            && let Some(rate) = self.scoreboard.delivery_rate()
        {
            rate.set_app_limited(ByteSize::from_bytes(flight));
        }
    }
}
