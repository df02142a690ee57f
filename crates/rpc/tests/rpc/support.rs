//! Servers and channels on loopback.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use weir_net::tls::{ClientCredentials, ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connection, Endpoint, KnownClientsConfig};
use weir_rpc::wire::APPLICATION_PROTOCOL;
use weir_rpc::{Channel, ChannelBuilder, Server, ServerBuilder, ServerState};

/// Timeout of every test; only a hanging test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// One certificate for all servers.
fn identity() -> &'static (String, String, Fingerprint) {
    static IDENTITY: OnceLock<(String, String, Fingerprint)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let fingerprint = Fingerprint::of(certificate.der());
        (certificate.pem(), key.serialize_pem(), fingerprint)
    })
}

/// Returns an endpoint that accepts calls.
pub(crate) fn server_endpoint(address: SocketAddr, protocol: &[u8]) -> Endpoint {
    let (chain, key, _) = identity();
    let tls = ServerTls::new(Identity::from_pem(chain, key).unwrap());
    let tls = tls.application_protocols([protocol]).build().unwrap();
    Endpoint::builder().server(tls).bind(address).unwrap()
}

/// Starts a server that remembers its clients for connections without a handshake.
pub(crate) fn start_with_known_peers(builder: ServerBuilder) -> Running {
    let (chain, key, _) = identity();
    let tls = ServerTls::new(Identity::from_pem(chain, key).unwrap())
        .application_protocols([APPLICATION_PROTOCOL])
        .known_peers(KnownClientsConfig::default());
    let tls = tls.build().unwrap();
    let endpoint = Endpoint::builder().server(tls).bind(loopback()).unwrap();
    start_on(endpoint, builder)
}

/// Returns an endpoint that makes calls.
pub(crate) fn client_endpoint() -> Endpoint {
    client_endpoint_with(APPLICATION_PROTOCOL)
}

/// The same, with its credentials.
pub(crate) fn client_endpoint_and_credentials() -> (Endpoint, ClientCredentials) {
    let (_, _, fingerprint) = identity();
    let tls = ClientTls::pinned(*fingerprint);
    let tls = tls.application_protocols([APPLICATION_PROTOCOL]);
    let credentials = tls.build().unwrap();
    let endpoint = Endpoint::builder().client(credentials.clone());
    (endpoint.bind(loopback()).unwrap(), credentials)
}

pub(crate) fn client_endpoint_with(protocol: &[u8]) -> Endpoint {
    let (_, _, fingerprint) = identity();
    let tls = ClientTls::pinned(*fingerprint);
    let tls = tls.application_protocols([protocol]).build().unwrap();
    Endpoint::builder().client(tls).bind(loopback()).unwrap()
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) endpoint: Endpoint,
}

/// Starts a server on a free port.
pub(crate) fn start(builder: ServerBuilder) -> Running {
    start_at(loopback(), builder)
}

pub(crate) fn start_at(address: SocketAddr, builder: ServerBuilder) -> Running {
    start_on(server_endpoint(address, APPLICATION_PROTOCOL), builder)
}

fn start_on(endpoint: Endpoint, builder: ServerBuilder) -> Running {
    let server = builder.build().unwrap();
    let address = endpoint.local_address();
    let (serving, served) = (server.clone(), endpoint.clone());
    tokio::spawn(async move { serving.serve(&served).await });
    Running {
        server,
        address,
        endpoint,
    }
}

/// Builds a channel to some servers.
pub(crate) fn channel_to<'a>(servers: impl IntoIterator<Item = &'a Running>) -> ChannelBuilder {
    let addresses = servers.into_iter().map(|server| server.address);
    Channel::to_addresses(addresses).server_name("localhost")
}

/// Connects to one server.
pub(crate) fn channel(server: &Running) -> Channel {
    channel_to([server]).connect(&client_endpoint()).unwrap()
}

/// Connects to a server without a channel.
pub(crate) async fn connect(address: SocketAddr) -> Connection {
    let endpoint = client_endpoint();
    endpoint
        .connect(address, "localhost")
        .unwrap()
        .await
        .unwrap()
}

/// Waits until so many servers of a channel are ready.
pub(crate) async fn ready(channel: &Channel, count: usize) {
    let is_ready = || {
        let servers = channel.servers();
        let ready = servers
            .iter()
            .filter(|server| server.state == ServerState::Ready);
        ready.count() == count
    };
    until(is_ready).await;
}

/// Waits until a condition holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
