//! Decides whether the ACK of a stream's end may wait for data of ours that carry it.
//!
//! A server's response ends a stream, and the client's next request carries the ACK, if it comes in time.
//! Two senders must not wait for that:
//!
//! - One that goes on only after the ACK. It sends soon after an ACK that was late and alone, although we
//!   have sent it nothing else.
//! - One whose timers are exact, as after a loss. It probes before the ACK is due.

use weir_units::{Duration, Time};

use super::precision::EXACT_PACKETS;

/// Probes within this time have one cause.
const PROBES_TOGETHER: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct StreamEndAck {
    /// The longest wait.
    delay: Duration,
    /// Until when an ACK waits.
    pub(super) deadline: Option<Time>,
    /// When the last ACK left, if it was late and alone, and we have sent nothing to the peer since.
    late_since: Option<Time>,
    /// Whether the sender goes on only after our ACK.
    sender_waits: bool,
    /// When a probe came before the ACK was due.
    probed_at: Option<Time>,
    /// For how many more packets the sender's timers are exact.
    sender_exact_packets: u32,
}

impl StreamEndAck {
    pub(super) fn new(delay: Duration) -> Self {
        Self {
            delay,
            deadline: None,
            late_since: None,
            sender_waits: false,
            probed_at: None,
            sender_exact_packets: 0,
        }
    }

    /// Records an ack-eliciting packet.
    pub(super) fn on_received(&mut self, now: Time) {
        self.sender_exact_packets = self.sender_exact_packets.saturating_sub(1);
        if let Some(since) = self.late_since.take() {
            self.sender_waits |= now.since(since) <= self.delay;
        }
    }

    /// Records an IMMEDIATE_ACK. Where it finds a waiting ACK, no more data wait for it, and it is a probe.
    /// One that comes too early may follow a pause of this host; several within a second do not.
    pub(super) fn on_immediate_ack(&mut self, now: Time) {
        if self.deadline.is_none_or(|deadline| deadline <= now) {
            return;
        }
        let since = now.since(*self.probed_at.get_or_insert(now));
        if since > PROBES_TOGETHER {
            self.probed_at = Some(now);
        }
        if (self.delay..=PROBES_TOGETHER).contains(&since) {
            self.sender_exact_packets = EXACT_PACKETS;
        }
    }

    /// Whether the sender does not mind.
    pub(super) fn may_wait(&self) -> bool {
        !self.sender_waits && !self.is_sender_exact()
    }

    /// Whether the sender's timers are exact.
    pub(super) fn is_sender_exact(&self) -> bool {
        self.sender_exact_packets > 0
    }

    /// Lets the ACK wait; returns its deadline. Later ends of streams do not put it off.
    pub(super) fn wait(&mut self, now: Time) -> Time {
        *self.deadline.get_or_insert(now + self.delay)
    }

    /// Records an ACK that left at `now`, without stream data (`alone`) or with some.
    pub(super) fn on_ack_sent(&mut self, now: Time, alone: bool, was_late: bool) {
        self.sender_waits &= alone;
        self.late_since = (alone && was_late).then_some(now);
    }

    /// Records an ack-eliciting packet of ours: what the peer sends next may be an answer.
    pub(super) fn on_eliciting_sent(&mut self) {
        self.late_since = None;
    }
}
