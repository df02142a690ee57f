//! The received packets of a space, and when to acknowledge them (RFC 9000, section 13.2).
//!
//! At first the receiver decides: by batches, the policy's limits, and [`AckAggregation`], which guesses
//! whether the sender's window allows more packets. A sender that requests another pattern
//! (ACK_FREQUENCY, draft-ietf-quic-ack-frequency-14) knows its window, so from then on its request
//! replaces the guess.

use std::ops::RangeInclusive;

use smallvec::SmallVec;
use weir_units::{Duration, Time};
use weir_wire::Ecn;

use super::SentFrame;
use super::gathering::AckAggregation;
use super::stream_end::StreamEndAck;
use crate::frame::{self, AckFrequency, EcnCounts};

/// The number of stored ranges; packets older than the oldest one count as duplicates.
const MAX_RANGES: usize = 64;

/// The fraction of `max_ack_delay` for which an ACK waits for more packets of the same stream.
const HOPE: u64 = 4;

/// The ACK policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckPolicy {
    /// How long an ACK may wait for more packets; zero to acknowledge at once.
    pub(crate) max_ack_delay: Duration,
    /// How long the ACK of a stream's end waits for data of ours that carry it, if that is longer.
    pub(crate) final_delay: Duration,
    /// How many ack-eliciting packets may be unacknowledged, even within a batch.
    pub(crate) threshold: u64,
    /// The exponent with which ACK delays are encoded (RFC 9000, section 18.2).
    pub(crate) exponent: u8,
}

impl AckPolicy {
    /// The policy of Initial and Handshake packets (RFC 9000, section 13.2.1).
    pub(crate) const IMMEDIATE: Self = Self {
        max_ack_delay: Duration::ZERO,
        final_delay: Duration::ZERO,
        threshold: 1,
        exponent: 0,
    };
}

/// The policy that the peer requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequestedPolicy {
    sequence: u64,
    /// This many ack-eliciting packets need no ACK.
    threshold: u64,
    /// How far packets must be out of order to be acknowledged at once; zero for never.
    reordering: u64,
}

/// Numbers from `start` to `end`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
}

/// The packets received in one space.
///
/// For each packet, check [`is_duplicate`](Self::is_duplicate), then call
/// [`on_received`](Self::on_received). Call [`end_batch`](Self::end_batch) once after all packets
/// that arrived together.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedPackets {
    policy: AckPolicy,
    /// Ascending, with gaps between them.
    ranges: SmallVec<[Range; 4]>,
    /// Numbers below this one count as received.
    floor: u64,
    /// The peer has our ACKs of everything below this number.
    report_from: u64,
    largest_at: Time,
    largest_eliciting: Option<u64>,
    ecn: EcnCounts,
    last_ecn: Ecn,
    /// Packets since the last written ACK.
    unreported: u64,
    /// Ack-eliciting packets since then.
    unacked: u64,
    /// Ack-eliciting packets in the current batch.
    in_batch: u64,
    immediate: bool,
    /// When an ACK has to be sent, if any. An ACK that is due at once has no deadline; see
    /// [`ack_due`](Self::ack_due).
    pub(crate) deadline: Option<Time>,
    gathering: AckAggregation,
    requested: Option<RequestedPolicy>,
    /// The largest number in an ACK of ours.
    largest_reported: Option<u64>,
    /// Whether the sender asks for an ACK (IMMEDIATE_ACK) where its window holds data back.
    pub(crate) sender_asks: bool,
    /// When the last ACK was written.
    acked_at: Time,
    /// Whether the last ACK had waited until its deadline.
    was_late: bool,
    /// Whether the last ACK that waited left alone in the end: nothing of ours carried it.
    waits_in_vain: bool,
    stream_end: StreamEndAck,
}

