//! Retry, tokens, versions and stateless resets over real sockets.

use std::net::SocketAddr;

use crate::support::{loopback, run, transport};
use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{
    Endpoint, EndpointBuilder, EndpointSecret, RetryPolicy, ServeOptions, Version, Versions,
};

/// A server that answers every call with 10 KB, early calls too.
fn server(
    identity: &Identity,
    address: SocketAddr,
    change: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
) -> Endpoint {
    let tls = ServerTls::new(identity.clone())
        .early_data(true)
        .build()
        .unwrap();
    let builder = Endpoint::builder().transport(transport()).server(tls);
    let endpoint = change(builder).bind(address).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(connecting) = accepting.accept().await {
            let Some(connection) = connecting.early() else {
                continue;
            };
            let handler = |_: weir_net::Request| async { Ok(Bytes::from(vec![7; 10_000])) };
            tokio::spawn(async move { connection.serve(ServeOptions::default(), handler).await });
        }
    });
    endpoint
}

fn client(
    identity: &Identity,
    change: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
) -> Endpoint {
    let tls = ClientTls::pinned(identity.fingerprint())
        .early_data(true)
        .build()
        .unwrap();
    let builder = Endpoint::builder().transport(transport()).client(tls);
    change(builder).bind(loopback()).unwrap()
}

#[test]
fn a_server_that_always_retries_serves_new_and_known_clients() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let server = server(&identity, loopback(), |builder| {
            builder.retry(RetryPolicy::Always)
        });
        let client = client(&identity, |builder| builder);
        let connect = || client.connect(server.local_address(), "localhost").unwrap();
        let connection = connect().await.unwrap();
        assert_eq!(connection.call("first").await.unwrap().len(), 10_000);
        connection.close(0, b"");
        for _ in 0..3 {
            let connecting = connect();
            let early = connecting.early().expect("the session allows early data");
            let answer = early.call("early").early_data().await.unwrap();
            assert_eq!(answer.len(), 10_000);
            let connection = connecting.await.unwrap();
            assert!(!connection.early_data_rejected());
            // Its token and its ticket are for the next connection.
            assert_eq!(connection.call("late").await.unwrap().len(), 10_000);
            connection.close(0, b"");
        }
    });
}

/// An address where another server can replace the first one.
pub(crate) async fn switch(server: watch::Receiver<SocketAddr>) -> SocketAddr {
    let front = UdpSocket::bind(loopback()).await.unwrap();
    let back = UdpSocket::bind(loopback()).await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let mut client = None;
        let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                received = front.recv_from(&mut up) => {
                    let Ok((length, from)) = received else { continue };
                    client = Some(from);
                    let server = *server.borrow();
                    back.send_to(&up[..length], server).await.unwrap();
                }
                received = back.recv_from(&mut down) => {
                    let (Ok((length, from)), Some(client)) = (received, client) else { continue };
                    // The first server is gone as soon as the other one listens.
                    if from == *server.borrow() {
                        front.send_to(&down[..length], client).await.unwrap();
                    }
                }
            }
        }
    });
    address
}

#[test]
fn a_server_that_restarts_with_its_secret_ends_old_connections_at_once() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let secret = EndpointSecret::new([42; 32]);
        let start = || server(&identity, loopback(), |builder| builder.secret(secret));
        let first = start();
        let (current, servers) = watch::channel(first.local_address());
        let address = switch(servers).await;
        let client = client(&identity, |builder| builder);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        assert_eq!(connection.call("call").await.unwrap().len(), 10_000);
        let second = start();
        current.send(second.local_address()).unwrap();
        let error = connection.call("call").await.unwrap_err().to_string();
        assert!(error.contains("it was probably restarted"), "{error}");
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        assert_eq!(connection.call("call").await.unwrap().len(), 10_000);
    });
}

#[test]
fn versions_are_negotiated_or_named_in_the_error() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let cases = [
            (
                Versions::V2_AND_V1,
                Version::V1,
                Versions::V2_AND_V1,
                Some(Version::V2),
            ),
            (
                Versions::V1,
                Version::V2,
                Versions::V2_AND_V1,
                Some(Version::V1),
            ),
            (
                Versions::V1_AND_V2,
                Version::V2,
                Versions::only(Version::V2),
                Some(Version::V2),
            ),
            (Versions::only(Version::V2), Version::V1, Versions::V1, None),
        ];
        for (speaks, first, takes, expected) in cases {
            let server = server(&identity, loopback(), |builder| {
                builder.server_versions(speaks)
            });
            let client = client(&identity, |builder| builder.client_versions(first, takes));
            let connecting = client.connect(server.local_address(), "localhost").unwrap();
            match (connecting.await, expected) {
                (Ok(connection), Some(version)) => {
                    assert_eq!(connection.version(), version);
                    assert_eq!(connection.call("call").await.unwrap().len(), 10_000);
                }
                (Err(error), None) => {
                    let words = error.to_string();
                    let expected = "does not speak any version of ours (QUIC version 1): \
                                    it offers QUIC version 2";
                    assert!(words.contains(expected), "{words}");
                }
                (Ok(_), None) => panic!("a connection without a common version"),
                (Err(error), Some(_)) => panic!("{error}"),
            }
        }
    });
}
