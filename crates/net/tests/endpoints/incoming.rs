//! Clients that the server's application decides about, and limits per client.

use std::net::SocketAddr;

use crate::support::{
    PATIENCE, client, echo_streams, loopback, pattern, run, server_with, transport,
};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{
    ClientLimits, Connection, Endpoint, Executed, Incoming, KnownClientsConfig, Request,
    ServeOptions,
};

const LIMITS: ClientLimits = ClientLimits {
    per_address: 2,
    per_network: 2,
};

/// Connects while the server decides; returns both results. A client that waits long for an answer sends
/// its packet again, which is another decision where the first one was to refuse it: each client connects
/// once.
async fn connect<T>(
    client: &Endpoint,
    server: &Endpoint,
    decide: impl AsyncFnOnce(Incoming) -> T,
) -> (Result<Connection, String>, T) {
    let address = server.local_address();
    let connecting = async {
        let connected = client.connect(address, "localhost").unwrap().await;
        connected.map_err(|error| error.to_string())
    };
    let deciding = async {
        loop {
            let incoming = server.accept_incoming().await.unwrap();
            if incoming.remote_address() == client.local_address() {
                return decide(incoming).await;
            }
            incoming.refuse();
        }
    };
    tokio::join!(connecting, deciding)
}

async fn echo(connection: &Connection) {
    let data = pattern(1, 10_000);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&data).await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(data.len()).await.unwrap(), data);
}

async fn serve(connection: Connection) {
    let echo = |request: Request| async { Ok(request.body) };
    connection.serve(ServeOptions::default(), echo).await;
}

#[test]
fn a_client_with_too_many_connections_is_refused_until_one_ends() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.client_limits(LIMITS));
        let address = server.local_address();
        echo_streams(server.clone());
        let client = client(fingerprint);
        let connect = || async { client.connect(address, "localhost").unwrap().await };
        let first = connect().await.unwrap();
        let _second = connect().await.unwrap();
        let refused = connect().await.unwrap_err().to_string();
        assert!(refused.contains("CONNECTION_REFUSED"), "{refused}");
        // A client that waits long for the answer sends its packet again.
        assert!(server.stats().replies.client_limit_refusals >= 1);
        first.close(0, b"");
        let third = loop {
            match connect().await {
                Ok(connection) => break connection,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        };
        echo(&third).await;
    });
}

#[test]
fn a_known_peer_with_too_many_connections_is_refused() {
    run(async {
        let (server, fingerprint) = server_with(
            |tls| tls.known_peers(KnownClientsConfig::default()),
            |builder| builder.client_limits(LIMITS),
        );
        let address = server.local_address();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(connecting) = accepting.accept().await {
                tokio::spawn(async { serve(connecting.await.unwrap()).await });
            }
        });
        let client = client(fingerprint);
        let connect = || async { client.connect(address, "localhost").unwrap().await.unwrap() };
        let first = connect().await;
        first.call("one").await.unwrap();
        let second = connect().await;
        assert!(second.is_known_peer());
        second.call("two").await.unwrap();
        let third = connect().await;
        let error = third.call("three").await.unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error:?}");
        let error = third.closed().await.to_string();
        assert!(error.contains("CONNECTION_REFUSED"), "{error}");
        let stats = server.stats().replies;
        assert_eq!((stats.client_limit_refusals, stats.refusals), (1, 1));
        assert_eq!(first.call("four").await.unwrap(), "four");
    });
}

#[test]
fn the_application_accepts_and_refuses_clients() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.decide_incoming(100));
        let accepted = client(fingerprint);
        let local = accepted.local_address();
        let (connected, _accepted) = connect(&accepted, &server, async |incoming| {
            assert_eq!(incoming.remote_address(), local);
            assert!(!incoming.is_validated() && !incoming.is_known_peer());
            let names = incoming.names().unwrap();
            assert_eq!(names.server_name.as_deref(), Some("localhost"));
            assert_eq!(names.application_protocols, [b"weir"]);
            incoming.accept().unwrap().await.unwrap()
        })
        .await;
        assert!(connected.is_ok());
        let refused = client(fingerprint);
        let (refused, ()) = connect(&refused, &server, async |incoming| incoming.refuse()).await;
        assert!(refused.unwrap_err().contains("CONNECTION_REFUSED"));
        let dropped = client(fingerprint);
        let (dropped, ()) = connect(&dropped, &server, async |incoming| drop(incoming)).await;
        assert!(dropped.unwrap_err().contains("CONNECTION_REFUSED"));
        assert!(server.stats().replies.refusals >= 2);
        assert_eq!(server.stats().connections, 1);
    });
}

