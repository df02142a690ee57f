//! The receiver's acknowledgments: what they deliver, and which of them are forwarded to the sender.

use weir_congestion::LossCause;
use weir_fabric::{Handshake, Packet};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::tcp::{Flags, Options, Segment, Sequence};

use super::{Stream, StreamContext};
use crate::flight::{SegmentState, SentSegment};
use crate::flow_controller::DeliverySummary;

/// This many segments delivered beyond a hole make it a loss (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u64 = 3;

/// What to do with an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckVerdict {
    /// Forward it, without its loss information.
    ForwardCleaned,
    /// Forward it unchanged: it reports a loss that cannot be repaired here.
    ForwardUnchanged,
    /// Withhold it.
    Withheld,
}

/// What an acknowledgment has newly delivered.
#[derive(Clone, Copy, Debug, Default)]
struct AckSummary {
    delivered: u64,
    /// When the newest delivered segment was sent.
    newest_sent: Option<Time>,
    /// The same among segments that were sent once: they measure the RTT (Karn).
    once_sent: Option<Time>,
    app_limited: bool,
}

impl<P: Packet + Clone + 'static> Stream<P> {
    /// Processes an acknowledgment of the receiver.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        handshake: &Handshake,
        shared: &mut StreamContext,
    ) -> AckVerdict {
        let number = segment.acknowledgment;
        let una = self.flight.una;
        if self.flight.nxt.precedes(number) {
            shared.counters.forged += 1;
            return AckVerdict::ForwardUnchanged;
        }
        let prior_in_flight = self.in_flight();
        if self.lacks_data(now) {
            self.flow_controller.set_app_limited(prior_in_flight);
        }
        let same_window = self.last_window == Some(segment.window);
        let is_bare = segment.sequence_length() == 0 && !segment.flags.intersects(Flags::RST);
        let advanced = una.precedes(number);
        let mut summary = AckSummary {
            app_limited: self.flow_controller.rate.is_app_limited(),
            ..AckSummary::default()
        };
        if advanced {
            self.acknowledge(now, number, &mut summary, shared);
        }
        if let Options::Sack(blocks) = segment.options {
            for block in blocks.iter() {
                for position in self.flight.covered(block) {
                    self.note_sacked(now, position, &mut summary);
                }
            }
        }
        if advanced {
            self.duplicates = 0;
        } else if number == una && is_bare && same_window && !handshake.has_sack() {
            let most = self.flight.bytes.in_flight / self.flow_controller.segment_size;
            self.duplicates = (self.duplicates + 1).min(most);
        }
        if !number.precedes(una) {
            self.last_window = Some(segment.window);
        }
        let lost = self.find_losses(advanced, handshake.has_sack());
        self.update_controller(now, segment, &summary, lost, prior_in_flight, shared);
        if advanced {
            let outstanding = self.flight.una != self.flight.nxt;
            self.overdue_at = outstanding.then(|| now + self.flow_controller.rtt.rto());
        }
        self.answer(segment, handshake, advanced, is_bare)
    }

    fn acknowledge(
        &mut self,
        now: Time,
        number: Sequence,
        summary: &mut AckSummary,
        shared: &mut StreamContext,
    ) {
        while let Some(record) = self.flight.acknowledge(number) {
            if record.state == SegmentState::Waiting {
                // A segment that has not been sent cannot have arrived, unless the sender's own copy
                // took another path.
                self.waiting.retain(|start| *start != record.start);
                if let Some(copy) = &record.copy {
                    shared.held.remove(copy.length());
                }
            }
            if record.state != SegmentState::Delivered {
                self.note_delivered(now, &record, summary);
            }
            self.release(record.copy, shared);
        }
        for start in &mut self.waiting {
            if start.precedes(number) {
                *start = number;
            }
        }
        self.flight.advance_to(number);
    }

    fn note_sacked(&mut self, now: Time, position: usize, summary: &mut AckSummary) {
        let Some(record) = self.flight.record(position) else {
            return;
        };
        if !matches!(record.state, SegmentState::InFlight | SegmentState::Lost) {
            return;
        }
        let (length, sent_at) = (record.length(), record.sent_at);
        let (transmissions, delivery, end) = (record.transmissions, record.delivery, record.end);
        self.flight.move_to(position, SegmentState::Delivered);
        self.count(
            now,
            (length, sent_at, end),
            transmissions,
            &delivery,
            summary,
        );
    }

    fn note_delivered(&mut self, now: Time, record: &SentSegment<P>, summary: &mut AckSummary) {
        let what = (record.length(), record.sent_at, record.end);
        self.count(now, what, record.transmissions, &record.delivery, summary);
    }

    fn count(
        &mut self,
        now: Time,
        (length, sent_at, end): (u64, Time, Sequence),
        transmissions: u32,
        delivery: &weir_congestion::PacketDelivery,
        summary: &mut AckSummary,
    ) {
        self.flow_controller
            .on_delivered(now, delivery, sent_at, length);
        summary.delivered += length;
        summary.newest_sent = summary.newest_sent.max(Some(sent_at));
        if transmissions == 1 {
            summary.once_sent = summary.once_sent.max(Some(sent_at));
        } else if now.since(sent_at) < self.flow_controller.rtt.min {
            // The first transmission arrived (RFC 8985, section 6.2).
            return;
        }
        let (time, newest) = self.newest_delivered;
        if sent_at > time || (sent_at == time && newest.precedes(end)) {
            self.newest_delivered = (sent_at, end);
        }
    }

    /// Detects lost segments. Returns their bytes, and when the newest of them was sent.
    fn find_losses(&mut self, advanced: bool, sack: bool) -> Option<(u64, Time)> {
        let lost = if sack {
            self.holes()
        } else {
            self.first_hole(advanced)
        };
        let (mut bytes, mut newest) = (0, Time::ZERO);
        for position in lost {
            if let Some(record) = self.flight.record(position) {
                bytes += record.length();
                newest = newest.max(record.sent_at);
                self.flight.move_to(position, SegmentState::Lost);
            }
        }
        (bytes > 0).then_some((bytes, newest))
    }

    /// Detects losses by SACK (RFC 8985, section 6.2, with RFC 5681's threshold). A segment that was
    /// sent before a delivered one is lost if three segments above it have arrived or it is late.
    fn holes(&self) -> Vec<usize> {
        if self.flight.bytes.delivered == 0 && self.flight.bytes.in_flight == 0 {
            return Vec::new();
        }
        let patience = match self.flow_controller.rtt.min {
            Duration::MAX => Duration::ZERO,
            shortest => shortest / 4,
        };
        let (newest, _) = self.newest_delivered;
        let count = self.flight.records().count();
        let (mut above, mut lost) = (0, Vec::new());
        for (index, record) in self.flight.records().rev().enumerate() {
            match record.state {
                SegmentState::Delivered => {
                    above += record.length().div_ceil(self.flow_controller.segment_size)
                }
                SegmentState::InFlight if record.is_before(self.newest_delivered) => {
                    let late = newest.since(record.sent_at) > patience;
                    if above >= DUPLICATE_THRESHOLD || (above > 0 && late) {
                        lost.push(count - 1 - index);
                    }
                }
                SegmentState::InFlight | SegmentState::Waiting | SegmentState::Lost => {}
            }
        }
        lost
    }

    /// Detects losses without SACK (RFC 6582): the first segment, after three duplicate acknowledgments
    /// and after each partial one.
    fn first_hole(&mut self, advanced: bool) -> Vec<usize> {
        let una = self.flight.una;
        if self.recover_upto.is_some_and(|upto| !una.precedes(upto)) {
            self.recover_upto = None;
        }
        let partial = advanced && self.recover_upto.is_some();
        let third = self.recover_upto.is_none() && self.duplicates >= DUPLICATE_THRESHOLD;
        if !partial && !third {
            return Vec::new();
        }
        let is_first =
            |record: &SentSegment<P>| record.start == una && record.state == SegmentState::InFlight;
        if self.recover_upto.is_none() {
            self.recover_upto = Some(self.flight.nxt);
        }
        if self.flight.record(0).is_some_and(is_first) {
            vec![0]
        } else {
            Vec::new()
        }
    }

    fn update_controller(
        &mut self,
        now: Time,
        segment: &Segment,
        summary: &AckSummary,
        lost: Option<(u64, Time)>,
        prior_in_flight: ByteSize,
        shared: &mut StreamContext,
    ) {
        if let Some((bytes, newest_sent)) = lost {
            let in_flight = self.in_flight();
            let cause = LossCause::Acks;
            (self.flow_controller).on_loss(now, bytes, newest_sent, cause, in_flight);
        }
        let Some(newest_sent) = summary.newest_sent else {
            return;
        };
        let mut marked = 0;
        if self.is_marked && segment.flags.contains(Flags::ECE) {
            shared.counters.echoes += 1;
            marked = summary.delivered;
        }
        let [arrived, echoed] = [summary.delivered, marked].map(ByteSize::from_bytes);
        self.add_counts(shared, |counters| {
            counters.delivered += arrived;
            counters.marked += echoed;
        });
        shared.counters.delivered += arrived;
        shared.counters.marked += echoed;
        let delivered = DeliverySummary {
            bytes: summary.delivered,
            marked,
            newest_sent,
            rtt: summary.once_sent.map(|sent| now.since(sent)),
            app_limited: summary.app_limited,
            prior_in_flight,
            in_flight: self.in_flight(),
        };
        self.flow_controller.on_ack(now, &delivered);
        let (rtt, window) = (
            self.flow_controller.rtt.smoothed(),
            self.flow_controller.window(),
        );
        (shared.classes).update(self.class, |class| class.decided(rtt, window));
    }

    /// Decides whether the sender gets the acknowledgment: always if it carries more than a loss
    /// report, and if the loss cannot be repaired here.
    fn answer(
        &mut self,
        segment: &Segment,
        handshake: &Handshake,
        advanced: bool,
        is_bare: bool,
    ) -> AckVerdict {
        let una = self.flight.una;
        let is_empty = una == self.flight.nxt;
        let first = self.flight.record(0);
        let is_mended = first.is_some_and(|record| record.start == una && record.copy.is_some());
        if !is_empty && !is_mended {
            return AckVerdict::ForwardUnchanged;
        }
        if advanced || !is_bare || is_empty || std::mem::take(&mut self.answer_due) {
            self.answer_due = false;
            return AckVerdict::ForwardCleaned;
        }
        let Some(scale) = handshake.window_scale(self.direction.reversed()) else {
            return AckVerdict::ForwardUnchanged;
        };
        let window = self.limit().applied_to(segment.window, scale);
        let edge = segment.acknowledgment + (u32::from(window) << scale);
        let is_news = self.last_forwarded_ack.is_none_or(|(number, told, end)| {
            number.precedes(segment.acknowledgment) || (window != told && end.precedes(edge))
        });
        // A receiver that closes its window must be heard too.
        let is_closed = segment.window == 0
            && self
                .last_forwarded_ack
                .is_some_and(|(_, told, _)| told != 0);
        if is_news || is_closed {
            AckVerdict::ForwardCleaned
        } else {
            AckVerdict::Withheld
        }
    }
}
