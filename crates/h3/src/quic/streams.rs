//! The two halves of a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use h3::error::Code;
use h3::proto::varint::VarInt;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use super::errors;
use super::peer::PeerState;
use crate::frame_bounds::{FrameBounds, Piece, Violation};

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
    /// Whether a request has been resolved. Before that, only `h3` answers, and drops the stream
    /// without an end.
    is_resolved: Option<Arc<AtomicBool>>,
}

/// The receiving half of a stream.
pub(crate) struct RecvStream {
    stream: weir_net::RecvStream,
    connection: weir_net::Connection,
    bounds: FrameBounds,
    /// What was read, and is to be passed on.
    unread: Bytes,
    /// The begin of a frame's header.
    held: BytesMut,
    /// Who is told of a GOAWAY.
    peer: Option<Arc<PeerState>>,
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
            is_resolved: None,
        }
    }
}

impl BidiStream {
    /// Returns a server's stream; the flag is set once its request is resolved.
    pub(crate) fn with_flag(mut self) -> (Self, Arc<AtomicBool>) {
        let flag = Arc::new(AtomicBool::new(false));
        self.send.is_resolved = Some(flag.clone());
        (self, flag)
    }
}

impl RecvStream {
    pub(super) fn new(
        stream: weir_net::RecvStream,
        connection: weir_net::Connection,
        bounds: FrameBounds,
        stop_code: Code,
    ) -> Self {
        Self {
            stream,
            connection,
            bounds,
            unread: Bytes::new(),
            held: BytesMut::new(),
            peer: None,
            stop_code,
        }
    }

    /// Tells of a GOAWAY.
    pub(super) fn telling(mut self, peer: Arc<PeerState>) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Takes the next piece of what was read; `None` where there is nothing to be passed on.
    fn next_piece(&mut self) -> Result<Option<Bytes>, Violation> {
        match self.bounds.next(&self.unread)? {
            Piece::Whole(length) if self.held.is_empty() => Ok(Some(self.unread.split_to(length))),
            Piece::Whole(length) => {
                self.held.extend_from_slice(&self.unread.split_to(length));
                Ok(Some(self.held.split().freeze()))
            }
            Piece::Held(length) => {
                self.held.extend_from_slice(&self.unread.split_to(length));
                Ok(None)
            }
            Piece::Empty(length) => {
                self.unread.advance(length);
                self.held.clear();
                Ok(None)
            }
        }
    }

    /// Ends the stream, or the connection, whose peer breaks the rules.
    fn on_violation(&mut self, violation: Violation) -> StreamErrorIncoming {
        let code = match violation {
            Violation::TooLong { .. } => Code::H3_EXCESSIVE_LOAD,
            Violation::Truncated => Code::H3_FRAME_ERROR,
        };
        if self.peer.is_none() && code == Code::H3_EXCESSIVE_LOAD {
            // Only this request is too large.
            self.stream.stop(code.value());
            let error_code = code.value();
            return StreamErrorIncoming::StreamTerminated { error_code };
        }
        self.connection
            .close(code.value(), violation.to_string().as_bytes());
        StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: ConnectionErrorIncoming::Undefined(Arc::new(violation)),
        }
    }
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
        loop {
            if self.unread.is_empty() {
                let chunk = ready!(self.stream.poll_read_chunk(cx, MAX_CHUNK));
                match chunk.map_err(errors::read)? {
                    Some(chunk) => self.unread = chunk,
                    None => {
                        let ended = self.bounds.end();
                        ended.map_err(|violation| self.on_violation(violation))?;
                        return Poll::Ready(Ok(None));
                    }
                }
            }
            let piece = self.next_piece();
            let piece = piece.map_err(|violation| self.on_violation(violation))?;
            if let Some(peer) = &self.peer
                && let Some(identifier) = self.bounds.take_go_away()
            {
                peer.on_go_away(identifier);
            }
            if let Some(piece) = piece {
                return Poll::Ready(Ok(Some(piece)));
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
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
        let is_resolved = self.is_resolved.as_ref();
        let is_answer = is_resolved.is_some_and(|flag| !flag.load(Ordering::Relaxed));
        // It may be over already.
        let _ = if is_answer && self.has_written && self.unwritten.is_none() {
            self.stream.finish()
        } else {
            self.stream.reset(self.reset_code.value())
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
