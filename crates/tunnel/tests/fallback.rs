//! TLS over TCP where UDP does not pass.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::io::ErrorKind;

use support::{
    Tunnel, all, client_options, digest, echo_server, eventually, free, loopback, random_bytes,
    rule, server_options,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use weir_net::tls::Identity;
use weir_policy::AccessPolicy;
use weir_tunnel::{Access, Client, Server};

/// A tunnel whose client reaches the server's TCP port alone: at its UDP port nobody answers. Returns the
/// socket there too.
async fn without_udp(to: std::net::SocketAddr, access: Access) -> (Tunnel, UdpSocket) {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let server = free(|| {
        let mut options = server_options(identity.clone(), access.clone());
        options.over_tcp = true;
        Server::bind(options)
    });
    let (blocked, relay) = loop {
        let blocked = UdpSocket::bind(loopback()).await.unwrap();
        if let Ok(relay) = TcpListener::bind(blocked.local_addr().unwrap()).await {
            break (blocked, relay);
        }
    };
    let address = blocked.local_addr().unwrap();
    let behind = server.local_address();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = relay.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let mut options = client_options(address, &identity, to);
    options.over_tcp = true;
    let client = Client::bind(options).unwrap();
    (Tunnel::run(client, server), blocked)
}

#[tokio::test]
async fn tls_carries_what_dcquic_cannot() {
    let (tunnel, _blocked) = without_udp(echo_server().await, all()).await;
    let sent = random_bytes(2_000_000);
    for _ in 0..2 {
        let mut tcp = TcpStream::connect(tunnel.address).await.unwrap();
        let (mut reader, mut writer) = tcp.split();
        let write = async {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let ((), read) = tokio::join!(write, reader.read_to_end(&mut received));
        read.unwrap();
        assert_eq!(digest(&received), digest(&sent));
    }
    let status = tunnel.client.status();
    assert_eq!((status.tunnels[0].tls, status.tunnels[0].dcquic), (2, 0));
    assert!(status.peers[0].falls_back);
    assert_eq!(status.peers[0].fallbacks, 2);
}

#[tokio::test]
async fn refusals_are_told_over_tls_too() {
    let nothing = Access::new(AccessPolicy {
        rules: vec![rule(false)],
    });
    let (tunnel, _blocked) = without_udp(echo_server().await, nothing).await;
    let mut tcp = TcpStream::connect(tunnel.address).await.unwrap();
    let error = tcp.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    eventually(|| {
        let status = tunnel.client.status();
        status.tunnels[0].refused.get("forbidden") == Some(&1)
    })
    .await;
}

#[tokio::test]
async fn a_reset_is_a_reset_over_tls() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let (tunnel, _blocked) = without_udp(listener.local_addr().unwrap(), all()).await;
    let mut application = TcpStream::connect(tunnel.address).await.unwrap();
    application.write_all(b"x").await.unwrap();
    let (mut destination, _) = listener.accept().await.unwrap();
    destination.read_exact(&mut [0]).await.unwrap();
    socket2::SockRef::from(&destination)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    drop(destination);
    let error = application.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn without_a_server_the_application_is_reset() {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    // Bound but not listening: DCQUIC gets no answer, and TCP is refused.
    let (_udp, tcp) = loop {
        let udp = UdpSocket::bind(loopback()).await.unwrap();
        let tcp = tokio::net::TcpSocket::new_v4().unwrap();
        if tcp.bind(udp.local_addr().unwrap()).is_ok() {
            break (udp, tcp);
        }
    };
    let address = tcp.local_addr().unwrap();
    let mut options = client_options(address, &identity, address);
    options.over_tcp = true;
    let client = Client::bind(options).unwrap();
    let listening = client.local_addresses()[0];
    let refused = async {
        let mut tcp = TcpStream::connect(listening).await.unwrap();
        tcp.read(&mut [0]).await.unwrap_err().kind()
    };
    tokio::select! {
        kind = refused => assert_eq!(kind, ErrorKind::ConnectionReset),
        () = client.run() => {}
    }
}
