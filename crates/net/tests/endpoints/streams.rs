//! Streams between two endpoints on loopback.

use crate::support::{self, connect, echo_streams, pair, pattern, run, server_with};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_net::tls::ClientTls;
use weir_net::{ByteSize, Endpoint, ReadError, TransportConfig, WriteError};

#[test]
fn an_echo_of_any_size_is_exact() {
    run(async {
        let (server, fingerprint) = support::server();
        let address = server.local_address();
        echo_streams(server);
        let client = support::client(fingerprint);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        for (seed, size) in [0, 1, 1_000, 10_000, 100_000, 1_000_000]
            .into_iter()
            .enumerate()
        {
            let data = pattern(seed as u64, size);
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.finish_with(data.clone()).await.unwrap();
            assert_eq!(recv.read_to_end(size).await.unwrap(), data);
            send.acknowledged().await.unwrap();
        }
    });
}

#[test]
fn ten_megabytes_go_both_ways_at_once() {
    run(async {
        let pair = pair().await;
        let size = 10_000_000;
        let one_way = |from: weir_net::Connection, to: weir_net::Connection, seed| async move {
            let data = pattern(seed, size);
            let sending = async {
                let mut send = from.open_uni().await.unwrap();
                send.write_all(&data).await.unwrap();
                send.finish().unwrap();
                send.acknowledged().await.unwrap();
            };
            let receiving = async {
                let mut recv = to.accept_uni().await.unwrap();
                recv.read_to_end(size).await.unwrap()
            };
            let ((), received) = tokio::join!(sending, receiving);
            assert_eq!(received, data);
        };
        let there = one_way(pair.client.clone(), pair.server.clone(), 1);
        let back = one_way(pair.server.clone(), pair.client.clone(), 2);
        tokio::join!(there, back);
    });
}

#[test]
fn parallel_streams_keep_their_data_separate() {
    run(async {
        let (server, fingerprint) = support::server();
        let address = server.local_address();
        echo_streams(server);
        let client = support::client(fingerprint);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for seed in 0..200_u64 {
            let connection = connection.clone();
            tasks.spawn(async move {
                let data = pattern(seed, 1 + seed as usize * 100);
                let (mut send, mut recv) = connection.open_bi().await.unwrap();
                send.finish_with(data.clone()).await.unwrap();
                assert_eq!(recv.read_to_end(data.len()).await.unwrap(), data);
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

#[test]
fn opening_waits_while_the_peers_limit_is_reached() {
    run(async {
        let few = TransportConfig {
            max_unidirectional_streams: 2,
            ..support::transport()
        };
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.transport(few));
        let pair = connect(support::client(fingerprint), server).await;
        let sending = async {
            for index in 0..20 {
                let mut send = pair.client.open_uni().await.unwrap();
                send.finish_with(Bytes::from(vec![index; 10]))
                    .await
                    .unwrap();
            }
        };
        let receiving = async {
            for index in 0..20 {
                let mut recv = pair.server.accept_uni().await.unwrap();
                assert_eq!(recv.read_to_end(10).await.unwrap(), vec![index; 10]);
            }
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn small_writes_leave_without_flush_or_finish() {
    run(async {
        let pair = pair().await;
        let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
        for round in 0..10_u8 {
            send.write_all(&[round]).await.unwrap();
            let accepted = async {
                if round == 0 {
                    let (mut send, mut recv) = pair.server.accept_bi().await.unwrap();
                    tokio::spawn(async move { tokio::io::copy(&mut recv, &mut send).await });
                }
            };
            accepted.await;
            let mut byte = [0];
            assert_eq!(recv.read(&mut byte).await.unwrap(), Some(1));
            assert_eq!(byte, [round]);
        }
    });
}

#[test]
fn a_window_smaller_than_the_data_does_not_stall() {
    run(async {
        let tight = TransportConfig {
            stream_window: ByteSize::from_kib(8),
            connection_window: ByteSize::from_kib(12),
            send_buffer: ByteSize::from_kib(4),
            ..support::transport()
        };
        let (server, fingerprint) =
            server_with(|tls| tls, |builder| builder.transport(tight.clone()));
        let address = server.local_address();
        echo_streams(server);
        let tls = ClientTls::pinned(fingerprint).build().unwrap();
        let client = Endpoint::builder().transport(tight).client(tls);
        let client = client.bind(support::loopback()).unwrap();
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        let data = pattern(3, 300_000);
        let copy = data.clone();
        let sending = async {
            AsyncWriteExt::write_all(&mut send, &copy).await.unwrap();
            send.shutdown().await.unwrap();
        };
        let receiving = async {
            let mut all = Vec::new();
            AsyncReadExt::read_to_end(&mut recv, &mut all)
                .await
                .unwrap();
            all
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, data);
    });
}

#[test]
fn reset_and_stop_reach_the_peer_with_their_codes() {
    run(async {
        let pair = pair().await;
        let (mut send, mut recv) = pair.client.open_bi().await.unwrap();
        send.write_all(b"begin").await.unwrap();
        let (mut back, mut there) = pair.server.accept_bi().await.unwrap();
        assert_eq!(there.read_chunk(100).await.unwrap().unwrap(), "begin");
        send.reset(7).unwrap();
        assert_eq!(there.read_chunk(100).await, Err(ReadError::Reset(7)));
        recv.stop(9);
        assert_eq!(back.stopped().await, Ok(Some(9)));
        assert_eq!(back.write(b"more").await, Err(WriteError::Stopped(9)));
    });
}

#[test]
fn dropped_streams_are_reset_and_stopped() {
    run(async {
        let pair = pair().await;
        let (mut send, recv) = pair.client.open_bi().await.unwrap();
        send.write_all(b"begin").await.unwrap();
        let (mut back, mut there) = pair.server.accept_bi().await.unwrap();
        assert_eq!(there.read_chunk(100).await.unwrap().unwrap(), "begin");
        drop((send, recv));
        assert_eq!(there.read_chunk(100).await, Err(ReadError::Reset(0)));
        assert_eq!(back.stopped().await, Ok(Some(0)));
    });
}

#[test]
fn a_stream_that_is_too_long_is_an_error() {
    run(async {
        let pair = pair().await;
        for (size, limit, fits) in [(1000, 1000, true), (1001, 1000, false)] {
            let mut send = pair.client.open_uni().await.unwrap();
            send.finish_with(pattern(0, size)).await.unwrap();
            let mut recv = pair.server.accept_uni().await.unwrap();
            let read = recv.read_to_end(limit).await;
            assert_eq!(read.is_ok(), fits);
            assert!(fits || read == Err(ReadError::TooLong { limit }));
        }
    });
}
