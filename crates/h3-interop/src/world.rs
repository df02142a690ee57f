//! Our server and client.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use weir_h3::{APPLICATION_PROTOCOL, Server};
use weir_net::Endpoint;
use weir_net::tls::{ClientTls, Identity, Roots, ServerTls};

use crate::program::Failed;
use crate::{CertificateFiles, Requester, RequesterKind, paths, run_case};

/// How long connections that were left may take to end by their idle timeout.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name in the certificates.
pub const SERVER_NAME: &str = "localhost";

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Our server, with the paths that all programs have.
pub struct WeirServer {
    server: Server,
    endpoint: Endpoint,
}

impl WeirServer {
    /// Starts a server in the current tokio runtime.
    ///
    /// # Errors
    /// [`Failed`] where it cannot listen.
    pub fn start(files: &CertificateFiles) -> Result<Self, Failed> {
        let identity =
            Identity::from_files(files.certificate(), files.key()).map_err(Failed::new)?;
        let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
        let endpoint = Endpoint::builder()
            .server(tls.build().map_err(Failed::new)?)
            .bind(loopback())
            .map_err(Failed::new)?;
        let server = Server::default();
        let router = paths::router(server.clone());
        let (serving, served) = (server.clone(), endpoint.clone());
        tokio::spawn(async move { serving.serve(&served, router).await });
        Ok(Self { server, endpoint })
    }

    /// Waits until the server answers no request and has no connection, and checks that it still
    /// serves.
    ///
    /// # Errors
    /// [`Failed`] where requests or connections are left over, or a service has panicked.
    pub async fn rest(&self, files: &CertificateFiles) -> Result<(), Failed> {
        let begin = Instant::now();
        while self.server.stats().running > 0 || self.endpoint.stats().connections > 0 {
            if begin.elapsed() > PATIENCE {
                let (stats, endpoint) = (self.server.stats(), self.endpoint.stats());
                return Err(Failed(format!("it does not rest: {stats:?} {endpoint:?}")));
            }
            sleep(Duration::from_millis(10)).await;
        }
        if self.server.stats().panicked > 0 {
            return Err(Failed::new("a service panicked"));
        }
        let endpoint = client_endpoint(files)?;
        let client = Requester::connect(RequesterKind::Client, &endpoint, self.address()).await?;
        run_case(&client, "http_get").await
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }
}

/// Returns an endpoint that trusts a certificate, for our client.
///
/// # Errors
/// [`Failed`] where it cannot be bound.
pub fn client_endpoint(files: &CertificateFiles) -> Result<Endpoint, Failed> {
    let roots = Roots::from_file(files.certificate()).map_err(Failed::new)?;
    let tls = ClientTls::with_roots(roots).map_err(Failed::new)?;
    let tls = tls.application_protocols([APPLICATION_PROTOCOL]);
    Endpoint::builder()
        .client(tls.build().map_err(Failed::new)?)
        .bind(loopback())
        .map_err(Failed::new)
}
