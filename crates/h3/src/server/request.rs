//! A request: from its header to its response.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use h3::server::RequestResolver;
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

impl Arriving {
    /// Receives the header, and has the service answer.
    pub(super) async fn run(self, service: impl HttpService) {
        let counters = &self.shared.counters;
        let limit = self.shared.settings.header_timeout;
        let resolved = timeout(limit.into(), self.resolver.resolve_request()).await;
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
        // A service may keep its thread for long, so it begins in a task that has woken no other one
        // before: what a task wakes last, such as the endpoint's driver, waits for its thread.
        tokio::spawn(ready.answer(service));
    }
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
