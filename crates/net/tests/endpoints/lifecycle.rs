//! The life cycle of endpoints and connections, with its errors.

use std::net::UdpSocket;

use crate::support::{
    self, client, echo_streams, loopback, pair, pattern, run, server, server_with, transport,
};
use weir_net::tls::{ClientTls, Fingerprint};
use weir_net::{
    ByteSize, ConnectError, ConnectionError, Duration, Endpoint, EndpointError, ServeOptions,
    TransportConfig,
};

#[test]
fn an_address_in_use_is_named() {
    run(async {
        let taken = UdpSocket::bind(loopback()).unwrap();
        let address = taken.local_addr().unwrap();
        let error = Endpoint::builder().bind(address).unwrap_err();
        assert!(
            matches!(error, EndpointError::AddressInUse { address: named } if named == address)
        );
        let foreign = "192.0.2.1:0".parse().unwrap();
        let error = Endpoint::builder().bind(foreign).unwrap_err();
        assert!(
            matches!(error, EndpointError::AddressNotAvailable { .. }),
            "{error}"
        );
    });
}

#[test]
fn endpoints_need_a_runtime_and_valid_settings() {
    let error = Endpoint::builder().bind(loopback()).unwrap_err();
    assert!(matches!(error, EndpointError::NoRuntime));
    run(async {
        let wrong = TransportConfig {
            packet_size: Some(ByteSize::from_bytes(100)),
            ..transport()
        };
        let error = Endpoint::builder()
            .transport(wrong)
            .bind(loopback())
            .unwrap_err();
        assert!(error.to_string().contains("packet_size"), "{error}");
    });
}

#[test]
fn an_unanswered_connect_ends_at_the_handshake_timeout() {
    run(async {
        let silent = UdpSocket::bind(loopback()).unwrap();
        let address = silent.local_addr().unwrap();
        let after = Duration::from_millis(100);
        let impatient = TransportConfig {
            handshake_timeout: after,
            ..transport()
        };
        let tls = ClientTls::pinned(Fingerprint::of(b"")).build().unwrap();
        let client = Endpoint::builder().transport(impatient).client(tls);
        let client = client.bind(loopback()).unwrap();
        let error = client
            .connect(address, "localhost")
            .unwrap()
            .await
            .unwrap_err();
        assert_eq!(
            error,
            ConnectionError::HandshakeTimeout {
                remote: address,
                after
            }
        );
        assert!(error.to_string().contains(&address.to_string()));
    });
}

#[test]
fn invalid_uses_are_immediate_errors() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        let error = server.connect(address, "localhost").unwrap_err();
        assert_eq!(error, ConnectError::NoClientConfig);
        let client = client(fingerprint);
        assert!(client.connect(address, "not a name").is_err());
        assert!(
            client
                .connect("127.0.0.1:0".parse().unwrap(), "localhost")
                .is_err()
        );
        let error = client
            .connect("[::1]:9".parse().unwrap(), "localhost")
            .unwrap_err();
        assert!(matches!(error, ConnectError::AddressFamily { .. }));
    });
}

#[test]
fn ipv6_and_dual_stack_work() {
    run(async {
        let any = "[::1]:0".parse().unwrap();
        let identity = weir_net::tls::Identity::self_signed(["localhost"]).unwrap();
        let fingerprint = identity.fingerprint();
        let tls = weir_net::tls::ServerTls::new(identity).build().unwrap();
        let six = Endpoint::builder().server(tls.clone()).bind(any);
        let four = Endpoint::builder().server(tls).bind(loopback()).unwrap();
        let client = Endpoint::builder()
            .client(ClientTls::pinned(fingerprint).build().unwrap())
            .bind_any()
            .unwrap();
        // A machine without IPv6 still has IPv4.
        for server in [Some(four), six.ok()].into_iter().flatten() {
            let address = server.local_address();
            echo_streams(server);
            let connection = client.connect(address, "localhost").unwrap().await.unwrap();
            assert_eq!(connection.remote_address(), address);
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.finish_with("hello".into()).await.unwrap();
            assert_eq!(recv.read_to_end(5).await.unwrap(), "hello");
        }
    });
}

#[test]
fn socket_buffers_have_the_requested_size_or_are_reported() {
    run(async {
        let size = ByteSize::from_kib(128);
        let endpoint = Endpoint::builder().receive_buffer(size).send_buffer(size);
        let granted = endpoint.bind(loopback()).unwrap().socket_buffers();
        assert_eq!((granted.receive, granted.send), (size, size));
    });
}

#[test]
fn the_last_handle_closes_the_connection() {
    run(async {
        let pair = pair().await;
        let (send, recv) = pair.client.open_bi().await.unwrap();
        drop(pair.client);
        drop(recv);
        assert!(pair.server.error().is_none());
        drop(send);
        let error = pair.server.closed().await;
        assert_eq!(error.peer_code(), Some(0), "{error}");
        pair.client_endpoint
            .wait_idle(Duration::from_secs(30))
            .await
            .unwrap();
    });
}