#[test]
fn a_client_hello_of_several_packets_is_kept_and_read() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.decide_incoming(100));
        let protocols = (0..150).map(|number| format!("protocol-number-{number}"));
        let protocols: Vec<String> = protocols.chain(["weir".to_owned()]).collect();
        let tls = ClientTls::pinned(fingerprint).application_protocols(protocols.clone());
        let client = Endpoint::builder()
            .client(tls.build().unwrap())
            .bind(loopback())
            .unwrap();
        let (connected, accepted) = connect(&client, &server, async |incoming| {
            // The rest may arrive later.
            let names = loop {
                match incoming.names() {
                    Some(names) => break names,
                    None => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
                }
            };
            let asked = names.application_protocols.iter();
            assert!(asked.eq(protocols.iter().map(String::as_bytes)));
            incoming.accept().unwrap().await.unwrap()
        })
        .await;
        assert!(connected.is_ok());
        let protocol = accepted.peer_identity().application_protocol;
        assert_eq!(protocol.as_deref(), Some(&b"weir"[..]));
    });
}

#[test]
fn a_client_is_asked_to_validate_its_address_and_can_be_ignored() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.decide_incoming(100));
        // Without a token that an earlier connection left.
        let tls = ClientTls::pinned(fingerprint).resumption(false);
        let client = Endpoint::builder()
            .client(tls.build().unwrap())
            .bind(loopback())
            .unwrap();
        let next = async || server.accept_incoming().await.unwrap();
        let (connected, _accepted) = connect(&client, &server, async |incoming| {
            incoming.ignore();
            let again = next().await;
            assert!(again.may_retry());
            again.retry().unwrap();
            let validated = next().await;
            assert!(validated.is_validated() && !validated.may_retry());
            let validated = validated.retry().unwrap_err().into_incoming();
            validated.accept().unwrap().await.unwrap()
        })
        .await;
        assert!(connected.is_ok());
        assert_eq!(server.stats().replies.retries, 1);
    });
}

#[test]
fn clients_get_other_credentials_and_transports() {
    run(async {
        let (server, _) = server_with(|tls| tls, |builder| builder.decide_incoming(100));
        let other = Identity::self_signed(["localhost"]).unwrap();
        let client = client(other.fingerprint());
        let credentials = ServerTls::new(other).build().unwrap();
        let mut narrow = transport();
        narrow.max_bidirectional_streams = 1;
        let (connected, accepted) = connect(&client, &server, async |incoming| {
            let transport = Some(narrow.into());
            let connecting = incoming.accept_with(&credentials, transport).unwrap();
            connecting.await.unwrap()
        })
        .await;
        let connected = connected.unwrap();
        let _stream = connected.open_bi().await.unwrap();
        let second =
            tokio::time::timeout(std::time::Duration::from_millis(50), connected.open_bi());
        assert!(second.await.is_err(), "one stream is allowed");
        drop(accepted);
    });
}

#[test]
fn a_known_peer_is_decided_about_too() {
    run(async {
        let (server, fingerprint) = server_with(
            |tls| tls.known_peers(KnownClientsConfig::default()),
            |builder| builder.decide_incoming(100),
        );
        let client = client(fingerprint);
        let (first, accepted) = connect(&client, &server, async |incoming| {
            assert!(!incoming.is_known_peer());
            incoming.accept().unwrap().await.unwrap()
        })
        .await;
        tokio::spawn(serve(accepted));
        first.unwrap().call("one").await.unwrap();
        let address = server.local_address();
        let second = client.connect(address, "localhost").unwrap().await.unwrap();
        assert!(second.is_known_peer());
        let deciding = async {
            let incoming = server.accept_incoming().await.unwrap();
            assert!(incoming.is_known_peer() && incoming.is_validated());
            let names = incoming.names().unwrap();
            assert_eq!(names.server_name.as_deref(), Some("localhost"));
            tokio::spawn(serve(incoming.accept().unwrap().await.unwrap()));
        };
        let (answer, ()) = tokio::join!(second.call("two"), deciding);
        assert_eq!(answer.unwrap(), "two");
        // Refused, it knows that its request was not executed.
        let third = client.connect(address, "localhost").unwrap().await.unwrap();
        let deciding = async {
            let incoming = server.accept_incoming().await.unwrap();
            assert!(incoming.is_known_peer());
            incoming.refuse();
        };
        let (answer, ()) = tokio::join!(third.call("three"), deciding);
        assert_eq!(answer.unwrap_err().executed(), Executed::No);
        assert_eq!(server.stats().replies.refusals, 1);
    });
}

#[test]
fn accept_takes_all_clients_of_a_deciding_server() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.decide_incoming(100));
        let address = server.local_address();
        echo_streams(server);
        let client = client(fingerprint);
        for _ in 0..3 {
            echo(&client.connect(address, "localhost").unwrap().await.unwrap()).await;
        }
    });
}

#[test]
fn waiting_clients_are_refused_beyond_the_limit_and_at_the_end() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.decide_incoming(1));
        let address: SocketAddr = server.local_address();
        let client = client(fingerprint);
        let waiting = client.connect(address, "localhost").unwrap();
        let second = client.connect(address, "localhost").unwrap();
        let error = second.await.unwrap_err().to_string();
        assert!(error.contains("CONNECTION_REFUSED"), "{error}");
        server.close(0, b"");
        let error = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("CONNECTION_REFUSED"), "{error}");
        assert!(server.accept_incoming().await.is_none());
        assert!(server.accept().await.is_none());
    });
}
