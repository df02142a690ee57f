//! One call: from its header to its status.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;
use weir_net::rpc::CALL_UNANSWERED;
use weir_net::{Connection, RecvStream, SendStream};

use super::handler::Prepared;
use super::messages::{ResponseSender, status};
use super::panics::{self, catch};
use super::response::Response;
use super::{Context, Shared};
use crate::frames::{FrameError, Frames};
use crate::status::{Code, Status};
use crate::trace::TraceContext;
use crate::wire::{CALL_MALFORMED, FrameType, Limits, RequestHeader, ResponseStatus, WireError};

/// A stream that a client opened.
pub(super) struct Call {
    shared: Arc<Shared>,
    connection: Connection,
    response: Response,
}

/// What a handler returns: the message of a response that is not a stream.
type Answer = Result<Option<Bytes>, Status>;

/// Why a handler did not come to its end.
enum Cut {
    Cancelled,
    Deadline,
}

impl Call {
    /// Runs a call to its end.
    pub(super) async fn run(
        shared: Arc<Shared>,
        connection: Connection,
        (send, recv): (SendStream, RecvStream),
    ) {
        let frames = Frames::new(recv, shared.limits);
        let mut call = Self {
            shared,
            connection,
            response: Response::new(send),
        };
        call.answer(frames).await;
    }

    async fn answer(&mut self, mut frames: Frames) {
        let header = match read_header(&mut frames, &self.shared.limits).await {
            Ok(header) => header,
            Err(error) => return self.not_arrived(error).await,
        };
        // A span beyond what the clock can count is no deadline.
        let deadline = header
            .time_left
            .and_then(|span| Instant::now().checked_add(span.into()));
        let Some(handler) = self.shared.methods.get(&header.method).cloned() else {
            self.shared.counters.unimplemented.increment();
            let text = format!("there is no method {}", header.method);
            let status = Status::new(Code::Unimplemented, text);
            return self.end(false, status).await;
        };
        let is_early_data = frames.is_early_data();
        let preparing = handler.prepare(frames);
        let prepared = match until(deadline, &mut self.response, preparing).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => return self.not_arrived(error).await,
            Err(cut) => return self.cut(false, cut).await,
        };
        let Ok(permit) = self.shared.permits.clone().try_acquire_owned() else {
            let text = format!("{} calls are running", self.shared.concurrency);
            let status = Status::new(Code::ResourceExhausted, text);
            return self.refuse(status).await;
        };
        self.shared.counters.executed.increment();
        let (_ended, ending) = watch::channel(());
        let caller = TraceContext::of(&header.metadata);
        let trace = match &caller {
            Some(caller) => caller.child(self.shared.random.span_id()),
            None => self.shared.random.trace(),
        };
        let span = self.span(&header, &trace, caller.as_ref());
        let connection = self.connection.clone();
        let context = Context::new(header, deadline, connection, is_early_data, trace, ending);
        let running = self.execute(prepared, context.clone(), deadline);
        let ended = context.within(running).instrument(span).await;
        // Before the client knows, so that its next call is not refused.
        drop(permit);
        match ended {
            Ok(answer) => {
                let (message, mut status) = match answer {
                    Ok(message) => (message, Status::new(Code::Ok, "")),
                    Err(status) => (None, status),
                };
                status.metadata.append(context.take_trailers());
                self.finish(true, message, status).await;
            }
            Err(cut) => self.cut(true, cut).await,
        }
    }

    fn span(
        &self,
        header: &RequestHeader,
        trace: &TraceContext,
        caller: Option<&TraceContext>,
    ) -> tracing::Span {
        tracing::info_span!(
            "call",
            method = header.method,
            peer = %self.connection.remote_address(),
            trace_id = %trace.trace_id,
            span_id = %trace.span_id,
            parent_id = caller.map(|caller| tracing::field::display(caller.span_id)),
        )
    }

    /// Runs the handler until it ends, the client cancels the call, or the deadline passes.
    async fn execute(
        &mut self,
        prepared: Prepared<'_>,
        context: Context,
        deadline: Option<Instant>,
    ) -> Result<Answer, Cut> {
        let (responses, queue) = mpsc::channel(1);
        let responses = ResponseSender::new(responses);
        let response = &mut self.response;
        let answer = match prepared {
            Prepared::Unary(handler, request) => {
                let answer = catch(async { handler(context, request).await.map(Some) });
                until(deadline, response, answer).await?
            }
            Prepared::ClientStreaming(handler, requests) => {
                let answer = catch(async { handler(context, requests).await.map(Some) });
                until(deadline, response, answer).await?
            }
            Prepared::ServerStreaming(handler, request) => {
                let answer = async { handler(context, request, responses).await };
                let answer = catch(async { answer.await.map(|()| None) });
                stream(deadline, response, queue, answer).await?
            }
            Prepared::Bidirectional(handler, requests) => {
                let answer = async { handler(context, requests, responses).await };
                let answer = catch(async { answer.await.map(|()| None) });
                stream(deadline, response, queue, answer).await?
            }
        };
        Ok(answer.unwrap_or_else(|panic| {
            self.shared.counters.panicked.increment();
            tracing::error!(panic = panics::message(&panic), "a handler panicked");
            Err(Status::new(Code::Internal, "the handler panicked"))
        }))
    }

    /// Answers a call whose request did not arrive in full.
    async fn not_arrived(&mut self, error: FrameError) {
        match error {
            FrameError::Read(_) => self.cut(false, Cut::Cancelled).await,
            FrameError::Wire(WireError::TooLarge { .. }) => self.refuse(status(error)).await,
            FrameError::Wire(_) => {
                self.shared.counters.malformed.increment();
                let peer = self.connection.remote_address();
                tracing::debug!(%error, %peer, "a malformed call");
                self.response.reset(CALL_MALFORMED);
            }
        }
    }

    /// Ends a call before its handler began.
    async fn refuse(&mut self, status: Status) {
        self.shared.counters.refused.increment();
        self.end(false, status).await;
    }

    async fn cut(&mut self, executed: bool, cut: Cut) {
        match cut {
            Cut::Cancelled => {
                self.shared.counters.cancelled.increment();
                self.response.reset(CALL_UNANSWERED);
            }
            Cut::Deadline => {
                self.shared.counters.deadline_exceeded.increment();
                let text = "the deadline passed at the server";
                let status = Status::new(Code::DeadlineExceeded, text);
                self.end(executed, status).await;
            }
        }
    }

    async fn end(&mut self, executed: bool, status: Status) {
        self.finish(executed, None, status).await;
    }

    async fn finish(&mut self, executed: bool, message: Option<Bytes>, status: Status) {
        let status = ResponseStatus { executed, status };
        if let Err(error) = self.response.finish(message, &status).await {
            tracing::debug!(%error, "a response was not wanted any more");
        }
    }
}

