//! This project's server and client, over DCQUIC.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tonic::service::Routes;
use weir_grpc::{APPLICATION_PROTOCOL, Channel};
use weir_grpc_testing::{Running, TestServer};
use weir_net::Endpoint;
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};

use super::go;

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A certificate for `localhost` and its key, in files.
pub(crate) struct Certificate {
    directory: TempDir,
    pub(crate) fingerprint: Fingerprint,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(directory.path().join("certificate.pem"), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_pem();
        std::fs::write(directory.path().join("key.pem"), key).unwrap();
        Self {
            directory,
            fingerprint: Fingerprint::of(made.cert.der()),
        }
    }

    pub(crate) fn chain(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }
}

/// A channel to servers that have this certificate.
pub(crate) fn channel(
    servers: impl IntoIterator<Item = SocketAddr>,
    certificate: Fingerprint,
) -> Channel {
    let tls = ClientTls::pinned(certificate).application_protocols([APPLICATION_PROTOCOL]);
    let endpoint = Endpoint::builder().client(tls.build().unwrap());
    let endpoint = endpoint.bind(loopback()).unwrap();
    let channel = weir_grpc::weir_h3::Channel::to_addresses(servers).server_name("localhost");
    channel.connect(&endpoint).unwrap().into()
}

/// A server of the test service.
pub(crate) struct Server {
    certificate: Certificate,
    server: weir_grpc::Server,
    running: Running,
}

impl Server {
    pub(crate) fn start() -> Self {
        let certificate = Certificate::new();
        let identity = Identity::from_files(certificate.chain(), certificate.key()).unwrap();
        let server = weir_grpc::Server::bind(loopback(), ServerTls::new(identity)).unwrap();
        let service = TestServer::default();
        let running = service.running().clone();
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(Routes::new(service)).await });
        Self {
            certificate,
            server,
            running,
        }
    }

    pub(crate) fn channel(&self) -> Channel {
        channel([self.server.local_address()], self.certificate.fingerprint)
    }

    /// Runs a case of the Go client.
    pub(crate) async fn run_go_client(&self, case: &str) -> Result<(), String> {
        let address = self.server.local_address();
        go::run_client(address, &self.certificate.chain(), case).await
    }

    /// Waits until no handler runs; the timeout of the case ends the wait.
    pub(crate) async fn expect_idle(&self) {
        while self.running.count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
