//! The adapter of TLS 1.3 over kernel TCP, by tokio-rustls; `early` implements servers with early data.

mod config;
mod early;
mod tickets;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use weir_units::Duration;

use crate::byte_stream::{ByteStream, Carrier};
use crate::error::Error;
use crate::probe::Probe;
use crate::tcp::{Tcp, TcpIncoming, TcpListeners};
use crate::transport::{Client, ConnectionAddresses, Incoming, Listener, Start, Transport};
use early::EarlyStream;

pub use config::{
    EarlyData, Trust, client_config, client_config_with, server_config, server_config_with,
};
pub use tickets::Tickets;
pub use weir_net::tls::{Fingerprint, Identity};

/// The time that a closing client waits for its ticket.
pub const TICKET_LIMIT: Duration = Duration::from_secs(2);

/// TLS over TCP.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The TCP adapter below; its time limit applies to the handshake again.
    pub tcp: Tcp,
    /// The clients' configuration; `None` if it has no clients.
    pub client: Option<Arc<ClientConfig>>,
    /// The servers' configuration; `None` if it has no servers.
    pub server: Option<Arc<ServerConfig>>,
    /// The server name that clients request; the server's address if `None`.
    pub server_name: Option<ServerName<'static>>,
    /// The clients' tickets; the same store as in `client`.
    pub tickets: Option<Arc<Tickets>>,
}

impl Tls {
    /// Runs the client's handshake on an open connection.
    ///
    /// # Errors
    /// See [`Client::connect`].
    pub async fn connect_over(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        start: Start,
    ) -> Result<ByteStream<TlsCarrier>, Error> {
        let config = self.client.clone();
        let config = config.ok_or_else(|| Error::setting("this side of TLS is no client"))?;
        let name = self.server_name.clone();
        let name = name.unwrap_or_else(|| ServerName::IpAddress(peer.ip().into()));
        let handshake = TlsConnector::from(config)
            .early_data(start == Start::Resumed)
            .connect(name, stream);
        let shaken = match self.tcp.connect_timeout {
            None => handshake.await,
            Some(limit) => match timeout(limit.into(), handshake).await {
                Ok(shaken) => shaken,
                Err(_) => return Err(Error::NoAnswer { peer }),
            },
        };
        match shaken {
            Ok(stream) => Ok(ByteStream::new(TlsCarrier {
                session: Session::Established(Box::new(stream.into())),
                tickets: self.tickets.clone(),
            })),
            Err(error) if is_wrong_certificate(&error) => Err(Error::WrongCertificate { peer }),
            Err(error) => Err(Error::failed("shaking hands")(error)),
        }
    }

    /// Runs the server's handshake on a connection that another listener accepted.
    ///
    /// # Errors
    /// See [`Tcp::adopt`], or the error of the handshake.
    pub async fn accept_over(&self, stream: TcpStream) -> Result<ByteStream<TlsCarrier>, Error> {
        self.tcp.set(&stream)?;
        let config = self.server.clone();
        let config = config.ok_or_else(|| Error::setting("this side of TLS is no server"))?;
        accept(stream, config).await
    }
}

async fn accept(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> Result<ByteStream<TlsCarrier>, Error> {
    let session = if config.max_early_data_size == 0 {
        let shaken = TlsAcceptor::from(config).accept(stream).await;
        Session::Established(Box::new(
            shaken.map_err(Error::failed("shaking hands"))?.into(),
        ))
    } else {
        let begun = EarlyStream::new(stream, config);
        Session::Early(Box::new(begun.map_err(Error::failed("shaking hands"))?))
    };
    Ok(ByteStream::new(TlsCarrier {
        session,
        tickets: None,
    }))
}

/// Returns whether this side aborted the handshake because its verifier rejected the certificate.
fn is_wrong_certificate(error: &io::Error) -> bool {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(
        tls,
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::ApplicationVerificationFailure
        ))
    )
}

