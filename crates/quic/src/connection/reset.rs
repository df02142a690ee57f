//! Stateless resets of the peer (RFC 9000, section 10.3.1).

use smallvec::SmallVec;
use weir_units::Time;

use super::Connection;
use super::close::LifeCycle;
use crate::error::ConnectionError;
use crate::event::EndpointEvent;
use crate::secret::{ResetToken, tokens_are_equal};

impl Connection {
    /// Reports to the endpoint which reset tokens belong to this connection after a change of the
    /// peer's connection IDs in use.
    pub(super) fn note_reset_tokens(&mut self) {
        let in_use: SmallVec<[ResetToken; 1]> = self.remote_ids.reset_tokens().collect();
        let old = self.reset_tokens.iter().filter(|old| !in_use.contains(old));
        let new = in_use.iter().filter(|new| !self.reset_tokens.contains(new));
        let retired = old.map(|token| EndpointEvent::ResetTokenRetired(*token));
        let added = new.map(|token| EndpointEvent::ResetTokenInUse(*token));
        self.endpoint_events.extend(retired.chain(added));
        self.reset_tokens = in_use;
    }

    /// Whether the end of an undecryptable datagram is a stateless reset token of the peer. All
    /// tokens are compared, each in constant time.
    pub(super) fn is_reset(&self, candidate: &ResetToken) -> bool {
        let tokens = self.remote_ids.reset_tokens();
        tokens.fold(false, |found, token| {
            found | tokens_are_equal(&token, candidate)
        })
    }

    /// Ends the connection after a stateless reset: nothing more is sent.
    pub(super) fn on_reset(&mut self, now: Time) {
        self.end(now, ConnectionError::StatelessReset);
        if matches!(self.state, LifeCycle::Open | LifeCycle::Closing { .. }) {
            self.drain(now);
        }
    }
}
