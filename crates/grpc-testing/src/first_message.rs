//! Whether the first message of a body is compressed, which tonic does not tell.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};

/// Whether the first message of a body is compressed; known as soon as it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstMessage(Arc<OnceLock<bool>>);

impl FirstMessage {
    /// `None` as long as no message has begun.
    pub(crate) fn is_compressed(&self) -> Option<bool> {
        self.0.get().copied()
    }
}

/// A body whose first message is watched.
pub(crate) struct Watched<B> {
    body: B,
    first: FirstMessage,
}

impl<B> Watched<B> {
    pub(crate) fn new(body: B, first: FirstMessage) -> Self {
        Self { body, first }
    }
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && let Some(flag) = data.chunk().first()
        {
            // The first byte of a message says whether it is compressed; only the first one counts.
            let _ = this.first.0.set(*flag == 1);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
