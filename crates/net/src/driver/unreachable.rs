//! Datagrams that came back from the peer's host, passed to their connections.

use std::task::Context;

use weir_units::Time;

use super::Driver;
use crate::protocol::Protocol;
use crate::socket::canonical;

impl<P: Protocol> Driver<P> {
    /// Reads the sockets' error queues, and passes what they have to the connections: that is rare, so all
    /// of them are asked.
    pub(super) fn handle_undelivered(&mut self, cx: &mut Context<'_>, now: Time) {
        for socket in &self.open.sockets {
            socket.poll_undelivered(cx, &mut self.undelivered);
        }
        if self.undelivered.is_empty() {
            return;
        }
        let all: Vec<_> = self.shared.routing().connections().cloned().collect();
        for connection in all {
            let mut locked = connection.lock_at(Some(now));
            let mut is_concerned = false;
            for undelivered in &self.undelivered {
                let remote = canonical(undelivered.remote);
                is_concerned |= locked.handle_unreachable(now, remote, undelivered.quoted());
            }
            if is_concerned && locked.mark_queued() {
                self.pending.push(connection.clone());
            }
            locked.settle_into(&mut self.woken);
        }
        self.undelivered.clear();
    }
}
