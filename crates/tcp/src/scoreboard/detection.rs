//! Loss detection on the scoreboard (RFC 6675 section 4, RFC 8985 section 6).

use weir_units::{Duration, Time};

use super::{DetectedLosses, LOST, RETRANSMITTED, RackSegment, SACKED, Scoreboard, SentSegment};

/// Number of later segments that must arrive for a segment to be lost (RFC 5681, section 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u64 = 3;

/// The rules for overdue segments (RFC 8985, section 6.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackRules {
    pub(crate) now: Time,
    /// The time for which reordering is tolerated.
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
    /// Records an arrived segment if it is the newest by send time. If it was retransmitted, the
    /// acknowledgment may be for an earlier transmission (RFC 8985, section 6.2, step 2).
    #[inline]
    pub(super) fn note_latest(&mut self, now: Time, record: &SentSegment, shortest_rtt: Duration) {
        let rtt = now.since(record.sent_at);
        if record.has(RETRANSMITTED) && rtt < shortest_rtt {
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
        let disorder = &mut *self.disorder;
        let Some(record) = disorder.records.get_mut(index) else {
            return;
        };
        found.add(record);
        record.marks |= LOST;
        let length = u64::from(record.length);
        self.in_flight -= length;
        disorder.lost += length;
        disorder.resend_from = disorder.resend_from.min(record.start);
        if let Some(deliveries) = Self::deliveries(&mut self.disorder) {
            deliveries
                .estimator
                .on_lost(weir_units::ByteSize::from_bytes(length));
        }
    }

    /// Finds losses by later arrivals (RFC 6675, section 4, `IsLost`): more than two full segments,
    /// or three separate ranges.
    pub(crate) fn find_lost_by_threshold(&mut self, found: &mut DetectedLosses) {
        self.make_records();
        let Some(edge) = self.threshold_edge() else {
            return;
        };
        let mut index = self.index_of(self.disorder.scanned);
        while let Some(record) = self
            .disorder
            .records
            .get(index)
            .filter(|record| record.start < edge)
        {
            if !record.has(SACKED | LOST | RETRANSMITTED) {
                self.mark_lost(index, found);
            }
            index += 1;
        }
        self.disorder.scanned = self.disorder.scanned.max(edge);
    }

    /// Returns the first segment that is missing below the highest SACKed one, but not known to be lost, and
    /// was sent once (RFC 6675, section 4, `NextSeg`, rule 3).
    pub(crate) fn first_missing(&self) -> Option<SentSegment> {
        let from = self.index_of(self.disorder.scanned);
        let records = self
            .disorder
            .records
            .range(from.min(self.disorder.records.len())..);
        records
            .take_while(|record| record.start < self.disorder.highest_sacked)
            .find(|record| !record.has(SACKED | LOST | RETRANSMITTED))
            .copied()
    }

    /// Returns the offset below which missing segments are lost by the duplicate threshold.
    fn threshold_edge(&self) -> Option<u64> {
        let last = self.index_of(self.disorder.highest_sacked.checked_sub(1)?);
        let (mut bytes, mut runs, mut in_run) = (0, 0, false);
        for index in (0..=last).rev() {
            let record = self.disorder.records.get(index)?;
            if record.end() <= self.disorder.scanned {
                return None;
            }
            if record.has(SACKED) {
                bytes += u64::from(record.length);
                runs += u64::from(!in_run);
                if bytes > (DUPLICATE_THRESHOLD - 1) * u64::from(self.mss)
                    || runs >= DUPLICATE_THRESHOLD
                {
                    return Some(record.start);
                }
            }
            in_run = record.has(SACKED);
        }
        None
    }

    /// Finds overdue segments: sent before an arrived segment, and outstanding for longer than its
    /// RTT plus the reordering window (RFC 8985, section 6.2, step 5).
    pub(crate) fn find_overdue(&mut self, rules: &RackRules, found: &mut DetectedLosses) {
        self.make_records();
        self.find_overdue_originals(rules, found);
        self.find_overdue_retransmissions(rules, found);
    }

    /// Segments sent once are ordered by send time.
    fn find_overdue_originals(&mut self, rules: &RackRules, found: &mut DetectedLosses) {
        let mut index = self.index_of(self.disorder.scanned);
        while let Some(record) = self.disorder.records.get(index) {
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
            self.disorder.scanned = self
                .disorder
                .records
                .get(index)
                .map_or(self.disorder.scanned, SentSegment::end);
            index += 1;
        }
    }

    fn find_overdue_retransmissions(&mut self, rules: &RackRules, found: &mut DetectedLosses) {
        while let Some(&(start, sent_at)) = self.disorder.resent.front() {
            let index = self.index_of(start);
            let current = self
                .disorder
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
            self.disorder.resent.pop_front();
        }
    }

    /// Returns when a segment sent at `sent_at` becomes overdue; `None` if no segment sent later
    /// has arrived.
    fn overdue(&self, sent_at: Time, end: u64, rules: &RackRules) -> Option<Time> {
        let before_latest = (sent_at, end) < (self.latest.sent_at, self.latest.end);
        before_latest.then(|| sent_at + self.latest.rtt + rules.reordering_window)
    }

    /// Declares the first segment lost, on duplicate ACKs without SACK (RFC 6582).
    pub(crate) fn mark_first_lost(&mut self, found: &mut DetectedLosses) {
        self.make_records();
        if self
            .disorder
            .records
            .front()
            .is_some_and(|record| !record.has(SACKED | LOST))
        {
            self.mark_lost(0, found);
        }
    }

    /// Declares everything outstanding lost on a timeout (RFC 6298 section 5.4, RFC 5681 section
    /// 3.1).
    pub(crate) fn mark_all_lost(&mut self, found: &mut DetectedLosses) {
        self.make_records();
        for index in 0..self.disorder.records.len() {
            if self
                .disorder
                .records
                .get(index)
                .is_some_and(|record| !record.has(SACKED | LOST))
            {
                self.mark_lost(index, found);
            }
        }
        self.disorder.resent.clear();
        self.disorder.scanned = self
            .disorder
            .records
            .back()
            .map_or(self.disorder.scanned, SentSegment::end);
        self.disorder.resend_from = self
            .disorder
            .records
            .front()
            .map_or(0, |record| record.start);
    }

    /// Revokes spurious losses: segments waiting for retransmission are in flight again.
    pub(crate) fn revoke_losses(&mut self) {
        self.make_records();
        for record in &mut self.disorder.records {
            if record.has(LOST) {
                record.marks &= !LOST;
                self.in_flight += u64::from(record.length);
            }
        }
        self.disorder.lost = 0;
        // Segments sent once can be declared lost again.
        self.disorder.scanned = self
            .disorder
            .records
            .front()
            .map_or(self.disorder.scanned, |record| record.start);
    }
}

impl DetectedLosses {
    fn wait_until(&mut self, at: Time) {
        self.next_overdue = Some(self.next_overdue.map_or(at, |known| known.min(at)));
    }
}
