//! Serves all calls of a connection.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use weir_units::ByteSize;

use super::{DEFAULT_SIZE_LIMIT, IncomingCall, Refusal, Request};
use crate::connection::Connection;
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
    /// A call runs in this task until its handler has to wait, and in a task of its own from then
    /// on: short handlers cost no task.
    pub async fn serve<Handler, Answer>(
        &self,
        options: ServeOptions,
        handler: Handler,
    ) -> ConnectionError
    where
        Handler: Fn(Request) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Bytes, Refusal>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        loop {
            let incoming = match self.accept_call().await {
                Ok(incoming) => incoming,
                Err(error) => return error,
            };
            let mut call = Box::pin(answer(incoming, options, handler.clone()));
            if poll_once(call.as_mut()).await.is_pending() {
                tokio::spawn(call);
            }
        }
    }
}

async fn answer<Handler, Answer>(
    incoming: IncomingCall,
    options: ServeOptions,
    handler: Arc<Handler>,
) where
    Handler: Fn(Request) -> Answer,
    Answer: Future<Output = Result<Bytes, Refusal>>,
{
    let (request, mut responder) = match incoming.request(options.request_limit).await {
        Ok(arrived) => arrived,
        Err(error) => return tracing::debug!(%error, "a call did not arrive"),
    };
    let answered = {
        let mut answer = std::pin::pin!(handler(request));
        let mut cancelled = std::pin::pin!(responder.cancelled());
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => cancelled.as_mut().poll(cx).map(|()| None),
        })
        .await
    };
    match answered {
        Some(Ok(response)) => {
            if let Err(error) = responder.respond(response).await {
                tracing::debug!(%error, "a response was not wanted any more");
            }
        }
        Some(Err(Refusal(code))) => responder.refuse(code),
        None => tracing::debug!("a call was cancelled"),
    }
}

async fn poll_once(mut future: Pin<&mut (impl Future<Output = ()> + ?Sized)>) -> Poll<()> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}
