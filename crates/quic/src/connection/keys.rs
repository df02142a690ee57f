//! The keys of a connection at all levels, and the key phases of 1-RTT packets
//! (RFC 9001, sections 4.9 and 6).

use weir_units::{Duration, Time};

use super::UpdateKeysError;
use crate::crypto::{
    AnyHeaderKey, AnyPacketKey, DirectionKeys, HeaderKey, KeyChange, KeyUpdates, Keys, PacketKey,
    PacketKeys,
};
use crate::recovery::SentFrame;
use crate::{Level, Side};

/// Packets that may still be sealed after a key update starts, so that none is ever refused.
const UPDATE_MARGIN: u64 = 1 << 16;

/// The keys of the next phase are derived after this many packets of a phase.
const NEXT_KEYS_AFTER: u64 = 32;

/// All current keys of a connection.
#[derive(Default)]
pub(super) struct KeySet {
    pub(super) initial: Option<Keys>,
    /// Opens Initial packets in the other version, while there may be some.
    pub(super) other_initial: Option<DirectionKeys>,
    pub(super) zero_rtt: Option<DirectionKeys>,
    pub(super) handshake: Option<Keys>,
    pub(super) one_rtt: Option<OneRttKeys>,
}

impl KeySet {
    pub(super) fn install(&mut self, change: KeyChange) {
        match change {
            KeyChange::ZeroRtt(keys) => self.zero_rtt = Some(keys),
            KeyChange::Handshake(keys) => self.handshake = Some(keys),
            KeyChange::OneRtt(keys, updates) => self.one_rtt = Some(OneRttKeys::new(keys, updates)),
        }
    }

    /// Whether the handshake is over: all packets are 1-RTT packets.
    pub(super) fn is_only_one_rtt(&self) -> bool {
        self.initial.is_none() && self.handshake.is_none() && self.one_rtt.is_some()
    }

    /// Records an ACK sent in a packet of this level.
    pub(super) fn note_ack_sent(&mut self, level: Level, ack: &SentFrame) {
        if let (Level::OneRtt, Some(keys), SentFrame::Ack { largest }) =
            (level, &mut self.one_rtt, ack)
        {
            keys.on_ack_sent(*largest);
        }
    }

    /// Whether the peer updated its keys before we acknowledged its last update: a KEY_UPDATE_ERROR
    /// (RFC 9001, section 6.2).
    pub(super) fn updated_too_early(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(|keys| keys.too_early)
    }

    /// Whether the last opened packet, with an ACK up to `largest`, was sealed with the keys of the
    /// previous phase but acknowledges packets of this one. That is a KEY_UPDATE_ERROR: a peer that
    /// received such a packet has updated its keys (RFC 9001, section 6.2).
    pub(super) fn acks_new_under_old(&self, largest: u64) -> bool {
        self.one_rtt
            .as_ref()
            .is_some_and(|keys| keys.opened_by_previous && largest >= keys.first_sent)
    }

    /// Returns the number of key updates.
    pub(super) fn update_count(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, |keys| keys.update_count)
    }

    /// Returns the keys that seal packets of a level.
    #[inline]
    pub(super) fn local(
        &self,
        level: Level,
        side: Side,
    ) -> Option<(&dyn HeaderKey, &dyn PacketKey)> {
        let keys = match level {
            Level::Initial => &self.initial.as_ref()?.local,
            Level::Handshake => &self.handshake.as_ref()?.local,
            Level::ZeroRtt if side.is_client() => self.zero_rtt.as_ref()?,
            Level::ZeroRtt => return None,
            Level::OneRtt => {
                let keys = self.one_rtt.as_ref()?;
                return Some((&*keys.local_header, &*keys.current.local));
            }
        };
        Some((&*keys.header, &*keys.packet))
    }

    /// Returns the keys that open long-header packets of a level.
    pub(super) fn remote(&self, level: Level, side: Side) -> Option<&DirectionKeys> {
        match level {
            Level::Initial => self.initial.as_ref().map(|keys| &keys.remote),
            Level::Handshake => self.handshake.as_ref().map(|keys| &keys.remote),
            Level::ZeroRtt if !side.is_client() => self.zero_rtt.as_ref(),
            Level::ZeroRtt | Level::OneRtt => None,
        }
    }
}

/// 1-RTT keys with their phases.
pub(super) struct OneRttKeys {
    local_header: AnyHeaderKey,
    pub(super) remote_header: AnyHeaderKey,
    current: PacketKeys,
    /// The keys of the next phase, derived in advance: a key update by the peer must not take
    /// measurably longer (RFC 9001, section 9.5). Short connections derive none.
    next: Option<PacketKeys>,
    /// For reordered packets of the previous phase.
    previous: Option<AnyPacketKey>,
    updates: Box<dyn KeyUpdates>,
    /// The key phase bit of packets that we send.
    pub(super) phase: bool,
    /// Packets sealed in this phase.
    sealed: u64,
    /// The limit of `sealed` (RFC 9001, section 6.6).
    sealed_at_most: u64,
    /// The first packet sent in this phase.
    first_sent: u64,
    /// The smallest packet number received in this phase.
    first_received: Option<u64>,
    /// When the peer first acknowledged a packet of this phase.
    acked_at: Option<Time>,
    /// Whether we have acknowledged, in this phase, a packet that the peer sent in this phase.
    has_acknowledged: bool,
    /// Whether the peer updated again before that.
    too_early: bool,
    /// Whether the last opened packet belonged to the previous phase.
    opened_by_previous: bool,
    /// Updates so far.
    update_count: u64,
}

