//! Connections that say nothing, or are too many.

use std::time::Duration;

use futures_util::FutureExt;
use http::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_h3::Server;

use crate::support::{World, for_http1, get, http1_on, mirror, read, run, until};

const SHORT: Duration = Duration::from_millis(50);

/// Reads until the server closes the connection.
async fn closed(mut stream: impl AsyncReadExt + Unpin) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
}

#[test]
fn a_client_without_a_handshake_is_closed() {
    run(async {
        let world = World::with(mirror(), |builder| builder.handshake_timeout(SHORT));
        closed(TcpStream::connect(world.address()).await.unwrap()).await;
        // It is counted after the connection is closed.
        until(|| world.server.tcp_stats().failed_handshakes == 1).await;
        // What is no TLS is refused at once.
        let world = World::new(mirror());
        let mut plain = TcpStream::connect(world.address()).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        closed(plain).await;
        until(|| world.server.tcp_stats().failed_handshakes == 1).await;
        world.fetch(Version::HTTP_2, get("/a")).await;
    });
}

#[test]
fn a_client_without_a_request_is_closed() {
    run(async {
        let server = Server::builder().header_timeout(SHORT).build();
        let world = World::with(mirror(), |builder| builder.http3(server));
        for protocol in ["h2", "http/1.1"] {
            closed(world.tls(protocol).await).await;
            let mut begun = world.tls(protocol).await;
            let start: &[u8] = match protocol {
                "h2" => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
                _ => b"GET / HTTP/1.1\r\nHost: ",
            };
            begun.write_all(start).await.unwrap();
            closed(begun).await;
        }
        until(|| world.server.tcp_stats().idle == 4).await;
    });
}

#[test]
fn an_idle_connection_is_closed() {
    run(async {
        let world = World::with(mirror(), |builder| builder.idle_timeout(SHORT));
        let (mut first, mut second) = (world.http1().await, world.http2().await);
        let request = for_http1(get("/a"));
        read(first.send_request(request).await.unwrap()).await;
        read(second.send_request(get("/a")).await.unwrap()).await;
        until(|| first.is_closed() && second.is_closed()).await;
        until(|| world.server.tcp_stats().idle == 2).await;
    });
}

#[test]
fn a_connection_waits_for_its_place() {
    run(async {
        let world = World::with(mirror(), |builder| builder.max_connections(1));
        let first = world.http1().await;
        let second = TcpStream::connect(world.address()).await.unwrap();
        let second = world.secure(second, "http/1.1");
        let mut second = std::pin::pin!(second);
        tokio::time::sleep(SHORT).await;
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let mut second = http1_on(second.await).await;
        let request = for_http1(get("/a"));
        read(second.send_request(request).await.unwrap()).await;
        assert_eq!(world.server.tcp_stats().accepted, 2);
    });
}
