//! Endpoints with several threads: engines that share one port.

use std::collections::BTreeSet;
use std::future::pending;
use std::num::NonZeroU8;

use crate::support::{
    client, echo_streams, loopback, pattern, run, server, server_with, transport,
};
use crate::validation::switch;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{
    Connection, Duration, Endpoint, EndpointError, EndpointSecret, RetryPolicy, ServeOptions,
};

const PATIENCE: Duration = Duration::from_secs(20);
/// Enough that they all belong to one engine of three by chance only once in 10^11 runs.
const CLIENTS: usize = 24;

fn threads(count: u8) -> NonZeroU8 {
    NonZeroU8::new(count).unwrap()
}

/// Answers each call with the name of the thread that does it.
fn serve_with_thread_names(endpoint: Endpoint) {
    tokio::spawn(async move {
        while let Some(connecting) = endpoint.accept().await {
            let runtime = connecting.runtime().clone();
            runtime.spawn(async move {
                let Ok(connection) = connecting.await else {
                    return;
                };
                let name = |_| async {
                    let thread = std::thread::current();
                    Ok(Bytes::from(thread.name().unwrap_or_default().to_owned()))
                };
                connection.serve(ServeOptions::default(), name).await;
            });
        }
    });
}

fn client_with_threads(fingerprint: Fingerprint, count: u8) -> Endpoint {
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    Endpoint::builder()
        .transport(transport())
        .client(tls)
        .threads(threads(count))
        .bind(loopback())
        .unwrap()
}

async fn connect(client: &Endpoint, server: &Endpoint) -> Connection {
    let connecting = client.connect(server.local_address(), "localhost");
    connecting.unwrap().await.unwrap()
}

/// Sends this much on a stream, and reads it back.
async fn echo(connection: &Connection, seed: u64, length: usize) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let sent = pattern(seed, length);
    let sending = send.finish_with(sent.clone());
    let (sending, received) = tokio::join!(sending, recv.read_to_end(length));
    sending.unwrap();
    assert_eq!(received.unwrap(), sent);
}

#[test]
fn a_server_answers_on_the_thread_of_the_connection() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.threads(threads(3)));
        serve_with_thread_names(server.clone());
        let mut names = BTreeSet::new();
        for _ in 0..CLIENTS {
            let client = client(fingerprint);
            let connection = connect(&client, &server).await;
            let name = connection.call("who?").await.unwrap();
            assert_eq!(connection.call("and now?").await.unwrap(), name);
            names.insert(name);
        }
        assert!(names.len() > 1, "{names:?}");
        for name in &names {
            assert!(name.starts_with(b"weir-engine-"), "{name:?}");
        }
        let stats = server.stats();
        assert_eq!(stats.datagrams_unroutable, 0);
        assert_eq!(stats.datagrams_forwarded, 0);
    });
}

#[test]
fn retries_and_resumption_reach_the_engine_that_the_client_names() {
    run(async {
        let (server, fingerprint) = server_with(
            |tls| tls.early_data(true),
            |builder| builder.threads(threads(3)).retry(RetryPolicy::Always),
        );
        serve_with_thread_names(server.clone());
        let tls = ClientTls::pinned(fingerprint).early_data(true).build();
        let client = Endpoint::builder()
            .transport(transport())
            .client(tls.unwrap())
            .bind(loopback())
            .unwrap();
        for _ in 0..CLIENTS {
            let connection = connect(&client, &server).await;
            assert!(!connection.call("who?").await.unwrap().is_empty());
            connection.close(0, b"");
        }
        let stats = server.stats();
        assert!(stats.replies.retries > 0, "{stats:?}");
        assert_eq!(stats.replies.refusals, 0, "{stats:?}");
    });
}

#[test]
fn connections_of_a_client_with_threads_share_a_port() {
    run(async {
        let (server, fingerprint) = server();
        echo_streams(server.clone());
        let client = client_with_threads(fingerprint, 3);
        let mut connections = Vec::new();
        for _ in 0..6 {
            connections.push(connect(&client, &server).await);
        }
        for (seed, connection) in connections.iter().enumerate() {
            echo(connection, seed as u64, 300_000).await;
        }
        assert_eq!(client.local_addresses().len(), 1);
        assert_eq!(client.stats().connections, 6);
        // All of them move.
        let before = client.local_address();
        let now = client.rebind(loopback()).unwrap();
        assert_ne!(before, now);
        for (seed, connection) in connections.iter().enumerate() {
            echo(connection, seed as u64, 300_000).await;
        }
        assert_eq!(client.local_address(), now);
    });
}

#[test]
fn a_stateless_reset_finds_its_connection_on_any_thread() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let start = || {
            let tls = ServerTls::new(identity.clone()).build().unwrap();
            let builder = Endpoint::builder().transport(transport()).server(tls);
            let secret = EndpointSecret::new([42; 32]);
            let server = builder.secret(secret).bind(loopback()).unwrap();
            serve_with_thread_names(server.clone());
            server
        };
        let first = start();
        let (current, servers) = watch::channel(first.local_address());
        let address = switch(servers).await;
        let client = client_with_threads(identity.fingerprint(), 3);
        let mut connections = Vec::new();
        for _ in 0..6 {
            let connecting = client.connect(address, "localhost").unwrap();
            connections.push(connecting.await.unwrap());
        }
        let second = start();
        current.send(second.local_address()).unwrap();
        for connection in &connections {
            let error = connection.call("call").await.unwrap_err().to_string();
            assert!(error.contains("it was probably restarted"), "{error}");
        }
    });
}

#[test]
fn a_port_in_use_is_an_error_with_threads_too() {
    run(async {
        let (server, _) = server_with(|tls| tls, |builder| builder.threads(threads(2)));
        let address = server.local_address();
        for count in [1, 2] {
            let error = Endpoint::builder().threads(threads(count)).bind(address);
            assert!(
                matches!(error, Err(EndpointError::AddressInUse { address: named }) if named == address)
            );
        }
    });
}

#[test]
fn threads_end_with_the_endpoint() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.threads(threads(2)));
        serve_with_thread_names(server.clone());
        let client = client_with_threads(fingerprint, 2);
        let connection = connect(&client, &server).await;
        let (held, released) = oneshot::channel::<()>();
        connection.runtime().spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
        connection.call("who?").await.unwrap();
        drop(connection);
        client.wait_idle(PATIENCE).await.unwrap();
        drop(client);
        assert!(released.await.is_err());
        server.shutdown(PATIENCE).await.unwrap();
    });
}
