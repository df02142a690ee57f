//! The timers of a connection.

use weir_units::{Duration, Time};

use super::Connection;
use super::close::LifeCycle;
use crate::config::TransportConfig;
use crate::error::ConnectionError;

/// The timers that belong to neither sender nor receiver.
#[derive(Debug)]
pub(super) struct Timers {
    last_received: Time,
    sent: Time,
    keep_alive: Duration,
    idle_timeout: Duration,
    /// Deadline of an orderly close.
    pub(super) close_at: Option<Time>,
}

impl Timers {
    pub(super) fn new(now: Time, config: &TransportConfig) -> Self {
        Self {
            last_received: now,
            sent: now,
            keep_alive: config.keep_alive,
            idle_timeout: config.idle_timeout,
            close_at: None,
        }
    }

    pub(super) fn on_heard(&mut self, now: Time) {
        self.last_received = now;
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        self.sent = now;
    }

    fn keep_alive_at(&self) -> Time {
        self.sent + self.keep_alive
    }

    fn idle_at(&self) -> Time {
        self.last_received + self.idle_timeout
    }
}

impl Connection {
    /// Returns the next time to call [`Connection::handle_timeout`], followed by
    /// [`Connection::poll_transmit`], unless an event comes first.
    pub fn timeout(&self) -> Option<Time> {
        match &self.state {
            LifeCycle::Closed => return None,
            LifeCycle::Closing(closing) => return Some(closing.timeout()),
            LifeCycle::Open if self.broken.is_some() => return Some(Time::ZERO),
            LifeCycle::Open => {}
        }
        if let Some(client) = &self.client {
            let handshake = client.again_at.min(client.give_up_at);
            let early = (client.early_room() > 0).then(|| self.sender.next_data_time());
            return early.flatten().into_iter().chain([handshake]).min();
        }
        let always = self.timers.keep_alive_at().min(self.timers.idle_at());
        [
            Some(always),
            self.sender.timeout(),
            self.sender.stalled_at(),
            self.receiver.timeout(),
            self.timers.close_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Handles all expired timers.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.state {
            LifeCycle::Closed => return,
            LifeCycle::Closing(_) => return self.on_closing_time(now),
            LifeCycle::Open => {}
        }
        if self.client.is_some() {
            return self.on_handshake_time(now);
        }
        if let Some(violation) = self.broken.take() {
            return self.violate(now, violation);
        }
        if let Some(error) = self.overdue(now) {
            return self.give_up(now, error);
        }
        if now >= self.timers.keep_alive_at() {
            self.keep_alive_due = true;
        }
        self.sender.handle_timeout(now, &self.rtt);
        self.receiver.handle_timeout(now, &self.rtt);
    }

    /// Returns the error of an expired deadline.
    fn overdue(&self, now: Time) -> Option<ConnectionError> {
        let config = &self.config;
        if now >= self.timers.idle_at() {
            return Some(ConnectionError::IdleTimeout(config.idle_timeout));
        }
        if self.timers.close_at.is_some_and(|at| now >= at) {
            return Some(ConnectionError::CloseTimeout(config.close_timeout));
        }
        let stalled = self.sender.stalled_at().is_some_and(|at| now >= at);
        stalled.then_some(ConnectionError::Stalled(config.stall_timeout))
    }
}
