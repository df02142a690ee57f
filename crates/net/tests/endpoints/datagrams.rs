//! Datagrams and key updates between two endpoints on loopback.

use crate::support::{self, Pair, connect, pair, pattern, run, server_with};
use bytes::Bytes;
use weir_net::tls::ClientTls;
use weir_net::{DatagramConfig, DatagramError, Endpoint, TransportConfig, UpdateKeysError};
use weir_quic::SendDatagramError;

fn with_datagrams() -> TransportConfig {
    TransportConfig {
        datagrams: Some(DatagramConfig::default()),
        ..support::transport()
    }
}

async fn datagram_pair() -> Pair {
    let (server, fingerprint) =
        server_with(|tls| tls, |builder| builder.transport(with_datagrams()));
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    let client = Endpoint::builder()
        .transport(with_datagrams())
        .client(tls)
        .bind(support::loopback())
        .unwrap();
    connect(client, server).await
}

#[test]
fn datagrams_go_both_ways() {
    run(async {
        let pair = datagram_pair().await;
        let max = pair.client.max_datagram_size().unwrap();
        for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
            for (seed, size) in [0, 1, 1_000, max].into_iter().enumerate() {
                let data = pattern(seed as u64, size);
                let (sent, received) = tokio::join!(
                    async { from.send_datagram(data.clone()) },
                    to.read_datagram()
                );
                sent.unwrap();
                assert_eq!(received.unwrap(), data);
            }
        }
        let too_large = pair.client.send_datagram(Bytes::from(vec![0; max + 1]));
        let size = max + 1;
        let expected = SendDatagramError::TooLarge { size, max };
        assert_eq!(too_large, Err(DatagramError::Refused(expected)));
    });
}

#[test]
fn a_burst_is_sent_in_batches() {
    run(async {
        let pair = datagram_pair().await;
        let sending = async {
            for round in 0..20_u64 {
                for index in 0..100_u64 {
                    let data = (round * 100 + index).to_be_bytes().repeat(100);
                    pair.client.send_datagram(data.into()).unwrap();
                }
                tokio::task::yield_now().await;
            }
        };
        let receiving = async {
            let mut last = 0;
            let mut count = 0;
            while last < 1_999 {
                let data = pair.server.read_datagram().await.unwrap();
                assert_eq!(data.len(), 800);
                last = u64::from_be_bytes(data[..8].try_into().unwrap());
                count += 1;
            }
            count
        };
        let ((), count) = tokio::join!(sending, receiving);
        // A full socket buffer loses some, but not the last, which marks the end.
        assert!(count > 100, "{count}");
        let stats = pair.client.stats().datagrams;
        assert_eq!(stats.sent + stats.dropped_before_sending, 2_000);
    });
}

#[test]
fn datagrams_are_disabled_by_default() {
    run(async {
        let pair = pair().await;
        assert_eq!(pair.client.max_datagram_size(), None);
        let off = pair.client.send_datagram(Bytes::new());
        let expected = SendDatagramError::Disabled;
        assert_eq!(off, Err(DatagramError::Refused(expected)));
    });
}

#[test]
fn datagram_readers_receive_the_close_error() {
    run(async {
        let pair = datagram_pair().await;
        pair.client.send_datagram("last".into()).unwrap();
        assert_eq!(pair.server.read_datagram().await.unwrap(), "last");
        let closing = async {
            tokio::task::yield_now().await;
            pair.client.close(7, b"");
        };
        let (ended, ()) = tokio::join!(pair.server.read_datagram(), closing);
        assert_eq!(ended.unwrap_err().peer_code(), Some(7));
        let closed = pair.client.send_datagram(Bytes::new());
        assert!(
            matches!(closed, Err(DatagramError::Connection(_))),
            "{closed:?}"
        );
    });
}

#[test]
fn keys_are_updated_while_data_flow() {
    run(async {
        let pair = pair().await;
        let data = pattern(1, 3_000_000);
        let sending = async {
            let mut send = pair.client.open_uni().await.unwrap();
            for piece in data.chunks(100_000) {
                send.write_all(piece).await.unwrap();
                // Updates that come too soon change nothing.
                if let Err(UpdateKeysError::Closed) = pair.client.update_keys() {
                    panic!("{:?}", pair.client.error());
                }
                tokio::task::yield_now().await;
            }
            send.finish().unwrap();
            send.acknowledged().await.unwrap();
        };
        let receiving = async {
            let mut recv = pair.server.accept_uni().await.unwrap();
            recv.read_to_end(3_000_000).await.unwrap()
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, data);
        let updates = pair.client.stats().key_updates;
        assert!(updates > 0);
        // The last one may still be in flight.
        assert!((updates - 1..=updates).contains(&pair.server.stats().key_updates));
    });
}
