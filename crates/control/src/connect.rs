//! Connects to a controller.

mod controller_connection;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};
use tonic::transport::{Channel, Endpoint};

use crate::credentials::{Credentials, CredentialsError};
use crate::handshake_failure::reason;
use crate::role::Role;
use controller_connection::ControllerConnection;

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a connection may be silent before an HTTP/2 ping, and how long the reply may take.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connection to a controller. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    refusal: RefusalCell,
}

impl Connection {
    /// Returns how one end has refused the other's certificate, if it has. With TLS 1.3 the controller's
    /// refusal comes when this end considers the connection open.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal.get()
    }
}

/// Connects to the controller at `HOST:PORT`, which must have the controller's certificate, at any address.
pub(crate) async fn connect(
    controller: &str,
    credentials: &Credentials,
) -> Result<Connection, tonic::transport::Error> {
    // tonic would refuse `https` without TLS of its own; the controller sees `origin`.
    let endpoint = Endpoint::from_shared(format!("http://{controller}"))?
        .origin(Uri::from_static("https://controller.weir"))
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE);
    let refusal = RefusalCell::default();
    let connector = Connector {
        credentials: credentials.clone(),
        refusal: refusal.clone(),
    };
    let channel = endpoint.connect_with_connector(connector).await?;
    Ok(Connection { channel, refusal })
}

/// Whose certificate was refused, and why.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    ByController(String),
    OfController(String),
}

/// The refusal that has ended the last connection.
#[derive(Clone, Debug, Default)]
struct RefusalCell(Arc<Mutex<Option<Refusal>>>);

impl RefusalCell {
    fn get(&self) -> Option<Refusal> {
        let refusal = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.clone()
    }

    fn set(&self, refusal: Option<Refusal>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }
}

/// Why no connection could be opened.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Tls(#[from] weir_net::tls::TlsError),
    #[error("the controller's name is invalid")]
    Name,
    #[error("{0}")]
    Tcp(io::Error),
    #[error("{}", reason(.0))]
    Handshake(io::Error),
}

/// Opens connections with the credentials of the moment.
struct Connector {
    credentials: Credentials,
    refusal: RefusalCell,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<ControllerConnection>;
    type Error = ConnectError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, controller: Uri) -> Self::Future {
        let (credentials, refusal) = (self.credentials.clone(), self.refusal.clone());
        Box::pin(async move {
            refusal.set(None);
            let credentials = credentials.client()?.clone();
            // Read before the handshake: a reload meanwhile has it verified again.
            let changes = credentials.reloads().changes;
            let tls = credentials.over_tcp()?;
            let name = controller_name().ok_or(ConnectError::Name)?;
            let address = controller
                .authority()
                .map_or("", |address| address.as_str());
            let stream = TcpStream::connect(address).await;
            let stream = stream.map_err(ConnectError::Tcp)?;
            stream.set_nodelay(true).map_err(ConnectError::Tcp)?;
            let tls = TlsConnector::from(tls).connect(name, stream).await;
            let tls = tls.map_err(ConnectError::Handshake)?;
            let connection = ControllerConnection::new(tls, credentials, changes, refusal);
            Ok(TokioIo::new(connection))
        })
    }
}

/// Returns the DNS name that a controller's certificate has.
fn controller_name() -> Option<ServerName<'static>> {
    ServerName::try_from(Role::Controller.to_string()).ok()
}
