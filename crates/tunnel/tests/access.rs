//! Who reaches what, and hostile peers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::io::ErrorKind;
use std::net::SocketAddr;

use support::{
    Tunnel, all, client_options, echo_server, eventually, loopback, rule, server_options,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{Connection, Endpoint, ReadError};
use weir_policy::{AccessPolicy, AccessRule};
use weir_tunnel::header::{Header, Protocol};
use weir_tunnel::{APPLICATION_PROTOCOL, Access, Client, Refusal, Server};

/// Returns what one echoed byte through a tunnel comes to.
async fn echo(address: SocketAddr) -> Result<(), ErrorKind> {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let exchange = async {
        tcp.write_all(b"x").await?;
        tcp.read_exact(&mut [0]).await
    };
    exchange
        .await
        .map(|_| ())
        .map_err(|error: std::io::Error| error.kind())
}

/// Starts a server, and returns a DCQUIC connection to it.
async fn raw(access: Access, max_connections: usize) -> (Connection, Server, Endpoint) {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let mut options = server_options(identity.clone(), access);
    options.max_connections = max_connections;
    let server = Server::bind(options).unwrap();
    let tls = ClientTls::pinned(identity.fingerprint());
    let tls = tls.application_protocols([APPLICATION_PROTOCOL]).build();
    let builder = Endpoint::builder().client(tls.unwrap());
    let endpoint = builder.bind(loopback()).unwrap();
    let connecting = endpoint
        .connect(server.local_address(), "localhost")
        .unwrap();
    let connection = tokio::select! {
        connection = connecting => connection.unwrap(),
        () = server.run() => unreachable!("it runs until the endpoint ends"),
    };
    (connection, server, endpoint)
}

fn header(to: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header {
        protocol: Protocol::Tcp,
        destination: to.to_string().parse().unwrap(),
        source: None,
    }
    .encode(&mut bytes);
    bytes
}

#[tokio::test]
async fn what_no_rule_allows_is_refused_and_counted() {
    let destination = echo_server().await;
    let access = Access::new(AccessPolicy {
        rules: vec![AccessRule {
            to: vec!["192.0.2.0/24".parse().unwrap()],
            ..rule(true)
        }],
    });
    let tunnel = Tunnel::with(destination, access.clone()).await;
    assert_eq!(echo(tunnel.address).await, Err(ErrorKind::ConnectionReset));
    eventually(|| {
        let status = tunnel.client.status();
        status.tunnels[0].refused.get("forbidden") == Some(&1)
    })
    .await;
    let server = tunnel.server.status();
    assert_eq!(server.tunnels[0].refused["forbidden"], 1);
    // A policy that is replaced holds from then on.
    access.replace(AccessPolicy {
        rules: vec![rule(true)],
    });
    assert_eq!(echo(tunnel.address).await, Ok(()));
}

#[tokio::test]
async fn rules_name_clients_by_their_certificates() {
    let destination = echo_server().await;
    let (known, other) = (
        Identity::self_signed(["known"]).unwrap(),
        Identity::self_signed(["other"]).unwrap(),
    );
    let access = Access::new(AccessPolicy {
        rules: vec![AccessRule {
            clients: vec![known.fingerprint().to_string().parse().unwrap()],
            ..rule(true)
        }],
    });
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let pins = [known.fingerprint(), other.fingerprint()];
    let tls = ServerTls::new(identity.clone())
        .application_protocols([APPLICATION_PROTOCOL])
        .client_fingerprints(pins);
    let mut options = server_options(identity.clone(), access);
    options.credentials = tls.build().unwrap();
    let server = Server::bind(options).unwrap();
    let address = server.local_address();
    let client = |shown: &Identity| {
        let tls = ClientTls::pinned(identity.fingerprint())
            .application_protocols([APPLICATION_PROTOCOL])
            .identity(shown.clone());
        let mut options = client_options(address, &identity, destination);
        options.credentials = tls.build().unwrap();
        Client::bind(options).unwrap()
    };
    let others = client(&other);
    let strangers = client(&Identity::self_signed(["stranger"]).unwrap());
    let tunnel = Tunnel::run(client(&known), server);
    assert_eq!(echo(tunnel.address).await, Ok(()));
    for refused in [others, strangers] {
        let address = refused.local_addresses()[0];
        tokio::select! {
            result = echo(address) => assert!(result.is_err()),
            () = refused.run() => {}
        }
    }
    assert_eq!(tunnel.server.status().tunnels.len(), 2);
}

#[tokio::test]
async fn streams_that_begin_with_something_else_are_reset() {
    let (connection, server, _endpoint) = raw(all(), 10).await;
    let attack = async {
        for garbage in [&b"GET / HTTP/1.1\r\n"[..], &[1, 6, 9, 9], &[0xff; 400]] {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(garbage).await.unwrap();
            send.flush();
            let code = Refusal::BadHeader.code().into();
            assert_eq!(receive.read_chunk(1).await, Err(ReadError::Reset(code)));
        }
        // One that ends within the header.
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&[1, 6]).await.unwrap();
        send.finish().unwrap();
        assert!(receive.read_chunk(1).await.is_err());
    };
    tokio::select! {
        () = attack => {}
        () = server.run() => {}
    }
    assert_eq!(server.status().tunnels[0].refused["bad_header"], 3);
}

#[tokio::test]
async fn more_connections_than_allowed_are_refused_and_places_come_back() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let header = header(listener.local_addr().unwrap());
    let (connection, server, _endpoint) = raw(all(), 3).await;
    let flood = async {
        let mut open = Vec::new();
        for _ in 0..3 {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            send.write_all(&header).await.unwrap();
            send.flush();
            open.push((send, receive, listener.accept().await.unwrap()));
        }
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&header).await.unwrap();
        send.flush();
        let code = Refusal::TooMany.code().into();
        assert_eq!(receive.read_chunk(1).await, Err(ReadError::Reset(code)));
        drop(open);
        eventually(|| {
            server
                .status()
                .tunnels
                .iter()
                .all(|tunnel| tunnel.open == 0)
        })
        .await;
        let (mut send, _receive) = connection.open_bi().await.unwrap();
        send.write_all(&header).await.unwrap();
        send.flush();
        listener.accept().await.unwrap();
    };
    tokio::select! {
        () = flood => {}
        () = server.run() => {}
    }
}

#[tokio::test]
async fn destinations_are_told_the_application_where_asked_for() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let mut options = server_options(identity.clone(), all());
    options.proxy_protocol = true;
    let server = Server::bind(options).unwrap();
    let to = listener.local_addr().unwrap();
    let client = Client::bind(client_options(server.local_address(), &identity, to)).unwrap();
    let tunnel = Tunnel::run(client, server);
    let mut application = TcpStream::connect(tunnel.address).await.unwrap();
    application.write_all(b"hello").await.unwrap();
    let (mut destination, _) = listener.accept().await.unwrap();
    let mut told = [0; 28 + 5];
    destination.read_exact(&mut told).await.unwrap();
    assert_eq!(told[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
    let own = application.local_addr().unwrap();
    assert_eq!(told[24..26], own.port().to_be_bytes());
    assert_eq!(told[26..28], to.port().to_be_bytes());
    assert_eq!(told[28..], *b"hello");
}
