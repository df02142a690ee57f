//! The scoreboard: segments sent and not yet acknowledged cumulatively.
//!
//! While nothing is lost or out of order, a `ring` holds send times and lengths. Otherwise there are records.
//!
//! Records lie in a queue in stream order. Every search continues where the last one ended.
//! Acknowledged records leave at the front. SACK blocks are compared with those of the previous
//! acknowledgment. Loss detection starts where the last search stopped. Retransmissions wait in a
//! second ring, ordered by time.

mod detection;
mod forms;
mod ring;
mod sack;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use weir_congestion::{DeliveryRate, PacketDelivery};
use weir_units::{ByteSize, Duration, Time};

use crate::cold::{Cold, Initial};
pub(crate) use detection::{DUPLICATE_THRESHOLD, RackRules};
use ring::SentRing;
pub(crate) use ring::WholeSegments;
pub(crate) use sack::SackRange;
pub(crate) use summary::AckSummary;

/// A sent segment: consecutive bytes of the stream, with FIN as the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    pub(crate) start: u64,
    /// Time of the last transmission.
    pub(crate) sent_at: Time,
    pub(crate) length: u32,
    marks: u8,
}

/// SACKed by the receiver.
const SACKED: u8 = 1;
/// Declared lost and not retransmitted yet.
const LOST: u8 = 1 << 1;
/// Transmitted more than once.
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

/// The newest arrived segment by send time (RFC 8985, section 5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RackSegment {
    pub(crate) sent_at: Time,
    pub(crate) end: u64,
    pub(crate) rtt: Duration,
}

/// The losses found by one search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DetectedLosses {
    pub(crate) bytes: u64,
    /// Send time of the newest of these that were sent once.
    pub(crate) newest_sent: Time,
    /// Send time of the newest of these that were retransmitted.
    pub(crate) newest_resent: Time,
    /// When the next segment becomes overdue, unless it is acknowledged.
    pub(crate) next_overdue: Option<Time>,
}

/// The state for delivery rate samples, parallel to the records.
#[derive(Clone, Debug)]
struct DeliveryRecords {
    estimator: DeliveryRate,
    packets: VecDeque<PacketDelivery>,
}

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// The outstanding segments, unless there are records of them.
    ring: SentRing,
    /// The start of the first one.
    first: u64,
    /// Whether the outstanding segments have records.
    has_records: bool,
    in_flight: u64,
    latest: RackSegment,
    /// The usual length of a record, for the first guess in searches.
    mss: u32,
    disorder: Cold<Disorder>,
}

/// What a scoreboard needs besides once something has been lost or has arrived out of order, or for a
/// controller that wants delivery rates.
#[derive(Clone, Debug)]
struct Disorder {
    records: VecDeque<SentSegment>,
    sacked: u64,
    lost: u64,
    /// The end of the last SACKed record.
    highest_sacked: u64,
    /// Search position: below it, records sent once have arrived or are declared lost.
    scanned: u64,
    /// Lower bound of the lost records.
    resend_from: u64,
    /// Start and time of retransmissions, ordered by time. Outdated entries are dropped when they
    /// reach the front.
    resent: VecDeque<(u64, Time)>,
    /// The SACK blocks that have been processed.
    known: [SackRange; sack::KNOWN],
    /// Boxed, because most controllers do not need it.
    deliveries: Option<Box<DeliveryRecords>>,
}

static NO_DISORDER: Disorder = Disorder {
    records: VecDeque::new(),
    sacked: 0,
    lost: 0,
    highest_sacked: 0,
    scanned: 0,
    resend_from: 0,
    resent: VecDeque::new(),
    known: [SackRange { start: 0, end: 0 }; sack::KNOWN],
    deliveries: None,
};

impl Initial for Disorder {
    fn initial() -> &'static Self {
        &NO_DISORDER
    }
}

/// A segment is never longer than 64 KiB.
fn shortened(mss: u64) -> u32 {
    u32::try_from(mss).unwrap_or(u32::MAX)
}

impl Scoreboard {
    pub(crate) fn new(mss: u64, with_deliveries: bool) -> Self {
        let mut disorder = Cold::<Disorder>::new();
        if with_deliveries {
            disorder.deliveries = Some(Box::new(DeliveryRecords {
                estimator: DeliveryRate::new(),
                packets: VecDeque::new(),
            }));
        }
        Self {
            ring: SentRing::default(),
            first: 0,
            has_records: with_deliveries,
            in_flight: 0,
            latest: RackSegment::default(),
            mss: shortened(mss),
            disorder,
        }
    }

