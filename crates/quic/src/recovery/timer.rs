//! The loss and probe timers (RFC 9002, section 6.2 and appendices A.8 and A.9).

use weir_units::{Duration, Time};

use super::{FrameSink, Recovery};
use crate::Space;
use crate::path::Path;

/// The largest exponent of the backoff; any idle timeout is shorter.
const MAX_BACKOFF: u32 = 30;

/// The handshake state that timers depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandshakeState {
    /// Whether there are keys for Handshake packets.
    pub(crate) has_handshake_keys: bool,
    /// Whether the handshake is confirmed (RFC 9001, section 4.1.2).
    pub(crate) confirmed: bool,
    /// Whether nothing can be sent before the peer sends more (RFC 9000, section 8.1).
    pub(crate) amplification_limited: bool,
    /// A handshake space with pending data and nothing in flight, and since when.
    pub(crate) waiting: Option<(Space, Time)>,
}

/// The action that a timeout requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutAction {
    /// Only send again the frames that the sink received as lost, if any.
    Lost,
    /// Send ack-eliciting packets in this space regardless of the window: new data, or the frames
    /// of [`Recovery::oldest_unacked_frames`], or PING.
    Probe {
        /// The space.
        space: Space,
        /// The number of packets.
        packets: u8,
    },
}

impl Recovery {
    /// Returns the PTO of 1-RTT packets, without backoff.
    pub(crate) fn pto(&self, path: &Path) -> Duration {
        let peer_delay = if self.precision.has_standby {
            self.peer_exact_ack_delay
        } else {
            self.peer_max_ack_delay
        };
        path.rtt.probe_timeout(self.config.granularity) + peer_delay
    }

    /// Returns when [`Recovery::handle_timeout`] is to be called; `None` if no timer is set.
    pub(crate) fn timeout(&self, path: &Path, state: HandshakeState) -> Option<Time> {
        if let Some(at) = self.earliest_loss_time() {
            return Some(at);
        }
        let (at, _) = self.probe_time(path, state)?;
        Some(self.precision.round_unless_exact(at))
    }

    /// Ends the backoff of probe timeouts.
    pub(super) fn restart_backoff(&mut self) {
        self.pto_count = 0;
        self.precision.is_probing = false;
    }

    /// Handles [`Recovery::timeout`]. Does nothing before that time.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        path: &mut Path,
        state: HandshakeState,
        sink: &mut impl FrameSink,
    ) -> TimeoutAction {
        if self.earliest_loss_time().is_some() {
            for space in Space::ALL {
                if self.spaces[space as usize]
                    .loss_time
                    .is_some_and(|at| at <= now)
                {
                    self.detect_lost(now, space, path, sink);
                }
            }
            return TimeoutAction::Lost;
        }
        match self.probe_time(path, state) {
            Some((at, space)) if at <= now => {
                self.pto_count = self.pto_count.saturating_add(1);
                self.precision.is_probing = space == Space::Data;
                self.handshake_event = now;
                path.stats.probe_timeouts += 1;
                path.ecn.on_probe_timeout(self.pto_count);
                let packets = if self.has_eliciting_outstanding(space) {
                    2
                } else {
                    1
                };
                TimeoutAction::Probe { space, packets }
            }
            _ => TimeoutAction::Lost,
        }
    }

    fn earliest_loss_time(&self) -> Option<Time> {
        let [initial, handshake, data] = &self.spaces;
        let first = earlier(initial.loss_time, handshake.loss_time);
        earlier(first, data.loss_time)
    }

    /// Returns when a probe is due, and in which space.
    fn probe_time(&self, path: &Path, state: HandshakeState) -> Option<(Time, Space)> {
        if state.amplification_limited {
            // The peer must act first (section 6.2.2.1).
            return None;
        }
        let backoff = 1 << self.pto_count.min(MAX_BACKOFF);
        let duration = path.rtt.probe_timeout(self.config.granularity) * backoff;
        let due = |space: Space, duration: Duration| {
            let state = &self.spaces[space as usize];
            (state.eliciting_outstanding > 0).then(|| (state.last_eliciting + duration, space))
        };
        // Lost handshake data may find the window full of 1-RTT packets, which the peer cannot
        // decrypt without it and for which there is no timer yet. Sent as a probe, the data is not
        // blocked.
        let waiting = state
            .waiting
            .map(|(space, since)| (since + duration, space));
        let handshake = earlier(
            due(Space::Initial, duration),
            due(Space::Handshake, duration),
        );
        let handshake = earlier(handshake, waiting);
        if handshake.is_none() && !self.is_address_validated(state.confirmed) {
            // The server may have reached its limit before our address is validated, and all its
            // packets may be lost: a packet of ours allows it to send more.
            let space = if state.has_handshake_keys {
                Space::Handshake
            } else {
                Space::Initial
            };
            return Some((self.handshake_event + duration, space));
        }
        if !state.confirmed {
            return handshake;
        }
        let peer_delay = if self.precision.is_exact() {
            self.peer_exact_ack_delay
        } else {
            self.peer_max_ack_delay
        };
        let first = path.rtt.probe_timeout(self.config.granularity) + peer_delay;
        let longest = match self.config.max_probe_interval {
            limit if limit.is_zero() => Duration::MAX,
            limit => limit.max(first),
        };
        let data = due(Space::Data, (first * backoff).min(longest));
        earlier(handshake, data)
    }
}

/// Returns the earlier of two times that may not be set.
#[inline]
fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
