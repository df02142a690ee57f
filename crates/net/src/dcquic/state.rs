//! A connection's state behind its lock: streams, errors, addresses.

use std::net::SocketAddr;
use std::task::{Poll, Waker};

use bytes::Bytes;
use weir_quic::{Direction, Event, GoAway, PathError, StreamEvent, StreamId};
use weir_units::Time;

use super::{ConnectionState, Locked, OpenedStream};
use crate::endpoint::SHUT_DOWN_REASON;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::path_updates::PathUpdate;
use crate::sockets::SocketGuard;

impl Locked<'_> {
    /// Closes the connection with a code and a reason for the peer, if it is not over already.
    pub(crate) fn close(&mut self, code: u64, reason: &[u8]) {
        let now = self.now();
        if ConnectionState::close(self, now, code, reason) {
            self.send();
        }
    }

    /// Asks the peer to open no streams any more; those on their way are served.
    pub(crate) fn warn_of_drain(&mut self) {
        self.engine.warn_of_go_away();
        self.send();
    }

    /// Lets the connection end as soon as its open streams have; new ones are refused.
    pub(crate) fn drain(&mut self) {
        let now = self.now();
        let (refusal_code, close_code) = self.drain_codes;
        let go_away = GoAway {
            refusal_code,
            close_code,
            reason: SHUT_DOWN_REASON.to_vec(),
        };
        self.engine.go_away(now, go_away);
        self.send();
    }
}

impl ConnectionState {
    /// Closes the connection with a code and a reason for the peer; `false` where it is over
    /// already.
    pub(super) fn close(&mut self, now: Time, code: u64, reason: &[u8]) -> bool {
        if self.error.is_some() {
            return false;
        }
        self.engine.close(now, code, reason);
        true
    }

    /// Moves to another local address once the handshake is confirmed: before that the peer need
    /// not accept it (RFC 9000, section 9). Where the peer forbids migration, packets leave from
    /// there all the same: see [`Sockets::socket_for`](crate::sockets::Sockets::socket_for).
    pub(crate) fn rebind(&mut self, now: Time, local: SocketAddr, hold: SocketGuard) {
        self.rebind_to = None;
        match self.engine.rebind(now, local) {
            Ok(()) => {}
            Err(PathError::NotConfirmed) => self.rebind_to = Some((local, hold)),
            Err(error) => {
                tracing::debug!(%error, %local, "a connection cannot announce its new address");
            }
        }
    }

    /// Passes the engine's events to the tasks that wait for them.
    pub(super) fn wake_waiting(&mut self, woken: &mut Vec<Waker>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Stream(event) => {
                    self.arrived += match event {
                        StreamEvent::Readable(_) => 1,
                        StreamEvent::Opened(direction) => self.engine.acceptable(direction),
                        _ => 0,
                    };
                    self.waiting.on_stream(event, woken);
                }
                Event::Path(event) => {
                    tracing::debug!(%event, "the way to the peer changed");
                    self.path_events.send(PathUpdate::Event(event));
                }
                Event::Moving(decision) => {
                    tracing::info!(%decision, "the connection moves");
                    self.path_events.send(PathUpdate::Decision(*decision));
                }
                Event::DatagramsReadable => woken.append(&mut self.waiting.datagrams),
                Event::Connected => {
                    self.connected = true;
                    self.waiting.on_connected(woken);
                }
                Event::GoingAway => {
                    tracing::debug!("the connection opens no more streams");
                    self.waiting.wake_all(woken);
                }
                Event::EarlyDataRejected => {
                    self.early_data_rejected = true;
                    self.waiting.wake_all(woken);
                }
                Event::Closed(cause) => {
                    let error = ConnectionError::new(self.engine.remote(), cause);
                    self.error.get_or_insert(error);
                    self.path_events.end();
                    self.rebind_to = None;
                    self.waiting.wake_all(woken);
                    woken.append(&mut self.waiting.closing);
                }
            }
        }
    }

    /// Whether a client's early data have begun since the last call.
    pub(super) fn is_early_request_new(&mut self) -> bool {
        let is_new = !self.early_data_seen && self.engine.accepts_early_data();
        self.early_data_seen |= is_new;
        is_new
    }

    /// Returns the error of a connection that is over.
    pub(crate) fn check_open(&self) -> Result<(), ConnectionError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Whether the connection opens no more streams. A server that goes away may still do so, for what
    /// it executes.
    pub(crate) fn is_draining(&self) -> bool {
        self.engine.is_peer_going_away()
            || self.engine.is_going_away() && self.engine.side().is_client()
    }

    /// Returns the error of a connection that opens no more streams.
    pub(crate) fn check_not_draining(&self) -> Result<(), ConnectionError> {
        self.check_open()?;
        if self.is_draining() {
            return Err(self.draining());
        }
        Ok(())
    }

    pub(crate) fn draining(&self) -> ConnectionError {
        ConnectionError::draining(self.engine.remote())
    }

    /// Returns why the connection is over, if it is.
    pub(crate) fn closed(&self) -> Option<ConnectionError> {
        self.error.clone()
    }

    /// Opens a stream where the handshake, early data and the peer's limit allow it now.
    pub(crate) fn open(&mut self, direction: Direction, early: bool) -> Option<OpenedStream> {
        let established = self.engine.is_established();
        let may_be_early = early && !self.early_data_rejected && self.engine.has_early_keys();
        if !established && !may_be_early {
            return None;
        }
        let id = self.engine.open(direction)?;
        Some(OpenedStream {
            id,
            early: !established,
        })
    }

    /// Whether rejected early data opened this stream. Its ID may belong to another stream by now.
    pub(crate) fn is_rejected(&self, opened: OpenedStream) -> bool {
        opened.early && self.early_data_rejected
    }

    /// Moves pieces into a stream, and finishes it with the last bytes.
    pub(crate) fn write_and_finish<'p>(
        &mut self,
        id: StreamId,
        pieces: impl IntoIterator<Item = &'p mut Bytes>,
    ) -> Poll<Result<(), WriteError>> {
        for piece in pieces {
            while !piece.is_empty() {
                match self.engine.write_bytes(id, piece) {
                    Ok(_) => {}
                    Err(weir_quic::WriteError::Blocked) => return Poll::Pending,
                    Err(error) => return Poll::Ready(Err(self.write_error(error))),
                }
            }
        }
        let result = self.engine.finish(id);
        Poll::Ready(result.map_err(|error| self.write_error(error)))
    }

    pub(crate) fn write_error(&self, error: weir_quic::WriteError) -> WriteError {
        match (error, self.closed()) {
            (weir_quic::WriteError::Stopped(code), _) => WriteError::Stopped(code),
            (weir_quic::WriteError::EarlyDataRejected, _) => WriteError::EarlyDataRejected,
            (weir_quic::WriteError::Refused, _) => self.draining().into(),
            (_, Some(error)) => error.into(),
            (_, None) => WriteError::Finished,
        }
    }

    pub(crate) fn read_error(&self, error: weir_quic::ReadError) -> ReadError {
        match (error, self.closed()) {
            (weir_quic::ReadError::Reset(code), _) => ReadError::Reset(code),
            (weir_quic::ReadError::EarlyDataRejected, _) => ReadError::EarlyDataRejected,
            (weir_quic::ReadError::Refused, _) => self.draining().into(),
            (_, Some(error)) => error.into(),
            (_, None) => ReadError::Stopped,
        }
    }
}
