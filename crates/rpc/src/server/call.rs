//! One call: from its header to its status.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
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
use crate::trace::{SpanId, TraceContext};
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

/// A call whose handler is to run.
struct Ready {
    call: Call,
    header: RequestHeader,
    deadline: Option<Instant>,
    is_early_data: bool,
    prepared: Prepared,
    permit: OwnedSemaphorePermit,
}

/// Runs a call to its end.
pub(super) async fn run(
    shared: Arc<Shared>,
    connection: Connection,
    stream: (SendStream, RecvStream),
) {
    let (send, recv) = stream;
    let frames = Frames::new(recv, shared.limits);
    let call = Call {
        shared,
        connection,
        response: Response::new(send),
    };
    if let Some(ready) = call.receive(frames).await {
        // A handler may keep its thread for long, so it begins in a task that has woken no other
        // one before: what a task wakes last, such as the endpoint's driver, waits for its thread.
        tokio::spawn(ready.execute());
    }
}

impl Call {
    /// Receives the request as far as the handler takes it at once; `None` where the call has ended.
    async fn receive(mut self, mut frames: Frames) -> Option<Ready> {
        let header = match read_header(&mut frames, &self.shared.limits).await {
            Ok(header) => header,
            Err(error) => {
                self.not_arrived(error).await;
                return None;
            }
        };
        // A span beyond what the clock can count is no deadline.
        let deadline = header
            .time_left
            .and_then(|span| Instant::now().checked_add(span.into()));
        let Some(handler) = self.shared.methods.get(&header.method).cloned() else {
            self.shared.counters.unimplemented.increment();
            let text = format!("there is no method {}", header.method);
            let status = Status::new(Code::Unimplemented, text);
            self.end(false, status).await;
            return None;
        };
        let is_early_data = frames.is_early_data();
        let preparing = handler.prepare(frames);
        let prepared = match until(deadline, &mut self.response, preparing).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => {
                self.not_arrived(error).await;
                return None;
            }
            Err(cut) => {
                self.cut(false, cut).await;
                return None;
            }
        };
        let Ok(permit) = self.shared.permits.clone().try_acquire_owned() else {
            let text = format!("{} calls are running", self.shared.concurrency);
            self.refuse(Status::new(Code::ResourceExhausted, text))
                .await;
            return None;
        };
        self.shared.counters.executed.increment();
        Some(Ready {
            call: self,
            header,
            deadline,
            is_early_data,
            prepared,
            permit,
        })
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
    async fn run_handler(
        &mut self,
        prepared: Prepared,
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

impl Ready {
    /// Runs the handler, and sends what it answers.
    async fn execute(self) {
        let mut call = self.call;
        let (_ended, ending) = watch::channel(());
        let caller = TraceContext::of(&self.header.metadata);
        let trace = match &caller {
            Some(caller) => caller.child(SpanId::random(&call.shared.random)),
            None => TraceContext::root(&call.shared.random),
        };
        let span = call.span(&self.header, &trace, caller.as_ref());
        let connection = call.connection.clone();
        let context = Context::new(
            self.header,
            self.deadline,
            connection,
            self.is_early_data,
            trace,
            ending,
        );
        let running = call.run_handler(self.prepared, context.clone(), self.deadline);
        let ended = context.within(running).instrument(span).await;
        // Before the client knows, so that its next call is not refused.
        drop(self.permit);
        match ended {
            Ok(answer) => {
                let (message, mut status) = match answer {
                    Ok(message) => (message, Status::new(Code::Ok, "")),
                    Err(status) => (None, status),
                };
                status.metadata.append(context.take_trailers());
                call.finish(true, message, status).await;
            }
            Err(cut) => call.cut(true, cut).await,
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
