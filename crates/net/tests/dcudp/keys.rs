//! With a pre-shared key.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_net::Duration;
use weir_net::dcudp::{
    ConnectionError, DcudpClient, DcudpConfig, DcudpConnectError, DcudpListener, DcudpStream,
    PreSharedKey, Stream,
};

use super::{config, loopback, pair_with, pattern, run};

fn keyed(byte: u8) -> DcudpConfig {
    let mut config = config();
    config.transport.shared_key = Some(Arc::new(PreSharedKey::new(&[byte; 32]).unwrap()));
    config
}

#[test]
fn peers_with_the_same_key_transfer_all_data() {
    run(async {
        let mut pair = pair_with::<Stream>(loopback(), keyed(1)).await;
        let data = pattern(5, 5_000_000);
        let mut received = vec![0; data.len()];
        let (sent, read) = tokio::join!(
            pair.client.write_all(&data),
            pair.server.read_exact(&mut received)
        );
        sent.unwrap();
        read.unwrap();
        assert!(received == data);
        assert_eq!(pair.server.stats().unauthentic, 0);
        pair.client.close().await.unwrap();
    });
}

/// Why a client with one key does not reach a server with another.
async fn refusal(server: DcudpConfig, mut client: DcudpConfig) -> Option<ConnectionError> {
    client.transport.handshake_timeout = Duration::from_millis(200);
    let listener: DcudpListener = DcudpListener::bind(loopback(), server).unwrap();
    let client = DcudpClient::bind(loopback(), client).unwrap();
    match client.connect::<Stream>(listener.local_address()).await {
        Err(DcudpConnectError::Connection(error)) => error.cause(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn peers_without_the_same_key_cannot_connect() {
    run(async {
        // Peers without the key receive no answer.
        let silent = refusal(keyed(1), keyed(2)).await;
        assert!(
            matches!(silent, Some(ConnectionError::HandshakeTimeout(_))),
            "{silent:?}"
        );
        let silent = refusal(config(), keyed(1)).await;
        assert!(
            matches!(silent, Some(ConnectionError::HandshakeTimeout(_))),
            "{silent:?}"
        );
        let told = refusal(keyed(1), config()).await;
        assert!(
            matches!(told, Some(ConnectionError::Refused(_))),
            "{told:?}"
        );
    });
}

#[test]
fn unauthenticated_packets_have_no_effect() {
    run(async {
        let listener: DcudpListener = DcudpListener::bind(loopback(), keyed(1)).unwrap();
        // The client's packets pass through here, and can be sent once more.
        let relay = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
        let client = DcudpClient::bind(loopback(), keyed(1)).unwrap();
        let (server, front) = (listener.local_address(), relay.local_addr().unwrap());
        let relaying = async {
            let mut buffer = vec![0; 65536];
            let mut client = None;
            loop {
                let (length, from) = relay.recv_from(&mut buffer).await.unwrap();
                let datagram = &mut buffer[..length];
                if from == server {
                    relay.send_to(datagram, client.unwrap()).await.unwrap();
                    continue;
                }
                client = Some(from);
                relay.send_to(datagram, server).await.unwrap();
                relay.send_to(datagram, server).await.unwrap();
                datagram[length - 1] ^= 1;
                relay.send_to(datagram, server).await.unwrap();
            }
        };
        let transfer = async {
            let (began, taken) = tokio::join!(client.connect(front), listener.accept());
            let (mut stream, mut taken): (DcudpStream, _) = (began.unwrap(), taken.unwrap());
            let data = pattern(6, 100_000);
            stream.write_all(&data).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut received = Vec::new();
            taken.read_to_end(&mut received).await.unwrap();
            assert!(received == data);
            let stats = taken.stats();
            assert!(stats.unauthentic > 0 && stats.duplicates == 0, "{stats:?}");
        };
        tokio::select! {
            () = relaying => {}
            () = transfer => {}
        }
    });
}
