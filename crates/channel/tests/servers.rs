//! Connections to servers on loopback, by a protocol with a GOAWAY of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use weir_channel::{
    BackoffConfig, Balancing, Link, NoServer, Picked, Protocol, ServerState, Servers,
    ServersBuilder,
};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connection, ConnectionError, Endpoint, Request, ServeOptions};

/// Timeout of every test; only a hanging test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections that count themselves, and that the test makes drain.
#[derive(Clone)]
struct Counted {
    /// A connection is established with a permit.
    permits: Arc<Semaphore>,
    established: Arc<AtomicU64>,
    /// Links up to this number drain.
    drained: watch::Sender<u64>,
}

#[derive(Clone, Debug)]
struct CountedLink {
    connection: Connection,
    number: u64,
    drained: watch::Receiver<u64>,
}

#[derive(Debug, thiserror::Error)]
#[error("no more connections")]
struct NoMore;

impl Protocol for Counted {
    const APPLICATION_PROTOCOL: &'static [u8] = b"counted/1";

    type Link = CountedLink;
    type Error = NoMore;

    async fn establish(&self, connection: Connection) -> Result<CountedLink, NoMore> {
        let permit = self.permits.acquire().await.map_err(|_| NoMore)?;
        permit.forget();
        Ok(CountedLink {
            connection,
            number: 1 + self.established.fetch_add(1, Ordering::SeqCst),
            drained: self.drained.subscribe(),
        })
    }
}

impl Link for CountedLink {
    fn is_usable(&self) -> bool {
        self.connection.is_usable() && *self.drained.borrow() < self.number
    }

    async fn draining(&self) {
        let mut drained = self.drained.clone();
        tokio::select! {
            () = self.connection.draining() => {}
            _ = drained.wait_for(|drained| *drained >= self.number) => {}
        }
    }

    fn error(&self) -> Option<ConnectionError> {
        self.connection.error()
    }
}

impl Counted {
    fn new(permits: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            established: Arc::default(),
            drained: watch::Sender::new(0),
        }
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test hangs")
}

/// One certificate for all servers.
fn identity() -> &'static (String, String, Fingerprint) {
    static IDENTITY: OnceLock<(String, String, Fingerprint)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let fingerprint = Fingerprint::of(certificate.der());
        (certificate.pem(), key.serialize_pem(), fingerprint)
    })
}

/// Starts a server that answers each call with its request.
fn serve(protocol: &[u8]) -> Endpoint {
    let (chain, key, _) = identity();
    let tls = ServerTls::new(Identity::from_pem(chain, key).unwrap());
    let tls = tls.application_protocols([protocol]).build().unwrap();
    let endpoint = Endpoint::builder().server(tls);
    let endpoint = endpoint.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(connecting) = accepting.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = connecting.await {
                    let echo = |request: Request| async { Ok(request.body) };
                    connection.serve(ServeOptions::default(), echo).await;
                }
            });
        }
    });
    endpoint
}

fn client(protocols: &[&[u8]]) -> Endpoint {
    let tls = ClientTls::pinned(identity().2);
    let tls = tls.application_protocols(protocols.iter().copied());
    let endpoint = Endpoint::builder().client(tls.build().unwrap());
    endpoint.bind("127.0.0.1:0".parse().unwrap()).unwrap()
}

fn connect(
    servers: &[Endpoint],
    protocol: &Counted,
    change: impl FnOnce(ServersBuilder) -> ServersBuilder,
) -> Servers<Counted> {
    let addresses = servers.iter().map(Endpoint::local_address);
    let builder = ServersBuilder::to_addresses(addresses).server_name("localhost");
    let endpoint = client(&[Counted::APPLICATION_PROTOCOL]);
    change(builder)
        .connect(&endpoint, protocol.clone())
        .unwrap()
}

/// Waits until a condition holds.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn all_ready(servers: &Servers<Counted>) {
    until(|| {
        let servers = servers.servers();
        !servers.is_empty() && servers.iter().all(|s| s.state == ServerState::Ready)
    })
    .await;
}

async fn echo(picked: &Picked<CountedLink>) {
    let response = picked.link().connection.call("hello").await;
    assert_eq!(response.unwrap(), "hello");
}

#[test]
fn a_link_that_drains_is_replaced_and_its_calls_go_on() {
    run(async {
        let protocol = Counted::new(2);
        let servers = connect(&[serve(b"counted/1")], &protocol, |builder| builder);
        let first = servers.pick(&[], false).await.unwrap();
        assert_eq!(first.link().number, 1);
        protocol.drained.send_replace(1);
        let second = servers.pick(&[], false).await.unwrap();
        assert_eq!(second.link().number, 2);
        echo(&first).await;
        echo(&second).await;
        assert_eq!(servers.stats().connections, 2);
    });
}

#[test]
fn a_connection_that_the_protocol_refuses_counts_as_failed() {
    run(async {
        let protocol = Counted::new(0);
        protocol.permits.close();
        let servers = connect(&[serve(b"counted/1")], &protocol, |builder| builder);
        let NoServer(reason) = servers.pick(&[], false).await.unwrap_err();
        assert!(reason.ends_with(": no more connections"), "{reason}");
        assert!(matches!(
            &servers.servers()[0].state,
            ServerState::Failed(_)
        ));
        assert_eq!(servers.stats().connections, 0);
        // It is tried again.
        until(|| servers.stats().connections_failed > 1).await;
    });
}

