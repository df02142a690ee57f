//! Bodies of requests and responses: their errors are statuses, and they end at the deadline.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;
use weir_h3::IncomingBody;

use crate::status::{deadline_exceeded, of_request, to_status};

/// The body of a request that arrives at a server.
#[derive(Debug)]
pub struct RequestBody(pub(crate) IncomingBody);

/// The body of a response that arrives at a client. At the deadline it ends with that status, and the
/// call is given up.
///
/// The default one is empty: interceptors of tonic's clients answer with it.
#[derive(Debug, Default)]
pub struct ResponseBody {
    /// None once the deadline has passed.
    body: Option<IncomingBody>,
    deadline: Deadline,
}

/// The body of a response that a server sends. At the deadline it ends with that status.
#[derive(Debug)]
pub struct ServedBody<B> {
    /// None once it has ended.
    body: Option<B>,
    deadline: Deadline,
}

/// When a call has to be over; the timer is made when a body has to wait.
#[derive(Debug, Default)]
struct Deadline {
    at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    fn new(at: Option<Instant>) -> Self {
        Self { at, timer: None }
    }

    fn has_passed(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    /// Ready once the deadline has passed.
    fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        timer.as_mut().poll(cx)
    }
}

impl ResponseBody {
    pub(crate) fn new(body: IncomingBody, deadline: Option<Instant>) -> Self {
        Self {
            body: Some(body),
            deadline: Deadline::new(deadline),
        }
    }
}

impl<B> ServedBody<B> {
    pub(crate) fn new(body: B, deadline: Option<Instant>) -> Self {
        Self {
            body: Some(body),
            deadline: Deadline::new(deadline),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = Pin::new(&mut self.get_mut().0);
        body.poll_frame(cx).map_err(of_request)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        // A server that always has something to say has no more time than others.
        if !this.deadline.has_passed() {
            if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
                return Poll::Ready(frame.map(|frame| frame.map_err(to_status)));
            }
            ready!(this.deadline.poll_passed(cx));
        }
        // Dropped at once: the server does not know how long its client keeps the rest.
        this.body = None;
        Poll::Ready(Some(Err(deadline_exceeded())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl<B: Body + Unpin> Body for ServedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        // A handler that always has something to say has no more time than others.
        if !this.deadline.has_passed() {
            if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
                return Poll::Ready(frame);
            }
            ready!(this.deadline.poll_passed(cx));
        }
        // The handler ends here.
        this.body = None;
        let mut trailers = HeaderMap::new();
        // A status without details has no header that could be invalid.
        let _ = deadline_exceeded().add_header(&mut trailers);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}
