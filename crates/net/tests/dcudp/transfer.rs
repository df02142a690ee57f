//! Every byte arrives, once and in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_net::Duration;
use weir_net::dcudp::{DcudpClient, DcudpListener, DcudpStream, Messages, Mode, Stream};
use weir_units::Rate;

use super::{config, loopback, lossy, pair, pair_with, pattern, run};

/// Writes everything, ends, and reads the other direction to its end.
async fn exchange(stream: DcudpStream, ours: Vec<u8>, theirs: Vec<u8>) -> DcudpStream {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let write = async {
        writing.write_all(&ours).await.unwrap();
        writing.shutdown().await.unwrap();
    };
    let mut read = Vec::new();
    let (result, ()) = tokio::join!(reading.read_to_end(&mut read), write);
    result.unwrap();
    assert!(read == theirs, "{} of {} bytes", read.len(), theirs.len());
    reading.unsplit(writing)
}

async fn both_ways(address: &str, size: usize) {
    let pair = pair_with::<Stream>(address.parse().unwrap(), config()).await;
    let (up, down) = (pattern(1, size), pattern(2, size / 2));
    let client = exchange(pair.client, up.clone(), down.clone());
    let server = exchange(pair.server, down, up);
    let (client, server) = tokio::join!(client, server);
    // Both directions have ended.
    client.closed().await.unwrap();
    server.closed().await.unwrap();
    assert_eq!(client.stats().mode_switches, 0);
    let limit = Duration::from_secs(20);
    pair.sockets.0.wait_idle(limit).await.unwrap();
    pair.sockets.1.wait_idle(limit).await.unwrap();
}

#[test]
fn streams_are_exact_both_ways() {
    run(both_ways("127.0.0.1:0", 20_000_000));
    run(both_ways("127.0.0.1:0", 1));
    run(both_ways("127.0.0.1:0", 0));
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: IPv6: this machine has none");
        return;
    }
    run(both_ways("[::1]:0", 3_000_000));
}

/// Data leave from where the application has them, and are read where they were received.
async fn without_copies(address: &str) {
    let pair = pair_with::<Stream>(address.parse().unwrap(), config()).await;
    let (mut client, mut server) = (pair.client, pair.server);
    let data = Bytes::from(pattern(3, 5_000_000));
    let write = async {
        client.write_bytes(data.clone()).await.unwrap();
        client.finish();
        client.closed().await.unwrap();
    };
    let read = async {
        let (mut received, mut chunks) = (Vec::new(), [const { Bytes::new() }; 8]);
        loop {
            match server.read_chunks(&mut chunks, 10_000).await.unwrap() {
                0 => break,
                count => chunks[..count]
                    .iter()
                    .for_each(|chunk| received.extend_from_slice(chunk)),
            }
        }
        server.finish();
        received
    };
    let (received, ()) = tokio::join!(read, write);
    assert!(received == data, "{} of {}", received.len(), data.len());
    assert!(data.is_unique(), "acknowledged data are released");
}

#[test]
fn streams_are_exact_without_copies() {
    run(without_copies("127.0.0.1:0"));
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        run(without_copies("[::1]:0"));
    } else {
        eprintln!("SKIPPED: IPv6: this machine has none");
    }
}

#[test]
fn a_dual_stack_client_reaches_an_ipv4_server() {
    run(async {
        let listener: DcudpListener = DcudpListener::bind(loopback(), config()).unwrap();
        let Ok(client) = DcudpClient::bind("[::]:0".parse().unwrap(), config()) else {
            eprintln!("SKIPPED: this machine has no IPv6");
            return;
        };
        let address = listener.local_address();
        let (began, taken) = tokio::join!(client.connect(address), listener.accept());
        let (stream, _server): (DcudpStream, _) = (began.unwrap(), taken);
        assert_eq!(stream.remote_address(), address);
    });
}

