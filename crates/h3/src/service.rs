//! What answers requests.

use bytes::Buf;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::IncomingBody;
use crate::error::BoxError;

/// A tower service that answers requests, such as an axum router or tonic's routes. Every [`Service`]
/// from requests to responses is one, if it can be cloned.
pub trait HttpService: Clone + Send + 'static {
    /// The body of a response.
    type ResponseBody: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static;

    /// Answers a request.
    fn answer(
        self,
        request: Request<IncomingBody>,
    ) -> impl Future<Output = Result<Response<Self::ResponseBody>, BoxError>> + Send;
}

impl<S, B> HttpService for S
where
    S: Service<Request<IncomingBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
{
    type ResponseBody = B;

    async fn answer(mut self, request: Request<IncomingBody>) -> Result<Response<B>, BoxError> {
        std::future::poll_fn(|cx| self.poll_ready(cx))
            .await
            .map_err(Into::into)?;
        self.call(request).await.map_err(Into::into)
    }
}
