//! The data of a flow that is outstanding: una, nxt, and each segment in between.

use std::collections::VecDeque;

use weir_congestion::PacketDelivery;
use weir_fabric::PortIndex;
use weir_units::Time;
use weir_wire::tcp::{SackBlock, Sequence};

/// A segment that has not been acknowledged.
#[derive(Debug)]
pub(crate) struct SentSegment<P> {
    /// Its first unacknowledged sequence number.
    pub(crate) start: Sequence,
    /// The sequence number after its last.
    pub(crate) end: Sequence,
    /// Its ingress port.
    pub(crate) ingress: PortIndex,
    /// The copy for (re)transmission, if one is kept.
    pub(crate) copy: Option<P>,
    /// When it was last sent.
    pub(crate) sent_at: Time,
    /// How often it was sent, by the sender or from here.
    pub(crate) transmissions: u32,
    pub(crate) delivery: PacketDelivery,
    pub(crate) state: SegmentState,
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// It waits here for its transmission.
    Waiting,
    /// In flight.
    InFlight,
    /// The receiver has reported it out of order.
    Delivered,
    /// Lost: it is to be retransmitted.
    Lost,
}

impl<P> SentSegment<P> {
    /// Returns its length in sequence numbers.
    pub(crate) fn length(&self) -> u64 {
        distance(self.end, self.start)
    }

    /// Whether it was sent before another segment, which was sent at `time` and ends at `end`.
    pub(crate) fn is_before(&self, (time, end): (Time, Sequence)) -> bool {
        self.sent_at < time || (self.sent_at == time && self.end.precedes(end))
    }
}

/// Returns how far `to` is ahead of `from`; zero if it is behind.
pub(crate) fn distance(to: Sequence, from: Sequence) -> u64 {
    u64::try_from(to.distance_from(from)).unwrap_or(0)
}

/// Bytes in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlightBytes {
    pub(crate) waiting: u64,
    pub(crate) in_flight: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
}

impl FlightBytes {
    fn at(&mut self, state: SegmentState) -> &mut u64 {
        match state {
            SegmentState::Waiting => &mut self.waiting,
            SegmentState::InFlight => &mut self.in_flight,
            SegmentState::Delivered => &mut self.delivered,
            SegmentState::Lost => &mut self.lost,
        }
    }
}

/// The outstanding segments, by sequence number.
#[derive(Debug)]
pub(crate) struct Flight<P> {
    /// Ordered, without overlaps.
    records: VecDeque<SentSegment<P>>,
    /// The first unacknowledged sequence number.
    pub(crate) una: Sequence,
    /// The sequence number after the last that the sender has sent.
    pub(crate) nxt: Sequence,
    pub(crate) bytes: FlightBytes,
}

impl<P> Flight<P> {
    /// Creates an empty flight; `next` is the sequence number of the first byte.
    pub(crate) fn new(next: Sequence) -> Self {
        Self {
            records: VecDeque::new(),
            una: next,
            nxt: next,
            bytes: FlightBytes::default(),
        }
    }

    /// Notes that the sender has sent up to `end`.
    pub(crate) fn extend_to(&mut self, end: Sequence) {
        if self.nxt.precedes(end) {
            self.nxt = end;
        }
    }

    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &SentSegment<P>> {
        self.records.iter()
    }

    /// Returns the segment at a position.
    pub(crate) fn record(&self, position: usize) -> Option<&SentSegment<P>> {
        self.records.get(position)
    }

    /// Returns the segment at a position for changes; its state is changed by [`Self::move_to`].
    pub(crate) fn record_mut(&mut self, position: usize) -> Option<&mut SentSegment<P>> {
        self.records.get_mut(position)
    }

    /// Returns the position of the first segment that satisfies a condition.
    pub(crate) fn position(&self, condition: impl FnMut(&SentSegment<P>) -> bool) -> Option<usize> {
        self.records.iter().position(condition)
    }

    /// Returns the positions of the segments that overlap `start..end`.
    pub(crate) fn positions(&self, start: Sequence, end: Sequence) -> std::ops::Range<usize> {
        let first = self
            .records
            .partition_point(|record| !start.precedes(record.end));
        let last = self
            .records
            .partition_point(|record| record.start.precedes(end));
        first..last.max(first)
    }

    /// Adds a segment, which must overlap none. Returns its position.
    pub(crate) fn insert(&mut self, record: SentSegment<P>) -> usize {
        *self.bytes.at(record.state) += record.length();
        self.extend_to(record.end);
        let position = self
            .records
            .partition_point(|other| other.start.precedes(record.start));
        self.records.insert(position, record);
        position
    }

    /// Moves a segment to another state.
    pub(crate) fn move_to(&mut self, position: usize, state: SegmentState) {
        if let Some(record) = self.records.get_mut(position) {
            let length = record.length();
            let amount = self.bytes.at(record.state);
            *amount = amount.saturating_sub(length);
            *self.bytes.at(state) += length;
            record.state = state;
        }
    }

    /// Removes and returns the first segment if it ends at or before `upto`; otherwise cuts it off
    /// there.
    pub(crate) fn acknowledge(&mut self, upto: Sequence) -> Option<SentSegment<P>> {
        let first = self.records.front()?;
        if !upto.precedes(first.end) {
            let record = self.records.pop_front()?;
            let amount = self.bytes.at(record.state);
            *amount = amount.saturating_sub(record.length());
            return Some(record);
        }
        if let Some(first) = self.records.front_mut()
            && first.start.precedes(upto)
        {
            let amount = self.bytes.at(first.state);
            *amount = amount.saturating_sub(distance(upto, first.start));
            first.start = upto;
        }
        None
    }

    /// Sets una; all segments below `upto` must have been removed.
    pub(crate) fn advance_to(&mut self, upto: Sequence) {
        self.una = upto;
    }

    /// Removes all segments.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SentSegment<P>> {
        self.bytes = FlightBytes::default();
        self.una = self.nxt;
        std::mem::take(&mut self.records).into_iter()
    }

    /// Returns the positions of the segments that lie wholly within a SACK block of sent data.
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
