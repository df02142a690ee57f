//! Shared test support: endpoints on loopback, an echo server, and verifiable traffic.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod authority;
pub(crate) mod lossy;
pub(crate) mod namespaces;
pub(crate) mod quinn_peer;

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connection, Duration, Endpoint, EndpointBuilder, TransportConfig};

/// Timeout of every test; only a hanging test reaches it.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Runs a test on a single-threaded runtime, with a timeout.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test hangs")
}

/// The data center's transport with a short handshake timeout.
pub(crate) fn transport() -> TransportConfig {
    TransportConfig {
        handshake_timeout: Duration::from_secs(20),
        ..TransportConfig::data_center()
    }
}

/// A server on loopback, and the fingerprint to pin.
pub(crate) fn server_with(
    change_tls: impl FnOnce(ServerTls) -> ServerTls,
    change: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
) -> (Endpoint, Fingerprint) {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let fingerprint = identity.fingerprint();
    let tls = change_tls(ServerTls::new(identity)).build().unwrap();
    let builder = Endpoint::builder().transport(transport()).server(tls);
    (change(builder).bind(loopback()).unwrap(), fingerprint)
}

pub(crate) fn server() -> (Endpoint, Fingerprint) {
    server_with(|tls| tls, |builder| builder)
}

pub(crate) fn client(fingerprint: Fingerprint) -> Endpoint {
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    Endpoint::builder()
        .transport(transport())
        .client(tls)
        .bind(loopback())
        .unwrap()
}

/// Both ends of a connection, and the endpoints that must live as long.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) client_endpoint: Endpoint,
    pub(crate) server_endpoint: Endpoint,
}

pub(crate) async fn pair() -> Pair {
    let (server_endpoint, fingerprint) = server();
    let client_endpoint = client(fingerprint);
    connect(client_endpoint, server_endpoint).await
}

pub(crate) async fn connect(client_endpoint: Endpoint, server_endpoint: Endpoint) -> Pair {
    let connecting = client_endpoint
        .connect(server_endpoint.local_address(), "localhost")
        .unwrap();
    let accepting = async { server_endpoint.accept().await.unwrap().await };
    let (client, server) = tokio::join!(connecting, accepting);
    Pair {
        client: client.unwrap(),
        server: server.unwrap(),
        client_endpoint,
        server_endpoint,
    }
}

/// Echoes every bidirectional stream of every connection, piece by piece.
pub(crate) fn echo_streams(endpoint: Endpoint) {
    tokio::spawn(async move {
        while let Some(connecting) = endpoint.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = connecting.await else {
                    return;
                };
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
                            if send.write_bytes(chunk).await.is_err() {
                                return;
                            }
                        }
                        // The client may be gone.
                        let _ = send.finish();
                    });
                }
            });
        }
    });
}

/// `length` bytes that depend on their position and on `seed`.
pub(crate) fn pattern(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}
