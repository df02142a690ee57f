//! Endpoints with several addresses, on loopback: standby paths, migration and path events;
//! addresses that change in the middle of a transfer; and the same with quinn as the peer.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration as Span;

use crate::support::quinn_peer::{quinn_client, quinn_echo, quinn_server};
use crate::support::{echo_streams, loopback, pattern, run, server, server_with, transport};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{
    Connection, Endpoint, EndpointError, MoveCause, MoveError, PathError, PathEvent, PathId,
    PathState, PathUpdate, TransportConfig,
};

const SIZE: usize = 20_000_000;

fn at(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), 0)
}

/// A client bound to these addresses, of which it uses the first.
fn client_at(fingerprint: Fingerprint, addresses: &[&str]) -> Endpoint {
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    // The migration monitor would interfere on a busy machine.
    let mut transport = transport();
    transport.migration.proactive = false;
    let builder = Endpoint::builder().transport(transport).client(tls);
    let (first, others) = addresses.split_first().unwrap();
    let more = others.iter().map(|address| at(address));
    let builder = more.fold(builder, |builder, address| builder.also_at(address));
    builder.bind(at(first)).unwrap()
}

async fn connected(client: &Endpoint, server: SocketAddr) -> Connection {
    client.connect(server, "localhost").unwrap().await.unwrap()
}

/// Waits until a path from `local` is ready.
async fn ready(connection: &Connection, local: SocketAddr) -> PathId {
    let mut events = connection.path_events();
    loop {
        let paths = connection.paths();
        let found = paths
            .iter()
            .find(|path| path.snapshot.local == Some(local) && path.state == PathState::Ready);
        if let Some(path) = found {
            return path.snapshot.id;
        }
        events.next().await.expect("the connection is over");
    }
}

async fn echo(connection: &Connection, seed: u64, size: usize) {
    let data = pattern(seed, size);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let sending = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let ((), received) = tokio::join!(sending, recv.read_to_end(size));
    assert!(received.unwrap() == data, "the echo differs");
}

/// Bytes received since the connection began, on paths that still exist.
fn received(connection: &Connection) -> u64 {
    let paths = connection.paths();
    let bytes = paths
        .iter()
        .map(|path| path.snapshot.bytes_received.bytes());
    bytes.sum()
}

/// Echoes `SIZE` bytes, and calls `disturb` from time to time meanwhile, at most `times` times.
async fn echo_disturbed(connection: &Connection, times: usize, mut disturb: impl FnMut(usize)) {
    let echoing = tokio::spawn({
        let connection = connection.clone();
        async move { echo(&connection, 7, SIZE).await }
    });
    let mut disturbed = 0;
    let mut last = received(connection);
    while !echoing.is_finished() {
        let now = received(connection);
        if disturbed < times && now.abs_diff(last) > 2_000_000 {
            disturb(disturbed);
            disturbed += 1;
            last = received(connection);
        }
        tokio::time::sleep(Span::from_millis(1)).await;
    }
    echoing.await.unwrap();
    assert_eq!(disturbed, times, "the transfer was over too early");
}

#[test]
fn client_and_server_validate_a_standby_path() {
    run(async {
        let (server, fingerprint) = server();
        let client = client_at(fingerprint, &["127.0.0.2", "127.0.0.3"]);
        let locals = client.local_addresses();
        assert_eq!(locals.len(), 2);
        assert_eq!(locals[0], client.local_address());
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        let accepted = server.accept().await.unwrap();
        let (ours, theirs) = tokio::join!(connecting, accepted);
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        ready(&ours, locals[1]).await;
        let paths = ours.paths();
        assert_eq!(paths.len(), 2);
        assert_eq!(paths[0].state, PathState::InUse);
        assert_eq!(paths[0].snapshot.local, Some(locals[0]));
        assert!(!paths[1].snapshot.latest_rtt.is_zero());
        // The server validates the path too.
        while theirs
            .paths()
            .iter()
            .filter(|path| path.snapshot.validated)
            .count()
            < 2
        {
            tokio::time::sleep(Span::from_millis(1)).await;
        }
        let remotes: Vec<_> = theirs
            .paths()
            .iter()
            .map(|path| path.snapshot.remote)
            .collect();
        assert_eq!(remotes, locals);
    });
}

