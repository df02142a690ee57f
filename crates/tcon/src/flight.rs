//! The data of a flow between its sender and its receiver's acknowledgment: una, nxt, and each segment
//! in between.

use std::collections::VecDeque;

use weir_congestion::PacketDelivery;
use weir_fabric::PortIndex;
use weir_units::Time;
use weir_wire::tcp::{SackBlock, Sequence};

/// A segment that has not been acknowledged.
#[derive(Debug)]
pub(crate) struct SentSegment<P> {
    /// Its first sequence number that has not been acknowledged.
    pub(crate) start: Sequence,
    /// The one behind its last.
    pub(crate) end: Sequence,
    /// Where it came in.
    pub(crate) ingress: PortIndex,
    /// A copy to be sent (again), if one is kept.
    pub(crate) copy: Option<P>,
    /// When it was sent last.
    pub(crate) sent_at: Time,
    /// How often it was sent, by whomever.
    pub(crate) transmissions: u32,
    pub(crate) delivery: PacketDelivery,
    pub(crate) place: SegmentState,
}

/// Where a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// Here: it waits for its turn.
    Waiting,
    /// On its way.
    InFlight,
    /// The receiver has reported it, and waits for others before it.
    Delivered,
    /// Nowhere: it is to be sent again.
    Lost,
}

impl<P> SentSegment<P> {
    /// Its length in sequence numbers.
    pub(crate) fn length(&self) -> u64 {
        distance(self.end, self.start)
    }

    /// Whether it was sent before another one, which was sent at `time` and ends at `end`.
    pub(crate) fn is_before(&self, (time, end): (Time, Sequence)) -> bool {
        self.sent_at < time || (self.sent_at == time && self.end.precedes(end))
    }
}

/// How far `to` lies ahead of `from`; zero behind it.
pub(crate) fn distance(to: Sequence, from: Sequence) -> u64 {
    u64::try_from(to.distance_from(from)).unwrap_or(0)
}

/// How many bytes are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlightBytes {
    pub(crate) waiting: u64,
    pub(crate) in_flight: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
}

impl FlightBytes {
    fn at(&mut self, place: SegmentState) -> &mut u64 {
        match place {
            SegmentState::Waiting => &mut self.waiting,
            SegmentState::InFlight => &mut self.in_flight,
            SegmentState::Delivered => &mut self.delivered,
            SegmentState::Lost => &mut self.lost,
        }
    }
}

/// What is outstanding, by sequence number.
#[derive(Debug)]
pub(crate) struct Flight<P> {
    /// Ordered, and none overlaps another.
    records: VecDeque<SentSegment<P>>,
    /// The first number that has not been acknowledged.
    pub(crate) una: Sequence,
    /// The number behind the last that the sender has sent.
    pub(crate) nxt: Sequence,
    pub(crate) amounts: FlightBytes,
}

impl<P> Flight<P> {
    /// Nothing is outstanding; `next` is the number of the first byte.
    pub(crate) fn new(next: Sequence) -> Self {
        Self {
            records: VecDeque::new(),
            una: next,
            nxt: next,
            amounts: FlightBytes::default(),
        }
    }

    /// The sender has sent up to `end`.
    pub(crate) fn extend_to(&mut self, end: Sequence) {
        if self.nxt.precedes(end) {
            self.nxt = end;
        }
    }

    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &SentSegment<P>> {
        self.records.iter()
    }

    /// The segment at a position.
    pub(crate) fn record(&self, position: usize) -> Option<&SentSegment<P>> {
        self.records.get(position)
    }

    /// The same, to be changed; its place is changed by [`Self::move_to`].
    pub(crate) fn record_mut(&mut self, position: usize) -> Option<&mut SentSegment<P>> {
        self.records.get_mut(position)
    }

    /// The first segment that satisfies a condition.
    pub(crate) fn position(&self, condition: impl FnMut(&SentSegment<P>) -> bool) -> Option<usize> {
        self.records.iter().position(condition)
    }

    /// The positions of the segments that have numbers in `start..end`.
    pub(crate) fn positions(&self, start: Sequence, end: Sequence) -> std::ops::Range<usize> {
        let first = self
            .records
            .partition_point(|record| !start.precedes(record.end));
        let last = self
            .records
            .partition_point(|record| record.start.precedes(end));
        first..last.max(first)
    }

    /// Adds a segment, which overlaps none.
    pub(crate) fn insert(&mut self, record: SentSegment<P>) -> usize {
        *self.amounts.at(record.place) += record.length();
        self.extend_to(record.end);
        let position = self
            .records
            .partition_point(|other| other.start.precedes(record.start));
        self.records.insert(position, record);
        position
    }

    /// Moves a segment to another place.
    pub(crate) fn move_to(&mut self, position: usize, place: SegmentState) {
        if let Some(record) = self.records.get_mut(position) {
            let length = record.length();
            let amount = self.amounts.at(record.place);
            *amount = amount.saturating_sub(length);
            *self.amounts.at(place) += length;
            record.place = place;
        }
    }

    /// Takes out what ends at or before `upto`, the first one first; what is left begins there.
    pub(crate) fn acknowledge(&mut self, upto: Sequence) -> Option<SentSegment<P>> {
        let first = self.records.front()?;
        if !upto.precedes(first.end) {
            let record = self.records.pop_front()?;
            let amount = self.amounts.at(record.place);
            *amount = amount.saturating_sub(record.length());
            return Some(record);
        }
        if let Some(first) = self.records.front_mut()
            && first.start.precedes(upto)
        {
            let amount = self.amounts.at(first.place);
            *amount = amount.saturating_sub(distance(upto, first.start));
            first.start = upto;
        }
        None
    }

    /// All that is below `upto` has been acknowledged, and taken out.
    pub(crate) fn advance_to(&mut self, upto: Sequence) {
        self.una = upto;
    }

    /// Takes out everything.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SentSegment<P>> {
        self.amounts = FlightBytes::default();
        self.una = self.nxt;
        std::mem::take(&mut self.records).into_iter()
    }

    /// The positions of the segments that lie wholly within a block of what has been sent.
    pub(crate) fn covered(&self, block: SackBlock) -> std::ops::Range<usize> {
        let within = |number: Sequence| !number.precedes(self.una) && !self.nxt.precedes(number);
        if !within(block.start) || !within(block.end) || !block.start.precedes(block.end) {
            return 0..0;
        }
        let first = self
            .records
            .partition_point(|record| record.start.precedes(block.start));
        let last = self
            .records
            .partition_point(|record| !block.end.precedes(record.end));
        first..last.max(first)
    }
}
