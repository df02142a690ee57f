//! Connects to a controller.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};
use tonic::transport::{Channel, Endpoint};

use crate::credentials::{Credentials, CredentialsError};
use crate::handshake_failure::{is_refusal, reason};
use crate::role::Role;

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
    /// Returns why the controller has refused this end's certificate, if it has. With TLS 1.3 that comes
    /// when this end considers the connection open.
    pub(crate) fn refusal(&self) -> Option<String> {
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

/// Why the controller has refused the last connection.
#[derive(Clone, Debug, Default)]
struct RefusalCell(Arc<Mutex<Option<String>>>);

impl RefusalCell {
    fn get(&self) -> Option<String> {
        let refusal = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.clone()
    }

    fn set(&self, refusal: Option<String>) {
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
            let tls = credentials.client()?.over_tcp()?;
            let name = ServerName::try_from(Role::Controller.to_string());
            let name = name.map_err(|_| ConnectError::Name)?;
            let address = controller
                .authority()
                .map_or("", |address| address.as_str());
            let stream = TcpStream::connect(address).await;
            let stream = stream.map_err(ConnectError::Tcp)?;
            stream.set_nodelay(true).map_err(ConnectError::Tcp)?;
            let tls = TlsConnector::from(tls).connect(name, stream).await;
            let tls = tls.map_err(ConnectError::Handshake)?;
            Ok(TokioIo::new(ControllerConnection { tls, refusal }))
        })
    }
}

/// A TLS connection that remembers the controller's refusal.
struct ControllerConnection {
    tls: TlsStream<TcpStream>,
    refusal: RefusalCell,
}

impl AsyncRead for ControllerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.tls).poll_read(context, buffer));
        if let Err(error) = &result
            && is_refusal(error)
        {
            self.refusal.set(Some(reason(error)));
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for ControllerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}
