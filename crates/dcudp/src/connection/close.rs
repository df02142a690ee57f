//! The end of a connection: in order, once all data has been acknowledged, or at once.

use weir_units::{Duration, Time};

use super::{Connection, EndpointEvent, Event};
use crate::error::{ConnectionError, Violation};
use crate::packet::{Control, ControlKind, Header, HeaderFlags, Shutdown, ShutdownReason};
use crate::sequence::SequenceNumber;

#[derive(Debug)]
pub(super) enum LifeCycle {
    /// Open or in the handshake.
    Open,
    /// Ended; the peer may not know yet.
    Closing(Closing),
    /// Ended and drained.
    Closed,
}

#[derive(Debug)]
pub(super) struct Closing {
    reason: ShutdownReason,
    is_answer: bool,
    /// A shutdown packet is due.
    due: bool,
    again_at: Time,
    interval: Duration,
    until: Time,
}

impl Closing {
    pub(super) fn timeout(&self) -> Time {
        self.again_at.min(self.until)
    }
}

impl Connection {
    /// Ends the outgoing data. The data written so far is delivered, then its end; the peer's data
    /// still arrives. Once both ends have finished and received everything, the connection closes.
    pub fn finish(&mut self) {
        self.sender.buffer.finish();
    }

    /// Closes in order: calls [`Self::finish`] and ends the connection once everything has been
    /// acknowledged, without waiting for the peer's data. It takes at most the close timeout.
    pub fn close(&mut self, now: Time) {
        self.finish();
        if self.timers.close_at.is_none() {
            self.timers.close_at = Some(now + self.config.close_timeout);
        }
        // The peer has received nothing yet, so it needs no shutdown.
        if self.client.is_some() && self.sender.buffer.unacknowledged() == 0 {
            self.close_silently(ConnectionError::Aborted);
        }
        self.close_if_finished(now);
    }

    /// Closes at once; undelivered data is lost. The peer receives `code`.
    pub fn abort(&mut self, now: Time, code: u32) {
        if !matches!(self.state, LifeCycle::Open) {
            return;
        }
        if self.client.is_some() {
            return self.close_silently(ConnectionError::Aborted);
        }
        let reason = ShutdownReason::Aborted(code);
        self.close_with(now, reason, Some(ConnectionError::Aborted));
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, LifeCycle::Closing(_))
    }

    /// Closes once both directions are complete.
    pub(super) fn close_if_finished(&mut self, now: Time) {
        let wanted = self.timers.close_at.is_some() || self.receiver.buffer.is_complete();
        let open = matches!(self.state, LifeCycle::Open);
        if open && wanted && self.sender.buffer.is_finished() {
            self.close_with(now, ShutdownReason::Finished, None);
        }
    }

    pub(super) fn violate(&mut self, now: Time, violation: Violation) {
        self.close_with(now, ShutdownReason::Protocol, Some(violation.into()));
    }

    pub(super) fn give_up(&mut self, now: Time, error: ConnectionError) {
        self.close_with(now, ShutdownReason::TimedOut, Some(error));
    }

    fn close_with(&mut self, now: Time, reason: ShutdownReason, error: Option<ConnectionError>) {
        let interval = self
            .config
            .request_interval
            .max(self.rtt.answer_timeout() * 2);
        self.enter_closed_state(
            LifeCycle::Closing(Closing {
                reason,
                is_answer: false,
                due: true,
                again_at: now + interval,
                interval,
                until: now + self.config.linger,
            }),
            error,
        );
    }

    /// Closes without a shutdown packet: the peer knows of no connection.
    pub(super) fn close_silently(&mut self, error: ConnectionError) {
        self.enter_closed_state(LifeCycle::Closed, Some(error));
        self.endpoint_events.push_back(EndpointEvent::Drained);
    }

    fn enter_closed_state(&mut self, state: LifeCycle, error: Option<ConnectionError>) {
        self.state = state;
        self.client = None;
        self.sender.clear();
        self.ack2s.clear();
        self.counters.error = error;
        self.events.push_back(Event::Closed(error));
    }

    fn drained(&mut self) {
        self.state = LifeCycle::Closed;
        self.endpoint_events.push_back(EndpointEvent::Drained);
    }

    /// Processes the peer's shutdown packet.
    pub(super) fn handle_shutdown(
        &mut self,
        now: Time,
        shutdown: &Shutdown,
    ) -> Result<(), Violation> {
        let error = match shutdown.reason {
            ShutdownReason::Finished => {
                let window = 0;
                self.sender
                    .on_progress(now, shutdown.expected, window, &self.rtt)?;
                if !self.receiver.buffer.is_complete() {
                    return Err(Violation::EarlyFinish);
                }
                let buffer = &self.sender.buffer;
                let has_rest = buffer.unacknowledged() > 0;
                has_rest.then_some(ConnectionError::PeerClosed)
            }
            ShutdownReason::Aborted(code) => Some(ConnectionError::PeerAborted(code)),
            ShutdownReason::Protocol => Some(ConnectionError::PeerViolation),
            ShutdownReason::TimedOut => Some(ConnectionError::PeerTimeout),
        };
        self.enter_closed_state(
            LifeCycle::Closing(Closing {
                reason: shutdown.reason,
                is_answer: true,
                due: !shutdown.is_answer,
                again_at: now,
                interval: Duration::ZERO,
                until: now,
            }),
            error,
        );
        Ok(())
    }

    /// Answers a packet after the end with another shutdown packet.
    pub(super) fn handle_when_closing(&mut self, header: &Header) {
        match header {
            Header::Control(header) if header.kind == ControlKind::Shutdown => {
                if let LifeCycle::Closing(closing) = &self.state
                    && !closing.is_answer
                {
                    self.drained();
                }
            }
            Header::Data(_) | Header::Control(_) => {
                if let LifeCycle::Closing(closing) = &mut self.state {
                    closing.due |= !closing.is_answer;
                }
            }
        }
    }

    pub(super) fn transmit_shutdown(&mut self, now: Time, buffer: &mut Vec<u8>) {
        let LifeCycle::Closing(closing) = &mut self.state else {
            return;
        };
        let (due, is_answer) = (std::mem::take(&mut closing.due), closing.is_answer);
        let shutdown = Shutdown {
            reason: match (closing.reason, is_answer) {
                // The peer's code is not repeated.
                (ShutdownReason::Aborted(_), true) => ShutdownReason::Aborted(0),
                (reason, _) => reason,
            },
            expected: SequenceNumber::of(self.receiver.buffer.expected),
            is_answer,
        };
        if due {
            let control = Control::Shutdown(shutdown);
            self.channel
                .write_control(now, HeaderFlags::default(), &control, buffer);
        }
        if is_answer {
            self.drained();
        }
    }

    pub(super) fn on_closing_time(&mut self, now: Time) {
        let LifeCycle::Closing(closing) = &mut self.state else {
            return;
        };
        if now >= closing.until {
            // An answer that has not been polled yet is still sent, once.
            if !(closing.is_answer && closing.due) {
                self.drained();
            }
        } else if now >= closing.again_at {
            closing.due = true;
            closing.interval = closing.interval * 2;
            closing.again_at = now + closing.interval;
        }
    }
}