impl Transport for Tls {
    type Client = Self;
    type Listener = TlsListeners;

    fn client(&self, _local: &[SocketAddr]) -> Result<Self, Error> {
        Ok(self.clone())
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<TlsListeners, Error> {
        let config = self.server.clone();
        Ok(TlsListeners {
            sockets: self.tcp.listen(local)?,
            config: config.ok_or_else(|| Error::setting("this side of TLS is no server"))?,
        })
    }
}

impl Client for Tls {
    type Connection = ByteStream<TlsCarrier>;

    async fn connect(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<Self::Connection, Error> {
        let stream = self.tcp.open(local, peer).await?;
        self.connect_over(stream, peer, start).await
    }
}

/// Listening sockets for TLS connections.
#[derive(Debug)]
pub struct TlsListeners {
    pub(crate) sockets: TcpListeners,
    config: Arc<ServerConfig>,
}

impl Listener for TlsListeners {
    type Incoming = TlsIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.sockets.addresses()
    }

    async fn accept(&self) -> Result<TlsIncoming, Error> {
        Ok(TlsIncoming {
            accepted: self.sockets.accept().await?,
            config: Arc::clone(&self.config),
        })
    }
}

/// A connection before the handshake.
#[derive(Debug)]
pub struct TlsIncoming {
    accepted: TcpIncoming,
    config: Arc<ServerConfig>,
}

impl Incoming for TlsIncoming {
    type Connection = ByteStream<TlsCarrier>;

    async fn establish(self) -> Result<Self::Connection, Error> {
        accept(self.accepted.adopt()?, self.config).await
    }
}

/// One end of a TLS session over TCP.
#[derive(Debug)]
pub struct TlsCarrier {
    session: Session,
    tickets: Option<Arc<Tickets>>,
}

#[derive(Debug)]
enum Session {
    /// After the handshake.
    Established(Box<TlsStream<TcpStream>>),
    /// A server's session, from the client's first bytes on.
    Early(Box<EarlyStream>),
}

impl TlsCarrier {
    fn tcp(&self) -> &TcpStream {
        match &self.session {
            Session::Established(stream) => stream.get_ref().0,
            Session::Early(stream) => stream.tcp(),
        }
    }
}

impl Carrier for TlsCarrier {
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        self.tcp().ends()
    }

    fn congestion(&self) -> Option<String> {
        self.tcp().congestion()
    }

    fn probe(&self) -> io::Result<Probe> {
        self.tcp().probe()
    }

    fn abort(&self) {
        self.tcp().abort();
    }

    fn early_data_accepted(&self) -> bool {
        match &self.session {
            Session::Established(stream) => match &**stream {
                TlsStream::Client(stream) => stream.get_ref().1.is_early_data_accepted(),
                TlsStream::Server(_) => false,
            },
            Session::Early(_) => true,
        }
    }

    /// Tickets are processed while reading; a server sends nothing else unsolicited.
    async fn ticket(&mut self) -> Result<(), Error> {
        let Some(tickets) = self.tickets.clone() else {
            return Ok(());
        };
        let mut nothing = [0; 1];
        tokio::select! {
            biased;
            arrived = tickets.wait(TICKET_LIMIT) => arrived,
            _ = self.read(&mut nothing) => Ok(()),
        }
    }
}

impl AsyncRead for TlsCarrier {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.session {
            Session::Established(stream) => Pin::new(stream).poll_read(cx, buffer),
            Session::Early(stream) => stream.poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for TlsCarrier {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.session {
            Session::Established(stream) => Pin::new(stream).poll_write(cx, data),
            Session::Early(stream) => stream.poll_write(cx, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.session {
            Session::Established(stream) => Pin::new(stream).poll_flush(cx),
            Session::Early(stream) => stream.poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.session {
            Session::Established(stream) => Pin::new(stream).poll_shutdown(cx),
            Session::Early(stream) => stream.poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests;
