//! A queue as the stream that gRPC sends.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::Stream;

/// What comes out of a channel; it ends when the last sender is gone.
#[derive(Debug)]
pub(crate) struct Received<T>(pub(crate) mpsc::Receiver<T>);

impl<T> Stream for Received<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().0.poll_recv(context)
    }
}
