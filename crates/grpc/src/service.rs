//! Tonic's routes as a service of HTTP/3.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tokio::time::{Instant, timeout_at};
use tonic::transport::server::TcpConnectInfo;
use tower_service::Service;
use weir_h3::{IncomingBody, Peer, ResponseDeadline};

use crate::body::{RequestBody, ServedBody};
use crate::status::deadline_exceeded;
use crate::timeout;

/// A gRPC service, such as tonic's routes, as a service of [`weir_h3::Server`]: errors of a request's
/// body are statuses, deadlines are kept, and `tonic::Request::remote_addr` is the client's address.
#[derive(Clone, Debug)]
pub struct GrpcService<S> {
    service: S,
    /// The longest time for a call.
    timeout: Option<Duration>,
}

impl<S> GrpcService<S> {
    /// Wraps a service.
    pub fn new(service: S) -> Self {
        Self {
            service,
            timeout: None,
        }
    }

    /// Sets how long a call may take, whatever its client allows.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl<S, B> Service<Request<IncomingBody>> for GrpcService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: Body + Default + Unpin + Send + 'static,
{
    type Response = Response<ServedBody<B>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<IncomingBody>) -> Self::Future {
        if let Some(peer) = request.extensions().get::<Peer>() {
            let remote_addr = Some(peer.address());
            request.extensions_mut().insert(TcpConnectInfo {
                local_addr: None,
                remote_addr,
            });
        }
        let allowed = timeout::read(request.headers()).into_iter();
        let allowed = allowed.chain(self.timeout).min();
        // A time beyond what the clock can count is none.
        let deadline = allowed.and_then(|allowed| Instant::now().checked_add(allowed));
        let answer = self.service.call(request.map(RequestBody));
        Box::pin(async move {
            let answered = match deadline {
                Some(deadline) => timeout_at(deadline, answer).await,
                None => Ok(answer.await),
            };
            let mut response = match answered {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_) => deadline_exceeded().into_http(),
            };
            if let Some(deadline) = deadline {
                // Where the client takes nothing, the body does not see its deadline.
                let deadline = ResponseDeadline(deadline);
                response.extensions_mut().insert(deadline);
            }
            Ok(response.map(|body| ServedBody::new(body, deadline)))
        })
    }
}
