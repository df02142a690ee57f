//! Ends a connection (RFC 9000, section 10).

use weir_units::{Duration, Time};

use super::Connection;
use crate::error::ConnectionError;
use crate::event::{EndpointEvent, Event};
use crate::frame::Close;
use crate::observe::{Observation, Phase};
use crate::{Code, Level, TransportError};

/// The state of a connection's life cycle.
#[derive(Debug)]
pub(super) enum LifeCycle {
    /// In the handshake or transferring data.
    Open,
    /// We closed: CONNECTION_CLOSE is sent, and again in response to packets that still arrive.
    Closing {
        message: CloseMessage,
        /// Whether a CONNECTION_CLOSE is to be sent now.
        due: bool,
        /// Packets received since, and the count that triggers the next response.
        received: u32,
        answer_at: u32,
        until: Time,
    },
    /// Ended, by the peer or completely; nothing is sent.
    Closed,
}

/// The content of CONNECTION_CLOSE.
#[derive(Clone, Debug)]
pub(super) enum CloseMessage {
    Transport(TransportError),
    Application { code: u64, reason: Vec<u8> },
}

impl CloseMessage {
    /// Returns the frame. Before the handshake is complete anyone could read an application's
    /// reason, so a bare APPLICATION_ERROR replaces it (RFC 9000, section 10.2.3).
    pub(super) fn frame(&self, one_rtt: bool) -> Close<'_> {
        match self {
            Self::Transport(error) => Close::Transport {
                code: error.code,
                frame_type: error.frame_type,
                reason: error.reason.as_bytes(),
            },
            Self::Application { code, reason } if one_rtt => Close::Application {
                code: *code,
                reason,
            },
            Self::Application { .. } => Close::Transport {
                code: Code::APPLICATION_ERROR,
                frame_type: 0,
                reason: b"",
            },
        }
    }
}

impl Connection {
    /// Closes the connection with an application error code and a reason for the peer.
    pub fn close(&mut self, now: Time, code: u64, reason: &[u8]) {
        let message = CloseMessage::Application {
            code,
            reason: reason.to_vec(),
        };
        self.begin_closing(now, message, ConnectionError::Local);
    }

    /// Closes the connection because of an error.
    #[cold]
    pub(super) fn close_with(&mut self, now: Time, error: TransportError) {
        tracing::debug!(%error, remote = %self.path().remote, "closing");
        self.begin_closing(
            now,
            CloseMessage::Transport(error.clone()),
            ConnectionError::Transport(error),
        );
    }

    /// Ends the connection with `error`, and closes it towards the peer with `message`.
    pub(super) fn begin_closing(
        &mut self,
        now: Time,
        message: CloseMessage,
        error: ConnectionError,
    ) {
        if !matches!(self.state, LifeCycle::Open) {
            return;
        }
        self.end(now, error);
        let until = now + self.closing_period();
        self.state = LifeCycle::Closing {
            message,
            due: true,
            received: 0,
            answer_at: 1,
            until,
        };
        self.report_changes(now);
    }

    /// Reports the end of the connection, once.
    pub(super) fn end(&mut self, now: Time, error: ConnectionError) {
        if matches!(self.state, LifeCycle::Open) {
            self.report(now, &Observation::Closed(&error));
            self.events.push_back(Event::Closed(error));
            self.known.on_end();
        }
    }

    /// Handles the peer's CONNECTION_CLOSE (RFC 9000, section 10.2.2).
    pub(super) fn on_close(&mut self, now: Time, level: Level, close: &Close<'_>) {
        let words = |reason: &[u8]| String::from_utf8_lossy(reason).into_owned();
        let error = match *close {
            Close::Transport { code, reason, .. }
                if code == Code::CONNECTION_REFUSED && self.is_refusal_certain(level) =>
            {
                ConnectionError::Refused {
                    reason: words(reason),
                }
            }
            Close::Transport { code, reason, .. } => ConnectionError::PeerTransport {
                code,
                reason: words(reason),
            },
            Close::Application { code, reason } => ConnectionError::PeerApplication {
                code,
                reason: words(reason),
            },
        };
        self.end(now, error);
        self.drain(now);
    }

    /// Ends the connection: nothing more is sent, and the endpoint drops the peer's last packets.
    pub(super) fn drain(&mut self, now: Time) {
        self.report(now, &Observation::Phase(Phase::Draining));
        self.become_closed(now, Some(now + self.closing_period()));
    }

    /// Ends the connection without notifying the peer.
    pub(super) fn abandon(&mut self, now: Time, error: ConnectionError) {
        self.end(now, error);
        self.drained(now);
    }

    pub(super) fn drained(&mut self, now: Time) {
        self.become_closed(now, None);
    }

    fn become_closed(&mut self, now: Time, draining_until: Option<Time>) {
        if !matches!(self.state, LifeCycle::Closed) {
            self.state = LifeCycle::Closed;
            self.endpoint_events
                .push_back(EndpointEvent::Drained { draining_until });
            self.report_changes(now);
            // The application may keep its handle for long; the observer is no longer needed.
            self.reporter = None;
        }
    }

    /// Handles a packet while closing: responses become rarer and rarer.
    pub(super) fn on_packet_while_closing(&mut self) {
        if let LifeCycle::Closing {
            due,
            received,
            answer_at,
            ..
        } = &mut self.state
        {
            *received += 1;
            if *received >= *answer_at {
                *due = true;
                *received = 0;
                *answer_at = answer_at.saturating_mul(2);
            }
        }
    }

    /// Closing, and draining at the endpoint, last three times the PTO (RFC 9000, section 10.2).
    fn closing_period(&self) -> Duration {
        self.recovery.pto(self.path()) * 3
    }

    /// Whether the connection is closed or closing: nothing can be sent or received on it.
    pub fn is_closed(&self) -> bool {
        !matches!(self.state, LifeCycle::Open)
    }

    /// Whether the connection has ended and may be dropped.
    pub fn is_drained(&self) -> bool {
        matches!(self.state, LifeCycle::Closed)
    }
}
