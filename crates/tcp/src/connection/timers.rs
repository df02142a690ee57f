//! The timers of a connection.

use weir_units::Time;

use super::{Connection, Ending, State};
use crate::sender::Expiry;

impl Connection {
    /// Returns the next time to call [`Connection::handle_timeout`]; `None` if no timer runs.
    /// Earlier calls have no effect.
    #[inline]
    pub fn timeout(&self) -> Option<Time> {
        if self.is_plain {
            let next = self.quick_timeout();
            return (next != Time::MAX).then_some(next);
        }
        let next = self
            .sender
            .timeout()
            .min(self.receiver.acks.timeout())
            .min(self.rare.state_at)
            .min(self.rare.keep_alive_at);
        (next != Time::MAX).then_some(next)
    }

    /// Handles all expired timers.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state != State::Closed {
            self.handle_timers(now);
            self.refresh();
        }
    }

    fn handle_timers(&mut self, now: Time) {
        self.receiver.acks.handle_timeout(now);
        if let Some(sender) = self.sender.built_mut()
            && sender.timeout() <= now
            && sender.handle_timeout(now, &mut self.counters) == Expiry::GiveUp
        {
            self.end(Ending::TimedOut);
            return;
        }
        if self.rare.state_at <= now {
            self.on_state_time();
        }
        if self.rare.keep_alive_at <= now {
            self.on_keep_alive_time(now);
        }
    }

    fn on_state_time(&mut self) {
        match self.state {
            State::TimeWait => self.end(Ending::Closed),
            _ => self.on_handshake_time(),
        }
    }

    /// RFC 9293, section 3.8.4. A connection with data outstanding has other timers.
    fn on_keep_alive_time(&mut self, now: Time) {
        let Some(keep_alive) = self.config.keep_alive else {
            return;
        };
        if self.sender.una() < self.sender.nxt() || !self.state.is_synchronized() {
            self.rare.keep_alive_at = now + keep_alive.idle;
            return;
        }
        if self.rare.keep_alive_probes >= keep_alive.probes {
            self.rare.reset_due = Some(Box::new(self.reset_at_next()));
            self.end(Ending::TimedOut);
            return;
        }
        self.rare.keep_alive_probes += 1;
        self.rare.keep_alive_due = true;
        self.rare.keep_alive_at = now + keep_alive.interval;
    }

    /// Restarts the keep-alive timer: the peer has sent a segment.
    #[inline]
    pub(super) fn on_heard(&mut self, now: Time) {
        if self.rare.keep_alive_at != Time::MAX {
            self.restart_keep_alive(now);
        }
    }

    pub(super) fn restart_keep_alive(&mut self, now: Time) {
        if let Some(keep_alive) = &self.config.keep_alive {
            self.rare.keep_alive_at = now + keep_alive.idle;
            self.rare.keep_alive_probes = 0;
        }
    }
}
