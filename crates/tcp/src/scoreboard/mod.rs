//! What has been sent and not yet acknowledged cumulatively, segment by segment.
//!
//! Records lie in a ring in the order of the stream. Every question that an acknowledgment asks is
//! answered from where the last answer ended: acknowledged records leave at the front, SACK blocks
//! are compared with those of the acknowledgment before, losses are looked for behind the place
//! where the last search stopped, and retransmissions wait in a second ring in the order of time.

mod detection;
mod sack;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use weir_congestion::{DeliveryRate, PacketDelivery};
use weir_units::{ByteSize, Duration, Time};

pub(crate) use detection::{DUPLICATE_THRESHOLD, RackRules};
pub(crate) use sack::SackRange;

/// A segment as it was sent: consecutive bytes of the stream, FIN among them as the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    pub(crate) start: u64,
    /// When it was sent, the last time.
    pub(crate) sent_at: Time,
    pub(crate) length: u32,
    marks: u8,
}

/// The receiver has it.
const SACKED: u8 = 1;
/// Declared lost and not sent again yet.
const LOST: u8 = 1 << 1;
/// Sent more than once.
const RETRANSMITTED: u8 = 1 << 2;

impl SentSegment {
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    #[inline]
    fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }
}

/// What an acknowledgment newly says about segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSummary {
    /// Bytes that are known to have arrived, cumulatively or selectively, and were not before.
    pub(crate) delivered: u64,
    /// When the newest of these was sent.
    pub(crate) newest_sent: Time,
    /// When the oldest and the newest of those were sent that were sent only once (Karn), and have not
    /// waited at the receiver for others to be sent again.
    pub(crate) once_sent: Option<(Time, Time)>,
    /// Bytes of segments that had been declared lost, were not sent again, and arrived.
    pub(crate) falsely_lost: u64,
    /// When the first segment that is acknowledged cumulatively was sent again, if it was.
    pub(crate) first_resent: Option<Time>,
    /// Whether a segment that was sent once arrived later than one behind it.
    pub(crate) reordered: bool,
}

impl AckSummary {
    #[inline]
    fn add(&mut self, record: &SentSegment, highest: u64) {
        self.delivered += u64::from(record.length);
        self.newest_sent = self.newest_sent.max(record.sent_at);
        if record.has(RETRANSMITTED) {
            return;
        }
        let (oldest, newest) = self.once_sent.unwrap_or((record.sent_at, record.sent_at));
        self.once_sent = Some((oldest.min(record.sent_at), newest.max(record.sent_at)));
        self.reordered |= record.end() < highest;
        if record.has(LOST) {
            self.falsely_lost += u64::from(record.length);
        }
    }
}

/// The newest segment that has arrived, by the time of its sending (RFC 8985, section 5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RackSegment {
    pub(crate) sent_at: Time,
    pub(crate) end: u64,
    pub(crate) rtt: Duration,
}

/// What was found lost by one search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DetectedLosses {
    pub(crate) bytes: u64,
    /// When the newest of those was sent that were sent once.
    pub(crate) newest_sent: Time,
    /// When the newest of those was sent that were sent again.
    pub(crate) newest_resent: Time,
    /// When the next segment becomes overdue, if nothing is heard of it.
    pub(crate) next_overdue: Option<Time>,
}

/// What delivery rate samples need, beside the records and in step with them.
#[derive(Clone, Debug)]
struct DeliveryRecords {
    estimator: DeliveryRate,
    packets: VecDeque<PacketDelivery>,
}

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    pub(crate) records: VecDeque<SentSegment>,
    /// Apart, as most controllers do without.
    deliveries: Option<Box<DeliveryRecords>>,
    /// The usual length of a record: where to look for one first.
    mss: u64,
    in_flight: u64,
    sacked: u64,
    lost: u64,
    /// The end of the last SACKed record.
    highest_sacked: u64,
    /// Records below were looked at: those that were sent once have arrived or are declared lost.
    scanned: u64,
    /// No lost record lies below.
    resend_from: u64,
    /// What was sent again and when, in the order of time. Entries of records that were dealt with
    /// otherwise are dropped when they come to the front.
    resent: VecDeque<(u64, Time)>,
    /// The SACK blocks that have been dealt with.
    known: [SackRange; sack::KNOWN],
    latest: RackSegment,
    /// The shortest round-trip time of the path.
    shortest_rtt: Duration,
}

