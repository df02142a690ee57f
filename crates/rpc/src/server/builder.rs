//! Configuration of a server.

use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Semaphore;
use weir_channel::{NoRandomness, Random};

use super::handler::{Handler, Methods};
use super::stats::Counters;
use super::{Context, RequestReceiver, ResponseSender, Server, Shared};
use crate::status::Status;
use crate::wire::{Limits, is_method};

/// Handlers that run at once by default.
const CONCURRENCY: usize = 10_000;

/// Why a server cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// A method's name is none.
    #[error("{0:?} is no method: names are 1 to 255 printable ASCII characters without space")]
    Method(String),
    /// Two methods have the same name.
    #[error("there are two methods {0:?}")]
    Duplicate(String),
    /// The system returns no random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// Builds a server: [`Server::builder`] begins, [`ServerBuilder::build`] ends.
#[must_use = "nothing happens before `build`"]
pub struct ServerBuilder {
    methods: Vec<(String, Handler)>,
    limits: Limits,
    concurrency: usize,
}

impl Server {
    /// Returns a builder without methods.
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            methods: Vec::new(),
            limits: Limits::default(),
            concurrency: CONCURRENCY,
        }
    }
}

impl ServerBuilder {
    /// Adds a method with one request and one response.
    ///
    /// A handler runs in a task of its own. It is dropped when the client cancels the call, and at
    /// the call's deadline; a panic answers the call with [`Code::Internal`](crate::Code::Internal).
    pub fn method<Answer, Body>(
        self,
        name: impl Into<String>,
        handler: impl Fn(Context, Bytes) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Result<Body, Status>> + Send + 'static,
        Body: Into<Bytes>,
    {
        self.add(
            name,
            Handler::Unary(Arc::new(move |context, request| {
                let answer = handler(context, request);
                Box::pin(async move { answer.await.map(Into::into) })
            })),
        )
    }

    /// Adds a method with a stream of requests and one response; otherwise as
    /// [`ServerBuilder::method`].
    pub fn client_streaming<Answer, Body>(
        self,
        name: impl Into<String>,
        handler: impl Fn(Context, RequestReceiver) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Result<Body, Status>> + Send + 'static,
        Body: Into<Bytes>,
    {
        self.add(
            name,
            Handler::ClientStreaming(Arc::new(move |context, requests| {
                let answer = handler(context, requests);
                Box::pin(async move { answer.await.map(Into::into) })
            })),
        )
    }

    /// Adds a method with one request and a stream of responses; otherwise as
    /// [`ServerBuilder::method`].
    pub fn server_streaming<Answer>(
        self,
        name: impl Into<String>,
        handler: impl Fn(Context, Bytes, ResponseSender) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Result<(), Status>> + Send + 'static,
    {
        self.add(
            name,
            Handler::ServerStreaming(Arc::new(move |context, request, responses| {
                Box::pin(handler(context, request, responses))
            })),
        )
    }

    /// Adds a method with streams of requests and responses, which are independent; otherwise as
    /// [`ServerBuilder::method`].
    pub fn bidirectional<Answer>(
        self,
        name: impl Into<String>,
        handler: impl Fn(Context, RequestReceiver, ResponseSender) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Result<(), Status>> + Send + 'static,
    {
        self.add(
            name,
            Handler::Bidirectional(Arc::new(move |context, requests, responses| {
                Box::pin(handler(context, requests, responses))
            })),
        )
    }

    /// Sets how many handlers run at once, 10,000 by default. Further calls are refused with
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) before their handlers begin, so
    /// that channels make them again, elsewhere first.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Sets the sizes of headers and messages that the server takes.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Builds the server.
    ///
    /// # Errors
    /// [`ServerError`] where a method's name is none, or occurs twice.
    pub fn build(self) -> Result<Server, ServerError> {
        let mut methods = Methods::default();
        for (name, handler) in self.methods {
            if !is_method(&name) {
                return Err(ServerError::Method(name));
            }
            if methods.insert(name.clone(), handler).is_some() {
                return Err(ServerError::Duplicate(name));
            }
        }
        Ok(Server {
            shared: Arc::new(Shared {
                methods,
                limits: self.limits,
                permits: Arc::new(Semaphore::new(self.concurrency)),
                concurrency: self.concurrency,
                counters: Counters::default(),
                endpoints: Mutex::new(Some(Vec::new())),
                random: Random::new()?,
            }),
        })
    }

    fn add(mut self, name: impl Into<String>, handler: Handler) -> Self {
        self.methods.push((name.into(), handler));
        self
    }
}
