//! Key updates by the application (RFC 9001, section 6).

use weir_units::{Duration, Time};

use super::Connection;
use crate::Space;

/// Why the keys cannot be updated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateKeysError {
    /// The handshake is not confirmed yet (RFC 9001, section 6.1).
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The peer has not acknowledged a packet under the keys of the last update (RFC 9001, section
    /// 6.1). A PING elicits that acknowledgment on an idle connection too.
    #[error("the peer has not acknowledged the last key update yet")]
    Unacknowledged,
    /// The peer may still need the keys of the previous phase (RFC 9001, section 6.5).
    #[error("the last key update was acknowledged too recently: wait for {0}")]
    TooSoon(Duration),
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

impl Connection {
    /// Updates the keys; the peer follows when it receives a packet under the new keys, at least a
    /// PING. Before the AEAD's limits are reached an update starts automatically.
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

    /// Returns how long keys of the previous phase are kept after an update was acknowledged: three
    /// probe timeouts (RFC 9001, section 6.5). No update is started in that time.
    fn key_retention(&self) -> Duration {
        self.recovery.pto(self.path()) * 3
    }
}
