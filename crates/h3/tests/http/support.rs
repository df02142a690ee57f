//! Servers and clients on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use weir_h3::{APPLICATION_PROTOCOL, Client, Error, IncomingBody, Server};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connection, Endpoint};

/// Timeout of every test; only a hanging test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test with a timeout, on two threads.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    within_patience(&runtime, test)
}

/// Runs a test with a timeout, on this thread alone.
pub(crate) fn run_here<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    within_patience(&runtime, test)
}

fn within_patience<T>(runtime: &tokio::runtime::Runtime, test: impl Future<Output = T>) -> T {
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test hangs")
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server and an endpoint that knows it.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) server_endpoint: Endpoint,
    pub(crate) client_endpoint: Endpoint,
}

impl World {
    pub(crate) fn new(router: Router) -> Self {
        Self::with_server(Server::default(), router)
    }

    pub(crate) fn with_server(server: Server, router: Router) -> Self {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let fingerprint = identity.fingerprint();
        let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
        let server_endpoint = Endpoint::builder()
            .server(tls.build().unwrap())
            .bind(loopback())
            .unwrap();
        let (serving, endpoint) = (server.clone(), server_endpoint.clone());
        tokio::spawn(async move { serving.serve(&endpoint, router).await });
        Self {
            server,
            server_endpoint,
            client_endpoint: client_endpoint(fingerprint),
        }
    }

    pub(crate) async fn connection(&self) -> Connection {
        let address = self.server_endpoint.local_address();
        let connecting = self.client_endpoint.connect(address, "localhost").unwrap();
        connecting.await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::new(self.connection().await).await.unwrap()
    }
}

pub(crate) fn client_endpoint(fingerprint: Fingerprint) -> Endpoint {
    let tls = ClientTls::pinned(fingerprint).application_protocols([APPLICATION_PROTOCOL]);
    Endpoint::builder()
        .client(tls.build().unwrap())
        .bind(loopback())
        .unwrap()
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .body(Full::new(body.into()))
        .unwrap()
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    request(Method::GET, path, "")
}

/// Reads a response to its end.
pub(crate) async fn read(
    response: Response<IncomingBody>,
) -> Result<(Bytes, Option<HeaderMap>), Error> {
    let collected = response.into_body().collect().await?;
    let trailers = collected.trailers().cloned();
    Ok((collected.to_bytes(), trailers))
}

/// Sends a request and returns the body of its response.
pub(crate) async fn fetch(client: &Client, request: Request<Full<Bytes>>) -> Result<Bytes, Error> {
    Ok(read(client.send(request).await?).await?.0)
}

/// Waits until a condition holds; the test's timeout ends the wait.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A body that never ends.
pub(crate) fn endless() -> Body {
    Body::new(Endless.map_err(|never: std::convert::Infallible| match never {}))
}

struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let data = http_body::Frame::data(Bytes::from_static(&[7; 1000]));
        std::task::Poll::Ready(Some(Ok(data)))
    }
}

/// The length that a response says it has.
pub(crate) fn length(response: &Response<IncomingBody>) -> Option<u64> {
    response.body().size_hint().exact()
}