/// The keys that opened a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// The keys of this phase or the previous one.
    Known,
    /// The keys of the next phase: the peer has updated its keys.
    Next,
}

impl OneRttKeys {
    fn new(keys: Keys, updates: Box<dyn KeyUpdates>) -> Self {
        let sealed_at_most = keys.local.packet.confidentiality_limit();
        Self {
            local_header: keys.local.header,
            remote_header: keys.remote.header,
            current: PacketKeys {
                local: keys.local.packet,
                remote: keys.remote.packet,
            },
            next: None,
            previous: None,
            updates,
            phase: false,
            sealed: 0,
            sealed_at_most,
            first_sent: 0,
            first_received: None,
            acked_at: None,
            has_acknowledged: false,
            too_early: false,
            opened_by_previous: false,
            update_count: 0,
        }
    }

    /// Returns the packet key for this phase bit and packet number (RFC 9001, 6.3 and 6.5).
    pub(super) fn remote(&mut self, phase: bool, number: u64) -> (&dyn PacketKey, Opened) {
        if phase == self.phase {
            return (&*self.current.remote, Opened::Known);
        }
        let is_late = self.first_received.is_none_or(|first| number < first);
        if !is_late || self.previous.is_none() {
            self.make_next();
        }
        match (&self.previous, &self.next) {
            (Some(previous), _) if is_late => (&**previous, Opened::Known),
            (_, Some(next)) => (&*next.remote, Opened::Next),
            (_, None) => (&*self.current.remote, Opened::Known),
        }
    }

    /// Returns how many packets may fail authentication before the connection must close (RFC 9001,
    /// 6.6).
    pub(super) fn integrity_limit(&self) -> u64 {
        self.current.remote.integrity_limit()
    }

    /// Derives the keys of the next phase if they are missing.
    fn make_next(&mut self) {
        if self.next.is_none() {
            self.next = Some(self.updates.next_keys());
        }
    }

    /// Handles an authenticated packet; moves to the next phase if the peer did.
    pub(super) fn on_opened(&mut self, opened: Opened, phase: bool, number: u64, next_sent: u64) {
        if opened == Opened::Next {
            // A peer may update again only after our acknowledgment of its last update.
            self.too_early = self.update_count > 0 && !self.has_acknowledged;
            self.update(next_sent);
        }
        self.opened_by_previous = phase != self.phase;
        if phase == self.phase {
            self.first_received = Some(
                self.first_received
                    .map_or(number, |first| first.min(number)),
            );
        }
    }

    /// Counts a packet about to be sealed, and updates the keys before they reach their limit. An
    /// update may start once a packet of this phase has been acknowledged (RFC 9001, section 6.1).
    pub(super) fn before_seal(&mut self, number: u64, largest_acked: Option<u64>, confirmed: bool) {
        self.sealed += 1;
        if self.sealed == NEXT_KEYS_AFTER {
            self.make_next();
        }
        if self.sealed <= self.sealed_at_most.saturating_sub(UPDATE_MARGIN) {
            return;
        }
        if confirmed && largest_acked.is_some_and(|acked| acked >= self.first_sent) {
            self.update(number);
        }
    }

    /// Whether the keys have reached their confidentiality limit (RFC 9001, section 6.6).
    pub(super) fn limit_reached(&self) -> bool {
        self.sealed >= self.sealed_at_most
    }

    /// Records that we acknowledge packets up to this number.
    fn on_ack_sent(&mut self, largest: u64) {
        self.has_acknowledged |= self.first_received.is_some_and(|first| largest >= first);
    }

    /// Handles the peer's ACK of packets up to this number. The keys of the previous phase are
    /// discarded `retention` after the first ACK of a packet of this phase (RFC 9001, section 6.5).
    pub(super) fn on_acked(&mut self, now: Time, largest: u64, retention: Duration) {
        if self.acked_at.is_none() && largest >= self.first_sent {
            self.acked_at = Some(now);
        }
        if self.acked_at.is_some_and(|at| now >= at + retention) {
            self.previous = None;
        }
    }

    /// Starts a key update for the application. The handshake must be confirmed.
    pub(super) fn begin_update(
        &mut self,
        now: Time,
        next_sent: u64,
        retention: Duration,
    ) -> Result<(), UpdateKeysError> {
        if self.update_count > 0 {
            let acked_at = self.acked_at.ok_or(UpdateKeysError::Unacknowledged)?;
            let from = acked_at + retention;
            if now < from {
                return Err(UpdateKeysError::TooSoon(from.since(now)));
            }
        }
        self.update(next_sent);
        Ok(())
    }

    fn update(&mut self, next_sent: u64) {
        let next = self.next.take().unwrap_or_else(|| self.updates.next_keys());
        let old = std::mem::replace(&mut self.current, next);
        self.previous = Some(old.remote);
        self.phase = !self.phase;
        self.sealed = 0;
        self.first_sent = next_sent;
        self.first_received = None;
        self.acked_at = None;
        self.has_acknowledged = false;
        self.update_count += 1;
    }
}

#[cfg(test)]
mod tests;