impl ReceivedPackets {
    /// Creates an empty state.
    pub(crate) fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            ranges: SmallVec::new(),
            floor: 0,
            report_from: 0,
            largest_at: Time::ZERO,
            largest_eliciting: None,
            ecn: EcnCounts::default(),
            last_ecn: Ecn::NotEct,
            unreported: 0,
            unacked: 0,
            in_batch: 0,
            immediate: false,
            deadline: None,
            gathering: AckAggregation::new(),
            requested: None,
            largest_reported: None,
            sender_asks: false,
            acked_at: Time::ZERO,
            was_late: false,
            waits_in_vain: false,
            stream_end: StreamEndAck::new(policy.final_delay),
        }
    }

    /// Returns the largest received number.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end)
    }

    /// Whether a packet has been received before, or is older than the stored ranges.
    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        // Nearly always it is the newest packet.
        if self.largest().is_none_or(|largest| number > largest) {
            return false;
        }
        if number < self.floor {
            return true;
        }
        let at = self.ranges.partition_point(|range| range.end < number);
        self.ranges
            .get(at)
            .is_some_and(|range| range.start <= number)
    }

    /// Records a new, authenticated packet.
    pub(crate) fn on_received(&mut self, now: Time, number: u64, ack_eliciting: bool, ecn: Ecn) {
        if self.largest().is_none_or(|largest| number > largest) {
            self.largest_at = now;
        }
        self.insert(number);
        self.report_from = self.report_from.min(number);
        self.unreported += 1;
        self.count(ecn);
        // The first mark after unmarked packets signals that congestion has just started. A peer
        // that requests an ACK for at least every other packet wants each mark reported (section
        // 6.3 of the draft).
        let every_mark = self.requested.is_some_and(|asked| asked.threshold <= 1);
        let newly_marked = ecn == Ecn::Ce && (every_mark || self.last_ecn != Ecn::Ce);
        if ecn == Ecn::Ce {
            self.gathering.on_marked();
        }
        self.last_ecn = ecn;
        if !ack_eliciting {
            return;
        }
        self.unacked += 1;
        self.in_batch += 1;
        self.stream_end.on_received(now);
        self.gathering.on_received();
        let latest = now + self.policy.max_ack_delay;
        self.deadline = Some(
            self.deadline
                .map_or(latest, |deadline| deadline.min(latest)),
        );
        let (threshold, reordering) = self.requested.map_or((self.policy.threshold, 1), |asked| {
            (asked.threshold.saturating_add(1), asked.reordering)
        });
        // A reordering threshold of 1 is the behavior without the extension.
        let out_of_order = reordering == 1 && self.is_out_of_order(number);
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        self.immediate |= newly_marked
            || out_of_order
            || reordering > 1 && self.is_beyond_reordering(number, reordering)
            || self.unacked >= threshold;
    }

    /// Applies an ACK_FREQUENCY frame; `false` if it is not newer than the last one. Its
    /// `max_ack_delay` must have been checked.
    pub(crate) fn on_request(&mut self, request: &AckFrequency) -> bool {
        if self
            .requested
            .is_some_and(|newest| newest.sequence >= request.sequence)
        {
            return false;
        }
        self.requested = Some(RequestedPolicy {
            sequence: request.sequence,
            threshold: request.threshold,
            reordering: request.reordering_threshold,
        });
        self.policy.max_ack_delay = Duration::from_micros(request.max_ack_delay);
        true
    }

    /// Handles IMMEDIATE_ACK.
    pub(crate) fn acknowledge_now(&mut self, now: Time) {
        self.immediate = true;
        self.stream_end.on_immediate_ack(now);
    }

    /// Ends a batch of this many bytes. `peer_finished`: it ends with the end of a stream, so that
    /// a response or the next request is likely to carry the ACK, unless that has failed before.
    /// `is_exact`: timers of ours never wait for the tick.
    pub(crate) fn end_batch(&mut self, now: Time, bytes: u64, peer_finished: bool, is_exact: bool) {
        let in_batch = std::mem::take(&mut self.in_batch);
        if self.requested.is_some() || in_batch == 0 {
            return;
        }
        if peer_finished && !is_exact && self.end_may_wait() {
            self.gathering.succeeded();
            self.deadline = self.deadline.max(Some(self.stream_end.wait(now)));
            return;
        }
        let pause = self.policy.max_ack_delay / HOPE;
        if self.waits_in_vain && (peer_finished || now.since(self.acked_at) >= pause) {
            self.immediate = true;
            return;
        }
        if self.unacked < 2 || peer_finished {
            return;
        }
        if self.unacked >= self.policy.threshold {
            self.gathering.succeeded();
        }
        self.immediate |= self.gathering.on_batch(bytes);
        if !self.gathering.awaiting_packets {
            return;
        }
        if self.sender_asks {
            // At once if the first packet came a pause ago.
            let latest = now + self.policy.max_ack_delay - pause;
            self.immediate |= self.deadline.is_some_and(|deadline| deadline <= latest);
        } else {
            // A waiting sender should not wait for long.
            let soon = now + pause;
            self.deadline = self.deadline.min(Some(soon)).or(Some(soon));
        }
    }

    /// Whether the ACK of a stream's end may wait for data of ours.
    fn end_may_wait(&self) -> bool {
        self.sender_asks
            && !self.immediate
            && self.policy.final_delay > self.policy.max_ack_delay
            && self.stream_end.may_wait()
    }

    /// Whether the deadline must not be late: the sender has requested it, or may wait for it.
    pub(crate) fn is_deadline_exact(&self) -> bool {
        self.requested.is_some()
            || (self.gathering.awaiting_packets && !self.sender_asks)
            || self.stream_end.is_sender_exact()
    }

    /// Whether only data of ours are waited for until the deadline.
    pub(crate) fn waits_for_data(&self) -> bool {
        self.stream_end.deadline.is_some() && self.deadline >= self.stream_end.deadline
    }

    /// Records that the ACK just written left, without stream data (`alone`) or with some.
    pub(crate) fn on_ack_sent(&mut self, alone: bool) {
        self.waits_in_vain = alone && (self.waits_in_vain || self.was_late);
        self.stream_end
            .on_ack_sent(self.acked_at, alone, self.was_late);
    }

    /// Records that stream data of ours have left without an ACK. Had the last ACK waited, they would have
    /// carried it, if they come in time.
    pub(crate) fn on_data_sent(&mut self, now: Time) {
        self.waits_in_vain &= now.since(self.acked_at) > self.policy.max_ack_delay;
    }

    /// Records that an ack-eliciting packet of ours has left: what the peer sends next may be an answer.
    pub(crate) fn on_eliciting_sent(&mut self) {
        self.stream_end.on_eliciting_sent();
    }

    /// Sends an ACK at once if anything was received: the peer may have missed earlier ones.
    pub(crate) fn request_immediate_ack(&mut self) {
        self.immediate |= self.largest().is_some();
    }

    /// Whether an ACK has to be sent now, even in a packet of its own.
    pub(crate) fn ack_due(&self, now: Time) -> bool {
        self.immediate || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether an ACK would carry new information: packets that are sent anyway should include it.
    pub(crate) fn ack_pending(&self) -> bool {
        self.unreported > 0
    }

    /// Appends an ACK frame of at most `limit` bytes to `out`; `None` if there is nothing to
    /// acknowledge or no room.
    pub(crate) fn write_ack(
        &mut self,
        now: Time,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Option<SentFrame> {
        let largest = self.largest()?;
        let delay = if self.policy.max_ack_delay.is_zero() {
            // An immediate acknowledgment has no delay (RFC 9000, section 13.2.5).
            0
        } else {
            now.since(self.largest_at).as_micros() >> self.policy.exponent.min(63)
        };
        let ecn = (self.ecn != EcnCounts::default()).then_some(self.ecn);
        if !frame::write::ack(out, self.to_report(), delay, ecn, limit) {
            return None;
        }
        self.gathering.on_ack_written(now, self.deadline);
        self.was_late = !self.immediate && self.deadline.is_some_and(|deadline| deadline <= now);
        self.acked_at = now;
        self.largest_reported = Some(largest);
        self.unreported = 0;
        self.unacked = 0;
        self.immediate = false;
        self.deadline = None;
        self.stream_end.deadline = None;
        Some(SentFrame::Ack { largest })
    }

    /// Records that the peer has our ACK up to `largest`: older ranges need not be repeated.
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        self.report_from = self.report_from.max(largest.saturating_add(1));
    }

    /// Returns the ranges of the next ACK, newest first. The largest number is always included.
    fn to_report(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let from = self.report_from.min(self.largest().unwrap_or(0));
        self.ranges
            .iter()
            .rev()
            .take_while(move |range| range.end >= from)
            .map(move |range| range.start.max(from)..=range.end)
    }

    /// Whether this ack-eliciting packet is out of order or leaves a gap (RFC 9000, section
    /// 13.2.1).
    fn is_out_of_order(&self, number: u64) -> bool {
        let Some(before) = self.largest_eliciting else {
            return false;
        };
        // No gap: the range with this number includes the largest one before.
        let in_sequence = self
            .ranges
            .last()
            .is_some_and(|range| range.start <= before.saturating_add(1));
        number < before || !in_sequence
    }

    /// Whether a gap has grown to `threshold`, so that the sender can declare the packet lost, or
    /// the packet is so late that it already has (section 6.2 of the draft).
    fn is_beyond_reordering(&self, number: u64, threshold: u64) -> bool {
        let reported_missing = self
            .largest_reported
            .and_then(|largest| largest.checked_sub(threshold));
        if reported_missing.is_some_and(|missing| number <= missing) {
            return true;
        }
        let from = reported_missing.map_or(0, |missing| missing + 1);
        let from = from.max(self.floor);
        let at = self.ranges.partition_point(|range| range.end < from);
        let missing = match self.ranges.get(at) {
            Some(range) if range.start <= from => range.end.saturating_add(1),
            _ => from,
        };
        self.largest_eliciting
            .is_some_and(|largest| largest >= missing.saturating_add(threshold))
    }

    fn count(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ecn.ect0 += 1,
            Ecn::Ect1 => self.ecn.ect1 += 1,
            Ecn::Ce => self.ecn.ce += 1,
        }
    }

    fn insert(&mut self, number: u64) {
        // Nearly always it follows the newest packet.
        if let Some(last) = self.ranges.last_mut()
            && number > 0
            && last.end == number - 1
        {
            last.end = number;
            return;
        }
        let at = self.ranges.partition_point(|range| range.end < number);
        if self
            .ranges
            .get(at)
            .is_some_and(|range| range.start <= number)
        {
            return;
        }
        let joins_next = self
            .ranges
            .get(at)
            .is_some_and(|range| range.start - 1 == number);
        let before = at.checked_sub(1);
        let joins_before =
            before.filter(|&before| self.ranges[before].end.checked_add(1) == Some(number));
        match (joins_before, joins_next) {
            (Some(before), true) => {
                self.ranges[before].end = self.ranges[at].end;
                self.ranges.remove(at);
            }
            (Some(before), false) => self.ranges[before].end = number,
            (None, true) => self.ranges[at].start = number,
            (None, false) => {
                let range = Range {
                    start: number,
                    end: number,
                };
                self.ranges.insert(at, range);
                self.forget_oldest();
            }
        }
    }

    fn forget_oldest(&mut self) {
        if self.ranges.len() > MAX_RANGES {
            self.floor = self.ranges[0].end.saturating_add(1);
            self.ranges.remove(0);
        }
    }
}

#[cfg(test)]
mod tests;