#[test]
fn explicit_migration_during_a_transfer_loses_no_data() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client_at(fingerprint, &["127.0.0.2", "127.0.0.3"]);
        let locals = client.local_addresses();
        let connection = connected(&client, address).await;
        let second = ready(&connection, locals[1]).await;
        let mut events = connection.path_events();
        // There and back, by address and by path ID.
        echo_disturbed(&connection, 4, |round| match round % 2 {
            0 => connection.move_to_address(locals[1]).unwrap(),
            _ => connection.move_to(PathId::FIRST).unwrap(),
        })
        .await;
        let paths = connection.paths();
        assert_eq!(paths.len(), 2);
        for path in &paths {
            let snapshot = &path.snapshot;
            assert!(snapshot.bytes_sent.bytes() > 1_000_000, "{paths:?}");
            assert!(snapshot.bytes_received.bytes() > 1_000_000, "{paths:?}");
        }
        let expected = PathEvent::Moved {
            from: PathId::FIRST,
            to: second,
            cause: MoveCause::Requested,
        };
        assert_eq!(events.next().await, Some(PathUpdate::Event(expected)));
        connection.close(0, b"");
        while events.next().await.is_some() {}
        assert_eq!(events.missed(), 0);
        assert!(connection.path_events().next().await.is_none());
    });
}

#[test]
fn a_removed_address_is_left_at_once_and_can_be_added_again() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client_at(fingerprint, &["127.0.0.2", "127.0.0.3"]);
        let locals = client.local_addresses();
        let connection = connected(&client, address).await;
        ready(&connection, locals[1]).await;
        echo_disturbed(&connection, 1, |_| {
            connection.remove_local_address(locals[0])
        })
        .await;
        let paths = connection.paths();
        assert_eq!(paths.len(), 1);
        assert_eq!(paths[0].snapshot.local, Some(locals[1]));
        connection.add_local_address(locals[0]).unwrap();
        ready(&connection, locals[0]).await;
        let nowhere = "127.0.0.9:9".parse().unwrap();
        let refused = connection.add_local_address(nowhere);
        assert_eq!(refused, Err(MoveError::NoSocketAt { local: nowhere }));
    });
}

#[test]
fn rebinding_during_a_transfer_loses_no_data() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client_at(fingerprint, &["127.0.0.2"]);
        let first = client.local_address();
        let connection = connected(&client, address).await;
        // Another port, another address, and any address.
        let bind_addresses = ["127.0.0.2", "127.0.0.3", "0.0.0.0"];
        echo_disturbed(&connection, 3, |round| {
            let now = client.rebind(at(bind_addresses[round])).unwrap();
            assert_eq!(now, client.local_address());
        })
        .await;
        assert_ne!(client.local_address(), first);
        assert!(
            UdpSocket::bind(first).is_ok(),
            "the first socket is still open"
        );
        echo(&connection, 8, 100_000).await;
    });
}

#[test]
fn a_rebind_between_dual_stack_and_ipv4_loses_no_data() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client_at(fingerprint, &["::"]);
        let connection = connected(&client, address).await;
        let bind_addresses = ["127.0.0.2", "::", "0.0.0.0", "::ffff:127.0.0.3"];
        echo_disturbed(&connection, 4, |round| {
            let now = client.rebind(at(bind_addresses[round])).unwrap();
            assert_eq!(now.ip(), at(bind_addresses[round]).ip().to_canonical());
            assert_eq!(now, client.local_address());
        })
        .await;
        echo(&connection, 8, 100_000).await;
        let local = connection.paths()[0].snapshot.local;
        assert_eq!(local, Some(client.local_address()));
        assert_eq!(client.stats().datagrams_without_socket, 0);
    });
}