impl Scoreboard {
    pub(crate) fn new(mss: u64, with_deliveries: bool) -> Self {
        Self {
            records: VecDeque::new(),
            deliveries: with_deliveries.then(|| {
                Box::new(DeliveryRecords {
                    estimator: DeliveryRate::new(),
                    packets: VecDeque::new(),
                })
            }),
            mss,
            in_flight: 0,
            sacked: 0,
            lost: 0,
            highest_sacked: 0,
            scanned: 0,
            resend_from: 0,
            resent: VecDeque::new(),
            known: [SackRange::default(); sack::KNOWN],
            latest: RackSegment::default(),
            shortest_rtt: Duration::MAX,
        }
    }

    /// The shortest round-trip time of the path, below which no acknowledgment can be one of a
    /// retransmission.
    #[inline]
    pub(crate) fn set_shortest_rtt(&mut self, rtt: Duration) {
        self.shortest_rtt = rtt;
    }

    pub(crate) fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
    }

    /// Bytes that were sent and have neither arrived nor been declared lost.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes that the receiver holds out of order.
    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Bytes that are lost and wait to be sent again.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether a segment that begins below `offset` is outstanding.
    #[inline]
    pub(crate) fn starts_below(&self, offset: u64) -> bool {
        self.records
            .front()
            .is_some_and(|record| record.start < offset)
    }

    /// Whether there is but one segment.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        self.records.len() == 1
    }

    /// Whether the controller wants the delivery rate.
    #[inline]
    pub(crate) fn measures_delivery(&self) -> bool {
        self.deliveries.is_some()
    }

    /// The delivery rate estimator, where the controller wants it.
    pub(crate) fn delivery_rate(&mut self) -> Option<&mut DeliveryRate> {
        self.deliveries
            .as_mut()
            .map(|deliveries| &mut deliveries.estimator)
    }

    /// New data leaves, right behind what was sent before.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, start: u64, length: u32) {
        if let Some(deliveries) = &mut self.deliveries {
            let size = ByteSize::from_bytes(u64::from(length));
            let prior = ByteSize::from_bytes(self.in_flight);
            let packet = deliveries.estimator.on_sent(now, size, prior);
            deliveries.packets.push_back(packet);
        }
        self.in_flight += u64::from(length);
        self.records.push_back(SentSegment {
            start,
            sent_at: now,
            length,
            marks: 0,
        });
    }

    /// Everything below `ack` has arrived, and nothing is SACKed or lost. Stops at a record that
    /// something has happened to, which is left to [`Scoreboard::acknowledge`].
    #[inline]
    pub(crate) fn acknowledge_plain(&mut self, now: Time, ack: u64, news: &mut AckSummary) {
        let mut last = None;
        while let Some(record) = self.records.front() {
            if record.end() > ack || record.marks != 0 {
                break;
            }
            let record = *record;
            self.records.pop_front();
            if let Some(deliveries) = &mut self.deliveries
                && let Some(packet) = deliveries.packets.pop_front()
            {
                let size = ByteSize::from_bytes(u64::from(record.length));
                deliveries
                    .estimator
                    .on_acked(now, &packet, record.sent_at, size);
            }
            news.delivered += u64::from(record.length);
            let oldest = last.map_or(record.sent_at, |(oldest, _)| oldest);
            last = Some((oldest, record));
        }
        self.in_flight -= news.delivered;
        // Records that were sent once lie in the order of time.
        if let Some((oldest, record)) = last {
            news.newest_sent = record.sent_at;
            news.once_sent = Some((oldest, record.sent_at));
            self.note_latest(now, &record);
        }
    }

    /// Everything below `ack` has arrived.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Time, ack: u64, news: &mut AckSummary) {
        news.first_resent = self
            .records
            .front()
            .filter(|record| record.has(RETRANSMITTED))
            .map(|record| record.sent_at);
        let selectively = news.once_sent;
        let mut filled = false;
        while let Some(record) = self.records.front_mut() {
            if record.end() > ack {
                if record.start < ack {
                    self.acknowledge_part(now, ack, news);
                }
                break;
            }
            let record = *record;
            self.records.pop_front();
            let delivery = match &mut self.deliveries {
                Some(deliveries) => deliveries.packets.pop_front(),
                None => None,
            };
            if record.marks == 0 {
                self.in_flight -= u64::from(record.length);
            } else {
                self.leave_marked(&record);
            }
            if !record.has(SACKED) {
                filled |= record.has(RETRANSMITTED);
                self.arrived(now, &record, delivery, news);
            }
        }
        if filled {
            // What follows the hole may have waited at the receiver for as long as it was there.
            news.once_sent = selectively;
        }
        if self.records.is_empty() {
            self.resent.clear();
        }
    }

    /// A record that something had happened to leaves the ring.
    fn leave_marked(&mut self, record: &SentSegment) {
        let length = u64::from(record.length);
        if record.has(SACKED) {
            self.sacked -= length;
        } else if record.has(LOST) {
            self.lost -= length;
        } else {
            self.in_flight -= length;
        }
    }

    /// The first part of the first record has arrived: the record is cut.
    fn acknowledge_part(&mut self, now: Time, ack: u64, news: &mut AckSummary) {
        let Some(record) = self.records.front_mut() else {
            return;
        };
        let part = SentSegment {
            // Less than the record's length.
            length: (ack - record.start) as u32,
            ..*record
        };
        record.start = ack;
        record.length -= part.length;
        let delivery = self
            .deliveries
            .as_ref()
            .and_then(|deliveries| deliveries.packets.front().copied());
        self.leave_marked(&part);
        if !part.has(SACKED) {
            self.arrived(now, &part, delivery, news);
        }
    }

    /// A record has arrived that was not known to have.
    #[inline]
    fn arrived(
        &mut self,
        now: Time,
        record: &SentSegment,
        delivery: Option<PacketDelivery>,
        news: &mut AckSummary,
    ) {
        news.add(record, self.highest_sacked);
        if let (Some(deliveries), Some(packet)) = (&mut self.deliveries, delivery) {
            let size = ByteSize::from_bytes(u64::from(record.length));
            deliveries
                .estimator
                .on_acked(now, &packet, record.sent_at, size);
        }
        self.note_latest(now, record);
    }

    /// The index of the first record that ends beyond `offset`.
    fn index_of(&self, offset: u64) -> usize {
        let Some(front) = self.records.front() else {
            return 0;
        };
        let guess = (offset.saturating_sub(front.start) / self.mss.max(1)) as usize;
        let hit = self
            .records
            .get(guess)
            .is_some_and(|record| record.start <= offset && offset < record.end());
        if hit {
            return guess;
        }
        self.records
            .partition_point(|record| record.end() <= offset)
    }

    /// The first segment that waits to be sent again.
    pub(crate) fn next_lost(&mut self) -> Option<SentSegment> {
        if self.lost == 0 {
            return None;
        }
        let from = self.index_of(self.resend_from);
        let record = self
            .records
            .range(from..)
            .find(|record| record.has(LOST))
            .copied()?;
        self.resend_from = record.start;
        Some(record)
    }

    /// The last segment that has not arrived: what a tail loss probe sends.
    pub(crate) fn last_outstanding(&self) -> Option<SentSegment> {
        self.records
            .iter()
            .rev()
            .find(|record| !record.has(SACKED))
            .copied()
    }

    /// The segment that starts at `start` is sent again.
    pub(crate) fn on_resent(&mut self, now: Time, start: u64) {
        let index = self.index_of(start);
        let Some(record) = self.records.get_mut(index) else {
            return;
        };
        let length = u64::from(record.length);
        if record.has(LOST) {
            self.lost -= length;
            self.in_flight += length;
        }
        record.marks = (record.marks & !LOST) | RETRANSMITTED;
        record.sent_at = now;
        self.resent.push_back((record.start, now));
        if let Some(deliveries) = &mut self.deliveries {
            let size = ByteSize::from_bytes(length);
            let prior = ByteSize::from_bytes(self.in_flight - length.min(self.in_flight));
            if let Some(packet) = deliveries.packets.get_mut(index) {
                *packet = deliveries.estimator.on_sent(now, size, prior);
            }
        }
    }
}
