//! Resumed sessions and early data.

use crate::support::{loopback, run, transport};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{Connection, Endpoint, ServeOptions};

/// A server that answers each call with whether it arrived as early data.
fn server(identity: &Identity, early_data: bool) -> Endpoint {
    let tls = ServerTls::new(identity.clone())
        .early_data(early_data)
        .build()
        .unwrap();
    let builder = Endpoint::builder().transport(transport()).server(tls);
    let endpoint = builder.bind(loopback()).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(connecting) = accepting.accept().await {
            let Some(connection) = connecting.early() else {
                continue;
            };
            tokio::spawn(async move {
                let handler = |request: weir_net::Request| async move {
                    let early = if request.is_early_data() {
                        "early"
                    } else {
                        "late"
                    };
                    Ok(early)
                };
                connection.serve(ServeOptions::default(), handler).await
            });
        }
    });
    endpoint
}

fn client(identity: &Identity, early_data: bool) -> Endpoint {
    let tls = ClientTls::pinned(identity.fingerprint())
        .early_data(early_data)
        .build()
        .unwrap();
    let builder = Endpoint::builder().transport(transport()).client(tls);
    builder.bind(loopback()).unwrap()
}

/// A first connection, which leaves a session for resumption.
async fn establish_session(client: &Endpoint, server: &Endpoint) {
    let connection = client
        .connect(server.local_address(), "localhost")
        .unwrap()
        .await
        .unwrap();
    assert!(!connection.peer_identity().resumed);
    // Tickets come right after the handshake, before the response.
    assert_eq!(connection.call("first").await.unwrap(), "late");
    connection.close(0, b"");
}

#[test]
fn a_session_is_resumed() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let (server, client) = (server(&identity, false), client(&identity, false));
        establish_session(&client, &server).await;
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        assert!(connecting.early().is_none());
        let connection = connecting.await.unwrap();
        assert!(connection.peer_identity().resumed);
        assert_eq!(connection.call("x").early_data().await.unwrap(), "late");
    });
}

#[test]
fn early_data_are_accepted_and_marked() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let (server, client) = (server(&identity, true), client(&identity, true));
        establish_session(&client, &server).await;
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        let connection = connecting.early().expect("the session allows early data");
        let (early, late) = tokio::join!(
            connection.call("now").early_data(),
            // Without the option, the request waits for the handshake.
            connection.call("later"),
        );
        assert_eq!(
            (early.unwrap(), late.unwrap()),
            ("early".into(), "late".into())
        );
        let connection: Connection = connecting.await.unwrap();
        assert!(!connection.early_data_rejected());
        assert_eq!(connection.call("x").early_data().await.unwrap(), "late");
    });
}

#[test]
fn rejected_early_data_are_sent_again() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let client = client(&identity, true);
        let first = server(&identity, true);
        establish_session(&client, &first).await;
        // Another server with the same identity does not know the session.
        let second = server(&identity, true);
        let connecting = client.connect(second.local_address(), "localhost").unwrap();
        let connection = connecting.early().expect("the session allows early data");
        let (mut send, mut recv) = connection.open_bi_early().await.unwrap();
        send.finish_with("stream".into()).await.unwrap();
        assert_eq!(connection.call("call").early_data().await.unwrap(), "late");
        assert!(connection.early_data_rejected());
        assert_eq!(
            recv.read_to_end(10).await,
            Err(weir_net::ReadError::EarlyDataRejected)
        );
        assert_eq!(
            send.acknowledged().await,
            Err(weir_net::WriteError::EarlyDataRejected)
        );
        connecting.await.unwrap();
    });
}

#[test]
fn a_server_with_early_data_disabled_receives_none() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let (server, client) = (server(&identity, false), client(&identity, true));
        establish_session(&client, &server).await;
        let connecting = client.connect(server.local_address(), "localhost").unwrap();
        assert!(connecting.early().is_none());
        let connection = connecting.await.unwrap();
        assert!(connection.peer_identity().resumed);
    });
}
