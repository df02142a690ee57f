//! A server of all versions, and clients of each.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;
use weir_h3::{APPLICATION_PROTOCOL, Client, HttpsServer, HttpsServerBuilder, Peer};
use weir_net::Endpoint;
use weir_net::tls::{ClientTls, Fingerprint, Identity, PinnedCertificate, ServerTls};

/// Timeout of every test; only a hanging test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test with a timeout, on two threads.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test hangs")
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Writes a new certificate and its key to a directory; returns its fingerprint.
pub(crate) fn write_certificate(directory: &Path) -> Fingerprint {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    std::fs::write(directory.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(directory.join("tls.key"), key.serialize_pem()).unwrap();
    Fingerprint::of(certificate.der())
}

pub(crate) fn server_tls(directory: &Path) -> ServerTls {
    let identity = Identity::from_files(directory.join("tls.crt"), directory.join("tls.key"));
    ServerTls::new(identity.unwrap()).application_protocols([APPLICATION_PROTOCOL])
}

/// A server, and what its clients know.
pub(crate) struct World {
    pub(crate) server: HttpsServer,
    pub(crate) directory: TempDir,
    pub(crate) fingerprint: Fingerprint,
}

impl World {
    pub(crate) fn new(router: Router) -> Self {
        Self::with(router, |builder| builder)
    }

    pub(crate) fn with(
        router: Router,
        set: impl FnOnce(HttpsServerBuilder) -> HttpsServerBuilder,
    ) -> Self {
        let world = Self::bound(set);
        let serving = world.server.clone();
        tokio::spawn(async move { serving.serve(router).await });
        world
    }

    /// A server that does not accept yet.
    pub(crate) fn bound(set: impl FnOnce(HttpsServerBuilder) -> HttpsServerBuilder) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fingerprint = write_certificate(directory.path());
        let tls = server_tls(directory.path()).build().unwrap();
        let server = set(HttpsServer::builder(tls)).bind(loopback()).unwrap();
        Self {
            server,
            directory,
            fingerprint,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_address()
    }

    pub(crate) async fn http3(&self) -> Client {
        http3(self.address(), self.fingerprint).await.unwrap()
    }

    /// A TCP connection with TLS.
    pub(crate) async fn tls(&self, protocol: &str) -> TlsStream<TcpStream> {
        let tcp = TcpStream::connect(self.address()).await.unwrap();
        self.secure(tcp, protocol).await
    }

    pub(crate) async fn secure(&self, tcp: TcpStream, protocol: &str) -> TlsStream<TcpStream> {
        secure(tcp, self.fingerprint, &[protocol]).await.unwrap()
    }

    pub(crate) async fn http1(&self) -> http1::SendRequest<Body> {
        http1_on(self.tls("http/1.1").await).await
    }

    pub(crate) async fn http2(&self) -> http2::SendRequest<Body> {
        let io = TokioIo::new(self.tls("h2").await);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// A request by each version, on a connection of its own.
    pub(crate) async fn fetch(&self, version: Version, request: Request<Body>) -> Response<Bytes> {
        match version {
            Version::HTTP_3 => read(self.http3().await.send(request).await.unwrap()).await,
            Version::HTTP_2 => read(self.http2().await.send_request(request).await.unwrap()).await,
            _ => {
                let request = for_http1(request);
                read(self.http1().await.send_request(request).await.unwrap()).await
            }
        }
    }
}

pub(crate) async fn http1_on(stream: TlsStream<TcpStream>) -> http1::SendRequest<Body> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

pub(crate) async fn http3(
    address: SocketAddr,
    fingerprint: Fingerprint,
) -> Result<Client, weir_h3::Error> {
    let tls = ClientTls::pinned(fingerprint).application_protocols([APPLICATION_PROTOCOL]);
    let endpoint = Endpoint::builder().client(tls.build().unwrap());
    let endpoint = endpoint.bind(loopback()).unwrap();
    Client::new(endpoint.connect(address, "localhost").unwrap().await?).await
}

/// Makes a handshake that pins a certificate.
pub(crate) async fn secure(
    tcp: TcpStream,
    fingerprint: Fingerprint,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = PinnedCertificate::new(fingerprint, &provider);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().into())
        .collect();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
}

/// A request as clients of HTTP/1.1 send it.
pub(crate) fn for_http1(mut request: Request<Body>) -> Request<Body> {
    let host = request.uri().authority().unwrap().to_string();
    request.headers_mut().insert("host", host.parse().unwrap());
    let path = request.uri().path_and_query().unwrap().to_string();
    *request.uri_mut() = path.parse().unwrap();
    request
}

pub(crate) fn get(path: &str) -> Request<Body> {
    let uri = format!("https://localhost{path}");
    Request::builder().uri(uri).body(Body::empty()).unwrap()
}

pub(crate) async fn read<B>(response: Response<B>) -> Response<Bytes>
where
    B: http_body::Body<Error: std::fmt::Debug>,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, body)
}

/// Says what its requests look like.
pub(crate) fn mirror() -> Router {
    Router::new().route("/{*path}", any(describe))
}

async fn describe(request: axum::extract::Request) -> String {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().unwrap();
    let identity = peer.identity();
    let body = body.collect().await.unwrap().to_bytes();
    format!(
        "{} {} from {} to {}: {}",
        parts.method,
        parts.uri,
        peer.address().ip(),
        identity.server_name.unwrap_or_default(),
        String::from_utf8_lossy(&body)
    )
}

/// Waits until a condition holds; the test's timeout ends the wait.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
