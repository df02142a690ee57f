//! Servers that crash, are slow, or were never there.

use std::net::SocketAddr;
use std::path::Path;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{
    CallError, Connection, ConnectionError, Duration, Endpoint, Executed, ServeOptions,
    TransportConfig,
};
use weir_quic::ConnectionError as Cause;

use crate::support::{client, loopback, run, transport};

/// A server that can be killed without a word to its clients: only a relay is reached by them, and its
/// socket closes.
struct Victim {
    address: SocketAddr,
    relay: JoinHandle<()>,
}

impl Victim {
    /// Starts a server that echoes calls, and never answers "silence".
    async fn start(identity: &Identity, address: SocketAddr, state: Option<&Path>) -> Self {
        let tls = ServerTls::new(identity.clone()).build().unwrap();
        let mut builder = Endpoint::builder().transport(transport()).server(tls);
        if let Some(state) = state {
            builder = builder.state_directory(state);
        }
        let server = builder.bind(loopback()).unwrap();
        let behind = server.local_address();
        tokio::spawn(async move {
            while let Some(connecting) = server.accept().await {
                tokio::spawn(async move {
                    let Ok(connection) = connecting.await else {
                        return;
                    };
                    let echo = |request: weir_net::Request| async move {
                        if request.body == "silence" {
                            std::future::pending::<()>().await;
                        }
                        Ok(request.body)
                    };
                    connection.serve(ServeOptions::default(), echo).await;
                });
            }
        });
        let front = UdpSocket::bind(address).await.unwrap();
        let address = front.local_addr().unwrap();
        let relay = tokio::spawn(relay(front, behind));
        Self { address, relay }
    }

    /// Kills it; its port is closed when this returns.
    async fn kill(self) {
        self.relay.abort();
        assert!(self.relay.await.unwrap_err().is_cancelled());
    }
}

/// Relays between one client and the server at `behind`.
async fn relay(front: UdpSocket, behind: SocketAddr) {
    let back = UdpSocket::bind(loopback()).await.unwrap();
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let mut client = None;
    loop {
        tokio::select! {
            received = front.recv_from(&mut from_client) => {
                let (length, source) = received.unwrap();
                client = Some(source);
                back.send_to(&from_client[..length], behind).await.unwrap();
            }
            received = back.recv_from(&mut from_server) => {
                let (length, _) = received.unwrap();
                front.send_to(&from_server[..length], client.unwrap()).await.unwrap();
            }
        }
    }
}

/// An address that no other test binds, so that a closed port stays closed.
fn own_address() -> SocketAddr {
    "127.0.0.77:0".parse().unwrap()
}

/// A client that waits for ever, were it not for what tells it that the server is gone.
fn patient_client(fingerprint: Fingerprint) -> Endpoint {
    patient_client_at(fingerprint, loopback())
}

fn patient_client_at(fingerprint: Fingerprint, address: SocketAddr) -> Endpoint {
    let patient = TransportConfig {
        max_probe_timeouts: 0,
        ..transport()
    };
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    let builder = Endpoint::builder().transport(patient).client(tls);
    builder.bind(address).unwrap()
}

async fn connect(client: &Endpoint, address: SocketAddr) -> Connection {
    let connecting = client.connect(address, "localhost").unwrap();
    let connection = connecting.await.unwrap();
    assert_eq!(connection.call("first").await.unwrap(), "first");
    connection
}

fn cause(error: CallError) -> Cause {
    match error {
        CallError::Connection(ConnectionError::Lost { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_call_to_a_crashed_server_fails_at_once() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let server = Victim::start(&identity, own_address(), None).await;
        let client = patient_client(identity.fingerprint());
        let connection = connect(&client, server.address).await;
        server.kill().await;
        let error = connection.call("next").await.unwrap_err();
        assert_eq!(error.executed(), Executed::Maybe);
        let executed = Executed::Maybe;
        assert_eq!(cause(error), Cause::PeerUnreachable { executed });
        // One that was not sent was not executed.
        let error = connection.call("later").await.unwrap_err();
        assert_eq!(error.executed(), Executed::No);
    });
}

#[test]
fn a_client_of_both_families_learns_of_the_crash_too() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let server = Victim::start(&identity, own_address(), None).await;
        let client = patient_client_at(identity.fingerprint(), "[::]:0".parse().unwrap());
        let connection = connect(&client, server.address).await;
        server.kill().await;
        let error = connection.call("next").await.unwrap_err();
        assert!(matches!(cause(error), Cause::PeerUnreachable { .. }));
    });
}

#[test]
fn a_call_that_waits_when_the_server_crashes_fails_too() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let server = Victim::start(&identity, own_address(), None).await;
        let client = patient_client(identity.fingerprint());
        let connection = connect(&client, server.address).await;
        let call = connection.call("silence");
        let killed = async {
            while connection.stats().totals.packets_received < 3 {
                tokio::task::yield_now().await;
            }
            server.kill().await;
        };
        let (result, ()) = tokio::join!(call, killed);
        let error = result.unwrap_err();
        assert!(matches!(cause(error), Cause::PeerUnreachable { .. }));
    });
}

#[test]
fn a_server_with_a_state_directory_resets_the_connections_of_its_last_run() {
    fn restart(state: Option<&Path>) -> CallError {
        run(async {
            let identity = Identity::self_signed(["localhost"]).unwrap();
            let server = Victim::start(&identity, own_address(), state).await;
            let address = server.address;
            let client = client(identity.fingerprint());
            let connection = connect(&client, address).await;
            server.kill().await;
            let again = Victim::start(&identity, address, state).await;
            let error = connection.call("next").await.unwrap_err();
            again.kill().await;
            error
        })
    }
    let state = tempfile::tempdir().unwrap();
    assert_eq!(cause(restart(Some(state.path()))), Cause::StatelessReset);
    // A server without one leaves its clients to their probes.
    assert!(matches!(cause(restart(None)), Cause::PeerSilent { .. }));
}

#[test]
fn a_connection_to_a_closed_port_fails_at_once() {
    run(async {
        let closed = UdpSocket::bind(own_address()).await.unwrap();
        let address = closed.local_addr().unwrap();
        drop(closed);
        let client = patient_client(Fingerprint::of(b""));
        let error = client.connect(address, "localhost").unwrap().await;
        let error = error.unwrap_err();
        assert_eq!(error.executed(), Executed::No);
        assert!(error.to_string().contains("nobody listens"), "{error}");
    });
}

#[test]
fn a_call_lives_longer_than_the_idle_timeout() {
    run(async {
        let idle_timeout = Duration::from_millis(200);
        let (server, fingerprint) = crate::support::server_with(
            |tls| tls,
            |builder| {
                builder.transport(TransportConfig {
                    idle_timeout,
                    ..transport()
                })
            },
        );
        let address = server.local_address();
        tokio::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            let slow = |request: weir_net::Request| async move {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                Ok(request.body)
            };
            connection.serve(ServeOptions::default(), slow).await;
        });
        let client = client(fingerprint);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        assert_eq!(connection.call("slow").await.unwrap(), "slow");
    });
}