#[test]
fn a_rebind_that_would_cut_off_a_connection_is_refused() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let fingerprint = identity.fingerprint();
        let tls = ServerTls::new(identity).build().unwrap();
        let server = Endpoint::builder().server(tls).bind(at("::1")).unwrap();
        let address = server.local_address();
        echo_streams(server);
        let client = client_at(fingerprint, &["::"]);
        let before = client.local_address();
        let connection = connected(&client, address).await;
        let error = client.rebind(at("127.0.0.1")).unwrap_err();
        assert!(
            matches!(error, EndpointError::OtherFamily { peer, .. } if peer == address),
            "{error}"
        );
        assert_eq!(client.local_address(), before);
        echo(&connection, 1, 100_000).await;
        client.rebind(at("::1")).unwrap();
        echo(&connection, 2, 100_000).await;
        // Without that connection, nothing speaks against it.
        connection.close(0, b"");
        assert!(client.rebind(at("127.0.0.1")).is_ok());
    });
}

#[test]
fn idle_connections_follow_a_rebind() {
    run(async {
        let (server, fingerprint) = server();
        let address = server.local_address();
        echo_streams(server);
        let client = client_at(fingerprint, &["127.0.0.2"]);
        let mut connections = Vec::new();
        for _ in 0..20 {
            connections.push(connected(&client, address).await);
        }
        echo(&connections[0], 0, 10_000).await;
        let last = connected(&client, address).await;
        client.rebind(at("127.0.0.4")).unwrap();
        connections.push(last);
        for (seed, connection) in connections.iter().enumerate() {
            echo(connection, seed as u64, 10_000).await;
            let paths = connection.paths();
            assert_eq!(paths[0].snapshot.local, Some(client.local_address()));
        }
        // New connections begin at the new address.
        let connection = connected(&client, address).await;
        assert_eq!(
            connection.paths()[0].snapshot.local,
            Some(client.local_address())
        );
    });
}

#[test]
fn a_multi_address_server_answers_from_the_addressed_one() {
    run(async {
        let second = "127.0.0.6";
        let (server, fingerprint) = server_with(
            |tls| tls,
            |builder| builder.also_at(at(second)).also_at(at("127.0.0.7")),
        );
        let addresses = server.local_addresses();
        assert_eq!(addresses.len(), 3);
        assert_eq!(addresses[1].ip().to_string(), second);
        let client = client_at(fingerprint, &["127.0.0.2"]);
        for address in addresses {
            let connecting = client.connect(address, "localhost").unwrap();
            let accepted = server.accept().await.unwrap();
            let (ours, theirs) = tokio::join!(connecting, accepted);
            let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
            assert_eq!(ours.remote_address(), address);
            assert_eq!(theirs.paths()[0].snapshot.local, Some(address));
            let (mut send, _recv) = theirs.open_bi().await.unwrap();
            send.finish_with("from where you asked".into())
                .await
                .unwrap();
            let (_send, mut recv) = ours.accept_bi().await.unwrap();
            assert_eq!(recv.read_to_end(100).await.unwrap(), "from where you asked");
        }
    });
}

#[test]
fn a_client_migrates_to_the_preferred_address() {
    run(async {
        // A port that is free now.
        let free = std::net::UdpSocket::bind("127.0.0.8:0").unwrap();
        let preferred = free.local_addr().unwrap();
        drop(free);
        let (server, fingerprint) = server_with(
            |tls| tls,
            |builder| builder.also_at(preferred).preferred_address(preferred),
        );
        let client = client_at(fingerprint, &["127.0.0.2"]);
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        let accepted = server.accept().await.unwrap();
        let (ours, theirs) = tokio::join!(connecting, accepted);
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        let mut events = ours.path_events();
        while ours.remote_address() != preferred {
            events.next().await.expect("the connection is over");
        }
        let (mut send, _recv) = theirs.open_bi().await.unwrap();
        send.finish_with("from elsewhere".into()).await.unwrap();
        let (_send, mut recv) = ours.accept_bi().await.unwrap();
        assert_eq!(recv.read_to_end(100).await.unwrap(), "from elsewhere");
    });
}

