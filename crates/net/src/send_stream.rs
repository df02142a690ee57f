//! The sending half of a stream.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;
use weir_quic::StreamId;
use weir_units::{ByteSize, Duration};

use crate::dcquic::{ConnectionState, Locked, OpenedStream};
use crate::error::WriteError;
use crate::handle::Handle;
use crate::rpc::Response;
use crate::waiters::{SendOutcome, SendWatch};

/// The sending half of a stream.
///
/// The writing task sends full batches at once. The rest is held back for more data, and leaves at
/// [`SendStream::flush`] and [`SendStream::finish`], when a write has to wait, or as soon as the
/// task yields, whichever comes first. So `write_all` followed by `finish` sends one packet, and
/// nothing is ever stuck. Where tasks finish several streams of a connection at the same time, the first
/// one leaves at once, and the others together, once the tasks have yielded.
///
/// Dropping a stream that was not finished resets it with code 0.
pub struct SendStream {
    handle: Arc<Handle>,
    opened: OpenedStream,
    /// Whether it was finished or reset.
    ended: bool,
}

impl SendStream {
    pub(crate) fn new(handle: Arc<Handle>, opened: OpenedStream) -> Self {
        let mut state = handle.connection.lock();
        state.waiting.sends.insert(opened.id, SendWatch::default());
        drop(state);
        Self {
            handle,
            opened,
            ended: false,
        }
    }

    /// Returns the stream's ID.
    pub fn id(&self) -> StreamId {
        self.opened.id
    }

