//! HTTP/3, HTTP/2 and HTTP/1.1 beside each other: a server at UDP and TCP ports of the same number.

mod accept;
mod builder;
mod connection;
mod drain;
mod exchange;
mod listen;
mod request;
mod stats;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use weir_net::tls::{ServerCredentials, ServerTls};
use weir_net::{DeadlinePassed, Duration, Endpoint};

use super::{Server, ServerStats};
use crate::APPLICATION_PROTOCOL;
use crate::service::HttpService;

pub use builder::HttpsServerBuilder;
use drain::Draining;
pub use listen::BindError;
pub use stats::TcpStats;

/// Answers requests of HTTP/3, HTTP/2 and HTTP/1.1 at one address with one service, and one
/// configuration of TLS, also after a reload. Clones are handles to the same server.
///
/// Responses over TCP have `Alt-Svc`, by which clients find HTTP/3. Requests have
/// [`Peer`](crate::Peer) as an extension, whichever way they come, and an absolute URI;
/// [`Request::version`](http::Request::version) tells them apart.
///
/// ```
/// use axum::{Router, routing::get};
/// use weir_h3::HttpsServer;
/// use weir_net::tls::{Identity, ServerTls};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // `Identity::self_signed` needs weir-net's feature `self-signed`.
/// let tls = ServerTls::new(Identity::self_signed(["localhost"])?);
/// let server = HttpsServer::bind("127.0.0.1:0".parse()?, tls)?;
/// let router = Router::new().route("/", get(|| async { "hello" }));
/// let serving = server.clone();
/// tokio::spawn(async move { serving.serve(router).await });
/// server.shutdown(std::time::Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpsServer {
    inner: Arc<Inner>,
}

struct Inner {
    http3: Server,
    endpoint: Endpoint,
    tls: tls::TcpTls,
    settings: builder::Settings,
    limits: accept::Limits,
    counters: stats::TcpCounters,
    /// None once the server shuts down.
    listeners: Mutex<Option<Vec<Arc<TcpListener>>>>,
    draining: Draining,
}

impl HttpsServer {
    /// Binds a UDP and a TCP port of the same number; 0 takes one that both have free. The
    /// application protocols of the TLS configuration are set.
    ///
    /// # Errors
    /// [`BindError`], which describes the remedy.
    pub fn bind(address: SocketAddr, tls: ServerTls) -> Result<Self, BindError> {
        let tls = tls.application_protocols([APPLICATION_PROTOCOL]).build()?;
        Self::builder(tls).bind(address)
    }

    /// Returns a builder. The TLS configuration has to accept
    /// [`APPLICATION_PROTOCOL`]; TCP gets `h2` and `http/1.1` instead.
    /// What is resumed or early there is apart from QUIC's sessions: there are no early data.
    pub fn builder(tls: ServerCredentials) -> HttpsServerBuilder {
        HttpsServerBuilder::new(tls)
    }

    /// Accepts connections and answers their requests until the server is shut down. Each request is
    /// a task of its own, but for those of HTTP/1.1, which come one after the other.
    ///
    /// An error or panic of the service is answered as HTTP/3 does it: status 500, or a reset stream
    /// or, with HTTP/1.1, a closed connection. `CONNECT` and upgrades of HTTP/1.1 are not supported.
    pub async fn serve(&self, service: impl HttpService) {
        let listeners = self.inner.listeners().clone().unwrap_or_default();
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let phase = self.inner.draining.follow();
            accepting.spawn(accept::run(
                self.inner.clone(),
                listener,
                phase,
                service.clone(),
            ));
        }
        self.inner.http3.serve(&self.inner.endpoint, service).await;
        while accepting.join_next().await.is_some() {}
    }

    /// Drains the server: no new connections; HTTP/3 and HTTP/2 clients are told by GOAWAY, those of
    /// HTTP/1.1 by `Connection: close`; running requests, and those that are on their way, get up to
    /// `limit` to end. An idle HTTP/1.1 connection is closed after a second.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where requests had to be given up.
    pub async fn shutdown(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        let limit = limit.into();
        drop(self.inner.listeners().take());
        let (udp, tcp) = tokio::join!(
            self.inner.http3.shutdown(limit),
            self.inner.draining.drain(limit)
        );
        udp.and(tcp)
    }

    /// Returns the address that the server is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.inner.endpoint.local_address()
    }

    /// Returns the endpoint of HTTP/3.
    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    /// Returns the TLS configuration of both, which may be reloaded.
    pub fn tls(&self) -> &ServerCredentials {
        self.inner.tls.credentials()
    }

    /// Returns the counters of requests, of whatever version.
    pub fn stats(&self) -> ServerStats {
        self.inner.http3.stats()
    }

    /// Returns the counters of TCP connections; those of QUIC are the endpoint's.
    pub fn tcp_stats(&self) -> TcpStats {
        self.inner.counters.stats()
    }
}

impl Inner {
    fn listeners(&self) -> MutexGuard<'_, Option<Vec<Arc<TcpListener>>>> {
        let listeners = self.listeners.lock();
        listeners.unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for HttpsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpsServer")
            .field("address", &self.local_address())
            .finish_non_exhaustive()
    }
}
