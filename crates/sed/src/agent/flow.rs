//! What an agent remembers of a connection: the same for both ways that its data go.

use weir_fabric::{Direction, PortIndex};
use weir_units::Time;
use weir_wire::tcp::{Flags, Segment, Sequence};

use crate::demand::Demand;

/// A connection.
#[derive(Debug)]
pub(super) struct TrackedConnection<P> {
    halves: [FlowDirection<P>; 2],
}

/// The data that go one way, and the ACKs that come back for them.
#[derive(Debug)]
pub(super) struct FlowDirection<P> {
    /// Whether its SYN has passed and its FIN has not.
    pub(super) is_open: bool,
    /// Where the data leave.
    pub(super) egress: Option<PortIndex>,
    /// What may be on its way by order, in bytes.
    pub(super) limit: Option<u32>,
    /// Whether that was an earlier controller's order, which this one has said nothing about yet.
    pub(super) is_inherited: bool,
    /// When its SYN passed.
    pub(super) opened_at: Time,
    /// What the controller has had this agent remember.
    pub(super) demand: Option<Demand>,
    /// The last pure ACK, as its receiver sent it, and where it came in.
    pub(super) template: Option<(PortIndex, P)>,
    /// The window field that the sender was last shown.
    pub(super) shown: u16,
    /// How many of its packets wait for duplicate ACKs.
    pub(super) awaited: u32,
    /// Behind the last byte that was sent.
    sent: Option<Sequence>,
    /// The last ACK, and how many bytes that and the earlier ones were for.
    acknowledged: Option<(Sequence, u64)>,
    /// How many of these the controller has been told.
    told: u64,
    /// Up to where packets are sent again by the recovery that duplicate ACKs began.
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
                shown: 0,
                awaited: 0,
                sent: None,
                acknowledged: None,
                told: 0,
                recovering_to: None,
            }),
        }
    }
}

impl<P> TrackedConnection<P> {
    pub(super) fn half(&self, way: Direction) -> &FlowDirection<P> {
        let [forth, back] = &self.halves;
        match way {
            Direction::Forth => forth,
            Direction::Back => back,
        }
    }

    pub(super) fn half_mut(&mut self, way: Direction) -> &mut FlowDirection<P> {
        let [forth, back] = &mut self.halves;
        match way {
            Direction::Forth => forth,
            Direction::Back => back,
        }
    }
}

/// How far a FIN or reset may be from what is known of its flow: the largest part of a window that can be
/// under way unseen, 16 MiB.
const NEAR: u32 = 1 << 24;

impl<P> FlowDirection<P> {
    /// A segment goes this way.
    pub(super) fn on_sent(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.acknowledged = Some((segment.end(), 0));
            self.sent = Some(segment.end());
        } else if self.sent.is_none_or(|sent| sent.precedes(segment.end())) {
            self.sent = Some(segment.end());
        }
    }

    /// An ACK comes back.
    pub(super) fn on_acknowledged(&mut self, upto: Sequence) {
        let (last, bytes) = self.acknowledged.unwrap_or((upto, 0));
        let ahead = upto.distance_from(last);
        // What acknowledges more than was sent is nonsense.
        let is_sent = self.sent.is_some_and(|sent| !sent.precedes(upto));
        if ahead > 0 && is_sent {
            self.acknowledged = Some((upto, bytes + u64::from(ahead.unsigned_abs())));
        }
    }

    /// Whether a segment with this number may be its.
    pub(super) fn is_near(&self, sequence: Sequence) -> bool {
        self.sent
            .is_none_or(|sent| sequence.distance_from(sent).unsigned_abs() <= NEAR)
    }

    /// How many bytes have been acknowledged, if more than this last told.
    pub(super) fn news(&mut self) -> Option<u64> {
        let (_, bytes) = self.acknowledged?;
        if bytes == self.told {
            return None;
        }
        self.told = bytes;
        Some(bytes)
    }

    /// Everything is news again.
    pub(super) fn forget_news(&mut self) {
        self.told = 0;
    }

    /// Whether duplicate ACKs would have the packet with this number sent again: it is the first that is
    /// missing. `None` where that will never be: it has arrived, or is sent again anyway, by the recovery
    /// that is under way.
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

    /// Duplicate ACKs were made.
    pub(super) fn on_repeated(&mut self) {
        self.recovering_to = self.sent;
    }
}
