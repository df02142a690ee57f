//! DCUDP over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod hostile;
mod keys;
mod lifecycle;
#[path = "../support/lossy.rs"]
#[allow(dead_code, reason = "the support is shared with other tests")]
mod lossy;
mod transfer;

use std::future::Future;
use std::net::SocketAddr;

use weir_net::Duration;
use weir_net::dcudp::{DcudpClient, DcudpConfig, DcudpConnection, DcudpListener, ServiceKind};
use weir_units::Rate;

/// Timeout of every test; only a hanging test reaches it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Runs a test on a single-threaded runtime, with a timeout.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test hangs")
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn config() -> DcudpConfig {
    let mut config = DcudpConfig::new(Rate::from_gbps(10));
    config.transport.linger = Duration::from_millis(50);
    config
}

/// Both ends of a connection, and the sockets.
struct Pair<K: ServiceKind> {
    client: DcudpConnection<K>,
    server: DcudpConnection<K>,
    sockets: (DcudpClient, DcudpListener<K>),
}

async fn pair_with<K: ServiceKind>(address: SocketAddr, config: DcudpConfig) -> Pair<K> {
    let listener = DcudpListener::<K>::bind(address, config.clone()).unwrap();
    let client = DcudpClient::bind_for(address, config).unwrap();
    let (began, taken) = tokio::join!(client.connect(listener.local_address()), listener.accept());
    Pair {
        client: began.unwrap(),
        server: taken.unwrap(),
        sockets: (client, listener),
    }
}

async fn pair<K: ServiceKind>() -> Pair<K> {
    pair_with(loopback(), config()).await
}

/// `length` bytes that depend on their position and on `seed`.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
