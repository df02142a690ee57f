//! Interoperability with `quinn` in both directions, with and without loss in between.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::lossy::forwarder;
use crate::support::quinn_peer::{
    LongTokens, quinn_client, quinn_echo, quinn_server, quinn_server_with,
};
use crate::support::{loopback, pattern, run, transport};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{Connection, DatagramConfig, Endpoint, TransportConfig, UpdateKeysError};

const SIZES: [usize; 6] = [0, 1, 1_200, 10_000, 1_000_000, 10_000_000];
const LOSSY_SIZES: [usize; 4] = [0, 1, 10_000, 1_000_000];

fn identity() -> Identity {
    Identity::self_signed(["localhost"]).unwrap()
}

/// With all extensions.
fn weir_transport() -> TransportConfig {
    TransportConfig {
        datagrams: Some(DatagramConfig::default()),
        ack_frequency: true,
        ..transport()
    }
}

fn weir_server(identity: &Identity) -> Endpoint {
    let tls = ServerTls::new(identity.clone())
        .early_data(true)
        .build()
        .unwrap();
    let builder = Endpoint::builder().transport(weir_transport()).server(tls);
    let endpoint = builder.bind(loopback()).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(connecting) = accepting.accept().await {
            let Some(connection) = connecting.early() else {
                continue;
            };
            let datagrams = connection.clone();
            tokio::spawn(async move {
                while let Ok(data) = datagrams.read_datagram().await {
                    datagrams.send_datagram(data).unwrap();
                }
            });
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
                            if send.write_bytes(chunk).await.is_err() {
                                return;
                            }
                        }
                        let _ = send.finish();
                    });
                }
            });
        }
    });
    endpoint
}

fn weir_client(identity: &Identity) -> Endpoint {
    let tls = ClientTls::pinned(identity.fingerprint())
        .early_data(true)
        .build()
        .unwrap();
    let builder = Endpoint::builder().transport(weir_transport()).client(tls);
    builder.bind(loopback()).unwrap()
}

async fn weir_echo(connection: &Connection, seed: u64, size: usize) {
    let data = pattern(seed, size);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let sending = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let ((), received) = tokio::join!(sending, recv.read_to_end(size));
    assert_eq!(received.unwrap(), data);
}

