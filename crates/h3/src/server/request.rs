//! A request: from its header to its response.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use h3::error::StreamError;
use h3::frame::FrameStreamError;
use h3::proto::frame::{Frame, PayloadLen};
use h3::server::{RequestResolver, RequestStream};
use http::{Method, Request};
use tokio::time::timeout;
use weir_net::{Connection, StopNotice};

use super::Shared;
use super::respond::{Sender, respond};
use super::stats::Counters;
use crate::body::IncomingBody;
use crate::error::ErrorCode;
use crate::fields::is_malformed;
use crate::peer::Peer;
use crate::quic::{BidiStream, Exchange, Quic};
use crate::service::HttpService;

/// A request whose header is to arrive.
pub(super) struct Arriving {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Connection,
    pub(super) resolver: RequestResolver<Quic, Bytes>,
    pub(super) exchange: Arc<Exchange>,
    pub(super) notice: StopNotice,
}

/// A request that the service is to answer.
struct Ready {
    shared: Arc<Shared>,
    request: Request<IncomingBody>,
    send: Sender,
    notice: StopNotice,
}

/// The first frame of a request: its header, if the client keeps the rules.
type Header = Result<Option<Frame<PayloadLen>>, FrameStreamError>;

/// A request, and the stream that carries its body and its response.
type Resolved = (Request<()>, RequestStream<BidiStream, Bytes>);

/// Runs a request's future in a task. What a task runs is moved several times; the pointer to it is small.
pub(super) fn spawn(answering: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(Box::pin(answering));
}

impl Arriving {
    /// Receives the header.
    pub(super) fn poll_header(&mut self, cx: &mut Context<'_>) -> Poll<Header> {
        self.resolver.frame_stream.poll_next(cx)
    }

    /// Waits for the header, and has the service answer.
    pub(super) async fn receive(mut self, service: impl HttpService) {
        let limit = self.shared.settings.header_timeout;
        let header = poll_fn(|cx| self.poll_header(cx));
        let Ok(header) = timeout(limit.into(), header).await else {
            Counters::add(&self.shared.counters.malformed);
            return;
        };
        // A service may keep its thread for long, so it begins in a task that has woken no other one
        // before: what a task wakes last, such as the endpoint's driver, waits for its thread.
        spawn(self.answer(header, service));
    }

    /// Has the service answer the request whose header has arrived.
    pub(super) async fn answer(self, header: Header, service: impl HttpService) {
        let limit = self.shared.settings.header_timeout;
        let resolved = timeout(limit.into(), resolve(self.resolver, header)).await;
        let counters = &self.shared.counters;
        let (request, mut stream) = match resolved {
            Ok(Ok(resolved)) => resolved,
            Ok(Err(error)) => {
                Counters::add(&counters.malformed);
                tracing::debug!(%error, peer = %self.connection.remote_address(), "no request");
                return;
            }
            Err(_) => {
                Counters::add(&counters.malformed);
                return;
            }
        };
        self.exchange.set_awaited(false);
        Counters::add(&counters.requests);
        if is_malformed(request.headers()) || has_wrong_target(&request) {
            Counters::add(&counters.malformed);
            stream.stop_sending(ErrorCode::MESSAGE_ERROR.0.into());
            stream.stop_stream(ErrorCode::MESSAGE_ERROR.0.into());
            return;
        }
        let ready = Ready::new(self.shared, self.connection, request, stream, self.notice);
        ready.answer(service).await;
    }
}

/// Decodes a header. One that is too large is answered, which may wait.
async fn resolve(
    resolver: RequestResolver<Quic, Bytes>,
    header: Header,
) -> Result<Resolved, StreamError> {
    resolver.accept_with_frame(header)?.resolve().await
}

/// Whether the request is a CONNECT with more than an authority (RFC 9114, section 4.4).
fn has_wrong_target(request: &Request<()>) -> bool {
    request.method() == Method::CONNECT && request.uri().path_and_query().is_some()
}

impl Ready {
    fn new(
        shared: Arc<Shared>,
        connection: Connection,
        request: Request<()>,
        stream: h3::server::RequestStream<BidiStream, Bytes>,
        notice: StopNotice,
    ) -> Self {
        let (send, recv) = stream.split();
        let (mut parts, ()) = request.into_parts();
        parts.extensions.insert(Peer::new(connection.clone()));
        let body = IncomingBody::of_request(recv, connection, &parts.headers);
        Self {
            shared,
            request: Request::from_parts(parts, body),
            send,
            notice,
        }
    }

    /// Answers the request. A panic, of the service or of its response's body, ends nothing else.
    async fn answer(mut self, service: impl HttpService) {
        let counters = &self.shared.counters;
        let _running = counters.run();
        let answering = async {
            let answered = tokio::select! {
                biased;
                answered = service.answer(self.request) => answered,
                _ = &mut self.notice => {
                    Counters::add(&counters.cancelled);
                    return;
                }
            };
            respond(counters, &mut self.send, self.notice, answered).await;
        };
        if AssertUnwindSafe(answering).catch_unwind().await.is_err() {
            // The panic hook has told its message. The stream is reset when it is dropped.
            Counters::add(&counters.panicked);
            tracing::error!("a service panicked");
        }
    }
}
