//! The acknowledgments that one report covers, replayed one by one.
//!
//! Algorithms count acknowledgments and round trips, compare send times with the time of their last
//! reduction, and look for the shortest RTT of each round. They lose all of that if the bytes of many
//! acknowledgments arrive as one. A report knows some points in the data exactly; the acknowledgments
//! between them are taken to be evenly spaced.

use weir_units::{ByteSize, Duration, Time};

use crate::flow_controller::DeliverySummary;
use crate::progress_report::{DeliveryPoint, ProgressReport};

/// The most acknowledgments that are replayed for one report.
const MOST: u32 = 64;

/// The acknowledgments that are left to replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckReplay<'r> {
    report: &'r ProgressReport,
    /// The total number, and the index of the next one.
    count: u32,
    next: u32,
    /// Index of the report's first delivery point that is left.
    next_point_index: usize,
    /// Bytes delivered by the acknowledgments replayed so far, and marked bytes that are left.
    pub(crate) upto: u64,
    marked: u64,
    /// When the last replayed acknowledgment arrived, and when the newest data that it delivered was
    /// sent.
    now: Time,
    sent: Time,
    /// The RTT of the last replayed acknowledgment.
    pub(crate) rtt: Option<Duration>,
    /// Whether nothing was retransmitted.
    is_clear: bool,
    /// Whether an acknowledgment that passes no delivery point may end a round trip. The delivery rate
    /// is only known at delivery points.
    rounds_end_anywhere: bool,
}

/// One replayed acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayedAck {
    /// When it arrived.
    pub(crate) now: Time,
    /// The delivery point that it passes.
    pub(crate) point: Option<DeliveryPoint>,
    pub(crate) delivered: DeliverySummary,
}

impl<'r> AckReplay<'r> {
    /// Returns the acknowledgments of a report. Before it, `delivered` bytes had been delivered;
    /// `marked` of the rest met a CE mark.
    pub(crate) fn new(report: &'r ProgressReport, delivered: ByteSize, marked: ByteSize) -> Self {
        let is_empty = report.delivered <= delivered;
        Self {
            report,
            count: if is_empty {
                0
            } else {
                report.new_acks.clamp(1, MOST)
            },
            next: 0,
            next_point_index: 0,
            upto: delivered.bytes(),
            marked: marked.bytes(),
            now: report.first_ack_at.min(report.now),
            sent: Time::ZERO,
            rtt: None,
            is_clear: true,
            rounds_end_anywhere: true,
        }
    }

    /// Sets the state before the first acknowledgment: the last data was sent at `sent` and took `rtt`.
    pub(crate) fn after(mut self, sent: Time, rtt: Option<Duration>, is_clear: bool) -> Self {
        (self.sent, self.rtt, self.is_clear) = (sent, rtt, is_clear);
        self
    }

    /// Sets whether round trips may end at any acknowledgment, or at delivery points only.
    pub(crate) fn with_rounds(mut self, anywhere: bool) -> Self {
        self.rounds_end_anywhere = anywhere;
        self
    }

    /// Returns the number of acknowledgments left to replay.
    pub(crate) fn left(&self) -> u32 {
        self.count - self.next
    }

    /// Returns the next acknowledgment, with `in_flight` bytes in flight after it.
    pub(crate) fn next(&mut self, in_flight: ByteSize) -> ReplayedAck {
        let ahead = self.next_point();
        let (goal, upto, until) = match &ahead {
            Some((index, point)) => (*index, point.upto, point.passed_at),
            None => (self.count - 1, self.report.delivered, self.report.now),
        };
        let steps = u64::from(goal - self.next.min(goal)) + 1;
        let point = ahead.map(|(_, point)| point).filter(|_| steps == 1);
        let bytes = upto.bytes().saturating_sub(self.upto) / steps;
        // The time of the first one is known.
        if self.next > 0 || steps == 1 {
            self.now += until.since(self.now) / steps;
        }
        let rtt = self.advance(ahead.map(|(_, point)| point), steps);
        let delivered = DeliverySummary {
            bytes,
            marked: self.take_marked(bytes),
            newest_sent: self.sent,
            rtt,
            app_limited: self.has_bit(self.report.app_limited_acks),
            prior_in_flight: self.report.prior_in_flight,
            in_flight,
        };
        self.upto += bytes;
        self.next += 1;
        self.next_point_index += usize::from(point.is_some());
        ReplayedAck {
            now: self.now,
            point,
            delivered,
        }
    }

    /// Returns the next delivery point, and the index of the acknowledgment that passes it.
    fn next_point(&self) -> Option<(u32, DeliveryPoint)> {
        let point = (*self.report.delivery_points.get(self.next_point_index)?)?;
        let all = self.report.new_acks.max(1);
        let index = if all > MOST {
            u64::from(point.ack_index) * u64::from(MOST) / u64::from(all)
        } else {
            point.ack_index.into()
        };
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Some((index.clamp(self.next, self.count - 1), point))
    }

    /// Advances the state towards a delivery point, or without one: arriving data was sent an RTT ago.
    /// Returns that RTT.
    fn advance(&mut self, ahead: Option<DeliveryPoint>, steps: u64) -> Option<Duration> {
        let goal = match &ahead {
            Some(point) if point.was_retransmitted => None,
            Some(point) => Some(point.passed_at.since(point.sent_at)),
            None => self.rtt.filter(|_| self.is_clear),
        };
        let (before, latest) = (
            self.rtt,
            ahead.map_or(self.report.sent_at, |point| point.sent_at),
        );
        let rtt = goal.map(|goal| match before {
            Some(before) if before <= goal => before + (goal - before) / steps,
            Some(before) => before - (before - goal) / steps,
            None => goal,
        });
        self.rtt = rtt.or(before);
        if ahead.is_some() && steps == 1 {
            self.sent = self.sent.max(latest);
        } else if let Some(rtt) = rtt
            && self.rounds_end_anywhere
            && latest > self.sent
        {
            self.sent = (self.now - rtt).clamp(self.sent, latest);
        }
        rtt
    }

    /// An echo covers all bytes of its acknowledgment.
    fn take_marked(&mut self, bytes: u64) -> u64 {
        let marked = if self.has_bit(self.report.echo_acks) {
            bytes.min(self.marked)
        } else {
            0
        };
        self.marked -= marked;
        marked
    }

    /// Whether the next acknowledgment's bit is set. The highest bit covers all those without a bit of
    /// their own.
    fn has_bit(&self, bits: u64) -> bool {
        bits >> self.next.min(63) & 1 != 0
    }
}
