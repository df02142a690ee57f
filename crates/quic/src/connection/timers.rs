//! The timers of a connection.

use weir_units::{Duration, Time};

use super::Connection;
use super::close::LifeCycle;
use super::packet_builder::SMALLEST_ROOM;
use crate::config::TransportConfig;
use crate::error::ConnectionError;
use crate::interfaces::SMALLEST_MAX_UDP_PAYLOAD;
use crate::recovery::{HandshakeState, TimeoutAction};
use crate::{Level, Space};

/// The timers that do not belong to recovery or ACKs.
#[derive(Debug)]
pub(super) struct Timers {
    started: Time,
    /// When a packet was last received, or first sent since then (RFC 9000, 10.1).
    active: Time,
    /// Whether an ack-eliciting packet was sent since the last received packet.
    sent_since: bool,
    pub(super) idle_timeout: Duration,
    /// The time until which the pacer holds data back.
    pub(super) paced_until: Option<Time>,
    /// A keep-alive PING is to be sent.
    pub(super) ping_due: bool,
    /// The handshake space that has data to send, nothing in flight, and may not send; and since
    /// when.
    pub(super) handshake_waits: Option<(Space, Time)>,
}

impl Timers {
    pub(super) fn new(now: Time, config: &TransportConfig) -> Self {
        Self {
            started: now,
            active: now,
            sent_since: false,
            idle_timeout: config.idle_timeout,
            paced_until: None,
            ping_due: false,
            handshake_waits: None,
        }
    }

    /// Gives another handshake its whole time.
    pub(super) fn restart(&mut self, now: Time) {
        self.started = now;
        self.active = now;
        self.sent_since = false;
    }

    /// Applies the smaller of both idle timeouts; zero means none.
    pub(super) fn set_peer_idle_timeout(&mut self, peer: Duration) {
        if self.idle_timeout.is_zero() || (!peer.is_zero() && peer < self.idle_timeout) {
            self.idle_timeout = peer;
        }
    }

    /// Returns a time before which neither the idle period ends nor a keep-alive is due.
    fn earliest_coarse(&self, keep_alive: Duration) -> Time {
        let first = |period: Duration| {
            if period.is_zero() {
                Time::MAX
            } else {
                self.active + period
            }
        };
        first(self.idle_timeout).min(first(keep_alive))
    }

    pub(super) fn on_received(&mut self, now: Time) {
        self.active = now;
        self.sent_since = false;
    }

    pub(super) fn on_sent_ack_eliciting(&mut self, now: Time) {
        if !self.sent_since {
            self.active = now;
            self.sent_since = true;
        }
    }
}

/// Returns the earliest deadline. Called after every packet, it compares plain times: [`Time::MAX`]
/// is no deadline.
#[inline(always)]
fn earliest<const N: usize>(deadlines: [Option<Time>; N]) -> Option<Time> {
    let mut first = Time::MAX;
    for deadline in &deadlines {
        first = first.min(deadline.unwrap_or(Time::MAX));
    }
    (first < Time::MAX).then_some(first)
}

impl Connection {
    /// Returns when [`Connection::handle_timeout`] is to be called next, unless an event comes
    /// first.
    pub fn timeout(&self) -> Option<Time> {
        match self.state {
            LifeCycle::Closed => return None,
            LifeCycle::Closing { until, .. } => {
                return Some(self.recovery.precision.round(until));
            }
            LifeCycle::Open => {}
        }
        let soon = earliest([
            self.recovery.timeout(self.path(), self.handshake_state()),
            self.ack_deadline(),
            self.timers.paced_until,
            self.known_deadline(),
            self.renewal_deadline(),
            self.paths_deadline(),
            self.monitor.as_ref().and_then(|monitor| monitor.timeout()),
        ]);
        let earliest_coarse = self.timers.earliest_coarse(self.keep_alive_interval());
        if !self.awaits_peer() && soon.is_some_and(|soon| soon <= earliest_coarse) {
            return soon;
        }
        let handshake = self.awaits_peer().then(|| self.handshake_deadline());
        let coarse = earliest([self.idle_deadline(), self.keep_alive_deadline(), handshake]);
        let coarse = coarse.map(|deadline| self.recovery.precision.round(deadline));
        earliest([soon, coarse])
    }

