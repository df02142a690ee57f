//! A small HTTP server for the metrics page.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue, VARY};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::{Registry, TextFormat};

/// Limit of concurrent connections; further ones wait.
const CONNECTIONS: usize = 16;
/// Timeout for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long responses in progress may take when the exporter shuts down.
const GRACE: Duration = Duration::from_secs(1);
/// Pause after a failed accept, mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// Another socket has the address.
    #[error("{0} is in use: stop the program that listens there or show metrics on another port")]
    AddressInUse(SocketAddr),
    /// The address is not one of this machine's.
    #[error("{0} is no address of this machine: `ip address` lists those that are")]
    AddressNotAvailable(SocketAddr),
    /// The socket could not be set up for another reason.
    #[error("cannot show metrics on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

impl ExporterError {
    fn new(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse(address),
            io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable(address),
            _ => Self::Listen { address, source },
        }
    }
}

/// Serves a registry's metrics at `/metrics`, by HTTP and without any access control, until it is
/// dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    /// Dropping it ends the server.
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Listens on an address; port 0 takes any free port. Runs on the current tokio runtime.
    ///
    /// # Errors
    /// [`ExporterError`], which names the address.
    pub async fn bind(address: SocketAddr, registry: Registry) -> Result<Self, ExporterError> {
        let failed = |source| ExporterError::new(address, source);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(());
        let task = tokio::spawn(serve(listener, registry, stopped));
        Ok(Self {
            address,
            stop,
            task,
        })
    }

    /// Returns the listening address.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting requests and waits until those in progress are answered, for a second at
    /// most.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the metrics exporter failed");
        }
    }
}

async fn serve(listener: TcpListener, registry: Registry, mut stopped: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            // Nothing is ever sent: the sender was dropped.
            _ = stopped.changed() => break,
        };
        let Some((stream, place)) = accepted else {
            continue;
        };
        let (registry, stopped) = (registry.clone(), stopped.clone());
        connections.spawn(async move {
            answer_all(stream, registry, stopped).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::debug!("requests for metrics were cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::debug!(%error, "a connection to the metrics exporter failed");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Answers the requests of one connection.
async fn answer_all(stream: TcpStream, registry: Registry, mut stopped: watch::Receiver<()>) {
    let service = service_fn(|request| {
        let answer = answer(&request, &registry);
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection to the metrics exporter broke");
    }
}

fn answer<Body>(request: &Request<Body>, registry: &Registry) -> Response<Full<Bytes>> {
    let text = |status, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != "/metrics" {
        return text(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    // Several header lines are one list.
    let accept: Vec<_> = { request.headers().get_all(ACCEPT).iter() }
        .filter_map(|value| value.to_str().ok())
        .collect();
    let format = TextFormat::accepted(&accept.join(","));
    let mut response = Response::new(Full::from(registry.encode_as(format)));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(format.content_type()),
    );
    headers.insert(VARY, HeaderValue::from_static("accept"));
    response
}
