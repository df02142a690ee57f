//! Panics of handlers.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The payload of a panic.
pub(super) type Panic = Box<dyn Any + Send>;

/// Runs a future; returns its panic, if it panics. The future is not polled again then.
pub(super) async fn catch<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

/// Returns a panic's message, if it has one.
pub(super) fn message(panic: &Panic) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(string).unwrap_or("no message")
}
