//! The state that an agent keeps of a connection: the same for both directions.

use weir_fabric::{Direction, PortIndex};
use weir_units::Time;
use weir_wire::tcp::{Flags, Segment, Sequence};

use crate::demand::Demand;

/// A connection.
#[derive(Debug)]
pub(super) struct TrackedConnection<P> {
    halves: [FlowDirection<P>; 2],
}

/// The data in one direction, and the ACKs for it.
#[derive(Debug)]
pub(super) struct FlowDirection<P> {
    /// Whether its SYN has passed and its FIN has not.
    pub(super) is_open: bool,
    /// The egress port of the data.
    pub(super) egress: Option<PortIndex>,
    /// The ordered limit of its bytes in flight.
    pub(super) limit: Option<u32>,
    /// Whether an earlier controller ordered that limit, and the current one has ordered nothing yet.
    pub(super) is_inherited: bool,
    /// When its SYN passed.
    pub(super) opened_at: Time,
    /// The demand that the controller has stored here.
    pub(super) demand: Option<Demand>,
    /// The last pure ACK, as its receiver sent it, and its ingress port.
    pub(super) template: Option<(PortIndex, P)>,
    /// The last window field that was forwarded to the sender.
    pub(super) forwarded_window: u16,
    /// How many of its dropped packets wait for duplicate ACKs.
    pub(super) awaited: u32,
    /// The sequence number after the last byte sent.
    sent: Option<Sequence>,
    /// The last ACK number, and the bytes acknowledged so far.
    acknowledged: Option<(Sequence, u64)>,
    /// The acknowledged bytes that were last reported.
    reported: u64,
    /// The end of the recovery that duplicate ACKs began: packets below it are retransmitted anyway.
    recovering_to: Option<Sequence>,
}

impl<P> Default for TrackedConnection<P> {
    fn default() -> Self {
        Self {
            halves: [(); 2].map(|()| FlowDirection {
                is_open: false,
                egress: None,
                limit: None,
                is_inherited: false,
                opened_at: Time::ZERO,
                demand: None,
                template: None,
                forwarded_window: 0,
                awaited: 0,
                sent: None,
                acknowledged: None,
                reported: 0,
                recovering_to: None,
            }),
        }
    }
}

impl<P> TrackedConnection<P> {
    pub(super) fn half(&self, direction: Direction) -> &FlowDirection<P> {
        let [forth, back] = &self.halves;
        match direction {
            Direction::Forward => forth,
            Direction::Reverse => back,
        }
    }

    pub(super) fn half_mut(&mut self, direction: Direction) -> &mut FlowDirection<P> {
        let [forth, back] = &mut self.halves;
        match direction {
            Direction::Forward => forth,
            Direction::Reverse => back,
        }
    }
}

/// How far a FIN or reset may be from the known sequence number: the largest part of a window that can
/// be in flight unseen, 16 MiB.
const NEAR: u32 = 1 << 24;

impl<P> FlowDirection<P> {
    /// Notes a segment in this direction.
    pub(super) fn on_sent(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.acknowledged = Some((segment.end(), 0));
            self.sent = Some(segment.end());
        } else if self.sent.is_none_or(|sent| sent.precedes(segment.end())) {
            self.sent = Some(segment.end());
        }
    }

    /// Notes an ACK for this direction.
    pub(super) fn on_acknowledged(&mut self, upto: Sequence) {
        let (last, bytes) = self.acknowledged.unwrap_or((upto, 0));
        let ahead = upto.distance_from(last);
        // An ACK for data that was never sent is ignored.
        let is_sent = self.sent.is_some_and(|sent| !sent.precedes(upto));
        if ahead > 0 && is_sent {
            self.acknowledged = Some((upto, bytes + u64::from(ahead.unsigned_abs())));
        }
    }

    /// Whether a segment with this sequence number may belong to the flow.
    pub(super) fn is_near(&self, sequence: Sequence) -> bool {
        self.sent
            .is_none_or(|sent| sequence.distance_from(sent).unsigned_abs() <= NEAR)
    }

    /// Returns the acknowledged bytes, if they have changed since the last report.
    pub(super) fn take_acknowledged(&mut self) -> Option<u64> {
        let (_, bytes) = self.acknowledged?;
        if bytes == self.reported {
            return None;
        }
        self.reported = bytes;
        Some(bytes)
    }

    /// Has the next call of [`Self::take_acknowledged`] return the bytes again.
    pub(super) fn reset_reported(&mut self) {
        self.reported = 0;
    }

    /// Whether duplicate ACKs would have this packet retransmitted: it is the first that is missing.
    /// `None` if they never will: it has arrived, or the current recovery retransmits it anyway.
    pub(super) fn is_due(&mut self, sequence: Sequence) -> Option<bool> {
        let (upto, _) = self.acknowledged?;
        let arrived = sequence.precedes(upto);
        let follows = (self.recovering_to).is_some_and(|end| sequence.precedes(end));
        if arrived || follows {
            self.awaited = self.awaited.saturating_sub(1);
            return None;
        }
        let due = sequence == upto && self.template.is_some();
        if due {
            self.awaited = self.awaited.saturating_sub(1);
        }
        Some(due)
    }

    /// Notes that duplicate ACKs were made.
    pub(super) fn on_repeated(&mut self) {
        self.recovering_to = self.sent;
    }
}
