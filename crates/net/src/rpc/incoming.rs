//! The server side of a call.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use weir_quic::Direction;
use weir_units::ByteSize;

use super::{CALL_UNANSWERED, MESSAGE_TOO_LARGE, Response};
use crate::chunks::ReadChunks;
use crate::connection::Connection;
use crate::dcquic::OpenedStream;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;

/// Why a request did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The client has cancelled the call.
    #[error("the client cancelled the call, with code {0}")]
    Cancelled(u64),
    /// The request is larger than the limit.
    #[error("the request is larger than {0}")]
    TooLarge(ByteSize),
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// A call from a client. Dropping it refuses it.
#[derive(Debug)]
pub struct IncomingCall {
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    /// What has arrived of the request.
    chunks: ReadChunks,
}

/// A request that has arrived in full.
#[derive(Clone, Debug)]
pub struct Request {
    /// The request's body.
    pub body: Bytes,
    remote: SocketAddr,
    early_data: bool,
}

/// Answers one call. Dropping it refuses the call with [`CALL_UNANSWERED`].
pub struct Responder {
    send: SendStream,
    answered: bool,
}

impl Connection {
    /// Returns the peer's next call. Several calls may be in progress at once, each in its own
    /// task; [`Connection::serve`] does that.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection is over.
    pub async fn accept_call(&self) -> Result<IncomingCall, ConnectionError> {
        let id = std::future::poll_fn(|cx| self.poll_accept(cx, Direction::Bidirectional)).await?;
        let opened = OpenedStream { id, early: false };
        Ok(IncomingCall {
            connection: self.clone(),
            send: SendStream::new(self.handle.clone(), opened),
            recv: RecvStream::new(self.handle.clone(), opened),
            chunks: ReadChunks::default(),
        })
    }
}

impl IncomingCall {
    /// Receives the request, of at most `limit` bytes.
    ///
    /// # Errors
    /// [`RequestError`] where it does not arrive. A request that is too large is refused with
    /// [`MESSAGE_TOO_LARGE`].
    pub async fn request(mut self, limit: ByteSize) -> Result<(Request, Responder), RequestError> {
        let body = poll_fn(|cx| self.poll_body(cx, limit)).await?;
        Ok(self.with_body(body))
    }

    /// Receives the request's body, of at most `limit` bytes.
    pub(super) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        limit: ByteSize,
    ) -> Poll<Result<Bytes, RequestError>> {
        let body = (self.recv).poll_to_end(cx, &mut self.chunks, limit.as_usize());
        body.map_err(|error| match error {
            ReadError::Connection(error) => error.into(),
            ReadError::Reset(code) => RequestError::Cancelled(code),
            ReadError::TooLong { .. } => {
                self.recv.stop(MESSAGE_TOO_LARGE);
                // Fails only where the client abandoned the call first.
                let _ = self.send.reset(MESSAGE_TOO_LARGE);
                RequestError::TooLarge(limit)
            }
            ReadError::Stopped | ReadError::EarlyDataRejected => RequestError::Cancelled(0),
        })
    }

    /// Returns the request with its body, which has arrived.
    pub(super) fn with_body(self, body: Bytes) -> (Request, Responder) {
        let request = Request {
            body,
            remote: self.connection.remote_address(),
            early_data: self.recv.is_early_data(),
        };
        let responder = Responder {
            send: self.send,
            answered: false,
        };
        (request, responder)
    }

    /// Refuses the call without reading it, with a code for the client.
    pub fn refuse(mut self, code: u64) {
        self.recv.stop(code);
        // Fails only where the client abandoned the call first.
        let _ = self.send.reset(code);
    }
}

impl Request {
    /// Returns the client's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    /// Returns whether the request arrived as early data (0-RTT), which an attacker may have
    /// replayed: carry it out only where that may safely happen twice.
    pub fn is_early_data(&self) -> bool {
        self.early_data
    }
}

impl Responder {
    /// Sends the response; waits only while the stream's send buffer is full.
    ///
    /// # Errors
    /// [`WriteError::Stopped`] where the client has cancelled the call, [`WriteError::Connection`]
    /// where the connection is over.
    pub async fn respond(mut self, response: impl Into<Response>) -> Result<(), WriteError> {
        self.answered = true;
        self.send.finish_with_response(response.into()).await
    }

    /// Refuses the call, with a code for the client.
    pub fn refuse(mut self, code: u64) {
        self.reset(code);
    }

    /// Waits until the client does not wait for the response any more.
    pub async fn cancelled(&mut self) {
        // Whatever ends the wait, the client does not wait any more.
        let _ = self.send.stopped().await;
    }

    fn reset(&mut self, code: u64) {
        self.answered = true;
        // Fails only where the client abandoned the call first.
        let _ = self.send.reset(code);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            self.reset(CALL_UNANSWERED);
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Responder").field(&self.send.id()).finish()
    }
}
