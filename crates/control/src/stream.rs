//! A channel as a stream for gRPC.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::Stream;

/// The stream of a channel's messages; it ends when the last sender is dropped.
#[derive(Debug)]
pub(crate) struct Received<T>(pub(crate) mpsc::Receiver<T>);

impl<T> Stream for Received<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().0.poll_recv(context)
    }
}

/// The same for messages in boxes. A channel has room for 32 of them from the start, and thousands of channels are
/// mostly empty.
#[derive(Debug)]
pub(crate) struct ReceivedBoxes<T>(pub(crate) mpsc::Receiver<Box<T>>);

impl<T> Stream for ReceivedBoxes<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let next = self.get_mut().0.poll_recv(context);
        next.map(|message| message.map(|message| *message))
    }
}