async fn drive_weir(client: &Endpoint, address: SocketAddr, sizes: &[usize]) {
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    for (seed, size) in sizes.iter().enumerate() {
        weir_echo(&connection, seed as u64, *size).await;
    }
    let echoes = (0..100).map(|seed| {
        let connection = connection.clone();
        async move { weir_echo(&connection, seed, 5_000).await }
    });
    let mut tasks = tokio::task::JoinSet::new();
    echoes.for_each(|echo| drop(tasks.spawn(echo)));
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

async fn drive_quinn(client: &quinn::Endpoint, address: SocketAddr, sizes: &[usize]) {
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    for (seed, size) in sizes.iter().enumerate() {
        quinn_echo(&connection, seed as u64, *size).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for seed in 0..100 {
        let connection = connection.clone();
        tasks.spawn(async move { quinn_echo(&connection, seed, 5_000).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[test]
fn our_client_and_a_quinn_server() {
    run(async {
        let identity = identity();
        let server = quinn_server(&identity);
        drive_weir(
            &weir_client(&identity),
            server.local_addr().unwrap(),
            &SIZES,
        )
        .await;
    });
}

#[test]
fn a_quinn_client_and_our_server() {
    run(async {
        let identity = identity();
        let server = weir_server(&identity);
        drive_quinn(&quinn_client(&identity), server.local_address(), &SIZES).await;
    });
}

#[test]
fn our_client_and_a_quinn_server_with_loss() {
    run(async {
        let identity = identity();
        let server = quinn_server(&identity);
        let address = forwarder(server.local_addr().unwrap(), 3).await;
        drive_weir(&weir_client(&identity), address, &LOSSY_SIZES).await;
    });
}

#[test]
fn a_quinn_client_and_our_server_with_loss() {
    run(async {
        let identity = identity();
        let server = weir_server(&identity);
        let address = forwarder(server.local_address(), 3).await;
        drive_quinn(&quinn_client(&identity), address, &LOSSY_SIZES).await;
    });
}

#[test]
fn our_client_and_our_server_with_loss() {
    run(async {
        let identity = identity();
        let server = weir_server(&identity);
        let address = forwarder(server.local_address(), 3).await;
        drive_weir(&weir_client(&identity), address, &LOSSY_SIZES).await;
    });
}

#[test]
fn our_client_resumes_with_a_quinn_server() {
    run(async {
        let identity = identity();
        let server = quinn_server(&identity);
        let address = server.local_addr().unwrap();
        let client = weir_client(&identity);
        let first = client.connect(address, "localhost").unwrap().await.unwrap();
        weir_echo(&first, 1, 1_000).await;
        first.close(0, b"");
        let connecting = client.connect(address, "localhost").unwrap();
        let early = connecting.early().expect("the session allows early data");
        let (mut send, mut recv) = early.open_bi_early().await.unwrap();
        send.finish_with("early".into()).await.unwrap();
        assert_eq!(recv.read_to_end(5).await.unwrap(), "early");
        let connection = connecting.await.unwrap();
        assert!(connection.peer_identity().resumed);
        assert!(!connection.early_data_rejected());
        weir_echo(&connection, 2, 100_000).await;
    });
}

#[test]
fn a_quinn_client_resumes_with_our_server() {
    run(async {
        let identity = identity();
        let server = weir_server(&identity);
        let address = server.local_address();
        let client = quinn_client(&identity);
        let first = client.connect(address, "localhost").unwrap().await.unwrap();
        quinn_echo(&first, 1, 1_000).await;
        first.close(0_u32.into(), b"");
        let connecting = client.connect(address, "localhost").unwrap();
        let (connection, accepted) = connecting
            .into_0rtt()
            .unwrap_or_else(|_| panic!("the session allows early data"));
        quinn_echo(&connection, 2, 1_000).await;
        assert!(accepted.await);
        quinn_echo(&connection, 3, 100_000).await;
    });
}

#[test]
fn our_client_sends_datagrams_and_updates_keys_with_a_quinn_server() {
    run(async {
        let identity = identity();
        let server = quinn_server(&identity);
        let client = weir_client(&identity);
        let address = server.local_addr().unwrap();
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let max = connection.max_datagram_size().unwrap();
        for (seed, size) in [0, 1, 1_000, max.min(1_100)].into_iter().enumerate() {
            let data = pattern(seed as u64, size);
            connection.send_datagram(data.clone()).unwrap();
            assert_eq!(connection.read_datagram().await.unwrap(), data);
        }
        let mut updates = 0;
        while updates < 3 {
            match connection.update_keys() {
                Ok(()) => updates += 1,
                Err(UpdateKeysError::Closed) => panic!("{:?}", connection.error()),
                Err(_) => {}
            }
            weir_echo(&connection, updates, 100_000).await;
        }
        let stats = connection.stats();
        assert_eq!(stats.key_updates, 3);
        assert_eq!(stats.datagrams.received, 4);
        assert!(stats.ack_requests > 0, "quinn asks for ACKs");
    });
}

#[test]
fn a_quinn_client_sends_datagrams_and_updates_keys_with_our_server() {
    run(async {
        let identity = identity();
        let server = weir_server(&identity);
        let client = quinn_client(&identity);
        let address = server.local_address();
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        for (seed, size) in [0, 1, 1_000].into_iter().enumerate() {
            let data = pattern(seed as u64, size);
            connection.send_datagram(data.clone()).unwrap();
            assert_eq!(connection.read_datagram().await.unwrap(), data);
        }
        for seed in 0..3 {
            quinn_echo(&connection, seed, 300_000).await;
            connection.force_key_update();
            quinn_echo(&connection, seed, 300_000).await;
        }
        let stats = connection.stats();
        assert_eq!(stats.frame_rx.datagram, 3);
        assert!(stats.frame_rx.ack_frequency > 0, "we ask for ACKs");
        assert!(stats.frame_tx.ack_frequency > 0, "quinn asks for ACKs");
    });
}

#[test]
fn our_client_answers_a_retry_with_a_long_token() {
    run(async {
        let identity = identity();
        // quinn appends a nonce of 16 bytes.
        let server = quinn_server_with(
            &identity,
            |config| {
                config.token_key(Arc::new(LongTokens(1_084)));
            },
            |incoming| incoming.remote_address_validated(),
        );
        let client = weir_client(&identity);
        let address = server.local_addr().unwrap();
        let connecting = client.connect(address, "localhost").unwrap();
        weir_echo(&connecting.await.unwrap(), 1, 100_000).await;
    });
}
