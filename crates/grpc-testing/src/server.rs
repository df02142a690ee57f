//! The test service as it is served: what the handlers of tonic cannot do is done around them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::GetAll;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::NamedService;
use tonic::{Status, codegen::BoxFuture};
use tower_service::Service;

use crate::first_message::{FirstMessage, Watched};
use crate::proto::test_service_server::TestServiceServer;
use crate::service::{Handlers, Running};

/// Metadata that is returned in the header of the response.
pub(crate) const ECHO_INITIAL: &str = "x-grpc-test-echo-initial";
/// Metadata that is returned in the trailers of the response.
pub(crate) const ECHO_TRAILING: &str = "x-grpc-test-echo-trailing-bin";

/// The largest message, in bytes, that it takes and sends.
const MAX_MESSAGE: usize = 64 << 20;

/// `grpc.testing.TestService`, for tonic's routes.
#[derive(Clone, Debug)]
pub struct TestServer {
    service: TestServiceServer<Handlers>,
    running: Running,
}

impl Default for TestServer {
    fn default() -> Self {
        let handlers = Handlers::default();
        let running = handlers.running().clone();
        let service = TestServiceServer::new(handlers)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        Self { service, running }
    }
}

impl TestServer {
    /// Returns what counts the calls that run.
    pub fn running(&self) -> &Running {
        &self.running
    }
}

impl NamedService for TestServer {
    const NAME: &'static str = TestServiceServer::<Handlers>::NAME;
}

impl Service<Request<Body>> for TestServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let initial = values(request.headers().get_all(ECHO_INITIAL));
        let trailing = values(request.headers().get_all(ECHO_TRAILING));
        let first = FirstMessage::default();
        request.extensions_mut().insert(first.clone());
        let request = request.map(|body| Watched::new(body, first));
        let answer = self.service.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            let headers = response.headers_mut();
            append(headers, ECHO_INITIAL, initial);
            if headers.contains_key(Status::GRPC_STATUS) {
                append(headers, ECHO_TRAILING, trailing);
                return Ok(response);
            }
            Ok(response.map(|body| Body::new(WithTrailing { body, trailing })))
        })
    }
}

fn values(values: GetAll<'_, HeaderValue>) -> Vec<HeaderValue> {
    values.into_iter().cloned().collect()
}

fn append(headers: &mut HeaderMap, name: &'static str, values: Vec<HeaderValue>) {
    for value in values {
        headers.append(name, value);
    }
}

/// A response body whose trailers get further metadata.
struct WithTrailing {
    body: Body,
    trailing: Vec<HeaderValue>,
}

impl HttpBody for WithTrailing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let mut frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            append(trailers, ECHO_TRAILING, std::mem::take(&mut this.trailing));
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
