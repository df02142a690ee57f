//! What tonic's clients make their calls on.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tower_service::Service;
use weir_h3::{BoxError, ChannelError};
use weir_net::tls::{ClientTls, TlsError};
use weir_net::{Duration, Endpoint, EndpointError};

use crate::APPLICATION_PROTOCOL;
use crate::body::ResponseBody;
use crate::status::{deadline_exceeded, to_status};
use crate::timeout;

/// A channel for tonic's generated clients: `GreeterClient::new(channel)`. Clones are handles to the
/// same channel.
///
/// It is a [`weir_h3::Channel`] (names, several servers, balancing, retries of refused calls) with gRPC's
/// deadlines and statuses.
#[derive(Clone, Debug)]
pub struct Channel {
    http: weir_h3::Channel,
    timeout: Option<std::time::Duration>,
}

/// Why a channel cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The TLS configuration is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No socket can be bound, or there is no tokio runtime.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The name is none.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl Channel {
    /// Makes a channel to the servers behind a name and port, as in `greeter.example:50051`, from a
    /// socket of its own; the TLS configuration gets HTTP/3 as its only application protocol.
    ///
    /// # Errors
    /// [`ConnectError`]; a server that cannot be reached is none: calls report it.
    pub fn connect(name: impl Into<String>, tls: ClientTls) -> Result<Self, ConnectError> {
        let tls = tls.application_protocols([APPLICATION_PROTOCOL]).build()?;
        let any = SocketAddr::from(([0u16; 8], 0));
        let endpoint = Endpoint::builder().client(tls).bind(any)?;
        Ok(weir_h3::Channel::builder(name).connect(&endpoint)?.into())
    }

    /// Sets how long a call may take that sets no shorter time itself
    /// (`tonic::Request::set_timeout`); no limit by default.
    pub fn timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.timeout = Some(timeout.into().into());
        self
    }

    /// Returns the channel below: its servers, and their connections.
    pub fn http(&self) -> &weir_h3::Channel {
        &self.http
    }
}

impl From<weir_h3::Channel> for Channel {
    fn from(http: weir_h3::Channel) -> Self {
        Self {
            http,
            timeout: None,
        }
    }
}

impl<B> Service<Request<B>> for Channel
where
    B: Body<Data: bytes::Buf + Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    /// Always ready: a call waits for its server itself.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let asked = timeout::read(request.headers());
        let allowed = asked.into_iter().chain(self.timeout).min();
        if let Some(allowed) = allowed
            && asked != Some(allowed)
        {
            timeout::write(request.headers_mut(), allowed);
        }
        // A time beyond what the clock can count is none.
        let deadline = allowed.and_then(|allowed| Instant::now().checked_add(allowed));
        let http = self.http.clone();
        Box::pin(async move {
            let sending = http.send(request);
            let answered = match deadline {
                // What is dropped is given up: H3_REQUEST_CANCELLED.
                Some(deadline) => match timeout_at(deadline, sending).await {
                    Ok(answered) => answered,
                    Err(_) => return Err(deadline_exceeded()),
                },
                None => sending.await,
            };
            let response = answered.map_err(|error| match deadline {
                // The server may have given the call up a little earlier than our timer.
                Some(deadline) if Instant::now() >= deadline => deadline_exceeded(),
                _ => to_status(error),
            })?;
            Ok(response.map(|body| ResponseBody::new(body, deadline)))
        })
    }
}
