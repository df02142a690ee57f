//! A channel: requests to the servers behind a name.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Buf;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri, request};
use http_body::Body;
use tower_service::Service;
use weir_channel::{Attempts, Retry, ServerInfo, Servers, ServersStats};
use weir_net::{Connection, ConnectionError, Executed};

use super::protocol::Http;
use super::replay::Replay;
use crate::body::IncomingBody;
use crate::error::{BoxError, Error};

/// Sends requests to the servers behind a name: a tower service. Clones are handles to the same
/// channel.
///
/// Connections are opened ahead, and again when they are lost or drain. A request that was not sent, or
/// that a draining server refused, is sent again elsewhere, unless more than 256 KiB of its body were
/// sent; one that may have been executed only if its method is idempotent (RFC 9110, section 9.2.2).
#[derive(Clone)]
pub struct Channel {
    servers: Servers<Http>,
    origin: Arc<Origin>,
    wait_for_ready: bool,
}

/// What requests without an authority of their own are sent to.
pub(super) struct Origin {
    pub(super) authority: Authority,
}

impl Channel {
    pub(super) fn new(servers: Servers<Http>, origin: Origin, wait_for_ready: bool) -> Self {
        Self {
            servers,
            origin: Arc::new(origin),
            wait_for_ready,
        }
    }

    /// Sends a request and returns the response, as soon as its header has arrived; see
    /// [`Client::send`](crate::Client::send). A request without a scheme and an authority gets `https`
    /// and the channel's name.
    ///
    /// # Errors
    /// [`Error`], that of the last attempt.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<IncomingBody>, Error>
    where
        B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
    {
        let (mut parts, body) = request.into_parts();
        self.origin.complete(&mut parts.uri);
        let is_idempotent = parts.method.is_idempotent();
        let body = Replay::new(body);
        let mut attempts = Attempts::new(self.servers.clone());
        loop {
            let Some(attempt) = body.attempt() else {
                return Err(Error::NoServer(
                    "the body is too long to be sent again".to_owned(),
                ));
            };
            let error = match self.attempt(&mut attempts, parts.clone(), attempt).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let retry = retry(&error, is_idempotent);
            if body.attempt().is_none() || attempts.next(retry).await.is_err() {
                return Err(error);
            }
            tracing::debug!(uri = %parts.uri, %error, "a request is sent again");
        }
    }

    async fn attempt<B>(
        &self,
        attempts: &mut Attempts<Http>,
        parts: request::Parts,
        body: B,
    ) -> Result<Response<IncomingBody>, Error>
    where
        B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
    {
        let picked = attempts.pick(self.wait_for_ready).await;
        let picked = picked.map_err(|error| Error::NoServer(error.0))?;
        let opened = picked.link().open(parts).await?;
        attempts.on_sent(picked.address());
        match picked.link().exchange(opened, body).await {
            Ok(mut response) => {
                picked.on_answer();
                response.body_mut().keep(picked);
                Ok(response)
            }
            Err(error) => {
                if error.executed() == Executed::Maybe && matches!(error, Error::Connection(_)) {
                    picked.on_failure();
                }
                Err(error)
            }
        }
    }

    /// Returns the servers, in the resolver's order.
    pub fn servers(&self) -> Vec<ServerInfo> {
        self.servers.servers()
    }

    /// Returns the connections that take requests now: their paths, RTTs, and whether they began without
    /// a handshake.
    pub fn connections(&self) -> Vec<Connection> {
        let clients = self.servers.links().into_iter();
        clients.map(|client| client.connection().clone()).collect()
    }

    /// Returns the counters of the channel's connections.
    pub fn stats(&self) -> ServersStats {
        self.servers.stats()
    }

    /// Returns why the name could not be resolved last, if so; the servers of the last good answer
    /// stay.
    pub fn resolve_error(&self) -> Option<String> {
        self.servers.resolve_error()
    }
}

impl Origin {
    /// Adds what a URI lacks.
    fn complete(&self, uri: &mut Uri) {
        if uri.authority().is_some() {
            return;
        }
        let mut parts = std::mem::take(uri).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(self.authority.clone());
        parts
            .path_and_query
            .get_or_insert_with(|| PathAndQuery::from_static("/"));
        // All three are there, which is all that a URI needs.
        *uri = Uri::from_parts(parts).unwrap_or_default();
    }
}

/// Returns what a failure says about sending a request again.
fn retry(error: &Error, is_idempotent: bool) -> Retry {
    match error {
        // It waits for a server by itself.
        Error::NoServer(_) | Error::RequestHeader { .. } | Error::Body(_) => Retry::Never,
        Error::Connection(ConnectionError::Draining { .. }) => Retry::NotSent,
        error if error.executed() == Executed::No => Retry::Moved,
        Error::Connection(_) if is_idempotent => Retry::Costs,
        _ => Retry::Never,
    }
}

impl<B> Service<Request<B>> for Channel
where
    B: Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<IncomingBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    /// Always ready: a request waits for its server itself.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let channel = self.clone();
        Box::pin(async move { channel.send(request).await })
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("authority", &self.origin.authority)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use weir_net::SHUT_DOWN;

    use super::*;
    use crate::error::ErrorCode;

    fn completed(uri: &'static str) -> String {
        let origin = Origin {
            authority: Authority::from_static("kv.example:4433"),
        };
        let mut uri = Uri::from_static(uri);
        origin.complete(&mut uri);
        uri.to_string()
    }

    #[test]
    fn a_request_gets_the_name_of_its_channel() {
        assert_eq!(completed("/a?b=c"), "https://kv.example:4433/a?b=c");
        assert_eq!(completed("https://other/a"), "https://other/a");
        assert_eq!(completed("*"), "https://kv.example:4433*");
    }

    #[test]
    fn only_safe_requests_are_sent_again() {
        let draining = Error::Connection(ConnectionError::Draining {
            remote: "127.0.0.1:1".parse().unwrap(),
        });
        assert_eq!(retry(&draining, false), Retry::NotSent);
        let refused = Error::Stream(ErrorCode::REQUEST_REJECTED);
        assert_eq!(retry(&refused, false), Retry::Moved);
        let lost = Error::Connection(ConnectionError::EndpointGone);
        assert_eq!(retry(&lost, false), Retry::Never);
        assert_eq!(retry(&lost, true), Retry::Costs);
        for code in [ErrorCode::INTERNAL_ERROR, ErrorCode(SHUT_DOWN)] {
            assert_eq!(retry(&Error::Stream(code), true), Retry::Never);
        }
    }
}
