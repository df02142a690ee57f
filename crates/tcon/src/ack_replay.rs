//! The acknowledgments that one report tells of, one by one.
//!
//! Algorithms count acknowledgments and round trips, compare the times of what was sent with that of their last
//! reduction, and look for the shortest round trip of each. Whoever gives them the bytes of many
//! acknowledgments as one takes that from them. Some of the many tell of places in the data that a report knows
//! exactly; those in between are taken to be even.

use weir_units::{ByteSize, Duration, Time};

use crate::flow_controller::DeliverySummary;
use crate::progress_report::{DeliveryPoint, ProgressReport};

/// So many acknowledgments at most are told of one report.
const MOST: u32 = 64;

/// Those that are left to be told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckReplay<'r> {
    report: &'r ProgressReport,
    /// How many there are, and which is the next.
    count: u32,
    next: u32,
    /// The first of the report's places that is left.
    place: usize,
    /// What has been delivered, as far as it was told, and what is left that met a mark.
    pub(crate) upto: u64,
    marked: u64,
    /// When the last of those came that were told, and when the newest data was sent that had arrived then.
    now: Time,
    sent: Time,
    /// The last round trip that was told.
    pub(crate) rtt: Option<Duration>,
    /// Whether nothing was sent twice.
    is_clear: bool,
    /// Whether the end of a round trip may be told by an acknowledgment that passes no place. The delivery rate
    /// is only known at places.
    rounds_end_anywhere: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayedAck {
    /// When it came.
    pub(crate) now: Time,
    /// The place that it tells of.
    pub(crate) place: Option<DeliveryPoint>,
    pub(crate) delivered: DeliverySummary,
}

impl<'r> AckReplay<'r> {
    /// Those of a report, where so much had been delivered before, and so much of the rest met a mark.
    pub(crate) fn new(report: &'r ProgressReport, delivered: ByteSize, marked: ByteSize) -> Self {
        let is_empty = report.delivered <= delivered;
        Self {
            report,
            count: if is_empty {
                0
            } else {
                report.answers.clamp(1, MOST)
            },
            next: 0,
            place: 0,
            upto: delivered.bytes(),
            marked: marked.bytes(),
            now: report.answers_from.min(report.now),
            sent: Time::ZERO,
            rtt: None,
            is_clear: true,
            rounds_end_anywhere: true,
        }
    }

    /// The same, after data that was sent at `sent` and took `rtt`.
    pub(crate) fn after(mut self, sent: Time, rtt: Option<Duration>, is_clear: bool) -> Self {
        (self.sent, self.rtt, self.is_clear) = (sent, rtt, is_clear);
        self
    }

    /// The same, where round trips may end anywhere, or at places only.
    pub(crate) fn with_rounds(mut self, anywhere: bool) -> Self {
        self.rounds_end_anywhere = anywhere;
        self
    }

    /// How many are left to be told of.
    pub(crate) fn left(&self) -> u32 {
        self.count - self.next
    }

    /// The next of them, with `in_flight` on its way after it.
    pub(crate) fn next(&mut self, in_flight: ByteSize) -> ReplayedAck {
        let ahead = self.place_ahead();
        let (goal, upto, until) = match &ahead {
            Some((index, place)) => (*index, place.upto, place.passed_at),
            None => (self.count - 1, self.report.delivered, self.report.now),
        };
        let steps = u64::from(goal - self.next.min(goal)) + 1;
        let place = ahead.map(|(_, place)| place).filter(|_| steps == 1);
        let bytes = upto.bytes().saturating_sub(self.upto) / steps;
        // The first one's time is known.
        if self.next > 0 || steps == 1 {
            self.now += until.since(self.now) / steps;
        }
        let rtt = self.pass_on(ahead.map(|(_, place)| place), steps);
        let delivered = DeliverySummary {
            bytes,
            marked: self.take_marked(bytes),
            newest_sent: self.sent,
            rtt,
            app_limited: self.has_bit(self.report.limited_answers),
            prior_in_flight: self.report.prior_in_flight,
            in_flight,
        };
        self.upto += bytes;
        self.next += 1;
        self.place += usize::from(place.is_some());
        ReplayedAck {
            now: self.now,
            place,
            delivered,
        }
    }

    /// The next place that one of them tells of, and which.
    fn place_ahead(&self) -> Option<(u32, DeliveryPoint)> {
        let place = (*self.report.passed.get(self.place)?)?;
        let all = self.report.answers.max(1);
        let index = if all > MOST {
            u64::from(place.answer) * u64::from(MOST) / u64::from(all)
        } else {
            place.answer.into()
        };
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Some((index.clamp(self.next, self.count - 1), place))
    }

    /// On the way to a place, or without one: what arrives was sent a round trip ago. Gives that.
    fn pass_on(&mut self, ahead: Option<DeliveryPoint>, steps: u64) -> Option<Duration> {
        let goal = match &ahead {
            Some(place) if place.was_repeated => None,
            Some(place) => Some(place.passed_at.since(place.sent_at)),
            None => self.rtt.filter(|_| self.is_clear),
        };
        let (before, latest) = (
            self.rtt,
            ahead.map_or(self.report.sent_at, |place| place.sent_at),
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

    /// An echo is for all that its acknowledgment tells of.
    fn take_marked(&mut self, bytes: u64) -> u64 {
        let marked = if self.has_bit(self.report.marked_answers) {
            bytes.min(self.marked)
        } else {
            0
        };
        self.marked -= marked;
        marked
    }

    /// Whether the next one's bit is set; the highest bit is for all that have none of their own.
    fn has_bit(&self, bits: u64) -> bool {
        bits >> self.next.min(63) & 1 != 0
    }
}
