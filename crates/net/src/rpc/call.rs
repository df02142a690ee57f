//! The client side of a call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use weir_quic::{Direction, Executed};
use weir_units::{ByteSize, Duration, Time};

use super::{CALL_CANCELLED, CALL_DEADLINE, CALL_FAILED, DEFAULT_SIZE_LIMIT, MESSAGE_TOO_LARGE};
use crate::chunks::ReadChunks;
use crate::connection::Connection;
use crate::dcquic::{ConnectionState, OpenedStream};
use crate::endpoint::SHUT_DOWN;
use crate::error::{ConnectionError, ReadError, WriteError};
use crate::handle::Handle;
use crate::waiters::wait;

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The deadline passed.
    #[error("no response within {0}")]
    DeadlinePassed(Duration),
    /// The response is larger than the call allows.
    #[error("the response is larger than {0}")]
    ResponseTooLarge(ByteSize),
    /// The request is larger than the server allows.
    #[error("the server does not take a request of {0}")]
    RequestTooLarge(ByteSize),
    /// The server's handler of the call panicked.
    #[error("the server failed to execute the call")]
    Failed,
    /// The server refused the call, with a code.
    #[error("the server refused the call, with code {0}")]
    Refused(u64),
    /// The connection was over, or draining, before anything of the call was sent.
    #[error(transparent)]
    NotBegun(ConnectionError),
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl CallError {
    /// The connection ended under a call of which something was sent, or nothing.
    fn lost(error: ConnectionError, has_sent: bool) -> Self {
        if has_sent {
            Self::Connection(error)
        } else {
            Self::NotBegun(error)
        }
    }

    /// Returns whether the server may have executed the call. After [`Executed::No`] it may be made
    /// again on another connection, after [`Executed::Maybe`] only if it may safely happen twice.
    pub fn executed(&self) -> Executed {
        match self {
            Self::NotBegun(_) | Self::RequestTooLarge(_) | Self::Refused(SHUT_DOWN) => Executed::No,
            Self::Connection(error) => error.executed(),
            Self::DeadlinePassed(_)
            | Self::ResponseTooLarge(_)
            | Self::Failed
            | Self::Refused(_) => Executed::Maybe,
        }
    }
}

/// A call: configure it, then await it. Dropping it before its end cancels it.
#[must_use = "a call begins when it is awaited"]
pub struct Call {
    handle: Arc<Handle>,
    request: Bytes,
    limit: ByteSize,
    deadline: Option<Duration>,
    priority: i32,
    early_data: bool,
    progress: Progress,
    /// The deadline as it is registered with the connection.
    registered: Option<(Time, u64)>,
}

enum Progress {
    /// No stream yet.
    Begun,
    /// The unsent rest of the request, if any, and the response so far.
    Running {
        opened: OpenedStream,
        rest: Option<Bytes>,
        response: ReadChunks,
    },
    Done,
}

impl Connection {
    /// Sends a request on a stream of its own and returns the response:
    /// `connection.call("ping").deadline(Duration::from_millis(5)).await`.
    ///
    /// A call ends at its deadline, if it has one, or with the connection.
    pub fn call(&self, request: impl Into<Bytes>) -> Call {
        Call {
            handle: self.handle.clone(),
            request: request.into(),
            limit: DEFAULT_SIZE_LIMIT,
            deadline: None,
            priority: 0,
            early_data: false,
            progress: Progress::Begun,
            registered: None,
        }
    }
}

impl Call {
    /// Sets how long the call may take from when it is first awaited, to the resolution of the
    /// endpoint's timers, which is far below a millisecond.
    pub fn deadline(mut self, span: impl Into<Duration>) -> Self {
        self.deadline = Some(span.into());
        self
    }

