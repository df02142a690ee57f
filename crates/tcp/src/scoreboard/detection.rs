//! Which segments are lost (RFC 6675 section 4, RFC 8985 section 6).

use weir_units::{Duration, Time};

use super::{DetectedLosses, LOST, RETRANSMITTED, RackSegment, SACKED, Scoreboard, SentSegment};

/// Segments that have to arrive behind one for it to be lost (RFC 5681, section 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u64 = 3;

/// When a segment is overdue (RFC 8985, section 6.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackRules {
    pub(crate) now: Time,
    /// For how long segments may be out of order.
    pub(crate) reordering_window: Duration,
}

impl DetectedLosses {
    fn add(&mut self, record: &SentSegment) {
        self.bytes += u64::from(record.length);
        let newest = if record.has(RETRANSMITTED) {
            &mut self.newest_resent
        } else {
            &mut self.newest_sent
        };
        *newest = (*newest).max(record.sent_at);
    }
}

impl Scoreboard {
    /// A segment has arrived that may be the newest one by the time of its sending. Where it was
    /// sent more than once, the acknowledgment may be of an earlier time (RFC 8985, section 6.2,
    /// step 2).
    #[inline]
    pub(super) fn note_latest(&mut self, now: Time, record: &SentSegment) {
        let rtt = now.since(record.sent_at);
        if record.has(RETRANSMITTED) && rtt < self.shortest_rtt {
            return;
        }
        if (record.sent_at, record.end()) >= (self.latest.sent_at, self.latest.end) {
            self.latest = RackSegment {
                sent_at: record.sent_at,
                end: record.end(),
                rtt,
            };
        }
    }

    /// Marks a record lost.
    fn mark_lost(&mut self, index: usize, found: &mut DetectedLosses) {
        let Some(record) = self.records.get_mut(index) else {
            return;
        };
        found.add(record);
        record.marks |= LOST;
        let length = u64::from(record.length);
        self.in_flight -= length;
        self.lost += length;
        self.resend_from = self.resend_from.min(record.start);
        if let Some(deliveries) = &mut self.deliveries {
            deliveries
                .estimator
                .on_lost(weir_units::ByteSize::from_bytes(length));
        }
    }

    /// Finds what is lost by what arrived behind it (RFC 6675, section 4, `IsLost`): more than two
    /// full segments, or three separate runs.
    pub(crate) fn find_lost_by_threshold(&mut self, found: &mut DetectedLosses) {
        let Some(edge) = self.threshold_edge() else {
            return;
        };
        let mut index = self.index_of(self.scanned);
        while let Some(record) = self.records.get(index).filter(|record| record.start < edge) {
            if !record.has(SACKED | LOST | RETRANSMITTED) {
                self.mark_lost(index, found);
            }
            index += 1;
        }
        self.scanned = self.scanned.max(edge);
    }

    /// Below this, what has not arrived is lost by the duplicate threshold.
    fn threshold_edge(&self) -> Option<u64> {
        let last = self.index_of(self.highest_sacked.checked_sub(1)?);
        let (mut bytes, mut runs, mut in_run) = (0, 0, false);
        for index in (0..=last).rev() {
            let record = self.records.get(index)?;
            if record.end() <= self.scanned {
                return None;
            }
            if record.has(SACKED) {
                bytes += u64::from(record.length);
                runs += u64::from(!in_run);
                if bytes > (DUPLICATE_THRESHOLD - 1) * self.mss || runs >= DUPLICATE_THRESHOLD {
                    return Some(record.start);
                }
            }
            in_run = record.has(SACKED);
        }
        None
    }

    /// Finds what is overdue: sent before a segment that has arrived, and for longer than its
    /// round-trip time and the reordering window (RFC 8985, section 6.2, step 5).
    pub(crate) fn find_overdue(&mut self, rules: &RackRules, found: &mut DetectedLosses) {
        self.find_overdue_originals(rules, found);
        self.find_overdue_retransmissions(rules, found);
    }

    /// Segments that were sent once lie in the order of time.
    fn find_overdue_originals(&mut self, rules: &RackRules, found: &mut DetectedLosses) {
        let mut index = self.index_of(self.scanned);
        while let Some(record) = self.records.get(index) {
            if !record.has(SACKED | LOST | RETRANSMITTED) {
                match self.overdue(record.sent_at, record.end(), rules) {
                    Some(at) if at <= rules.now => self.mark_lost(index, found),
                    Some(at) => {
                        found.wait_until(at);
                        return;
                    }
                    None => return,
                }
            }
            self.scanned = self
                .records
                .get(index)
                .map_or(self.scanned, SentSegment::end);
            index += 1;
        }
    }

    fn find_overdue_retransmissions(&mut self, rules: &RackRules, found: &mut DetectedLosses) {
        while let Some(&(start, sent_at)) = self.resent.front() {
            let index = self.index_of(start);
            let current = self
                .records
                .get(index)
                .filter(|record| record.sent_at == sent_at && !record.has(SACKED | LOST));
            if let Some(record) = current {
                match self.overdue(record.sent_at, record.end(), rules) {
                    Some(at) if at <= rules.now => self.mark_lost(index, found),
                    Some(at) => {
                        found.wait_until(at);
                        return;
                    }
                    None => return,
                }
            }
            self.resent.pop_front();
        }
    }

    /// When a segment that was sent then becomes overdue; `None` while nothing that was sent later
    /// has arrived.
    fn overdue(&self, sent_at: Time, end: u64, rules: &RackRules) -> Option<Time> {
        let before_latest = (sent_at, end) < (self.latest.sent_at, self.latest.end);
        before_latest.then(|| sent_at + self.latest.rtt + rules.reordering_window)
    }

    /// Declares the first segment lost, as duplicate ACKs without SACK do (RFC 6582).
    pub(crate) fn lose_first(&mut self, found: &mut DetectedLosses) {
        if self
            .records
            .front()
            .is_some_and(|record| !record.has(SACKED | LOST))
        {
            self.mark_lost(0, found);
        }
    }

    /// A time-out: all that has not arrived is lost (RFC 6298 section 5.4, RFC 5681 section 3.1).
    pub(crate) fn lose_all(&mut self, found: &mut DetectedLosses) {
        for index in 0..self.records.len() {
            if self
                .records
                .get(index)
                .is_some_and(|record| !record.has(SACKED | LOST))
            {
                self.mark_lost(index, found);
            }
        }
        self.resent.clear();
        self.scanned = self.records.back().map_or(self.scanned, SentSegment::end);
        self.resend_from = self.records.front().map_or(0, |record| record.start);
    }

    /// The losses were none: what waits to be sent again is in flight after all.
    pub(crate) fn revoke_losses(&mut self) {
        for record in &mut self.records {
            if record.has(LOST) {
                record.marks &= !LOST;
                self.in_flight += u64::from(record.length);
            }
        }
        self.lost = 0;
        // What was sent once can be found lost anew.
        self.scanned = self
            .records
            .front()
            .map_or(self.scanned, |record| record.start);
    }
}

impl DetectedLosses {
    fn wait_until(&mut self, at: Time) {
        self.next_overdue = Some(self.next_overdue.map_or(at, |known| known.min(at)));
    }
}
