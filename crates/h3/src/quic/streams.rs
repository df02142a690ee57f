//! The two halves of a stream.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::proto::varint::VarInt;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use super::errors;
use super::exchange::Exchange;
use super::peer::PeerState;
use crate::frames::{Frames, Scope, Violation};

/// The most bytes that are taken from a stream at once.
const MAX_CHUNK: usize = 256 * 1024;

/// The sending half of a stream.
pub(crate) struct SendStream {
    stream: weir_net::SendStream,
    /// A frame that is not wholly written.
    unwritten: Option<WriteBuf<Bytes>>,
    has_written: bool,
    /// The code of a stream that is dropped before its end.
    reset_code: Code,
    has_ended: bool,
    exchange: Option<Arc<Exchange>>,
}

/// The receiving half of a stream.
pub(crate) struct RecvStream {
    stream: weir_net::RecvStream,
    connection: weir_net::Connection,
    frames: Frames,
    /// What passes before everything that arrives.
    begin: Bytes,
    /// What has arrived, and was not looked at.
    arrived: Bytes,
    /// The next piece that passes: a frame that breaks the rules is noticed before the one in front of it
    /// is acted on.
    ahead: Option<Bytes>,
    /// Who is told of a GOAWAY.
    peer: Option<Arc<PeerState>>,
    exchange: Option<Arc<Exchange>>,
    /// The code of a stream that is dropped before its end.
    stop_code: Code,
}

/// A stream that carries a request.
pub(crate) struct BidiStream {
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
}

impl SendStream {
    pub(super) fn new(stream: weir_net::SendStream, reset_code: Code) -> Self {
        Self {
            stream,
            unwritten: None,
            has_written: false,
            reset_code,
            has_ended: false,
            exchange: None,
        }
    }
}

impl BidiStream {
    /// Returns the stream of a request, and what its halves share.
    pub(super) fn new(mut send: SendStream, mut recv: RecvStream) -> (Self, Arc<Exchange>) {
        let exchange = Arc::new(Exchange::default());
        send.exchange = Some(exchange.clone());
        recv.exchange = Some(exchange.clone());
        (Self { send, recv }, exchange)
    }
}

impl RecvStream {
    pub(super) fn new(
        stream: weir_net::RecvStream,
        connection: weir_net::Connection,
        frames: Frames,
        stop_code: Code,
    ) -> Self {
        Self {
            stream,
            connection,
            frames,
            begin: Bytes::new(),
            arrived: Bytes::new(),
            ahead: None,
            peer: None,
            exchange: None,
            stop_code,
        }
    }

    /// A control stream: its type, what has arrived behind it, and who is told of a GOAWAY.
    pub(super) fn control(
        mut self,
        stream_type: &'static [u8],
        arrived: Bytes,
        peer: Arc<PeerState>,
    ) -> Self {
        self.begin = Bytes::from_static(stream_type);
        self.arrived = arrived;
        self.peer = Some(peer);
        self
    }

    /// Ends the stream, or the connection, whose peer breaks the rules.
    fn on_violation(&mut self, violation: Violation) -> StreamErrorIncoming {
        self.arrived.clear();
        self.ahead = None;
        let code = violation.code().value();
        match violation.scope() {
            Scope::Stream => {
                self.stream.stop(code);
                if let Some(exchange) = &self.exchange {
                    exchange.set_fault(code);
                }
                StreamErrorIncoming::Unknown(Box::new(violation))
            }
            Scope::Connection => StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: close(&self.connection, violation),
            },
        }
    }

    /// Returns the next piece of what has arrived, and looks at the one behind it.
    fn next_pieces(&mut self) -> Result<Option<Bytes>, Violation> {
        let next = match self.ahead.take() {
            None => self.frames.next(&mut self.arrived)?,
            ahead => ahead,
        };
        if next.is_some() {
            self.ahead = self.frames.next(&mut self.arrived)?;
        }
        Ok(next)
    }

    /// Returns the next bytes that pass.
    fn poll_passing(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        loop {
            let passing = self.next_pieces();
            let passing = passing.map_err(|violation| self.on_violation(violation))?;
            if passing.is_some() {
                return Poll::Ready(Ok(passing));
            }
            let chunk = ready!(self.stream.poll_read_chunk(cx, MAX_CHUNK)).map_err(errors::read)?;
            let Some(chunk) = chunk else {
                let ended = self.frames.end();
                ended.map_err(|violation| self.on_violation(violation))?;
                return Poll::Ready(Ok(None));
            };
            self.arrived = chunk;
        }
    }
}

/// Closes a connection whose peer breaks the rules.
pub(super) fn close(
    connection: &weir_net::Connection,
    violation: Violation,
) -> ConnectionErrorIncoming {
    connection.close(violation.code().value(), violation.to_string().as_bytes());
    ConnectionErrorIncoming::Undefined(Arc::new(violation))
}

impl h3::quic::SendStream<Bytes> for SendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(unwritten) = &mut self.unwritten {
            ready!(self.stream.poll_write_buf(cx, unwritten)).map_err(errors::write)?;
            if !unwritten.has_remaining() {
                self.unwritten = None;
                self.has_written = true;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.unwritten.is_some() {
            let reason = "a frame was sent before the last one was written";
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(reason.to_owned()),
            });
        }
        self.unwritten = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        self.has_ended = true;
        Poll::Ready(self.stream.finish().map_err(errors::write))
    }

    fn reset(&mut self, reset_code: u64) {
        // It may be over already.
        let _ = self.stream.reset(reset_code);
        self.has_ended = true;
    }

    fn send_id(&self) -> StreamId {
        identifier(self.stream.id())
    }
}

impl h3::quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if !self.begin.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.begin))));
        }
        let passing = ready!(self.poll_passing(cx))?;
        if let Some(peer) = &self.peer
            && let Some(identifier) = self.frames.take_go_away()
        {
            peer.on_go_away(identifier);
        }
        Poll::Ready(Ok(passing))
    }

    fn stop_sending(&mut self, error_code: u64) {
        if error_code == Code::H3_MESSAGE_ERROR.value()
            && let Some(exchange) = &self.exchange
        {
            exchange.set_fault(error_code);
        }
        self.stream.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        identifier(self.stream.id())
    }
}

impl h3::quic::SendStream<Bytes> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl h3::quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

impl h3::quic::BidiStream<Bytes> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.recv)
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let exchange = self.exchange.as_deref();
        let is_answer = exchange.is_some_and(Exchange::is_answered_by_h3);
        // It may be over already.
        let _ = if is_answer && self.has_written && self.unwritten.is_none() {
            self.stream.finish()
        } else {
            let fault = exchange.and_then(Exchange::fault);
            self.stream.reset(fault.unwrap_or(self.reset_code.value()))
        };
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stream.stop(self.stop_code.value());
    }
}

fn identifier(id: weir_net::StreamId) -> StreamId {
    // Stream IDs are variable-length integers.
    VarInt::from_u64(id.as_u64()).unwrap_or(VarInt::MAX).into()
}