#[test]
fn an_idle_connection_times_out() {
    run(async {
        let quiet = TransportConfig {
            idle_timeout: Duration::from_millis(50),
            ..transport()
        };
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.transport(quiet));
        let pair = support::connect(client(fingerprint), server).await;
        let (ours, theirs) = tokio::join!(pair.client.closed(), pair.server.closed());
        for error in [ours, theirs] {
            assert!(error.to_string().contains("silent"), "{error}");
        }
    });
}

#[test]
fn an_endpoint_that_has_shut_down_begins_no_connection() {
    run(async {
        let pair = pair().await;
        let second = pair.client_endpoint.clone();
        let leaving = async {
            tokio::task::yield_now().await;
            pair.client.close(0, b"done");
        };
        let (result, ()) = tokio::join!(
            pair.server_endpoint.shutdown(Duration::from_secs(30)),
            leaving
        );
        assert_eq!(result, Ok(()));
        assert!(pair.server_endpoint.accept().await.is_none());
        let error = second.connect(second.local_address(), "localhost");
        assert!(error.is_ok());
        assert_eq!(second.shutdown(Duration::from_secs(30)).await, Ok(()));
        let error = second.connect(second.local_address(), "localhost");
        assert_eq!(error.unwrap_err(), ConnectError::ShuttingDown);
    });
}

#[test]
fn connections_outlive_their_endpoints_handles() {
    run(async {
        let pair = pair().await;
        drop((pair.client_endpoint, pair.server_endpoint));
        let server = pair.server.clone();
        tokio::spawn(async move {
            let echo = |request: weir_net::Request| async move { Ok(request.body) };
            server.serve(ServeOptions::default(), echo).await
        });
        assert_eq!(
            pair.client.call("still there").await.unwrap(),
            "still there"
        );
    });
}

#[test]
fn runtime_shutdown_ends_its_connections() {
    let connection = run(async {
        let pair = pair().await;
        pair.client.clone()
    });
    assert_eq!(connection.error(), Some(ConnectionError::EndpointGone));
}

#[test]
fn more_clients_than_allowed_are_refused() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.max_connections(1));
        let address = server.local_address();
        let client = client(fingerprint);
        let _first = client.connect(address, "localhost").unwrap().await.unwrap();
        let second = client
            .connect(address, "localhost")
            .unwrap()
            .await
            .unwrap_err();
        assert!(
            second.to_string().contains("CONNECTION_REFUSED"),
            "{second}"
        );
    });
}

#[test]
fn malformed_and_stray_datagrams_are_ignored() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server.clone());
        let noise = UdpSocket::bind(loopback()).unwrap();
        for (seed, size) in [0, 1, 2, 7, 20, 21, 100, 1200, 1500, 9000]
            .into_iter()
            .enumerate()
        {
            for first in [0x00, 0x40, 0x80, 0xc0, 0xff] {
                let mut datagram = pattern(seed as u64, size).to_vec();
                datagram
                    .first_mut()
                    .into_iter()
                    .for_each(|byte| *byte = first);
                noise.send_to(&datagram, address).unwrap();
            }
        }
        let client = client(fingerprint);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.finish_with("hello".into()).await.unwrap();
        assert_eq!(recv.read_to_end(5).await.unwrap(), "hello");
        assert!(server.stats().datagrams_unroutable > 0);
        assert_eq!(server.stats().connections, 1);
    });
}

#[test]
fn two_hundred_connections_at_once() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client(fingerprint);
        let mut tasks = tokio::task::JoinSet::new();
        for seed in 0..200_u64 {
            let client = client.clone();
            tasks.spawn(async move {
                let connection = client.connect(address, "localhost").unwrap().await.unwrap();
                for round in 0..5 {
                    let data = pattern(seed * 10 + round, if seed % 2 == 0 { 100 } else { 10_000 });
                    let (mut send, mut recv) = connection.open_bi().await.unwrap();
                    send.finish_with(data.clone()).await.unwrap();
                    assert_eq!(recv.read_to_end(data.len()).await.unwrap(), data);
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

#[test]
fn the_low_latency_setting_spins_only_while_a_reply_is_due() {
    run(async {
        let spin = Some(Duration::from_micros(50));
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.low_latency(spin));
        let address = server.local_address();
        echo_streams(server.clone());
        let tls = ClientTls::pinned(fingerprint).build().unwrap();
        let client = Endpoint::builder().client(tls).low_latency(spin);
        let client = client.bind(loopback()).unwrap();
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        for seed in 0..50 {
            let data = pattern(seed, 10_000);
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.finish_with(data.clone()).await.unwrap();
            assert_eq!(recv.read_to_end(data.len()).await.unwrap(), data);
        }
        assert!(client.stats().spinning > Duration::ZERO);
        // Idle connections cost nothing.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let before = client.stats().spinning;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(client.stats().spinning, before);
    });
}

#[test]
fn several_threads_share_connections() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let test = async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client(fingerprint);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for seed in 0..32_u64 {
            let connection = connection.clone();
            tasks.spawn(async move {
                for round in 0..10 {
                    let data = pattern(seed * 100 + round, 30_000);
                    let (mut send, mut recv) = connection.open_bi().await.unwrap();
                    send.finish_with(data.clone()).await.unwrap();
                    assert_eq!(recv.read_to_end(data.len()).await.unwrap(), data);
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(support::PATIENCE, test).await })
        .expect("the test hangs");
}
