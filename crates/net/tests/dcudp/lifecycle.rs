//! Start and end of connections.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_net::dcudp::{
    ConnectionError, DcudpClient, DcudpConnectError, DcudpError, DcudpListener, DcudpStream,
    Messages, Stream,
};
use weir_net::{Duration, EndpointError};

use super::{config, loopback, pair, pair_with, pattern, run};

fn cause(error: io::Error) -> Option<ConnectionError> {
    let error = error.into_inner()?.downcast::<DcudpError>().ok()?;
    error.cause()
}

#[test]
fn a_silent_server_causes_a_handshake_timeout() {
    run(async {
        let silent = std::net::UdpSocket::bind(loopback()).unwrap();
        let mut settings = config();
        settings.transport.handshake_timeout = Duration::from_millis(100);
        let client = DcudpClient::bind(loopback(), settings).unwrap();
        let address = silent.local_addr().unwrap();
        let error = client.connect::<Stream>(address).await.unwrap_err();
        let DcudpConnectError::Connection(DcudpError::HandshakeTimeout { remote, .. }) = error
        else {
            panic!("{error}");
        };
        assert_eq!(remote, address);
        client.wait_idle(Duration::from_secs(20)).await.unwrap();
    });
}

#[test]
fn finished_data_are_delivered_after_the_handle_is_dropped() {
    run(async {
        let mut pair = pair::<Stream>().await;
        let data = pattern(1, 3_000_000);
        pair.client.write_all(&data).await.unwrap();
        pair.client.shutdown().await.unwrap();
        drop(pair.client);
        drop(pair.sockets);
        let mut received = Vec::new();
        pair.server.read_to_end(&mut received).await.unwrap();
        assert!(received == data);
    });
}

#[test]
fn dropping_an_unfinished_handle_aborts_the_connection() {
    run(async {
        let mut pair = pair::<Stream>().await;
        pair.client.write_all(b"half of").await.unwrap();
        drop(pair.client);
        let mut received = Vec::new();
        let error = pair.server.read_to_end(&mut received).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(cause(error), Some(ConnectionError::PeerAborted(0)));
        let error = pair.server.write_all(b"more").await.unwrap_err();
        assert_eq!(cause(error), Some(ConnectionError::PeerAborted(0)));
    });
}

#[test]
fn abort_sends_its_code_to_the_peer() {
    run(async {
        let mut pair = pair::<Messages>().await;
        pair.server.abort(77);
        let error = pair.client.receive().await.unwrap_err();
        assert_eq!(error.cause(), Some(ConnectionError::PeerAborted(77)));
        assert!(pair.client.closed().await.is_err());
    });
}

#[test]
fn close_waits_until_all_data_are_acknowledged() {
    run(async {
        let mut pair = pair::<Stream>().await;
        let data = pattern(2, 2_000_000);
        let reading = async {
            let mut received = vec![0; data.len()];
            pair.server.read_exact(&mut received).await.unwrap();
            received
        };
        let writing = async {
            pair.client.write_all(&data).await.unwrap();
            let watch = pair.client.watch();
            pair.client.close().await.unwrap();
            assert!(watch.stats().unacknowledged.is_zero());
        };
        let (received, ()) = tokio::join!(reading, writing);
        assert!(received == data);
        assert_eq!(pair.server.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn a_peer_that_vanishes_is_noticed() {
    // A runtime that ends closes its socket without notifying the peer.
    let mut settings = config();
    settings.transport.idle_timeout = Duration::from_millis(300);
    settings.transport.keep_alive = Duration::from_millis(50);
    let gone = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    run(async {
        let listener: DcudpListener = DcudpListener::bind(loopback(), settings.clone()).unwrap();
        let address = listener.local_address();
        let client_settings = settings.clone();
        let client = std::thread::spawn(move || {
            let stream = gone.block_on(async {
                let client = DcudpClient::bind(loopback(), client_settings).unwrap();
                client.connect::<Stream>(address).await.unwrap()
            });
            drop(gone);
            stream
        });
        let mut server = listener.accept().await.unwrap();
        let error = server.read(&mut [0]).await.unwrap_err();
        let timed_out = Some(ConnectionError::IdleTimeout(Duration::from_millis(300)));
        assert_eq!(cause(error), timed_out);
        let orphan = client.join().unwrap();
        assert_eq!(orphan.closed().await, Err(DcudpError::EndpointGone));
    });
}

#[test]
fn both_ends_must_use_the_same_service() {
    run(async {
        let listener: DcudpListener<Messages> = DcudpListener::bind(loopback(), config()).unwrap();
        let client = DcudpClient::bind(loopback(), config()).unwrap();
        let error = client.connect::<Stream>(listener.local_address()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("streams and messages"), "{error}");
    });
}

#[test]
fn a_full_or_dropped_listener_refuses_connections() {
    run(async {
        let mut settings = config();
        settings.max_connections = 1;
        settings.transport.handshake_timeout = Duration::from_millis(200);
        let listener: DcudpListener = DcudpListener::bind(loopback(), settings.clone()).unwrap();
        let address = listener.local_address();
        let client = DcudpClient::bind(loopback(), settings).unwrap();
        let first: DcudpStream = client.connect(address).await.unwrap();
        let error = client.connect::<Stream>(address).await.unwrap_err();
        assert!(
            error.to_string().contains("as many as it may have"),
            "{error}"
        );
        // The first one is not accepted.
        drop(listener);
        let end = first.closed().await.unwrap_err();
        assert_eq!(end.cause(), Some(ConnectionError::PeerAborted(0)));
        assert!(client.connect::<Stream>(address).await.is_err());
    });
}

#[test]
fn invalid_uses_fail_immediately() {
    run(async {
        let taken: DcudpListener = DcudpListener::bind(loopback(), config()).unwrap();
        let address = taken.local_address();
        let again = DcudpListener::<Stream>::bind(address, config()).unwrap_err();
        assert!(
            matches!(again, EndpointError::AddressInUse { .. }),
            "{again}"
        );
        let mut wrong = config();
        wrong.transport.receive_window = 1;
        let error = DcudpClient::bind(loopback(), wrong).unwrap_err();
        assert!(error.to_string().contains("receive_window"), "{error}");
        let client = DcudpClient::bind(loopback(), config()).unwrap();
        let error = client.connect::<Stream>("[::1]:9".parse().unwrap()).await;
        assert!(matches!(
            error,
            Err(DcudpConnectError::AddressFamily { .. })
        ));
        let error = client
            .connect::<Stream>("127.0.0.1:0".parse().unwrap())
            .await;
        assert!(matches!(error, Err(DcudpConnectError::Engine(_))));
    });
}

#[test]
fn the_largest_packets_go_through() {
    run(async {
        let mut settings = config();
        // The limit of an IPv4 packet; loopback carries a little more.
        settings.transport.packet_size = weir_units::ByteSize::from_bytes(65_507);
        let mut pair = pair_with::<Stream>(loopback(), settings).await;
        let data = pattern(1, 200_000);
        let mut received = vec![0; data.len()];
        let (sent, read) = tokio::join!(
            pair.client.write_all(&data),
            pair.server.read_exact(&mut received)
        );
        sent.unwrap();
        read.unwrap();
        assert!(received == data);
    });
}
