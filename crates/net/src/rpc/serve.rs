//! Serves all calls of a connection, each in a task of its own.
//!
//! A handler may keep its thread for long. So it begins in a poll that has woken no other task before, as
//! the first one of a task: no thread but tokio's own worker takes over what that has woken last, nor
//! what yields there, and this may be the endpoint's driver.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use weir_units::ByteSize;

use super::{CALL_FAILED, DEFAULT_SIZE_LIMIT, Refusal, Request, Responder, Response};
use crate::connection::Connection;
use crate::dcquic::Shared;
use crate::error::ConnectionError;

/// Options of [`Connection::serve`].
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// The largest accepted request. The transport's `max_bidirectional_streams` limits the number
    /// of concurrent calls.
    pub request_limit: ByteSize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            request_limit: DEFAULT_SIZE_LIMIT,
        }
    }
}

impl Connection {
    /// Answers the peer's calls with `handler` until the connection ends; returns the reason.
    ///
    /// Each call runs in a task of its own, on the runtime of the caller: one that waits or computes
    /// does not hold up others while the runtime has a free thread. Where the handler panics, its call
    /// fails with [`CallError::Failed`](crate::CallError::Failed), and all others go on;
    /// [`EndpointStats::calls_failed`](crate::EndpointStats::calls_failed) counts them.
    ///
    /// A handler returns `Bytes`, what they are made of, or a [`Response`] of several pieces.
    pub async fn serve<Handler, Answer, Reply>(
        &self,
        options: ServeOptions,
        handler: Handler,
    ) -> ConnectionError
    where
        Handler: Fn(Request) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Reply, Refusal>> + Send + 'static,
        Reply: Into<Response> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let limit = options.request_limit;
        loop {
            let mut incoming = match self.accept_call().await {
                Ok(incoming) => incoming,
                Err(error) => return error,
            };
            let shared = self.handle.connection.shared.clone();
            let handler = handler.clone();
            // Most requests have arrived in full by now.
            match poll_fn(|cx| Poll::Ready(incoming.poll_body(cx, limit))).await {
                Poll::Ready(Ok(body)) => {
                    let (request, responder) = incoming.with_body(body);
                    tokio::spawn(answer(request, responder, handler, shared));
                }
                Poll::Ready(Err(error)) => tracing::debug!(%error, "a call did not arrive"),
                Poll::Pending => {
                    tokio::spawn(async move {
                        match incoming.request(limit).await {
                            Ok((request, responder)) => {
                                tokio::spawn(answer(request, responder, handler, shared));
                            }
                            Err(error) => tracing::debug!(%error, "a call did not arrive"),
                        }
                    });
                }
            }
        }
    }
}

async fn answer<Handler, Answer, Reply>(
    request: Request,
    mut responder: Responder,
    handler: Arc<Handler>,
    shared: Arc<Shared>,
) where
    Handler: Fn(Request) -> Answer,
    Answer: Future<Output = Result<Reply, Refusal>>,
    Reply: Into<Response>,
{
    match execute(request, &mut responder, &*handler).await {
        Ok(Some(Ok(response))) => {
            if let Err(error) = responder.respond(response).await {
                tracing::debug!(%error, "a response was not wanted any more");
            }
        }
        Ok(Some(Err(Refusal(code)))) => responder.refuse(code),
        Ok(None) => tracing::debug!("a call was cancelled"),
        Err(panic) => {
            shared.counters.failed_calls.fetch_add(1, Ordering::Relaxed);
            responder.refuse(CALL_FAILED);
            tracing::error!(
                message = message_of(&*panic),
                "the handler of a call panicked"
            );
        }
    }
}

/// Returns the handler's answer, or its panic; `None` where the client does not wait any more.
async fn execute<Handler, Answer, Reply>(
    request: Request,
    responder: &mut Responder,
    handler: &Handler,
) -> Result<Option<Result<Reply, Refusal>>, Box<dyn Any + Send>>
where
    Handler: Fn(Request) -> Answer,
    Answer: Future<Output = Result<Reply, Refusal>>,
{
    // After a panic nothing is left of the call but its responder, which the handler does not see.
    let answer = catch_unwind(AssertUnwindSafe(|| handler(request)))?;
    let mut answer = pin!(answer);
    let mut cancelled = pin!(responder.cancelled());
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Ready(result)) => Poll::Ready(Ok(Some(result))),
            Ok(Poll::Pending) => cancelled.as_mut().poll(cx).map(|()| Ok(None)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// Returns the words of a panic.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}