#[test]
fn the_protocol_has_the_time_of_the_handshake() {
    run(async {
        let protocol = Counted::new(0);
        let limit = Duration::from_millis(200);
        let server = [serve(b"counted/1")];
        let servers = connect(&server, &protocol, |builder| builder.connect_timeout(limit));
        let NoServer(reason) = servers.pick(&[], false).await.unwrap_err();
        assert!(reason.ends_with(": no connection within 200ms"), "{reason}");
        protocol.permits.add_permits(1);
        echo(&servers.pick(&[], true).await.unwrap()).await;
    });
}

#[test]
fn a_server_that_chooses_another_protocol_gets_no_calls() {
    run(async {
        let server = serve(b"other/1");
        let endpoint = client(&[Counted::APPLICATION_PROTOCOL, b"other/1"]);
        let servers = ServersBuilder::to_addresses([server.local_address()])
            .server_name("localhost")
            .connect(&endpoint, Counted::new(1))
            .unwrap();
        let NoServer(reason) = servers.pick(&[], false).await.unwrap_err();
        let expected = "the server does not speak counted/1";
        assert!(reason.ends_with(expected), "{reason}");
    });
}

#[test]
fn calls_that_fail_at_once_let_other_tasks_run() {
    run(async {
        let protocol = Counted::new(0);
        protocol.permits.close();
        let never = weir_net::Duration::from_secs(3600);
        let backoff = BackoffConfig {
            first: never,
            longest: never,
        };
        let server = [serve(b"counted/1")];
        let servers = connect(&server, &protocol, |builder| builder.reconnect(backoff));
        assert!(servers.pick(&[], false).await.is_err());
        let (sender, mut ran) = tokio::sync::oneshot::channel();
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                tokio::task::spawn_local(async { sender.send(()) });
                // Nothing else makes this task yield.
                let mut picks = 0;
                while ran.try_recv().is_err() {
                    assert!(servers.pick(&[], false).await.is_err());
                    picks += 1;
                    assert!(picks < 10_000, "the other task does not run");
                }
            })
            .await;
    });
}

#[test]
fn every_call_that_waits_for_a_connection_gets_it() {
    run(async {
        let endpoints = [serve(b"counted/1")];
        for _ in 0..20 {
            let protocol = Counted::new(0);
            let servers = connect(&endpoints, &protocol, |builder| builder);
            let calls: Vec<_> = (0..50)
                .map(|_| {
                    let servers = servers.clone();
                    tokio::spawn(async move { servers.pick(&[], false).await })
                })
                .collect();
            protocol.permits.add_permits(1);
            for call in calls {
                assert_eq!(call.await.unwrap().unwrap().link().number, 1);
            }
        }
    });
}

#[test]
fn calls_under_way_and_failures_are_counted_by_server() {
    run(async {
        let endpoints = [(); 2].map(|()| serve(b"counted/1"));
        let protocol = Counted::new(2);
        let servers = connect(&endpoints, &protocol, |builder| {
            builder.balancing(Balancing::RoundRobin)
        });
        all_ready(&servers).await;
        let outstanding = || {
            let servers = servers.servers();
            [servers[0].outstanding, servers[1].outstanding]
        };
        let calls = [
            servers.pick(&[], false).await.unwrap(),
            servers.pick(&[], false).await.unwrap(),
        ];
        assert_eq!(outstanding(), [1, 1]);
        let addresses = calls.each_ref().map(Picked::address);
        let [first, second] = calls;
        assert!(!servers.has_tried_all(&addresses[..1]) && servers.has_tried_all(&addresses));
        let again = servers.pick(&[first.address()], false).await.unwrap();
        assert_eq!(again.address(), second.address());
        drop((again, second));
        // So many that it is avoided for at least 15 s.
        for _ in 0..50 {
            first.on_failure();
        }
        let picked = |count: usize| {
            let servers = &servers;
            async move {
                let mut addresses: Vec<SocketAddr> = Vec::new();
                for _ in 0..count {
                    addresses.push(servers.pick(&[], false).await.unwrap().address());
                }
                addresses
            }
        };
        assert!(!picked(4).await.contains(&first.address()));
        first.on_answer();
        assert!(picked(2).await.contains(&first.address()));
        drop(first);
        assert_eq!(outstanding(), [0, 0]);
    });
}

#[test]
fn without_a_handle_only_connections_of_calls_stay() {
    run(async {
        let endpoints = [(); 2].map(|()| serve(b"counted/1"));
        let servers = connect(&endpoints, &Counted::new(2), |builder| builder);
        all_ready(&servers).await;
        let call = servers.pick(&[], false).await.unwrap();
        drop(servers);
        let (used, unused): (Vec<_>, Vec<_>) = endpoints
            .iter()
            .partition(|endpoint| endpoint.local_address() == call.address());
        until(|| unused[0].stats().connections == 0).await;
        echo(&call).await;
        assert_eq!(used[0].stats().connections, 1);
        drop(call);
        until(|| used[0].stats().connections == 0).await;
    });
}
