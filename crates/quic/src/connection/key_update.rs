//! Key updates that the application asks for (RFC 9001, section 6).

use weir_units::{Duration, Time};

use super::Connection;
use crate::Space;

/// Why the keys cannot be updated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateKeysError {
    /// The handshake is not confirmed yet (RFC 9001, section 6.1).
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The peer has not acknowledged a packet under the keys of the last update (RFC 9001,
    /// section 6.1). A PING asks it to, so that a connection on which nothing moves gets there too.
    #[error("the peer has not acknowledged the last key update yet")]
    Unacknowledged,
    /// The peer may still need the keys of the phase before (RFC 9001, section 6.5).
    #[error("the last key update was acknowledged too recently: wait for {0}")]
    TooSoon(Duration),
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}

impl Connection {
    /// Goes on to the next keys, and the peer with us; a PING tells it where nothing else does.
    /// Before the AEAD's limits are reached that happens by itself.
    ///
    /// # Errors
    /// [`UpdateKeysError`] where RFC 9001, section 6, forbids it for now.
    pub fn update_keys(&mut self, now: Time) -> Result<(), UpdateKeysError> {
        if self.is_closed() {
            return Err(UpdateKeysError::Closed);
        }
        let retention = self.key_retention();
        let next_sent = self.recovery.next_number(Space::Data);
        let keys = self
            .keys
            .one_rtt
            .as_mut()
            .filter(|_| self.handshake.confirmed)
            .ok_or(UpdateKeysError::NotConfirmed)?;
        let begun = keys.begin_update(now, next_sent, retention);
        let unacknowledged = begun == Err(UpdateKeysError::Unacknowledged);
        let asks = unacknowledged && !self.recovery.has_eliciting_outstanding(Space::Data);
        self.timers.ping_due |= begun.is_ok() || asks;
        begun
    }

    /// The peer acknowledged 1-RTT packets.
    pub(super) fn note_acked_keys(&mut self, now: Time) {
        let retention = self.key_retention();
        let largest = self.recovery.largest_acked(Space::Data);
        if let (Some(keys), Some(largest)) = (&mut self.keys.one_rtt, largest) {
            keys.on_acked(now, largest, retention);
        }
    }

    /// How long keys of the phase before are kept, and no update is begun, after an update has been
    /// acknowledged: three probe timeouts (RFC 9001, section 6.5).
    fn key_retention(&self) -> Duration {
        self.recovery.pto(self.path()) * 3
    }
}