    /// Sets the largest accepted response; [`DEFAULT_SIZE_LIMIT`] by default.
    pub fn response_limit(mut self, limit: ByteSize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the priority; requests of a higher priority are sent first. 0 by default.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sends the request as early data (0-RTT) where the handshake is not complete and the server
    /// allows it. Where the server rejects it, it is sent again after the handshake.
    ///
    /// An attacker can replay recorded early data to the server: use this only where the request
    /// may safely be carried out twice.
    pub fn early_data(mut self) -> Self {
        self.early_data = true;
        self
    }

    fn advance(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut ConnectionState,
        sent: &mut bool,
    ) -> Poll<Result<Bytes, CallError>> {
        loop {
            match &mut self.progress {
                Progress::Begun => {
                    state.check_not_draining().map_err(CallError::NotBegun)?;
                    let Some(opened) = state.open(Direction::Bidirectional, self.early_data) else {
                        wait(state.waiting.opening(Direction::Bidirectional), cx.waker());
                        return Poll::Pending;
                    };
                    if self.priority != 0 {
                        state.engine.set_priority(opened.id, self.priority);
                    }
                    self.progress = Progress::Running {
                        opened,
                        rest: Some(self.request.clone()),
                        response: ReadChunks::default(),
                    };
                }
                Progress::Running { opened, .. } if state.is_rejected(*opened) => {
                    self.progress = Progress::Begun;
                }
                Progress::Running {
                    opened,
                    rest,
                    response,
                } => {
                    if let Some(data) = rest {
                        *sent = true;
                        match state.write_and_finish(opened.id, [data]) {
                            Poll::Ready(Ok(())) => *rest = None,
                            // A server may answer, or refuse, without reading all of the request.
                            // The stream then says why.
                            Poll::Ready(Err(WriteError::Stopped(_) | WriteError::Finished)) => {
                                *rest = None;
                            }
                            Poll::Ready(Err(error)) => {
                                let has_sent = state.engine.has_sent(opened.id);
                                return Poll::Ready(Err(self.failed(error, has_sent)));
                            }
                            Poll::Pending => {
                                state.waiting.writers.insert(opened.id, cx.waker().clone());
                            }
                        }
                    }
                    let result = read_response(state, *opened, response, self.limit);
                    return match result {
                        Poll::Ready(Ok(())) => {
                            let response = std::mem::take(response).into_bytes();
                            if rest.is_some() {
                                self.abandon(state, super::CALL_CANCELLED);
                            }
                            self.progress = Progress::Done;
                            Poll::Ready(Ok(response))
                        }
                        Poll::Ready(Err(error)) => {
                            let has_sent = state.engine.has_sent(opened.id);
                            Poll::Ready(Err(self.not_answered(error, has_sent)))
                        }
                        Poll::Pending => {
                            state.waiting.readers.insert(opened.id, cx.waker().clone());
                            Poll::Pending
                        }
                    };
                }
                // Polled after its end, which futures need not support.
                Progress::Done => return Poll::Pending,
            }
        }
    }

    fn failed(&self, error: WriteError, has_sent: bool) -> CallError {
        match error {
            WriteError::Connection(error) => CallError::lost(error, has_sent),
            WriteError::Stopped(code) => self.refused(code),
            WriteError::Finished | WriteError::EarlyDataRejected => CallError::Refused(0),
        }
    }

    fn not_answered(&self, error: ReadError, has_sent: bool) -> CallError {
        match error {
            ReadError::Connection(error) => CallError::lost(error, has_sent),
            ReadError::Reset(code) => self.refused(code),
            ReadError::TooLong { .. } => CallError::ResponseTooLarge(self.limit),
            ReadError::Stopped | ReadError::EarlyDataRejected => CallError::Refused(0),
        }
    }

    fn refused(&self, code: u64) -> CallError {
        match code {
            MESSAGE_TOO_LARGE => {
                CallError::RequestTooLarge(ByteSize::from_bytes(self.request.len() as u64))
            }
            CALL_FAILED => CallError::Failed,
            code => CallError::Refused(code),
        }
    }

    /// Checks the deadline, and registers this task to be woken when it passes.
    fn check_deadline(
        &mut self,
        cx: &mut Context<'_>,
        state: &mut ConnectionState,
        now: Time,
    ) -> Result<(), CallError> {
        let Some(span) = self.deadline else {
            return Ok(());
        };
        let (deadline, number) = *self
            .registered
            .get_or_insert_with(|| (now + span, state.waiting.next_number()));
        if now >= deadline {
            return Err(CallError::DeadlinePassed(span));
        }
        state.waiting.add_deadline(deadline, number, cx.waker());
        Ok(())
    }

    /// Resets and stops the stream, and removes its waiting tasks.
    fn abandon(&mut self, state: &mut ConnectionState, code: u64) -> bool {
        let Progress::Running { opened, .. } = self.progress else {
            return false;
        };
        state.waiting.readers.remove(opened.id);
        state.waiting.writers.remove(opened.id);
        if state.is_rejected(opened) || state.error.is_some() {
            return false;
        }
        // Either part may be over already.
        let reset = state.engine.reset(opened.id, code).is_ok();
        let stopped = state.engine.stop_sending(opened.id, code).is_ok();
        reset || stopped
    }
}

/// Reads available data; ready at the response's end.
fn read_response(
    state: &mut ConnectionState,
    opened: OpenedStream,
    response: &mut ReadChunks,
    limit: ByteSize,
) -> Poll<Result<(), ReadError>> {
    let limit = limit.as_usize();
    loop {
        // One extra byte distinguishes a response of exactly the limit from a larger one.
        let room = limit.saturating_sub(response.len()).saturating_add(1);
        match state.engine.read(opened.id, room) {
            Ok(Some(chunk)) => response.push(chunk),
            Ok(None) => return Poll::Ready(Ok(())),
            Err(weir_quic::ReadError::Blocked) => {
                state.check_open()?;
                return Poll::Pending;
            }
            Err(error) => return Poll::Ready(Err(state.read_error(error))),
        }
        if response.len() > limit {
            return Poll::Ready(Err(ReadError::TooLong { limit }));
        }
    }
}

impl Future for Call {
    type Output = Result<Bytes, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        let handle = call.handle.clone();
        let mut state = handle.connection.lock();
        let mut sent = false;
        let mut result = call.advance(cx, &mut state, &mut sent);
        let timed = result.is_pending() && call.deadline.is_some();
        let now = state.now();
        if timed && let Err(error) = call.check_deadline(cx, &mut state, now) {
            call.abandon(&mut state, CALL_DEADLINE);
            sent = true;
            result = Poll::Ready(Err(error));
        }
        if result.is_ready() {
            if let Some((deadline, number)) = call.registered.take() {
                state.waiting.forget_deadline(deadline, number);
            }
            if matches!(result, Poll::Ready(Err(CallError::ResponseTooLarge(_)))) {
                sent |= call.abandon(&mut state, MESSAGE_TOO_LARGE);
            }
            call.progress = Progress::Done;
        }
        if sent {
            state.send_message();
        } else if timed {
            state.send();
        } else {
            // Reading may have freed buffer space that the peer should learn of.
            state.queue();
        }
        result
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if matches!(self.progress, Progress::Done) {
            return;
        }
        let handle = self.handle.clone();
        let mut state = handle.connection.lock();
        if let Some((deadline, number)) = self.registered.take() {
            state.waiting.forget_deadline(deadline, number);
        }
        if self.abandon(&mut state, CALL_CANCELLED) {
            state.queue();
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("request", &self.request.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
