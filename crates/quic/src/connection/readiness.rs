//! Cheap answers for a caller that asks after every packet: whether there is anything to take.

use weir_units::Time;

use super::Connection;
use super::close::LifeCycle;
use crate::Space;

impl Connection {
    /// Whether [`Connection::poll_event`] or [`Connection::poll_endpoint_event`] has something.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.streams.has_events()
            || !self.events.is_empty()
            || !self.endpoint_events.is_empty()
            || self.remote_ids.is_in_use_changed()
            || self.recovery.precision.has_loss_to_report()
    }

    /// Whether [`Connection::poll_transmit`], which has just returned a batch, may return another one
    /// at the same time. `false` is certain: the call would return `None` and change nothing.
    pub fn may_transmit_more(&self, now: Time) -> bool {
        let path = self.path();
        // In all of these states it may have to do something besides.
        let is_plain = matches!(self.state, LifeCycle::Open)
            && !self.is_going_away()
            && self.keys.is_only_one_rtt()
            && self.timers.handshake_waits.is_none()
            && self.probes == [0; 3]
            && !self.table.probing
            && path.amplification_budget() == u64::MAX
            && path.discovery.is_at_rest(now);
        if !is_plain || self.received[Space::Data as usize].ack_due(now) {
            return true;
        }
        let is_paced = self.timers.paced_until.is_some_and(|until| now < until);
        !is_paced && self.data_waits(Space::Data) && path.can_send(self.datagram_limit() as u64)
    }
}