    /// Handles the timers due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.state {
            LifeCycle::Closed => return,
            LifeCycle::Closing { until, .. } => {
                if now >= until {
                    self.drained(now);
                }
                return;
            }
            LifeCycle::Open => {}
        }
        if self.awaits_peer() && now >= self.handshake_deadline() {
            let timeout = self.config.handshake_timeout;
            return self.abandon(now, ConnectionError::HandshakeTimeout(timeout));
        }
        if self.idle_deadline().is_some_and(|deadline| now >= deadline) {
            let timeout = self.timers.idle_timeout;
            return self.abandon(now, ConnectionError::IdleTimeout(timeout));
        }
        if self
            .keep_alive_deadline()
            .is_some_and(|deadline| now >= deadline)
        {
            self.timers.ping_due = true;
        }
        self.handle_known_timeout(now);
        self.renew_secret_if_due(now);
        if self.timers.paced_until.is_some_and(|until| now >= until) {
            self.timers.paced_until = None;
        }
        self.handle_paths_timeout(now);
        self.handle_recovery_timeout(now);
        self.handle_monitor_timeout(now);
        self.decide(now);
        self.report_changes(now);
    }

    fn handle_recovery_timeout(&mut self, now: Time) {
        let state = self.handshake_state();
        // Thousands of first packets may wait for a server that is overloaded.
        let most = if self.known.is_unconfirmed() { 1 } else { 2 };
        let due = self
            .recovery
            .timeout(self.path(), state)
            .is_some_and(|due| now >= due);
        if !due {
            return;
        }
        let (recovery, paths, mut fates) = self.recovery_parts();
        match recovery.handle_timeout(now, &mut paths[0], state, &mut fates) {
            TimeoutAction::Lost => {}
            TimeoutAction::Probe { space, packets } => {
                let packets = packets.min(most);
                recovery.oldest_unacked_frames(space, packets.into(), &mut fates);
                self.probes[space as usize] = packets;
                self.probe_other_spaces(space);
                self.counters.probe_timeouts += 1;
                self.watch_probe_timeout(now);
                self.fall_back_after_silence(now);
                self.end_after_silence(now);
            }
        }
    }

    /// Probes other spaces with packets in flight too: the peer may have keys for one of them only
    /// (RFC 9002, section 6.2.4). A client whose handshake is complete always sends a 1-RTT probe:
    /// the server may have discarded the Handshake keys and not know the client's current address.
    fn probe_other_spaces(&mut self, expired: Space) {
        for space in [Space::Initial, Space::Handshake, Space::Data] {
            let asks = match space {
                Space::Data => self.handshake.complete,
                _ => self.recovery.has_eliciting_outstanding(space),
            };
            if space == expired || !asks {
                continue;
            }
            let mut packets = 1;
            if expired == Space::Initial && self.probes[Space::Initial as usize] > 1 {
                // A peer that has discarded the Initial keys may drop a whole datagram that starts
                // with an Initial packet (quiche does): the second datagram has none.
                self.probes[Space::Initial as usize] = 1;
                packets = 2;
            }
            let (recovery, _, mut fates) = self.recovery_parts();
            recovery.oldest_unacked_frames(space, packets.into(), &mut fates);
            let probes = &mut self.probes[space as usize];
            *probes = (*probes).max(packets);
        }
    }

    pub(super) fn handshake_state(&self) -> HandshakeState {
        HandshakeState {
            confirmed: self.handshake.confirmed || self.known.is_unconfirmed(),
            has_handshake_keys: self.keys.handshake.is_some(),
            amplification_limited: self.path().amplification_budget()
                < SMALLEST_MAX_UDP_PAYLOAD as u64,
            waiting: self.timers.handshake_waits,
        }
    }

    /// Records, when nothing may be sent now, whether that blocks the handshake.
    pub(super) fn note_waiting_handshake(&mut self, now: Time) {
        let space = self.waiting_handshake();
        let since = self.timers.handshake_waits.map_or(now, |(_, since)| since);
        self.timers.handshake_waits = space.map(|space| (space, since));
    }

    /// Returns the first handshake space with pending data and nothing in flight.
    fn waiting_handshake(&self) -> Option<Space> {
        if self.keys.is_only_one_rtt() {
            return None;
        }
        [Level::Initial, Level::Handshake]
            .into_iter()
            .filter(|level| self.keys.local(*level, self.side).is_some())
            .map(Level::space)
            .find(|space| {
                self.crypto[*space as usize].wants_to_send()
                    && !self.recovery.has_eliciting_outstanding(*space)
            })
    }

    /// Returns when an ACK is due, unless nothing may be sent before the peer's address is
    /// validated.
    fn ack_deadline(&self) -> Option<Time> {
        let received = &self.received[Space::Data as usize];
        let deadline = received.deadline?;
        if self.path().amplification_budget() < SMALLEST_ROOM as u64 {
            return None;
        }
        let precision = &self.recovery.precision;
        Some(if received.is_deadline_exact() {
            deadline
        } else if received.waits_for_data() {
            precision.round(deadline)
        } else {
            precision.round_unless_exact(deadline)
        })
    }

    /// Whether the peer has not completed the connection yet.
    pub(super) fn awaits_peer(&self) -> bool {
        !self.handshake.complete || self.known.is_unconfirmed()
    }

    fn handshake_deadline(&self) -> Time {
        self.timers.started + self.config.handshake_timeout
    }

    /// An idle timeout below three PTOs would end connections after a single lost packet.
    fn idle_deadline(&self) -> Option<Time> {
        let timeout = self.timers.idle_timeout;
        if timeout.is_zero() {
            return None;
        }
        Some(self.timers.active + timeout.max(self.recovery.pto(self.path()) * 3))
    }

    fn keep_alive_deadline(&self) -> Option<Time> {
        let interval = self.keep_alive_interval();
        // A packet that waits for its acknowledgment asks already, by probes.
        let wanted = self.handshake.complete
            && !interval.is_zero()
            && !self.timers.ping_due
            && !self.recovery.has_eliciting_outstanding(Space::Data);
        wanted.then(|| self.timers.active + interval)
    }
}