/// A transfer over a network that loses and reorders, and marks for a while.
#[test]
fn streams_are_exact_through_losses_and_mode_switches() {
    run(async {
        let mut settings = config();
        settings.transport.rate = Rate::from_mbps(300);
        let listener: DcudpListener = DcudpListener::bind(loopback(), settings.clone()).unwrap();
        let marks = Arc::new(AtomicBool::new(false));
        let server = listener.local_address();
        let forwarder = lossy::marking_forwarder(server, 2, marks.clone()).await;
        let client = DcudpClient::bind(loopback(), settings).unwrap();
        let (began, taken) = tokio::join!(client.connect(forwarder), listener.accept());
        let (stream, mut server): (DcudpStream, _) = (began.unwrap(), taken.unwrap());
        let data = pattern(3, 6_000_000);
        let watch = stream.watch();
        let sending = exchange(stream, data.clone(), Vec::new());
        let receiving = async {
            let mut received = vec![0; data.len()];
            let (first, rest) = received.split_at_mut(data.len() / 3);
            let (second, third) = rest.split_at_mut(data.len() / 3);
            server.read_exact(first).await.unwrap();
            assert_eq!(watch.stats().mode, Mode::Udp);
            marks.store(true, Ordering::Relaxed);
            while watch.stats().mode == Mode::Udp {
                tokio::task::yield_now().await;
            }
            server.read_exact(second).await.unwrap();
            marks.store(false, Ordering::Relaxed);
            server.read_exact(third).await.unwrap();
            assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
            assert!(received == data);
            server.shutdown().await.unwrap();
            server
        };
        let (client, server) = tokio::join!(sending, receiving);
        let stats = client.stats();
        assert!(
            stats.mode_switches > 0 && stats.flow.retransmits > 0,
            "{stats:?}"
        );
        assert!(stats.flow.marks > 0 && server.stats().ce_marked > 0);
    });
}

#[test]
fn one_socket_carries_many_connections() {
    const CONNECTIONS: u64 = 40;
    run(async {
        let listener: DcudpListener = DcudpListener::bind(loopback(), config()).unwrap();
        let client = DcudpClient::bind(loopback(), config()).unwrap();
        let address = listener.local_address();
        let serving = async {
            let mut served = tokio::task::JoinSet::new();
            for _ in 0..CONNECTIONS {
                let mut stream = listener.accept().await.unwrap();
                served.spawn(async move {
                    let mut data = Vec::new();
                    stream.read_to_end(&mut data).await.unwrap();
                    stream.write_all(&data).await.unwrap();
                    stream.close().await.unwrap();
                });
            }
            served.join_all().await;
        };
        let asking = async {
            let mut asked = tokio::task::JoinSet::new();
            for seed in 0..CONNECTIONS {
                let stream: DcudpStream = client.connect(address).await.unwrap();
                let data = pattern(seed, 50_000 + seed as usize);
                asked.spawn(exchange(stream, data.clone(), data));
            }
            asked.join_all().await;
        };
        tokio::join!(serving, asking);
        // A client that waits for long repeats its request, which is challenged again.
        assert!(listener.counters().challenges >= CONNECTIONS);
    });
}

#[test]
fn messages_arrive_whole_and_once() {
    run(async {
        let mut pair = pair::<Messages>().await;
        let lengths = [0, 1, 1000, 1436, 1437, 100_000, 7, 1_000_000];
        let limit = pair.client.message_limit();
        let sending = async {
            for (seed, length) in lengths.into_iter().enumerate() {
                let message = pattern(seed as u64, length);
                pair.client.send(&message).await.unwrap();
            }
            let too_large = vec![0; limit + 1];
            let error = pair.client.send(&too_large).await.unwrap_err();
            assert!(error.to_string().contains(&limit.to_string()), "{error}");
        };
        let receiving = async {
            for (seed, length) in lengths.into_iter().enumerate() {
                let message = pair.server.receive().await.unwrap().unwrap();
                assert!(message == pattern(seed as u64, length), "{length}");
            }
        };
        tokio::join!(sending, receiving);
        let sending = async {
            for seed in 100..200 {
                let message = pattern(seed, 3000);
                pair.client.send_unordered(&message).await.unwrap();
            }
            pair.client.finish();
            assert!(pair.client.send(b"late").await.is_err());
        };
        let receiving = async {
            let mut rest = Vec::new();
            while let Some(message) = pair.server.receive().await.unwrap() {
                rest.push(message);
            }
            rest.sort();
            let mut expected: Vec<_> = (100..200).map(|seed| pattern(seed, 3000)).collect();
            expected.sort();
            assert!(rest == expected);
            pair.server.finish();
        };
        tokio::join!(sending, receiving);
        pair.client.closed().await.unwrap();
        pair.server.closed().await.unwrap();
    });
}
