//! A client whose link fails under load: its connection moves to its other link, and no call fails.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tonic::service::Routes;
use weir_grpc::weir_h3;
use weir_grpc_testing::TestServer;
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::{
    Payload, ResponseParameters, SimpleRequest, StreamingOutputCallRequest,
};
use weir_lab::network::{LinkSettings, NetworkKind, PrivateNetwork};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connection, Endpoint, PathState};

const CALLERS: usize = 16;
const INTERVAL: Duration = Duration::from_millis(5);
/// When the first link fails.
const FAILS_AFTER: Duration = Duration::from_millis(1500);
/// How long calls are made, from the same time on.
const LOAD: Duration = Duration::from_secs(3);
/// A call that waits longer has failed.
const DEADLINE: Duration = Duration::from_secs(10);

#[test]
fn no_call_fails_when_a_link_does() {
    let network = NetworkKind::Link(LinkSettings {
        delay: weir_net::Duration::from_micros(50),
        has_second: true,
        ..LinkSettings::default()
    });
    if !Path::new("/dev/net/tun").exists() {
        println!("SKIPPED: a link that fails: there is no /dev/net/tun");
        return;
    }
    let network = match network.create() {
        Ok(network) => network,
        Err(error) => {
            println!("SKIPPED: a link that fails: {error}");
            return;
        }
    };
    let begin = Instant::now();
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let fingerprint = identity.fingerprint();
    let (server, _running) = serve(&network, identity);
    let calls = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(FAILS_AFTER);
            network.fail_first_link().unwrap();
        });
        network.in_client(|| runtime().block_on(load(&network, server, fingerprint, begin)))
    });
    let calls = calls.unwrap();
    println!(
        "{} calls, the longest took {:?}",
        calls.count, calls.longest
    );
    assert!(calls.count > CALLERS * 100, "{} calls", calls.count);
    assert_eq!(calls.failed, Vec::<String>::new());
    assert_eq!(calls.moved_to, Some(network.client_addresses()[1]));
    // It moved; it was not replaced by another one.
    assert_eq!(calls.connections, 1);
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// Serves in the server's namespace until the sender is dropped.
fn serve(network: &PrivateNetwork, identity: Identity) -> (SocketAddr, mpsc::Sender<()>) {
    let address = SocketAddr::new(network.server_address(), 0);
    let (running, ended) = mpsc::channel();
    let (bound, address_of) = mpsc::channel();
    network
        .in_server(|| {
            // A thread begins in the namespace of the one that starts it.
            std::thread::spawn(move || {
                runtime().block_on(async {
                    let server =
                        weir_grpc::Server::bind(address, ServerTls::new(identity)).unwrap();
                    bound.send(server.local_address()).unwrap();
                    let serving = server.serve(Routes::new(TestServer::default()));
                    let ended = tokio::task::spawn_blocking(move || ended.recv());
                    tokio::select! {
                        () = serving => {}
                        _ = ended => {}
                    }
                });
            });
        })
        .unwrap();
    (address_of.recv().unwrap(), running)
}

#[derive(Debug, Default)]
struct Calls {
    count: usize,
    failed: Vec<String>,
    longest: Duration,
    /// The address that the connection sends from in the end.
    moved_to: Option<std::net::IpAddr>,
    connections: u64,
}

async fn load(
    network: &PrivateNetwork,
    server: SocketAddr,
    fingerprint: Fingerprint,
    begin: Instant,
) -> Calls {
    let tls = ClientTls::pinned(fingerprint);
    let tls = tls.application_protocols([weir_grpc::APPLICATION_PROTOCOL]);
    let [first, second] = network.client_addresses() else {
        panic!("the client has not two links");
    };
    let endpoint = Endpoint::builder()
        .client(tls.build().unwrap())
        .also_at(SocketAddr::new(*second, 0))
        .bind(SocketAddr::new(*first, 0))
        .unwrap();
    let http = weir_h3::Channel::to_addresses([server]).server_name("localhost");
    let http = http.connect(&endpoint).unwrap();
    let channel = weir_grpc::Channel::from(http.clone()).timeout(DEADLINE);
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(call_until(channel.clone(), begin + LOAD));
    }
    callers.spawn(stream_until(channel.clone(), begin + LOAD));
    let mut all = Calls::default();
    for calls in callers.join_all().await {
        all.count += calls.count;
        all.failed.extend(calls.failed);
        all.longest = all.longest.max(calls.longest);
    }
    all.connections = http.stats().connections;
    all.moved_to = http.connections().first().and_then(local);
    all
}

/// Returns the address that a connection sends from.
fn local(connection: &Connection) -> Option<std::net::IpAddr> {
    let paths = connection.paths();
    let in_use = paths
        .into_iter()
        .find(|path| path.state == PathState::InUse);
    Some(in_use?.snapshot.local?.ip())
}

/// Makes unary calls.
async fn call_until(channel: weir_grpc::Channel, until: Instant) -> Calls {
    let mut client = TestServiceClient::new(channel);
    let mut calls = Calls::default();
    let mut ticks = tokio::time::interval(INTERVAL);
    while Instant::now() < until {
        ticks.tick().await;
        let begin = Instant::now();
        let request = SimpleRequest {
            response_size: 5_000,
            payload: Some(Payload {
                body: vec![7; 1_000],
                ..Payload::default()
            }),
            ..SimpleRequest::default()
        };
        calls.note(begin, client.unary_call(request).await.map(drop));
    }
    calls
}

/// Sends messages on one stream, and waits for the answer to each.
async fn stream_until(channel: weir_grpc::Channel, until: Instant) -> Calls {
    let mut client = TestServiceClient::new(channel);
    let (requests, queue) = tokio::sync::mpsc::channel(1);
    let queue = futures_util::stream::unfold(queue, |mut queue| async {
        Some((queue.recv().await?, queue))
    });
    let answers = client.full_duplex_call(queue).await;
    let mut answers = answers.unwrap().into_inner();
    let mut calls = Calls::default();
    while Instant::now() < until {
        let begin = Instant::now();
        let request = StreamingOutputCallRequest {
            response_parameters: vec![ResponseParameters {
                size: 100,
                ..ResponseParameters::default()
            }],
            ..StreamingOutputCallRequest::default()
        };
        requests.send(request).await.unwrap();
        let answer = answers.next().await;
        calls.note(
            begin,
            answer
                .unwrap_or_else(|| Err(tonic::Status::ok("it ended")))
                .map(drop),
        );
        tokio::time::sleep(INTERVAL).await;
    }
    calls
}

impl Calls {
    fn note(&mut self, begin: Instant, result: Result<(), tonic::Status>) {
        self.count += 1;
        self.longest = self.longest.max(begin.elapsed());
        if let Err(status) = result {
            self.failed.push(status.to_string());
        }
    }
}
