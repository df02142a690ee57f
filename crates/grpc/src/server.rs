//! A server of gRPC.

use std::net::SocketAddr;

use tonic::service::Routes;
use weir_h3::ServerStats;
use weir_net::tls::{ServerTls, TlsError};
use weir_net::{DeadlinePassed, Duration, Endpoint, EndpointError};

use crate::APPLICATION_PROTOCOL;
use crate::service::GrpcService;

/// Serves tonic's services. Clones are handles to the same server.
#[derive(Clone)]
pub struct Server {
    http: weir_h3::Server,
    endpoint: Endpoint,
    timeout: Option<std::time::Duration>,
}

/// Why a server cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The TLS configuration is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be bound, or there is no tokio runtime.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl Server {
    /// Binds a UDP address; the TLS configuration gets HTTP/3 as its only application protocol.
    ///
    /// # Errors
    /// [`BindError`] where the configuration is wrong, or the address cannot be bound.
    pub fn bind(address: SocketAddr, tls: ServerTls) -> Result<Self, BindError> {
        let tls = tls.application_protocols([APPLICATION_PROTOCOL]).build()?;
        Ok(Self::on(Endpoint::builder().server(tls).bind(address)?))
    }

    /// Makes a server of an endpoint, for settings of its own. Its TLS configuration has to accept
    /// [`APPLICATION_PROTOCOL`].
    pub fn on(endpoint: Endpoint) -> Self {
        Self {
            http: weir_h3::Server::default(),
            endpoint,
            timeout: None,
        }
    }

    /// Takes the limits of an HTTP/3 server.
    pub fn http(mut self, http: weir_h3::Server) -> Self {
        self.http = http;
        self
    }

    /// Sets how long a call may take, whatever its client allows; no limit by default.
    pub fn timeout(mut self, timeout: impl Into<Duration>) -> Self {
        self.timeout = Some(timeout.into().into());
        self
    }

    /// Returns the address that the server is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Serves until [`Server::shutdown`], which another handle calls.
    pub async fn serve(&self, routes: Routes) {
        let mut service = GrpcService::new(routes.prepare());
        if let Some(timeout) = self.timeout {
            service = service.timeout(timeout);
        }
        self.http.serve(&self.endpoint, service).await;
    }

    /// Drains the server: new connections and calls are refused before they are executed, so that
    /// channels make them elsewhere (GOAWAY); running calls get up to `limit` to end.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where calls had to be given up.
    pub async fn shutdown(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        self.http.shutdown(limit).await
    }

    /// Returns the counters.
    pub fn stats(&self) -> ServerStats {
        self.http.stats()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
