//! Stateless resets of the peer (RFC 9000, section 10.3.1).

use weir_units::Time;

use super::Connection;
use super::close::State;
use super::event::{ConnectionError, EndpointEvent, Event};
use crate::secret::{ResetToken, tokens_are_equal};

impl Connection {
    /// The peer's connection ID in use may have changed: tells the endpoint by which token a reset
    /// is for this connection now. Tokens of spare and of retired IDs do not count.
    pub(super) fn note_reset_token(&mut self) {
        let in_use = self.outgoing.remote_ids.reset_token();
        if in_use == self.reset_token {
            return;
        }
        if let Some(old) = self.reset_token {
            let event = EndpointEvent::ResetTokenRetired(old);
            self.endpoint_events.push_back(event);
        }
        if let Some(new) = in_use {
            let event = EndpointEvent::ResetTokenInUse(new);
            self.endpoint_events.push_back(event);
        }
        self.reset_token = in_use;
    }

    /// A datagram could not be opened and ends so: whether the peer says by it that it has lost the
    /// connection's state.
    pub(super) fn is_reset(&self, candidate: &ResetToken) -> bool {
        self.reset_token
            .as_ref()
            .is_some_and(|token| tokens_are_equal(token, candidate))
    }

    /// The peer has lost the connection's state: nothing more is sent.
    pub(super) fn on_reset(&mut self, now: Time) {
        if matches!(self.state, State::Open) {
            let closed = Event::Closed(ConnectionError::StatelessReset);
            self.events.push_back(closed);
        }
        if matches!(self.state, State::Open | State::Closing { .. }) {
            self.drain(now);
        }
    }
}
