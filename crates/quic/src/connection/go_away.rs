//! GOAWAY: a side that goes away serves what has begun, refuses what begins later, and says where the
//! limit between the two is. RFC 9114, section 5.2, does the same for HTTP/3.

use weir_units::Time;

use super::Connection;
use super::close::{CloseMessage, LifeCycle};
use super::receive::violation;
use crate::error::ConnectionError;
use crate::event::Event;
use crate::frame::write;
use crate::{Code, Level, Side, StreamId, TransportError};

/// The code with which we abandon streams that the peer refuses: it does not look at them.
const ABANDONED: u64 = 0;
/// A limit that no stream reaches (RFC 9000, section 4.6).
const NO_LIMIT: u64 = 1 << 60;

/// What both sides have said about going away.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// Set once we go away.
    ours: Option<GoAway>,
    /// The peer's GOAWAY in the packet with the largest number.
    peers: Option<PeerGoAway>,
}

/// How a side goes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoAway {
    /// The application error code with which streams that the peer opens from now on are reset and
    /// stopped.
    pub refusal_code: u64,
    /// The application error code with which the connection closes at last.
    pub close_code: u64,
    /// The reason that the peer is told then.
    pub reason: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct PeerGoAway {
    number: u64,
    streams: u64,
}

impl Connection {
    /// Goes away: bidirectional streams that the peer opens from now on are refused, and the connection
    /// closes once all others have ended, but for [lasting](Connection::set_lasting) ones, and the
    /// peer has acknowledged it. A peer that has announced that it accepts GOAWAY learns from it which
    /// of its streams are not executed.
    pub fn go_away(&mut self, now: Time, go_away: GoAway) {
        if !matches!(self.state, LifeCycle::Open) || self.leaving.ours.is_some() {
            return;
        }
        self.streams.refuse_new(go_away.refusal_code);
        self.leaving.ours = Some(go_away);
        self.events.push_back(Event::GoingAway);
        self.announce_go_away();
        self.close_when_done(now);
    }

    /// Asks the peer to open no streams any more, ahead of [`Connection::go_away`]: until then those that are on
    /// their way are served. A peer that does not accept GOAWAY learns nothing.
    pub fn warn_of_go_away(&mut self) {
        let is_open = matches!(self.state, LifeCycle::Open);
        if is_open && self.leaving.ours.is_none() && self.peer_takes_go_away() {
            self.control.send_go_away(NO_LIMIT);
        }
    }

    /// Closes the connection as one that was never accepted: nothing that it carries is executed.
    pub fn refuse(&mut self, now: Time) {
        let reason = "the server accepts no connection now";
        self.close_with(now, TransportError::new(Code::CONNECTION_REFUSED, reason));
    }

    /// Notes that an open stream lasts as long as the connection, such as HTTP/3's control streams: a
    /// side that goes away does not wait for its end, and it keeps no idle connection alive.
    pub fn set_lasting(&mut self, id: StreamId) {
        self.streams.set_lasting(id);
    }

    /// Whether we go away: see [`Connection::go_away`].
    pub fn is_going_away(&self) -> bool {
        self.leaving.ours.is_some()
    }

    /// Whether the peer goes away: no stream can be opened any more.
    pub fn is_peer_going_away(&self) -> bool {
        self.leaving.peers.is_some()
    }

    /// Whether the peer has announced that it accepts GOAWAY.
    pub fn peer_takes_go_away(&self) -> bool {
        self.peer_known && self.peer.go_away
    }

    /// Whether the peer refuses this stream of ours, of which it has executed nothing.
    pub fn is_refused(&self, id: StreamId) -> bool {
        self.streams.is_refused(id)
    }

    /// Queues our GOAWAY, if there is one and the peer accepts it.
    pub(super) fn announce_go_away(&mut self) {
        if let Some(go_away) = &self.leaving.ours
            && self.peer_takes_go_away()
        {
            let streams = self.streams.refuse_new(go_away.refusal_code);
            self.control.send_go_away(streams);
        }
    }

    /// Closes a connection that goes away and has nothing left to do.
    pub(super) fn close_when_done(&mut self, now: Time) {
        let Some(go_away) = &self.leaving.ours else {
            return;
        };
        if !self.streams.are_done() || self.datagrams.wants_to_send() {
            return;
        }
        if self.handshake.complete || self.side.is_client() {
            let message = CloseMessage::Application {
                code: go_away.close_code,
                reason: go_away.reason.clone(),
            };
            self.begin_closing(now, message, ConnectionError::Local);
        } else if !self.has_early_streams() {
            self.refuse(now);
        }
    }

    /// Writes GOAWAY before our CONNECTION_CLOSE: streams that the application has not accepted by now
    /// are not executed. A client's peer knows that without it.
    pub(super) fn write_last_go_away(&mut self, level: Level, buffer: &mut Vec<u8>, limit: usize) {
        let tells = self.side == Side::Server || self.leaving.ours.is_some();
        let has_room = buffer.len() + 2 * write::CONTROL_MAX_SIZE <= limit;
        if level == Level::OneRtt && self.peer.go_away && tells && has_room {
            write::go_away(buffer, self.streams.refuse_unaccepted());
        }
    }

    /// Handles GOAWAY in the packet with this number. The limit never grows; packets may be reordered.
    pub(super) fn on_go_away(&mut self, number: u64, streams: u64) -> Result<(), TransportError> {
        if !self.config.go_away {
            return Err(violation("GOAWAY that was not allowed"));
        }
        let grows = "GOAWAY with a limit that grows";
        match self.leaving.peers {
            Some(last) if number < last.number && streams < last.streams => {
                return Err(violation(grows));
            }
            Some(last) if number < last.number => return Ok(()),
            Some(last) if streams > last.streams => return Err(violation(grows)),
            Some(last) if streams == last.streams => {
                self.leaving.peers = Some(PeerGoAway { number, streams });
                return Ok(());
            }
            _ => {}
        }
        self.leaving.peers = Some(PeerGoAway { number, streams });
        self.streams.abandon_refused(streams, ABANDONED);
        self.events.push_back(Event::GoingAway);
        Ok(())
    }

    /// Whether the peer's CONNECTION_REFUSED in a packet of this level shows that nothing was executed:
    /// it is authentic and from a Weir server, or nothing was sent that could be.
    pub(super) fn is_refusal_certain(&self, level: Level) -> bool {
        let is_authentic =
            level != Level::Initial && self.handshake.complete && self.peer.is_weir();
        self.side.is_client() && (is_authentic || !self.has_sent_data())
    }

    fn has_early_streams(&self) -> bool {
        self.early_streams.iter().any(|count| *count > 0)
    }
}
