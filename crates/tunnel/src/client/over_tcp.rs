//! Connections to the server by TLS over TCP, for as long as UDP does not pass.

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use weir_net::tls::ClientCredentials;

use crate::carrier::TlsCarrier;
use crate::destination::{Destination, Host};

/// How to reach a server by TLS.
#[derive(Debug)]
pub(super) struct OverTcp {
    credentials: ClientCredentials,
    via: Destination,
    server_name: ServerName<'static>,
}

/// Why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum OverTcpError {
    #[error(transparent)]
    Tls(#[from] weir_net::tls::TlsError),
    #[error("TLS over TCP: {0}")]
    Io(#[from] std::io::Error),
}

impl OverTcp {
    /// Prepares connections; `None` where the server's name cannot be one of a certificate.
    pub(super) fn new(
        credentials: ClientCredentials,
        via: Destination,
        server_name: Option<&str>,
    ) -> Option<Self> {
        let server_name = match (server_name, via.host()) {
            (Some(name), _) => ServerName::try_from(name.to_owned()).ok()?,
            (None, Host::Name(name)) => ServerName::try_from(name.clone()).ok()?,
            (None, Host::Address(address)) => ServerName::from(*address),
        };
        Some(Self {
            credentials,
            via,
            server_name,
        })
    }

    /// Connects.
    ///
    /// # Errors
    /// [`OverTcpError`].
    pub(super) async fn connect(&self) -> Result<TlsCarrier, OverTcpError> {
        let port = self.via.port();
        let tcp = match self.via.host() {
            Host::Address(address) => TcpStream::connect((*address, port)).await?,
            Host::Name(name) => TcpStream::connect((&**name, port)).await?,
        };
        tcp.set_nodelay(true)?;
        let connector = TlsConnector::from(self.credentials.over_tcp()?);
        let stream = connector.connect(self.server_name.clone(), tcp).await?;
        Ok(TlsCarrier::client(stream.into()))
    }
}
