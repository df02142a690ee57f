//! TCP applications through a tunnel, with real sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::io::ErrorKind;
use std::time::Duration;

use socket2::SockRef;
use support::{Tunnel, digest, echo_server, eventually, loopback, random_bytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use weir_net::tls::Identity;
use weir_tunnel::{Client, Server};

/// Sends bytes, ends the direction, and returns what comes back until its end.
async fn exchange(mut tcp: TcpStream, sent: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = tcp.split();
    let write = async {
        writer.write_all(sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let ((), read) = tokio::join!(write, reader.read_to_end(&mut received));
    read.unwrap();
    received
}

#[tokio::test]
async fn bytes_arrive_as_they_were_sent_and_directions_end_by_themselves() {
    let tunnel = Tunnel::to(echo_server().await).await;
    let tcp = TcpStream::connect(tunnel.address).await.unwrap();
    let sent = random_bytes(5_000_000);
    let received = exchange(tcp, &sent).await;
    assert_eq!(digest(&received), digest(&sent));
    let client = &tunnel.client.status().tunnels[0];
    let server = &tunnel.server.status().tunnels[0];
    assert_eq!((client.sent, client.received), (5_000_000, 5_000_000));
    assert_eq!((server.sent, server.received), (5_000_000, 5_000_000));
    assert_eq!((client.dcquic, client.tls), (1, 0));
}

#[tokio::test]
async fn many_connections_share_a_few_of_dcquic() {
    let tunnel = Tunnel::to(echo_server().await).await;
    let mut exchanges = tokio::task::JoinSet::new();
    for number in 0..200 {
        let address = tunnel.address;
        exchanges.spawn(async move {
            let sent = random_bytes(1 + number * 97);
            let tcp = TcpStream::connect(address).await.unwrap();
            assert_eq!(exchange(tcp, &sent).await, sent);
        });
    }
    while let Some(exchanged) = exchanges.join_next().await {
        exchanged.unwrap();
    }
    let status = tunnel.client.status();
    assert_eq!(status.tunnels[0].dcquic, 200);
    assert_eq!(status.peers[0].connections.len(), 2);
}

#[tokio::test]
async fn a_reset_is_a_reset_at_the_other_side() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let tunnel = Tunnel::to(listener.local_addr().unwrap()).await;
    // Of the application.
    let mut application = TcpStream::connect(tunnel.address).await.unwrap();
    application.write_all(b"request").await.unwrap();
    let (mut destination, _) = listener.accept().await.unwrap();
    let mut buffer = [0; 7];
    destination.read_exact(&mut buffer).await.unwrap();
    SockRef::from(&application)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(application);
    let error = destination.read(&mut buffer).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // Of the destination.
    let mut application = TcpStream::connect(tunnel.address).await.unwrap();
    application.write_all(b"request").await.unwrap();
    let (mut destination, _) = listener.accept().await.unwrap();
    destination.read_exact(&mut buffer).await.unwrap();
    SockRef::from(&destination)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(destination);
    let error = application.read(&mut buffer).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_destination_that_refuses_resets_the_application() {
    // Bound but not listening: nobody else gets the port.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind(loopback()).unwrap();
    let tunnel = Tunnel::to(closed.local_addr().unwrap()).await;
    let mut tcp = TcpStream::connect(tunnel.address).await.unwrap();
    let error = tcp.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let refused = |status: &weir_tunnel::Status| {
        let tunnels = status.tunnels.first();
        tunnels.and_then(|tunnel| tunnel.refused.get("connection_refused").copied())
    };
    eventually(|| refused(&tunnel.client.status()) == Some(1)).await;
    assert_eq!(refused(&tunnel.server.status()), Some(1));
}

#[tokio::test]
async fn readers_that_stall_leave_the_others_theirs() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let tunnel = Tunnel::to(listener.local_addr().unwrap()).await;
    let data = random_bytes(64 * 1024);
    // More than a window of a stream is on its way in each of them, and none is read.
    let mut stalled = Vec::new();
    for _ in 0..8 {
        let application = TcpStream::connect(tunnel.address).await.unwrap();
        let (destination, _) = listener.accept().await.unwrap();
        let data = data.clone();
        let (_reader, mut writer) = application.into_split();
        let writing = tokio::spawn(async move { while writer.write_all(&data).await.is_ok() {} });
        stalled.push((destination, writing));
    }
    let full = |sent: u64| sent > 8 * 1024 * 1024;
    eventually(|| full(tunnel.client.status().tunnels[0].sent)).await;
    let application = TcpStream::connect(tunnel.address).await.unwrap();
    let (mut destination, _) = listener.accept().await.unwrap();
    let answering = tokio::spawn(async move {
        let mut received = Vec::new();
        destination.read_to_end(&mut received).await.unwrap();
        destination.write_all(&received).await.unwrap();
    });
    let sent = random_bytes(3_000_000);
    assert_eq!(digest(&exchange(application, &sent).await), digest(&sent));
    answering.await.unwrap();
    stalled.iter().for_each(|(_, writing)| writing.abort());
}

#[tokio::test]
async fn a_slow_reader_holds_the_writer_back_and_loses_nothing() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let tunnel = Tunnel::to(listener.local_addr().unwrap()).await;
    let sent = random_bytes(12_000_000);
    let expected = digest(&sent);
    let mut application = TcpStream::connect(tunnel.address).await.unwrap();
    let (mut destination, _) = listener.accept().await.unwrap();
    let writing = tokio::spawn(async move {
        application.write_all(&sent).await.unwrap();
        application.shutdown().await.unwrap();
        application
    });
    let mut received = Vec::new();
    let mut buffer = vec![0; 100_000];
    loop {
        // Others run between the reads, so that buffers fill.
        tokio::task::yield_now().await;
        match destination.read(&mut buffer).await.unwrap() {
            0 => break,
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
    assert_eq!(digest(&received), expected);
    writing.await.unwrap();
}

#[tokio::test]
async fn udp_goes_as_datagrams_in_both_directions() {
    let destination = UdpSocket::bind(loopback()).await.unwrap();
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let server = Server::bind(support::server_options(identity.clone(), support::all())).unwrap();
    let client = support::free(|| {
        let to = destination.local_addr().unwrap();
        let mut options = support::client_options(server.local_address(), &identity, to);
        options.tunnels[0].udp = true;
        Client::bind(options)
    });
    let tunnel = Tunnel::run(client, server);
    eventually(|| support::is_ready(&tunnel.client)).await;
    let application = UdpSocket::bind(loopback()).await.unwrap();
    application.connect(tunnel.address).await.unwrap();
    let mut buffer = [0; 2000];
    for length in [0, 1, 100, 1000] {
        // Nothing sends one again that is lost.
        let sent = random_bytes(length);
        application.send(&sent).await.unwrap();
        let (count, source) = destination.recv_from(&mut buffer).await.unwrap();
        assert_eq!(buffer[..count], sent);
        destination.send_to(&buffer[..count], source).await.unwrap();
        let count = application.recv(&mut buffer).await.unwrap();
        assert_eq!(buffer[..count], sent);
    }
    let status = tunnel.client.status();
    assert_eq!(status.tunnels[0].datagrams_sent, 4);
    assert_eq!(status.tunnels[0].datagrams_received, 4);
}

#[tokio::test]
async fn a_drain_lets_connections_go_on_to_their_end() {
    let tunnel = Tunnel::to(echo_server().await).await;
    let mut tcp = TcpStream::connect(tunnel.address).await.unwrap();
    tcp.write_all(b"before").await.unwrap();
    let mut buffer = [0; 6];
    tcp.read_exact(&mut buffer).await.unwrap();
    let server = tunnel.server.clone();
    let draining =
        tokio::spawn(async move { server.drain(weir_units::Duration::from_secs(30)).await });
    eventually(|| !support::is_ready(&tunnel.client)).await;
    assert_eq!(exchange(tcp, b"after").await, b"after");
    assert!(draining.await.unwrap());
}