    /// Writes a prefix of `data`, and waits for buffer space; returns the prefix's length.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_slice(cx, data)).await
    }

    /// As [`SendStream::write`], for a future of your own.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written.
    pub fn poll_write_slice(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        self.poll_engine(cx, |state, id| state.engine.write(id, data))
    }

    /// Writes a prefix of `data` without copying it, removes it from `data`, and waits for buffer
    /// space; returns the prefix's length.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written.
    pub fn poll_write_bytes(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        self.poll_engine(cx, |state, id| state.engine.write_bytes(id, data))
    }

    /// Writes a prefix of `data`, removes it from there, and waits for buffer space; returns the
    /// prefix's length. Several chunks cost one visit to the connection.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written.
    pub fn poll_write_buf(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut impl Buf,
    ) -> Poll<Result<usize, WriteError>> {
        self.poll_engine(cx, |state, id| {
            let mut total = 0;
            while data.has_remaining() {
                match state.engine.write(id, data.chunk()) {
                    Ok(count) => {
                        data.advance(count);
                        total += count;
                    }
                    Err(weir_quic::WriteError::Blocked) if total > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(total)
        })
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written; a prefix may have been.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let count = self.write(data).await?;
            data = data.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of `data` without copying them.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written; a prefix may have been.
    pub async fn write_bytes(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            poll_fn(|cx| self.poll_write_bytes(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Writes all of `data` and finishes the stream, in as few packets as hold them.
    ///
    /// # Errors
    /// [`WriteError`] where nothing more can be written; a prefix may have been.
    pub async fn finish_with(&mut self, data: Bytes) -> Result<(), WriteError> {
        self.finish_with_response(data.into()).await
    }

    /// As [`SendStream::finish_with`], with data in pieces.
    pub(crate) async fn finish_with_response(
        &mut self,
        mut response: Response,
    ) -> Result<(), WriteError> {
        poll_fn(|cx| {
            let mut state = self.lock()?;
            let result = state.write_and_finish(self.opened.id, response.pieces());
            state.send_message();
            if result.is_pending() {
                state
                    .waiting
                    .writers
                    .insert(self.opened.id, cx.waker().clone());
            }
            result
        })
        .await?;
        self.ended = true;
        Ok(())
    }

    /// Sends all data written so far, without waiting for more.
    pub fn flush(&mut self) {
        self.handle.connection.lock().flush();
    }

    /// Ends the stream and sends all data written so far.
    ///
    /// # Errors
    /// [`WriteError`] where the stream is over already.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let mut state = self.lock()?;
        let result = state.engine.finish(self.opened.id);
        state.send_message();
        let result = result.map_err(|error| state.write_error(error));
        drop(state);
        self.ended |= result.is_ok();
        result
    }

    /// Resets the stream with a code for the peer: data not acknowledged yet may be lost.
    ///
    /// # Errors
    /// [`WriteError`] where the stream is over already.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        let mut state = self.lock()?;
        let result = state.engine.reset(self.opened.id, code);
        let result = result.map_err(|error| state.write_error(error));
        state.send();
        drop(state);
        self.ended = true;
        result
    }

    /// Sets the priority; streams of a higher priority are sent first. 0 by default.
    pub fn set_priority(&mut self, priority: i32) {
        if let Ok(mut state) = self.lock() {
            state.engine.set_priority(self.opened.id, priority);
        }
    }

    /// Notes that the stream lasts as long as the connection, such as a control stream: a
    /// [drain](crate::Connection::drain) does not wait for its end.
    pub fn set_lasting(&mut self) {
        if let Ok(mut state) = self.lock() {
            state.engine.set_lasting(self.opened.id);
        }
    }

    /// Sets a deadline: the peer should have `size` more bytes of this stream within a span from
    /// now. They include data written but not acknowledged yet, and data still to be written. A
    /// second call replaces the first; `None` removes the deadline.
    ///
    /// The endpoint's [allocator](crate::EndpointBuilder::allocator) receives the deadline, and
    /// caps the connection's cwnd in the meantime. Of several streams the hardest deadline counts,
    /// so give such a stream the [priority](Self::set_priority) too. Without an allocator nothing
    /// changes. [`Connection::set_deadline`](crate::Connection::set_deadline) is for the congestion
    /// controller.
    pub fn set_deadline(&mut self, deadline: Option<(ByteSize, Duration)>) {
        if let Ok(mut state) = self.lock() {
            state.set_deadline(self.opened.id, deadline);
        }
    }

    /// Waits until the peer stops the stream, and returns its code; or until the peer has
    /// acknowledged a finished stream: `None`.
    ///
    /// # Errors
    /// [`WriteError`] where the connection ends before, or early data were rejected.
    pub async fn stopped(&mut self) -> Result<Option<u64>, WriteError> {
        let outcome = poll_fn(|cx| {
            let mut state = self.lock()?;
            if state.engine.is_refused(self.opened.id) {
                return Poll::Ready(Err(state.draining().into()));
            }
            let error = state.closed();
            let watch = state
                .waiting
                .sends
                .get_or_insert_with(self.opened.id, SendWatch::default);
            match (watch.outcome, error) {
                (Some(outcome), _) => Poll::Ready(Ok::<_, WriteError>(outcome)),
                (None, Some(error)) => Poll::Ready(Err(error.into())),
                (None, None) => {
                    watch.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        Ok(match outcome.await? {
            SendOutcome::Finished => None,
            SendOutcome::Stopped(code) => Some(code),
        })
    }

    /// Waits until the peer has acknowledged all of a finished stream. An acknowledgment by the
    /// peer's transport does not mean that its application has read the data.
    ///
    /// # Errors
    /// [`WriteError`] where the peer stopped the stream or the connection ends before.
    pub async fn acknowledged(&mut self) -> Result<(), WriteError> {
        match self.stopped().await? {
            None => Ok(()),
            Some(code) => Err(WriteError::Stopped(code)),
        }
    }

    /// Returns a future that ends when the peer stops the stream, with its code; or, with `None`, when
    /// that cannot happen any more. A stream has one: a second one replaces the first.
    pub fn stop_notice(&self) -> StopNotice {
        StopNotice {
            handle: self.handle.clone(),
            id: self.opened.id,
        }
    }

    fn lock(&self) -> Result<Locked<'_>, WriteError> {
        let state = self.handle.connection.lock();
        if state.is_rejected(self.opened) {
            return Err(WriteError::EarlyDataRejected);
        }
        Ok(state)
    }

    fn poll_engine(
        &self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut ConnectionState, StreamId) -> Result<usize, weir_quic::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        let mut state = self.lock()?;
        let id = self.opened.id;
        match write(&mut state, id) {
            Ok(count) => {
                state.on_written(count);
                Poll::Ready(Ok(count))
            }
            Err(weir_quic::WriteError::Blocked) => {
                state.waiting.writers.insert(id, cx.waker().clone());
                state.send();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(state.write_error(error))),
        }
    }
}

/// Tells when the peer stops a stream: [`SendStream::stop_notice`].
#[must_use = "a future does nothing unless it is polled"]
pub struct StopNotice {
    handle: Arc<Handle>,
    id: StreamId,
}

impl Future for StopNotice {
    type Output = Option<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        let mut state = self.handle.connection.lock();
        let is_over = state.error.is_some();
        let Some(watch) = state.waiting.sends.get_mut(self.id) else {
            return Poll::Ready(None);
        };
        match watch.outcome {
            Some(SendOutcome::Stopped(code)) => Poll::Ready(Some(code)),
            Some(SendOutcome::Finished) => Poll::Ready(None),
            None if is_over => Poll::Ready(None),
            None => {
                watch.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for StopNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopNotice").field(&self.id).finish()
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_slice(cx, data)
            .map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream; does not wait for the peer's acknowledgment.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.handle.connection.lock_to_forget();
        state.waiting.sends.remove(self.opened.id);
        state.waiting.writers.remove(self.opened.id);
        if self.ended || state.is_rejected(self.opened) || state.error.is_some() {
            return;
        }
        if state.engine.reset(self.opened.id, 0).is_ok() {
            state.queue();
        }
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendStream").field(&self.opened.id).finish()
    }
}
