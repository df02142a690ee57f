//! The receiving half of a stream.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use weir_quic::StreamId;

use crate::chunks::ReadChunks;
use crate::dcquic::{ConnectionState, Locked, OpenedStream};
use crate::error::ReadError;
use crate::handle::Handle;

/// The receiving half of a stream.
///
/// Dropping it before its end asks the peer to stop sending, with code 0.
pub struct RecvStream {
    handle: Arc<Handle>,
    opened: OpenedStream,
    state: ReadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    Open,
    /// Read to its end.
    Finished,
    /// Stopped on this side.
    Stopped,
}

impl RecvStream {
    pub(crate) fn new(handle: Arc<Handle>, opened: OpenedStream) -> Self {
        Self {
            handle,
            opened,
            state: ReadState::Open,
        }
    }

    /// Returns the stream's ID.
    pub fn id(&self) -> StreamId {
        self.opened.id
    }

    /// Returns whether the peer opened this stream by early data (0-RTT), which an attacker may
    /// have replayed: act on them only where that may safely happen twice.
    pub fn is_early_data(&self) -> bool {
        self.handle
            .connection
            .peek()
            .engine
            .is_early_data(self.opened.id)
    }

    /// Reads available bytes into `buffer`, and waits until there are any; `None` at the stream's
    /// end.
    ///
    /// # Errors
    /// [`ReadError`] where nothing more can be read.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_slice(cx, buffer)).await
    }

    /// Returns the next chunk, of at most `max` bytes, without a copy; `None` at the stream's end.
    ///
    /// # Errors
    /// [`ReadError`] where nothing more can be read.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// As [`RecvStream::read_chunk`], for a future of your own.
    ///
    /// # Errors
    /// [`ReadError`] where nothing more can be read.
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        self.poll_engine(cx, |state, id| state.engine.read(id, max))
    }

    /// Appends the available chunks to `chunks`, without a copy, until they have at least `enough` bytes
    /// together, and waits until there is any; returns whether more may come, `false` at the stream's
    /// end. Several chunks cost one visit to the connection.
    ///
    /// # Errors
    /// [`ReadError`] where nothing more can be read.
    pub fn poll_read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        enough: usize,
        chunks: &mut impl Extend<Bytes>,
    ) -> Poll<Result<bool, ReadError>> {
        let mut is_end = false;
        let read = self.poll_engine(cx, |state, id| {
            let mut total = 0;
            while total < enough {
                match state.engine.read(id, enough - total) {
                    Ok(Some(chunk)) => {
                        total += chunk.len();
                        chunks.extend([chunk]);
                    }
                    Ok(None) => {
                        is_end = true;
                        break;
                    }
                    Err(weir_quic::ReadError::Blocked) if total > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(Some(()))
        });
        let more = ready!(read)?.is_some() && !is_end;
        if !more {
            self.state = ReadState::Finished;
        }
        Poll::Ready(Ok(more))
    }

    /// Reads all bytes up to the stream's end, `limit` at most.
    ///
    /// # Errors
    /// [`ReadError::TooLong`] where the stream is longer, which stops it; another [`ReadError`]
    /// where it cannot be read to its end.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Bytes, ReadError> {
        let mut chunks = ReadChunks::default();
        poll_fn(|cx| self.poll_to_end(cx, &mut chunks, limit)).await
    }

    /// As [`Self::read_to_end`], with the chunks read so far.
    pub(crate) fn poll_to_end(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut ReadChunks,
        limit: usize,
    ) -> Poll<Result<Bytes, ReadError>> {
        loop {
            // One extra byte distinguishes a stream of exactly the limit from a longer one.
            let room = limit.saturating_sub(chunks.len()).saturating_add(1);
            let chunk = ready!(self.poll_engine(cx, |state, id| state.engine.read(id, room)))?;
            let Some(chunk) = chunk else {
                return Poll::Ready(Ok(std::mem::take(chunks).into_bytes()));
            };
            chunks.push(chunk);
            if chunks.len() > limit {
                self.stop(0);
                return Poll::Ready(Err(ReadError::TooLong { limit }));
            }
        }
    }

    /// Notes that the stream lasts as long as the connection, such as a control stream: a
    /// [drain](crate::Connection::drain) does not wait for its end.
    pub fn set_lasting(&mut self) {
        if let Ok(mut state) = self.lock() {
            state.engine.set_lasting(self.opened.id);
        }
    }

    /// Asks the peer to stop sending, with a code; further data are discarded.
    pub fn stop(&mut self, code: u64) {
        if self.state != ReadState::Open {
            return;
        }
        self.state = ReadState::Stopped;
        let mut state = self.handle.connection.lock();
        state.waiting.readers.remove(self.opened.id);
        if state.is_rejected(self.opened) || state.error.is_some() {
            return;
        }
        if state.engine.stop_sending(self.opened.id, code).is_ok() {
            state.queue();
        }
    }

    fn lock(&self) -> Result<Locked<'_>, ReadError> {
        let state = self.handle.connection.lock();
        if state.is_rejected(self.opened) {
            return Err(ReadError::EarlyDataRejected);
        }
        Ok(state)
    }

    fn poll_read_slice(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        self.poll_engine(cx, |state, id| state.engine.read_into(id, buffer))
    }

    fn poll_engine<T>(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut ConnectionState, StreamId) -> Result<Option<T>, weir_quic::ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        match self.state {
            ReadState::Open => {}
            ReadState::Finished => return Poll::Ready(Ok(None)),
            ReadState::Stopped => return Poll::Ready(Err(ReadError::Stopped)),
        }
        let mut state = self.lock()?;
        let result = match read(&mut state, self.opened.id) {
            Ok(result) => {
                // Reading may have freed buffer space that the peer should learn of.
                state.queue();
                Ok(result)
            }
            Err(weir_quic::ReadError::Blocked) => {
                state.check_open()?;
                let waker = cx.waker().clone();
                state.waiting.readers.insert(self.opened.id, waker);
                return Poll::Pending;
            }
            Err(error) => Err(state.read_error(error)),
        };
        drop(state);
        if matches!(result, Ok(None)) {
            self.state = ReadState::Finished;
        }
        Poll::Ready(result)
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.initialize_unfilled();
        if room.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.get_mut().poll_read_slice(cx, room) {
            Poll::Ready(Ok(count)) => {
                buffer.advance(count.unwrap_or(0));
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop(0);
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvStream").field(&self.opened.id).finish()
    }
}