    pub(crate) fn set_mss(&mut self, mss: u64) {
        self.mss = shortened(mss);
    }

    /// Returns the bytes in flight: sent, not arrived and not declared lost.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns an empty summary of the acknowledgment that follows. `shortest_rtt` is the minimum RTT of the
    /// path.
    pub(crate) fn new_summary(&self, shortest_rtt: Duration) -> AckSummary {
        AckSummary {
            shortest_rtt,
            sacked_before: self.disorder.highest_sacked,
            ..AckSummary::default()
        }
    }

    /// Returns the bytes SACKed by the receiver.
    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.disorder.sacked
    }

    /// Returns the lost bytes that wait for retransmission.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.disorder.lost
    }

    /// Returns whether the controller uses the delivery rate.
    #[inline]
    pub(crate) fn measures_delivery(&self) -> bool {
        self.disorder.deliveries.is_some()
    }

    /// Returns the delivery rate estimator, if the controller uses it.
    pub(crate) fn delivery_rate(&mut self) -> Option<&mut DeliveryRate> {
        let deliveries = Self::deliveries(&mut self.disorder);
        deliveries.map(|deliveries| &mut deliveries.estimator)
    }

    #[inline]
    fn deliveries(disorder: &mut Cold<Disorder>) -> Option<&mut DeliveryRecords> {
        disorder.changed()?.deliveries.as_deref_mut()
    }

    /// Records new data, contiguous with the data sent before.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, start: u64, length: u32) {
        if let Some(deliveries) = Self::deliveries(&mut self.disorder) {
            let size = ByteSize::from_bytes(u64::from(length));
            let prior = ByteSize::from_bytes(self.in_flight);
            let packet = deliveries.estimator.on_sent(now, size, prior);
            deliveries.packets.push_back(packet);
        }
        self.push(now, start, length);
    }

    /// Acknowledges everything below `ack` while nothing is SACKed or lost. Stops at a marked
    /// record and leaves it to [`Scoreboard::acknowledge`].
    #[inline]
    pub(crate) fn acknowledge_plain(&mut self, now: Time, ack: u64, summary: &mut AckSummary) {
        self.make_records();
        let mut last = None;
        while let Some(record) = self.disorder.records.front() {
            if record.end() > ack || record.marks != 0 {
                break;
            }
            let record = *record;
            self.disorder.records.pop_front();
            if let Some(deliveries) = Self::deliveries(&mut self.disorder)
                && let Some(packet) = deliveries.packets.pop_front()
            {
                let size = ByteSize::from_bytes(u64::from(record.length));
                deliveries
                    .estimator
                    .on_acked(now, &packet, record.sent_at, size);
            }
            summary.delivered += u64::from(record.length);
            let oldest = last.map_or(record.sent_at, |(oldest, _)| oldest);
            last = Some((oldest, record));
        }
        self.in_flight -= summary.delivered;
        // Records sent once are ordered by send time.
        if let Some((oldest, record)) = last {
            summary.newest_sent = record.sent_at;
            summary.once_sent = Some((oldest, record.sent_at));
            self.note_latest(now, &record, Duration::ZERO);
        }
    }

    /// Acknowledges everything below `ack`.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Time, ack: u64, summary: &mut AckSummary) {
        if let Some(segments) = self.whole_segments(ack) {
            summary.delivered = ack - self.first;
            summary.newest_sent = segments.newest;
            summary.once_sent = Some((segments.oldest, segments.newest));
            self.take_whole(now, &segments, ack);
            self.forget_retransmissions();
            return;
        }
        self.make_records();
        summary.first_resent = self
            .disorder
            .records
            .front()
            .filter(|record| record.has(RETRANSMITTED))
            .map(|record| record.sent_at);
        let selectively = summary.once_sent;
        let mut filled = false;
        while let Some(record) = self.disorder.records.front_mut() {
            if record.end() > ack {
                if record.start < ack {
                    self.acknowledge_part(now, ack, summary);
                }
                break;
            }
            let record = *record;
            self.disorder.records.pop_front();
            let delivery = match Self::deliveries(&mut self.disorder) {
                Some(deliveries) => deliveries.packets.pop_front(),
                None => None,
            };
            if record.marks == 0 {
                self.in_flight -= u64::from(record.length);
            } else {
                self.remove_marked(&record);
            }
            if !record.has(SACKED) {
                filled |= record.has(RETRANSMITTED);
                self.arrived(now, &record, delivery, summary);
            }
        }
        if filled {
            // Data behind the hole may have waited at the receiver until it was filled.
            summary.once_sent = selectively;
        }
        self.forget_retransmissions();
    }

    /// Forgets retransmissions if nothing is outstanding.
    fn forget_retransmissions(&mut self) {
        if self.is_empty()
            && let Some(disorder) = self.disorder.changed()
        {
            disorder.resent.clear();
        }
    }

    /// Removes a marked record from the counts.
    fn remove_marked(&mut self, record: &SentSegment) {
        let length = u64::from(record.length);
        if record.has(SACKED) {
            self.disorder.sacked -= length;
        } else if record.has(LOST) {
            self.disorder.lost -= length;
        } else {
            self.in_flight -= length;
        }
    }

    /// Acknowledges the first part of the first record and splits it.
    fn acknowledge_part(&mut self, now: Time, ack: u64, summary: &mut AckSummary) {
        let Some(record) = self.disorder.records.front_mut() else {
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
            .disorder
            .deliveries
            .as_ref()
            .and_then(|deliveries| deliveries.packets.front().copied());
        self.remove_marked(&part);
        if !part.has(SACKED) {
            self.arrived(now, &part, delivery, summary);
        }
    }

    /// Records the arrival of a segment not known to have arrived.
    #[inline]
    fn arrived(
        &mut self,
        now: Time,
        record: &SentSegment,
        delivery: Option<PacketDelivery>,
        summary: &mut AckSummary,
    ) {
        summary.add(record);
        if let (Some(deliveries), Some(packet)) = (Self::deliveries(&mut self.disorder), delivery) {
            let size = ByteSize::from_bytes(u64::from(record.length));
            deliveries
                .estimator
                .on_acked(now, &packet, record.sent_at, size);
        }
        self.note_latest(now, record, summary.shortest_rtt);
    }

    /// Returns the index of the first record that ends beyond `offset`.
    fn index_of(&self, offset: u64) -> usize {
        let Some(front) = self.disorder.records.front() else {
            return 0;
        };
        let guess = (offset.saturating_sub(front.start) / u64::from(self.mss.max(1))) as usize;
        let hit = self
            .disorder
            .records
            .get(guess)
            .is_some_and(|record| record.start <= offset && offset < record.end());
        if hit {
            return guess;
        }
        self.disorder
            .records
            .partition_point(|record| record.end() <= offset)
    }

    /// Returns the first segment that waits for retransmission.
    pub(crate) fn next_lost(&mut self) -> Option<SentSegment> {
        if self.disorder.lost == 0 {
            return None;
        }
        let from = self.index_of(self.disorder.resend_from);
        let record = self
            .disorder
            .records
            .range(from..)
            .find(|record| record.has(LOST))
            .copied()?;
        self.disorder.resend_from = record.start;
        Some(record)
    }

    /// Returns the last segment that has not arrived, for a tail loss probe.
    pub(crate) fn last_outstanding(&self) -> Option<SentSegment> {
        if !self.has_records {
            let (sent_at, length) = self.ring.last()?;
            return Some(SentSegment {
                start: self.first + self.in_flight - u64::from(length),
                sent_at,
                length,
                marks: 0,
            });
        }
        self.disorder
            .records
            .iter()
            .rev()
            .find(|record| !record.has(SACKED))
            .copied()
    }

    /// Records the retransmission of the segment at `start`.
    pub(crate) fn on_resent(&mut self, now: Time, start: u64) {
        self.make_records();
        let index = self.index_of(start);
        let disorder = &mut *self.disorder;
        let Some(record) = disorder.records.get_mut(index) else {
            return;
        };
        let length = u64::from(record.length);
        if record.has(LOST) {
            disorder.lost -= length;
            self.in_flight += length;
        }
        record.marks = (record.marks & !LOST) | RETRANSMITTED;
        record.sent_at = now;
        disorder.resent.push_back((record.start, now));
        if let Some(deliveries) = Self::deliveries(&mut self.disorder) {
            let size = ByteSize::from_bytes(length);
            let prior = ByteSize::from_bytes(self.in_flight - length.min(self.in_flight));
            if let Some(packet) = deliveries.packets.get_mut(index) {
                *packet = deliveries.estimator.on_sent(now, size, prior);
            }
        }
    }
}