async fn read_header(frames: &mut Frames, limits: &Limits) -> Result<RequestHeader, FrameError> {
    let payload = frames.next_of(FrameType::Header).await?;
    let header = payload.ok_or(WireError::Truncated);
    let header = header.and_then(|payload| RequestHeader::read(&payload, limits));
    header.map_err(|error| frames.reject(error.into()))
}

/// Waits for a future, until the client cancels the call or the deadline passes.
async fn until<F: Future>(
    deadline: Option<Instant>,
    response: &mut Response,
    future: F,
) -> Result<F::Output, Cut> {
    tokio::select! {
        biased;
        output = future => Ok(output),
        () = response.ended() => Err(Cut::Cancelled),
        () = at(deadline) => Err(Cut::Deadline),
    }
}

/// Sends the messages that a handler queues; the response ends when the handler has returned and
/// dropped its sender.
async fn stream<F: Future>(
    deadline: Option<Instant>,
    response: &mut Response,
    queue: mpsc::Receiver<Bytes>,
    answer: F,
) -> Result<F::Output, Cut> {
    let mut answer = pin!(answer);
    let mut sending = pin!(send_all(response, queue));
    let mut passed = pin!(at(deadline));
    tokio::select! {
        biased;
        output = answer.as_mut() => tokio::select! {
            sent = sending => sent.map(|_| output),
            () = passed => Err(Cut::Deadline),
        },
        sent = sending.as_mut() => until(deadline, sent?, answer).await,
        () = passed.as_mut() => Err(Cut::Deadline),
    }
}

/// Sends all messages of a queue; returns the response when no more can come.
async fn send_all(
    response: &mut Response,
    mut queue: mpsc::Receiver<Bytes>,
) -> Result<&mut Response, Cut> {
    loop {
        tokio::select! {
            biased;
            message = queue.recv() => match message {
                // A write fails where nobody reads any more.
                Some(message) => response.message(message).await.map_err(|_| Cut::Cancelled)?,
                None => return Ok(response),
            },
            () = response.ended() => return Err(Cut::Cancelled),
        }
    }
}

/// Waits until a point in time, or for ever.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
