//! Servers and clients on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::service::Routes;
use weir_grpc::{APPLICATION_PROTOCOL, Channel, Server};
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::test_service_server::TestServiceServer;
use weir_grpc_testing::proto::{Payload, StreamingOutputCallResponse};
use weir_net::Endpoint;
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};

use crate::scripted::Scripted;

/// Timeout of every test; only a hanging test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A time that no test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The deadlines that tests let pass.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// Runs a test with a timeout, on two threads.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test hangs")
}

/// Waits until a condition holds; the test's timeout ends the wait.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// An endpoint that trusts servers with this certificate.
pub(crate) fn client_endpoint(server: Fingerprint) -> Endpoint {
    let tls = ClientTls::pinned(server).application_protocols([APPLICATION_PROTOCOL]);
    Endpoint::builder()
        .client(tls.build().unwrap())
        .bind(loopback())
        .unwrap()
}

/// A channel to servers whose certificate is for `localhost`.
pub(crate) fn builder(
    servers: impl IntoIterator<Item = SocketAddr>,
) -> weir_grpc::weir_h3::ChannelBuilder {
    weir_grpc::weir_h3::Channel::to_addresses(servers).server_name("localhost")
}

pub(crate) fn identity() -> Identity {
    Identity::self_signed(["localhost"]).unwrap()
}

/// Serves routes in a task.
pub(crate) fn serve(server: &Server, routes: Routes) {
    let server = server.clone();
    tokio::spawn(async move { server.serve(routes).await });
}

/// A server, and a channel to it.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) endpoint: Endpoint,
    pub(crate) channel: Channel,
}

impl World {
    pub(crate) fn new(service: Scripted) -> Self {
        Self::with(Routes::new(TestServiceServer::new(service)), |server| {
            server
        })
    }

    /// A server with settings of its own.
    pub(crate) fn with(routes: Routes, set: impl FnOnce(Server) -> Server) -> Self {
        let identity = identity();
        let endpoint = client_endpoint(identity.fingerprint());
        let server = set(Server::bind(loopback(), ServerTls::new(identity)).unwrap());
        serve(&server, routes);
        let channel = builder([server.local_address()]);
        Self {
            channel: channel.connect(&endpoint).unwrap().into(),
            server,
            endpoint,
        }
    }

    pub(crate) fn client(&self) -> TestServiceClient<Channel> {
        TestServiceClient::new(self.channel.clone())
    }

    /// A client that does not know deadlines: it sends them, and waits on.
    pub(crate) fn client_without_deadlines(
        &self,
    ) -> TestServiceClient<weir_grpc::weir_h3::Channel> {
        TestServiceClient::new(self.channel.http().clone())
    }

    /// That the connection goes on.
    pub(crate) async fn expect_alive(&self) {
        weir_grpc_testing::cases::empty_unary(self.channel.clone())
            .await
            .unwrap();
        assert_eq!(self.channel.http().stats().connections, 1);
    }
}

/// Counts handlers that run. Clones are handles to the same counter.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// A handler that runs, until this is dropped.
pub(crate) struct Handling(Arc<Counts>);

impl Handlers {
    pub(crate) fn begin(&self) -> Handling {
        self.counts.begun.fetch_add(1, Ordering::SeqCst);
        Handling(self.counts.clone())
    }

    pub(crate) async fn begun(&self, count: usize) {
        until(|| self.counts.begun.load(Ordering::SeqCst) >= count).await;
    }

    pub(crate) async fn ended(&self, count: usize) {
        until(|| self.counts.ended.load(Ordering::SeqCst) >= count).await;
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn payload(size: usize) -> Option<Payload> {
    Some(Payload {
        body: vec![7; size],
        ..Payload::default()
    })
}

pub(crate) fn response(size: usize) -> StreamingOutputCallResponse {
    StreamingOutputCallResponse {
        payload: payload(size),
    }
}