#[test]
fn invalid_migrations_are_errors() {
    run(async {
        let (server, fingerprint) = server_with(
            |tls| tls,
            |builder| {
                builder.transport(TransportConfig {
                    allow_migration: false,
                    ..transport()
                })
            },
        );
        let client = client_at(fingerprint, &["127.0.0.2", "127.0.0.3"]);
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        let accepted = server.accept().await.unwrap();
        let (ours, theirs) = tokio::join!(connecting, accepted);
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        let refused = |error| Err(MoveError::Path(error));
        assert_eq!(theirs.move_to(PathId::FIRST), refused(PathError::NotClient));
        // The server forbids migration: there is no standby path then.
        let (mut send, _recv) = theirs.open_bi().await.unwrap();
        send.finish_with("confirmed".into()).await.unwrap();
        let (_send, mut recv) = ours.accept_bi().await.unwrap();
        recv.read_to_end(100).await.unwrap();
        send.acknowledged().await.unwrap();
        assert_eq!(ours.move_to(PathId::FIRST), refused(PathError::Forbidden));
        let local = client.local_addresses()[1];
        assert_eq!(ours.paths().len(), 1);
        assert_eq!(
            ours.move_to_address(local),
            Err(MoveError::NoPathFrom { local })
        );
        ours.close(0, b"");
        assert!(matches!(
            ours.move_to(PathId::FIRST),
            Err(MoveError::Connection(_))
        ));
        let error = server.rebind(loopback()).unwrap_err();
        assert!(matches!(error, EndpointError::ServerStays), "{error}");
        let error = client.rebind("192.0.2.77:0".parse().unwrap()).unwrap_err();
        assert!(
            matches!(error, EndpointError::AddressNotAvailable { .. }),
            "{error}"
        );
        assert_eq!(client.local_addresses().len(), 2);
    });
}

#[test]
fn an_unknown_interface_is_named() {
    run(async {
        let error = Endpoint::builder()
            .also_at_interface(at("127.0.0.3"), "nowhere0")
            .bind(loopback())
            .unwrap_err();
        assert!(
            matches!(&error, EndpointError::Interface { interface, .. } if interface == "nowhere0"),
            "{error}"
        );
        // Loopback addresses are on this one.
        let bound = Endpoint::builder().interface("lo").bind(loopback());
        assert!(bound.is_ok(), "{bound:?}");
    });
}

#[test]
fn our_client_moves_and_rebinds_with_a_quinn_server() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let server = quinn_server(&identity);
        let client = client_at(identity.fingerprint(), &["127.0.0.2", "127.0.0.3"]);
        let locals = client.local_addresses();
        let connection = connected(&client, server.local_addr().unwrap()).await;
        ready(&connection, locals[1]).await;
        echo_disturbed(&connection, 3, |round| match round {
            0 => connection.move_to_address(locals[1]).unwrap(),
            1 => connection.move_to_address(locals[0]).unwrap(),
            _ => drop(client.rebind(at("127.0.0.4")).unwrap()),
        })
        .await;
    });
}

#[test]
fn a_quinn_client_rebinds_with_our_server() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let tls = weir_net::tls::ServerTls::new(identity.clone())
            .build()
            .unwrap();
        let builder = Endpoint::builder().transport(transport()).server(tls);
        let server = builder.bind("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = server.local_address().port();
        echo_streams(server);
        let client = quinn_client(&identity);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        quinn_echo(&connection, 1, 1_000).await;
        let echoing = tokio::spawn({
            let connection = connection.clone();
            async move { quinn_echo(&connection, 2, SIZE).await }
        });
        for bind_address in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
            let before = connection.stats().udp_rx.bytes;
            while connection.stats().udp_rx.bytes < before + 2_000_000 {
                assert!(!echoing.is_finished(), "the transfer was over too early");
                tokio::time::sleep(Span::from_millis(1)).await;
            }
            client
                .rebind(UdpSocket::bind(at(bind_address)).unwrap())
                .unwrap();
        }
        echoing.await.unwrap();
    });
}
