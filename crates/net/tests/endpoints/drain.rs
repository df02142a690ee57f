//! A server that shuts down: running calls are answered, others refused, and the client knows which.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::quinn_peer::quinn_client;
use crate::support::{PATIENCE, client, loopback, run, transport};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use weir_net::tls::{ClientTls, Identity, ServerCredentials, ServerTls};
use weir_net::{
    CallError, Connection, ConnectionError, DeadlinePassed, Duration, Endpoint, Executed,
    KnownClientsConfig, Request, SHUT_DOWN, ServeOptions,
};
use weir_quic::ConnectionError as Cause;

const LONG: Duration = Duration::from_secs(50);

/// A server whose calls are answered with the permits of a gate; it counts them.
#[derive(Clone)]
struct Server {
    endpoint: Endpoint,
    gate: Arc<Semaphore>,
    begun: Arc<AtomicU64>,
}

impl Server {
    fn start(tls: ServerCredentials) -> Self {
        let builder = Endpoint::builder().transport(transport()).server(tls);
        let server = Self {
            endpoint: builder.bind(loopback()).unwrap(),
            gate: Arc::new(Semaphore::new(0)),
            begun: Arc::default(),
        };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(connecting) = accepting.endpoint.accept().await {
                let server = accepting.clone();
                tokio::spawn(async move {
                    if let Ok(connection) = connecting.await {
                        server.serve(connection).await;
                    }
                });
            }
        });
        server
    }

    async fn serve(&self, connection: Connection) {
        let (gate, begun) = (self.gate.clone(), self.begun.clone());
        let handler = move |request: Request| {
            begun.fetch_add(1, Ordering::Relaxed);
            let gate = gate.clone();
            async move {
                let _permit = gate.acquire().await;
                Ok(request.body)
            }
        };
        connection.serve(ServeOptions::default(), handler).await;
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    fn open_gate(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    async fn wait_until_begun(&self, calls: u64) {
        while self.begun.load(Ordering::Relaxed) < calls {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

fn identity() -> Identity {
    Identity::self_signed(["localhost"]).unwrap()
}

fn start(identity: &Identity) -> Server {
    Server::start(ServerTls::new(identity.clone()).build().unwrap())
}

async fn connect(client: &Endpoint, server: SocketAddr) -> Connection {
    let connecting = client.connect(server, "localhost").unwrap();
    connecting.await.unwrap()
}

/// Begins `count` calls and waits until the server executes them.
async fn begin_calls(
    connection: &Connection,
    server: &Server,
    count: u64,
) -> JoinSet<Result<(), CallError>> {
    let before = server.begun.load(Ordering::Relaxed);
    let mut calls = JoinSet::new();
    for _ in 0..count {
        let connection = connection.clone();
        calls.spawn(async move { connection.call("hello").await.map(drop) });
    }
    server.wait_until_begun(before + count).await;
    calls
}

#[test]
fn running_calls_are_answered_and_new_ones_are_refused_at_once() {
    run(async {
        let identity = identity();
        let server = start(&identity);
        let client = client(identity.fingerprint());
        let connection = connect(&client, server.address()).await;
        let calls = begin_calls(&connection, &server, 20).await;
        let endpoint = server.endpoint.clone();
        let shutdown = tokio::spawn(async move { endpoint.shutdown(LONG).await });
        assert!(!connection.is_draining());
        connection.draining().await;
        assert!(connection.is_draining());
        assert_eq!(connection.error(), None);
        let error = connection.call("too late").await.unwrap_err();
        let remote = server.address();
        assert_eq!(
            error,
            CallError::NotBegun(ConnectionError::Draining { remote })
        );
        assert_eq!(error.executed(), Executed::No);
        let error = connection.open_uni().await.unwrap_err();
        assert_eq!(error, ConnectionError::Draining { remote });
        assert!(!shutdown.is_finished());
        server.open_gate();
        for call in calls.join_all().await {
            assert_eq!(call, Ok(()));
        }
        assert_eq!(shutdown.await.unwrap(), Ok(()));
        assert_eq!(connection.closed().await.peer_code(), Some(SHUT_DOWN));
        assert_eq!(server.begun.load(Ordering::Relaxed), 20);
    });
}

#[test]
fn newcomers_are_refused_while_calls_run() {
    run(async {
        let identity = identity();
        let tls = ServerTls::new(identity.clone()).known_peers(KnownClientsConfig::default());
        let server = Server::start(tls.build().unwrap());
        let client = client(identity.fingerprint());
        let connection = connect(&client, server.address()).await;
        let calls = begin_calls(&connection, &server, 1).await;
        let endpoint = server.endpoint.clone();
        let shutdown = tokio::spawn(async move { endpoint.shutdown(LONG).await });
        connection.draining().await;
        // The client has a secret of the server: the first packet of this one carries the call.
        let known = connect(&client, server.address()).await;
        assert!(known.is_known_peer());
        let error = known.call("hello").await.unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error}");
        assert_refused(&known.closed().await);
        let stranger = Endpoint::builder()
            .client(ClientTls::pinned(identity.fingerprint()).build().unwrap())
            .bind(loopback())
            .unwrap();
        let connecting = stranger.connect(server.address(), "localhost").unwrap();
        assert_refused(&connecting.await.unwrap_err());
        assert_eq!(server.endpoint.stats().replies.refusals, 2);
        server.open_gate();
        assert_eq!(calls.join_all().await, [Ok(())]);
        assert_eq!(shutdown.await.unwrap(), Ok(()));
        // Nor afterwards.
        let connecting = stranger.connect(server.address(), "localhost").unwrap();
        assert_refused(&connecting.await.unwrap_err());
        assert_eq!(server.begun.load(Ordering::Relaxed), 1);
    });
}

fn assert_refused(error: &ConnectionError) {
    let is_refused = matches!(
        error,
        ConnectionError::Lost {
            cause: Cause::Refused { .. },
            ..
        }
    );
    assert!(is_refused, "{error}");
    assert_eq!(error.executed(), Executed::No);
}

#[test]
fn idle_connections_close_at_once() {
    run(async {
        let identity = identity();
        let server = start(&identity);
        server.open_gate();
        let client = client(identity.fingerprint());
        let mut connections = Vec::new();
        for _ in 0..20 {
            let connection = connect(&client, server.address()).await;
            assert_eq!(connection.call("hello").await.unwrap(), "hello");
            connections.push(connection);
        }
        assert_eq!(server.endpoint.shutdown(LONG).await, Ok(()));
        assert_eq!(server.endpoint.stats().connections, 0);
        for connection in connections {
            assert_eq!(connection.closed().await.peer_code(), Some(SHUT_DOWN));
            let error = connection.call("too late").await.unwrap_err();
            assert!(matches!(error, CallError::NotBegun(_)), "{error}");
        }
    });
}

#[test]
fn connections_with_calls_after_the_limit_are_closed() {
    run(async {
        let identity = identity();
        let server = start(&identity);
        let client = client(identity.fingerprint());
        let connection = connect(&client, server.address()).await;
        let calls = begin_calls(&connection, &server, 1).await;
        let limit = Duration::from_millis(20);
        assert_eq!(server.endpoint.shutdown(limit).await, Err(DeadlinePassed));
        for call in calls.join_all().await {
            assert_eq!(call.unwrap_err().executed(), Executed::Maybe);
        }
        assert_eq!(connection.closed().await.peer_code(), Some(SHUT_DOWN));
    });
}

#[test]
fn a_peer_without_go_away_gets_its_answer_and_no_other() {
    run(async {
        let identity = identity();
        let server = start(&identity);
        let peer = quinn_client(&identity);
        let connecting = peer.connect(server.address(), "localhost").unwrap();
        let connection = connecting.await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(b"hello").await.unwrap();
        send.finish().unwrap();
        server.wait_until_begun(1).await;
        let endpoint = server.endpoint.clone();
        let shutdown = tokio::spawn(async move { endpoint.shutdown(LONG).await });
        tokio::task::yield_now().await;
        let (mut late, mut refused) = connection.open_bi().await.unwrap();
        late.write_all(b"hello").await.unwrap();
        let code = quinn::VarInt::from_u64(SHUT_DOWN).unwrap();
        assert_eq!(
            refused.read_to_end(5).await,
            Err(quinn::ReadError::Reset(code).into())
        );
        server.open_gate();
        assert_eq!(recv.read_to_end(5).await.unwrap(), b"hello");
        let closed = connection.closed().await;
        assert!(
            matches!(&closed, quinn::ConnectionError::ApplicationClosed(close) if close.error_code == code),
            "{closed}"
        );
        assert_eq!(shutdown.await.unwrap(), Ok(()));
        assert_eq!(server.begun.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_client_endpoint_waits_for_its_calls_too() {
    run(async {
        let identity = identity();
        let server = start(&identity);
        let client = client(identity.fingerprint());
        let connection = connect(&client, server.address()).await;
        let calls = begin_calls(&connection, &server, 3).await;
        let endpoint = client.clone();
        let shutdown = tokio::spawn(async move { endpoint.shutdown(LONG).await });
        connection.draining().await;
        let error = connection.call("too late").await.unwrap_err();
        assert_eq!(error.executed(), Executed::No);
        server.open_gate();
        for call in calls.join_all().await {
            assert_eq!(call, Ok(()));
        }
        assert_eq!(shutdown.await.unwrap(), Ok(()));
    });
}

/// Shuts a server down while a client calls it, and checks the fate of each call. Returns the number of
/// answers.
async fn race(tls: ServerCredentials, client: Endpoint, round: u32) -> u64 {
    let server = Server::start(tls);
    server.open_gate();
    let (mut answered, mut unsure) = (0, Vec::new());
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (client, address) = (client.clone(), server.address());
        callers.spawn(async move {
            let mut answered = 0;
            let connection = match client.connect(address, "localhost").unwrap().await {
                Ok(connection) => connection,
                // Nothing was sent yet.
                Err(error) => return (answered, (Executed::No, error.to_string())),
            };
            loop {
                match connection.call("hello").await {
                    Ok(_) => answered += 1,
                    Err(error) => return (answered, (error.executed(), error.to_string())),
                }
            }
        });
    }
    for _ in 0..round % 50 {
        tokio::task::yield_now().await;
    }
    if round.is_multiple_of(3) {
        server.wait_until_begun(u64::from(round % 7)).await;
    }
    let shutdown = server.endpoint.shutdown(LONG).await;
    assert_eq!(shutdown, Ok(()), "round {round}");
    for (calls, (executed, error)) in callers.join_all().await {
        answered += calls;
        unsure.extend((executed != Executed::No).then_some(error));
    }
    assert_eq!(unsure, Vec::<String>::new(), "round {round}");
    assert_eq!(
        server.begun.load(Ordering::Relaxed),
        answered,
        "round {round}"
    );
    answered
}

fn race_often(known_peers: bool, rounds: u32) -> impl Future<Output = ()> {
    let identity = identity();
    let mut tls = ServerTls::new(identity.clone());
    if known_peers {
        tls = tls.known_peers(KnownClientsConfig::default());
    }
    let tls = tls.build().unwrap();
    async move {
        let mut answered = 0;
        for round in 0..rounds {
            answered += race(tls.clone(), client(identity.fingerprint()), round).await;
        }
        assert!(answered > 0);
    }
}

#[test]
fn a_call_that_races_with_the_shutdown_is_answered_or_not_executed() {
    run(race_often(false, 120));
    run(race_often(true, 120));
}

#[test]
fn a_call_that_races_on_several_threads_is_answered_or_not_executed() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let rounds = async { tokio::time::timeout(PATIENCE, race_often(false, 120)).await };
    runtime.block_on(rounds).expect("the test hangs");
}
