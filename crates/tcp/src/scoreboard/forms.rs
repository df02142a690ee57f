//! The two forms of a scoreboard: a ring while nothing is known of the outstanding segments but that they were
//! sent, and records while something is lost or out of order.

use std::collections::VecDeque;

use weir_units::Time;

use super::ring::{SentRing, WholeSegments};
use super::{RackSegment, Scoreboard, SentSegment};

impl Scoreboard {
    /// Returns whether a segment that starts below `offset` is outstanding.
    #[inline]
    pub(crate) fn starts_below(&self, offset: u64) -> bool {
        if !self.has_records {
            return self.ring.len() > 0 && self.first < offset;
        }
        let first = self.disorder.records.front();
        first.is_some_and(|record| record.start < offset)
    }

    /// Returns whether nothing is outstanding.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.len() == 0 && (!self.has_records || self.disorder.records.is_empty())
    }

    /// Returns whether exactly one segment is outstanding.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        if !self.has_records {
            return self.ring.len() == 1;
        }
        self.disorder.records.len() == 1
    }

    /// Returns the number of outstanding segments that have no records.
    #[inline(always)]
    pub(crate) fn without_records(&self) -> u32 {
        self.ring.len()
    }

    /// Replaces the ring by records, in which losses and SACKs can be noted.
    pub(super) fn make_records(&mut self) {
        if self.has_records {
            return;
        }
        self.has_records = true;
        let mut start = self.first;
        let records = self.ring.drain().map(|(sent_at, length)| {
            let record = SentSegment {
                start,
                sent_at,
                length,
                marks: 0,
            };
            start += u64::from(length);
            record
        });
        self.disorder.records = records.collect();
    }

    /// Replaces the records by the ring, if nothing is noted in them. Returns whether there are no records.
    pub(crate) fn drop_records(&mut self) -> bool {
        if !self.has_records {
            return true;
        }
        if self.measures_delivery() {
            return false;
        }
        let records = &mut self.disorder.records;
        if records.iter().any(|record| record.marks != 0) {
            return false;
        }
        self.first = records.front().map_or(self.first, |record| record.start);
        let fits = (records.iter()).all(|record| self.ring.push(record.sent_at, record.length));
        if fits {
            *records = VecDeque::new();
            self.has_records = false;
            self.drop_disorder();
        } else {
            self.ring = SentRing::default();
        }
        fits
    }

    /// Drops what is known of losses and SACKs, if it is all of data acknowledged since.
    fn drop_disorder(&mut self) {
        let (disorder, first) = (&*self.disorder, self.first);
        // A retransmission is recognized by its time: no segment may have been sent at the same one.
        let is_over = |&(_, resent_at): &(u64, Time)| {
            let oldest = self.ring.first().map(|(sent_at, _)| sent_at);
            oldest.is_some_and(|oldest| resent_at < oldest)
        };
        if disorder.scanned <= first
            && disorder.highest_sacked <= first
            && disorder.known.iter().all(|block| block.end <= first)
            && disorder.resent.back().is_none_or(is_over)
        {
            self.disorder.reset();
        }
    }

    /// Records new data, if no delivery rate is measured.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Time, start: u64, length: u32) {
        if self.ring.len() == 0 {
            self.first = start;
        }
        if self.has_records || !self.ring.push(now, length) {
            self.push_record(now, start, length);
        }
        self.in_flight += u64::from(length);
    }

    #[inline(never)]
    fn push_record(&mut self, now: Time, start: u64, length: u32) {
        self.make_records();
        self.disorder.records.push_back(SentSegment {
            start,
            sent_at: now,
            length,
            marks: 0,
        });
    }

    /// Returns the segments below `ack`, if it does not cut one and there are no records.
    #[inline(always)]
    pub(crate) fn whole_segments(&self, ack: u64) -> Option<WholeSegments> {
        self.ring.whole_segments(ack.wrapping_sub(self.first))
    }

    /// Acknowledges the first segments, which end at `ack`.
    #[inline(always)]
    pub(crate) fn take_whole(&mut self, now: Time, segments: &WholeSegments, ack: u64) {
        self.ring.take(segments);
        self.in_flight -= ack - self.first;
        self.first = ack;
        let newest = segments.newest;
        let latest = &self.latest;
        if newest > latest.sent_at || newest == latest.sent_at && ack >= latest.end {
            self.latest = RackSegment {
                sent_at: newest,
                end: ack,
                rtt: now.since(newest),
            };
        }
    }
}
