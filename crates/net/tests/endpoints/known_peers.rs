//! Known peers over sockets: connections without a handshake, restarts, threads.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_net::tls::{ClientCredentials, ClientTls, Identity, ServerTls};
use weir_net::{
    CallError, Connection, Duration, Endpoint, EndpointSecret, Executed, KnownClientsConfig,
    ServeOptions,
};

/// A server that counts the calls it has executed.
struct Server {
    endpoint: Endpoint,
    executed: Arc<AtomicU64>,
}

impl Server {
    fn start(identity: &Identity, address: SocketAddr, secret: u8, threads: u8) -> Self {
        let tls = ServerTls::new(identity.clone()).known_peers(KnownClientsConfig::default());
        let endpoint = Endpoint::builder()
            .server(tls.build().unwrap())
            .secret(EndpointSecret::new([secret; 32]))
            .threads(NonZeroU8::new(threads).unwrap())
            .bind(address)
            .unwrap();
        let executed = Arc::new(AtomicU64::new(0));
        let (accepting, count) = (endpoint.clone(), executed.clone());
        tokio::spawn(async move {
            while let Some(connecting) = accepting.accept().await {
                let count = count.clone();
                tokio::spawn(async move {
                    let Ok(connection) = connecting.await else {
                        return;
                    };
                    let echo = move |request: weir_net::Request| {
                        count.fetch_add(1, Ordering::Relaxed);
                        async { Ok(request.body) }
                    };
                    connection.serve(ServeOptions::default(), echo).await;
                });
            }
        });
        Self { endpoint, executed }
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }
}

fn identity() -> Identity {
    Identity::self_signed(["localhost"]).unwrap()
}

fn client(identity: &Identity) -> (Endpoint, ClientCredentials) {
    let credentials = ClientTls::pinned(identity.fingerprint()).build().unwrap();
    let endpoint = Endpoint::builder()
        .client(credentials.clone())
        .bind("127.0.0.1:0".parse().unwrap())
        .unwrap();
    (endpoint, credentials)
}

async fn connect(client: &Endpoint, server: SocketAddr) -> Connection {
    let connecting = client.connect(server, "localhost").unwrap();
    connecting.await.unwrap()
}

async fn call(client: &Endpoint, server: SocketAddr) -> Result<(), CallError> {
    let connection = connect(client, server).await;
    let response = connection.call("hello").await?;
    assert_eq!(response, "hello");
    connection.close(0, b"");
    Ok(())
}

/// Waits until the client has the secret, which the server sends after the handshake.
async fn known(credentials: &ClientCredentials) {
    for _ in 0..500 {
        if credentials.known_servers().held > 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no secret");
}

async fn meet(client: &Endpoint, credentials: &ClientCredentials, server: SocketAddr) {
    let connection = connect(client, server).await;
    known(credentials).await;
    connection.close(0, b"");
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test]
async fn later_connections_have_no_handshake() {
    let identity = identity();
    let server = Server::start(&identity, any_port(), 1, 1);
    let (client, credentials) = client(&identity);
    meet(&client, &credentials, server.address()).await;
    for _ in 0..50 {
        call(&client, server.address()).await.unwrap();
    }
    let counters = credentials.known_servers();
    assert_eq!(
        (counters.begun, counters.hints, counters.proved_refusals),
        (50, 0, 0)
    );
    assert_eq!(server.executed(), 50);
    let connection = connect(&client, server.address()).await;
    assert_eq!(connection.call("x").await.unwrap(), "x");
    let peer = connection.peer_identity();
    assert!(peer.resumed && peer.peer_certificates.len() == 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_share_the_secrets() {
    let identity = identity();
    let server = Server::start(&identity, any_port(), 1, 3);
    let (client, credentials) = client(&identity);
    meet(&client, &credentials, server.address()).await;
    for _ in 0..60 {
        call(&client, server.address()).await.unwrap();
    }
    let counters = credentials.known_servers();
    assert_eq!(
        (counters.begun, counters.hints + counters.proved_refusals),
        (60, 0)
    );
    assert_eq!(server.executed(), 60);
}

#[tokio::test]
async fn a_call_survives_the_restart_of_an_idle_server() {
    let identity = identity();
    let first = Server::start(&identity, any_port(), 1, 1);
    let (client, credentials) = client(&identity);
    let address = first.address();
    meet(&client, &credentials, address).await;
    first.endpoint.close(0, b"");
    first
        .endpoint
        .wait_idle(Duration::from_secs(5))
        .await
        .unwrap();
    drop(first);
    let second = loop {
        let bound = std::net::UdpSocket::bind(address);
        if bound.is_ok() {
            drop(bound);
            break Server::start(&identity, address, 1, 1);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    // The client must be sure that it sends nothing to the old process: docs/known-peers.md, section 6.
    // A slow machine needs more than the round trip of a handshake.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    call(&client, address).await.unwrap();
    let counters = credentials.known_servers();
    assert_eq!((counters.begun, counters.proved_refusals), (1, 1));
    assert_eq!(second.executed(), 1);
    // The new server has met the client in that call's handshake.
    call(&client, address).await.unwrap();
}

#[tokio::test]
async fn a_call_without_a_server_may_have_been_executed() {
    let identity = identity();
    let server = Server::start(&identity, any_port(), 1, 1);
    let credentials = ClientTls::pinned(identity.fingerprint()).build().unwrap();
    let transport = weir_net::TransportConfig {
        handshake_timeout: Duration::from_millis(300),
        ..weir_net::TransportConfig::data_center()
    };
    let client = Endpoint::builder()
        .client(credentials.clone())
        .transport(transport)
        .bind(any_port())
        .unwrap();
    let address = server.address();
    meet(&client, &credentials, address).await;
    server.endpoint.close(0, b"");
    server
        .endpoint
        .wait_idle(Duration::from_secs(5))
        .await
        .unwrap();
    drop(server);
    // Nobody is there any more, and nobody says so.
    let _silent = loop {
        match tokio::net::UdpSocket::bind(address).await {
            Ok(socket) => break socket,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    let error = call(&client, address).await.unwrap_err();
    assert_eq!(error.executed(), Executed::Maybe);
    assert!(matches!(error, CallError::Connection(_)), "{error}");
}
