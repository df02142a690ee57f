//! A request over TCP: from its header to its response.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use futures_util::FutureExt;
use http::header::{ALT_SVC, CONNECTION};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::watch;

use super::Inner;
use super::drain::Follower;
use super::request::{NoHost, complete};
use crate::body::IncomingBody;
use crate::error::BoxError;
use crate::peer::Peer;
use crate::server::stats::Counters;
use crate::service::HttpService;

/// What the requests of a connection share.
#[derive(Clone)]
pub(super) struct Exchange<S> {
    service: S,
    connection: Arc<Shared>,
}

struct Shared {
    inner: Arc<Inner>,
    peer: Peer,
    running: watch::Sender<usize>,
    follower: Follower,
}

impl<S: HttpService> Exchange<S> {
    pub(super) fn new(
        inner: &Arc<Inner>,
        service: S,
        peer: Peer,
        running: watch::Sender<usize>,
        follower: Follower,
    ) -> Self {
        Self {
            service,
            connection: Arc::new(Shared {
                inner: inner.clone(),
                peer,
                running,
                follower,
            }),
        }
    }

    /// Has the service answer a request. An error ends the request's stream or connection.
    pub(super) async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<ServedBody<S::ResponseBody>>, BoxError> {
        let connection = self.connection;
        let mut running = Running::begin(connection.clone());
        let counters = &connection.inner.http3.shared.counters;
        Counters::add(&counters.requests);
        let version = request.version();
        let (mut parts, body) = request.into_parts();
        let answered = match complete(&mut parts) {
            Ok(()) => {
                parts.extensions.insert(connection.peer.clone());
                let request = Request::from_parts(parts, IncomingBody::of_tcp(body));
                AssertUnwindSafe(self.service.answer(request))
                    .catch_unwind()
                    .await
            }
            Err(NoHost) => {
                Counters::add(&counters.malformed);
                running.is_answered = true;
                return Ok(connection.complete(version, StatusCode::BAD_REQUEST, running));
            }
        };
        running.is_answered = true;
        match answered {
            Ok(Ok(response)) => {
                let response = response.map(|body| ServedBody::new(Some(body), running));
                Ok(connection.mark(version, response))
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "a service failed");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Ok(connection.complete(version, status, running))
            }
            Err(_) => {
                // The panic hook has told its message.
                Counters::add(&counters.panicked);
                tracing::error!("a service panicked");
                Err("the service panicked".into())
            }
        }
    }
}

impl Shared {
    /// A response without a body.
    fn complete<B: Body>(
        &self,
        version: Version,
        status: StatusCode,
        running: Running,
    ) -> Response<ServedBody<B>> {
        let mut response = Response::new(ServedBody::new(None, running));
        *response.status_mut() = status;
        self.mark(version, response)
    }

    /// Adds the fields that tell of HTTP/3, and that the connection ends.
    fn mark<B>(&self, version: Version, mut response: Response<B>) -> Response<B> {
        let headers = response.headers_mut();
        if let Some(value) = &self.inner.settings.alt_svc
            && !headers.contains_key(ALT_SVC)
        {
            headers.insert(ALT_SVC, value.clone());
        }
        if version < Version::HTTP_2 && self.follower.is_draining() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Counts a request for as long as it runs.
struct Running {
    connection: Arc<Shared>,
    is_answered: bool,
}

impl Running {
    fn begin(connection: Arc<Shared>) -> Self {
        connection.running.send_modify(|running| *running += 1);
        Self {
            connection,
            is_answered: false,
        }
    }

    fn counters(&self) -> &Counters {
        &self.connection.inner.http3.shared.counters
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_answered {
            Counters::add(&self.counters().cancelled);
        }
        self.connection.running.send_modify(|running| *running -= 1);
    }
}

/// The body of a response; its request runs until it is dropped.
pub(super) struct ServedBody<B> {
    body: Option<Pin<Box<B>>>,
    running: Running,
}

impl<B: Body> ServedBody<B> {
    fn new(body: Option<B>, running: Running) -> Self {
        let body = body.map(Box::pin);
        Self { body, running }
    }
}

impl<B> Body for ServedBody<B>
where
    B: Body<Data: Buf, Error: Into<BoxError>>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let served = self.get_mut();
        let Some(body) = &mut served.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(body.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                let error = error.into();
                Counters::add(&served.running.counters().failed);
                tracing::warn!(%error, "the body of a response failed");
                error
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), |body| body.size_hint())
    }
}
