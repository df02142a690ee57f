//! The state that an agent keeps of a connection: the same for both directions.

use weir_fabric::{Direction, PortIndex};
use weir_units::{Duration, Time};
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
    /// Its activity, as far as it is reported.
    pub(super) activity: Activity,
    /// The ends of the windows that were forwarded to the sender.
    window_ends: Option<WindowEnds>,
    /// The sequence number after the last byte sent.
    sent: Option<Sequence>,
    /// The last ACK number, and the bytes acknowledged so far.
    acknowledged: Option<(Sequence, u64)>,
    /// The acknowledged bytes that were last reported.
    reported: u64,
    /// The end of the recovery that duplicate ACKs began: packets below it are retransmitted anyway.
    recovering_to: Option<Sequence>,
}

/// What the controller knows of a flow's activity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// Whether the flow is in the controller's table.
    pub(super) is_known: bool,
    /// Whether it was reported to have nothing to send.
    pub(super) is_idle: bool,
    /// When its data or an ACK for it last passed.
    pub(super) passed_at: Time,
    /// Payload that has passed while the controller did not know of it, in bytes.
    pub(super) unreported: u64,
    /// The last report of acknowledged bytes and bytes in flight, and its time.
    pub(super) reported: Option<(u64, u32, Time)>,
}

/// The largest end of a window that was forwarded, in two periods: a sender may have used the earlier
/// one before it received a lower one.
#[derive(Clone, Copy, Debug)]
struct WindowEnds {
    since: Time,
    current: Sequence,
    earlier: Sequence,
}

/// The period of [`WindowEnds`]. A lowered window is enforced after one to two of them: an ACK needs some
/// time to the sender, and data back.
const ENFORCED_AFTER: Duration = Duration::from_millis(100);

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
                activity: Activity::default(),
                window_ends: None,
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

    /// Notes an ACK for this direction. Returns whether it acknowledges anything new.
    pub(super) fn on_acknowledged(&mut self, upto: Sequence) -> bool {
        let (last, bytes) = self.acknowledged.unwrap_or((upto, 0));
        let ahead = upto.distance_from(last);
        // An ACK for data that was never sent is ignored.
        let is_sent = self.sent.is_some_and(|sent| !sent.precedes(upto));
        let is_new = ahead > 0 && is_sent;
        if is_new {
            self.acknowledged = Some((upto, bytes + u64::from(ahead.unsigned_abs())));
        }
        is_new
    }

    /// Returns the acknowledged bytes.
    pub(super) fn acknowledged_bytes(&self) -> u64 {
        self.acknowledged.map_or(0, |(_, bytes)| bytes)
    }

    /// Returns the last ACK number.
    pub(super) fn acknowledged_upto(&self) -> Option<Sequence> {
        Some(self.acknowledged?.0)
    }

    /// Returns the bytes sent and not acknowledged.
    pub(super) fn in_flight(&self) -> u32 {
        match (self.sent, self.acknowledged) {
            (Some(sent), Some((upto, _))) => u32::try_from(sent.distance_from(upto)).unwrap_or(0),
            _ => 0,
        }
    }

    /// Notes the end of a window that was forwarded to the sender.
    pub(super) fn note_window_end(&mut self, now: Time, end: Sequence) {
        let ends = self.window_ends.get_or_insert(WindowEnds {
            since: now,
            current: end,
            earlier: end,
        });
        if now.since(ends.since) > ENFORCED_AFTER {
            *ends = WindowEnds {
                since: now,
                current: end,
                earlier: ends.current,
            };
        } else if ends.current.precedes(end) {
            ends.current = end;
        }
    }

    /// Whether the sender exceeds its window with a segment that ends here. Retransmissions do not.
    pub(super) fn exceeds_window(&self, end: Sequence) -> bool {
        let is_new = self.sent.is_some_and(|sent| sent.precedes(end));
        let beyond = |ends: WindowEnds| ends.current.precedes(end) && ends.earlier.precedes(end);
        is_new && self.window_ends.is_some_and(beyond)
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
