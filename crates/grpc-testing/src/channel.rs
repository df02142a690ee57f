//! What the cases need of a channel.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::StdError;
use tower_service::Service;

use crate::first_message::{FirstMessage, Watched};

/// A channel on which tonic's generated clients make calls, such as `tonic::transport::Channel`.
pub trait TestChannel:
    GrpcService<
        Body,
        Future: Send + 'static,
        Error: Into<StdError>,
        ResponseBody: HttpBody<Data = Bytes, Error: Into<StdError> + Send> + Send + Unpin + 'static,
    > + Clone
    + Send
    + 'static
{
}

impl<T> TestChannel for T where
    T: GrpcService<
            Body,
            Future: Send + 'static,
            Error: Into<StdError>,
            ResponseBody: HttpBody<Data = Bytes, Error: Into<StdError> + Send>
                              + Send
                              + Unpin
                              + 'static,
        > + Clone
        + Send
        + 'static
{
}

/// A channel that notes whether the first message of the last response was compressed.
#[derive(Clone)]
pub(crate) struct WatchedChannel<T> {
    channel: T,
    last: Arc<Mutex<FirstMessage>>,
}

impl<T> WatchedChannel<T> {
    pub(crate) fn new(channel: T) -> Self {
        Self {
            channel,
            last: Arc::default(),
        }
    }

    /// Whether the last response was compressed; `None` where it had no message.
    pub(crate) fn was_compressed(&self) -> Option<bool> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_compressed()
    }
}

impl<T: TestChannel> Service<Request<Body>> for WatchedChannel<T> {
    type Response = Response<Watched<T::ResponseBody>>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, T::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        self.channel.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let first = FirstMessage::default();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = first.clone();
        let answer = self.channel.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| Watched::new(body, first))) })
    }
}
