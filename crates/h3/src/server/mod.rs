//! A server: requests to a tower service, such as an axum router.

mod connection;
mod control;
#[cfg(feature = "http2")]
mod https;
mod request;
mod respond;
mod stats;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use weir_net::{Connection, DeadlinePassed, Duration, Endpoint, SHUT_DOWN};

use crate::error::Error;
use crate::service::HttpService;

#[cfg(feature = "http2")]
pub use https::{BindError, HttpsServer, HttpsServerBuilder, TcpStats};
pub use respond::ResponseDeadline;
use stats::Counters;
pub use stats::ServerStats;

/// The most header fields of a request, in bytes as RFC 9114, section 4.2.2, counts them.
const MAX_HEADER_SIZE: u64 = 64 * 1024;
/// How long a request's header may take to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long connections may take to tell their peers that the server shuts down.
const TELLING: Duration = Duration::from_millis(500);

/// Answers requests. Clones are handles to the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// Builds a [`Server`].
#[must_use = "nothing happens before `build`"]
#[derive(Clone, Copy, Debug)]
pub struct ServerBuilder {
    settings: Settings,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    max_header_size: u64,
    header_timeout: Duration,
}

struct Shared {
    settings: Settings,
    counters: Counters,
    /// The endpoints being served; none once the server is shut down.
    endpoints: Mutex<Option<Vec<Endpoint>>>,
    /// Whether the server shuts down. Each connection holds a receiver until it has told its peer.
    leaving: watch::Sender<bool>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            settings: Settings {
                max_header_size: MAX_HEADER_SIZE,
                header_timeout: HEADER_TIMEOUT,
            },
        }
    }
}

impl ServerBuilder {
    /// Sets the largest header, and the largest trailers, of a request, in bytes as RFC 9114, section
    /// 4.2.2, counts them: 64 KiB by default. A larger one is answered with status 431, or reset with
    /// `H3_EXCESSIVE_LOAD`.
    pub fn max_header_size(mut self, bytes: u32) -> Self {
        self.settings.max_header_size = bytes.into();
        self
    }

    /// Sets how long a request's header may take to arrive; 10 s by default.
    pub fn header_timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.settings.header_timeout = timeout.into();
        self
    }

    /// Builds the server.
    pub fn build(self) -> Server {
        Server {
            shared: Arc::new(Shared {
                settings: self.settings,
                counters: Counters::default(),
                endpoints: Mutex::new(Some(Vec::new())),
                leaving: watch::Sender::new(false),
            }),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Server {
    /// Returns a builder.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Accepts an endpoint's connections and answers their requests, until the endpoint or this server
    /// is shut down. The endpoint's TLS configuration has to accept
    /// [`APPLICATION_PROTOCOL`](crate::APPLICATION_PROTOCOL).
    ///
    /// Each request is a task. A client that gives a request up ends its task.
    pub async fn serve(&self, endpoint: &Endpoint, service: impl HttpService) {
        if !self.add(endpoint) {
            endpoint.close(SHUT_DOWN, b"the server was shut down before");
            return;
        }
        while let Some(connecting) = endpoint.accept().await {
            let (server, service) = (self.clone(), service.clone());
            tokio::spawn(async move {
                let remote = connecting.remote_address();
                match connecting.await {
                    Ok(connection) => {
                        let error = server.serve_connection(&connection, service).await;
                        tracing::debug!(%remote, %error, "a connection ended");
                    }
                    Err(error) => tracing::debug!(%remote, %error, "no connection"),
                }
            });
        }
    }

    /// Answers the requests of one connection until it ends; returns the reason.
    pub async fn serve_connection(
        &self,
        connection: &Connection,
        service: impl HttpService,
    ) -> Error {
        connection::serve(&self.shared, connection, service).await
    }

    /// Drains the endpoints being served: new connections and requests are refused before they are
    /// executed, so that clients make them elsewhere (GOAWAY); running requests get up to `limit` to
    /// end; then the endpoints are shut down.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where requests had to be given up.
    pub async fn shutdown(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        let end = Instant::now().checked_add(limit.into().into());
        let endpoints = self.endpoints().take().unwrap_or_default();
        for endpoint in &endpoints {
            endpoint.refuse_new();
        }
        self.shared.leaving.send_replace(true);
        let _ = timeout(TELLING.into(), self.shared.leaving.closed()).await;
        let left = end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now()).into()
        });
        let mut shutdowns = JoinSet::new();
        for endpoint in endpoints {
            shutdowns.spawn(async move { endpoint.shutdown(left).await });
        }
        shutdowns.join_all().await.into_iter().collect()
    }

    /// Returns the counters.
    pub fn stats(&self) -> ServerStats {
        self.shared.counters.stats()
    }

    /// Remembers an endpoint for [`Server::shutdown`]; `false` where that was called before.
    fn add(&self, endpoint: &Endpoint) -> bool {
        match &mut *self.endpoints() {
            Some(endpoints) => {
                endpoints.push(endpoint.clone());
                true
            }
            None => false,
        }
    }

    fn endpoints(&self) -> MutexGuard<'_, Option<Vec<Endpoint>>> {
        let endpoints = self.shared.endpoints.lock();
        endpoints.unwrap_or_else(PoisonError::into_inner)
    }
}
