//! Connections over DCQUIC and DCUDP: a byte stream in each direction.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration as StdDuration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, WriteHalf, split};
use weir_net::dcudp::{DcudpClient, DcudpConfig, DcudpListener, DcudpStream, PreSharedKey};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{Connecting, Connection, Endpoint, SendStream, TransportConfig};
use weir_units::Duration;

use crate::error::Error;
use crate::protocol::FrameHeader;

/// The application protocol (RFC 7301).
const PROTOCOL: &[u8] = b"weir-copy";
/// The requested server name; only the fingerprint is verified.
const SERVER_NAME: &str = "weir-copy";
/// How long a client waits for the end of its connection.
const FAREWELL: StdDuration = StdDuration::from_secs(1);

/// What a server shows, or demands.
pub enum ServerSecurity {
    /// DCQUIC: sealed, with this certificate.
    Dcquic(Identity),
    /// DCUDP, sealed with a key that both ends have.
    Dcudp(Arc<PreSharedKey>),
}

/// What a client knows of its server.
#[derive(Clone)]
pub enum ClientSecurity {
    /// DCQUIC: the fingerprint of the server's certificate.
    Dcquic(Fingerprint),
    /// DCUDP: a key that both ends have.
    Dcudp(Arc<PreSharedKey>),
}

impl fmt::Debug for ServerSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dcquic(identity) => f
                .debug_tuple("Dcquic")
                .field(&identity.fingerprint())
                .finish(),
            Self::Dcudp(_) => f.write_str("Dcudp(key)"),
        }
    }
}

impl fmt::Debug for ClientSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dcquic(fingerprint) => f.debug_tuple("Dcquic").field(fingerprint).finish(),
            Self::Dcudp(_) => f.write_str("Dcudp(key)"),
        }
    }
}

/// The reading half of a connection.
pub(crate) type ByteReader = Box<dyn AsyncRead + Send + Unpin>;

/// A connection.
pub(crate) struct ByteStream {
    pub(crate) reader: ByteReader,
    pub(crate) writer: ByteWriter,
    end: Option<ClientEnd>,
}

/// What a client closes at the end.
enum ClientEnd {
    Dcquic(Endpoint),
    Dcudp(DcudpClient),
}

/// The writing half of a connection.
pub(crate) enum ByteWriter {
    Dcquic(SendStream, Connection),
    Dcudp(WriteHalf<DcudpStream>),
}

impl AsyncWrite for ByteWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Dcquic(stream, _) => Pin::new(stream).poll_write(cx, data),
            Self::Dcudp(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Dcquic(stream, _) => Pin::new(stream).poll_flush(cx),
            Self::Dcudp(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Dcquic(stream, _) => Pin::new(stream).poll_shutdown(cx),
            Self::Dcudp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match &self.writer {
            ByteWriter::Dcquic(..) => "dcquic",
            ByteWriter::Dcudp(_) => "dcudp",
        };
        f.debug_tuple("ByteStream").field(&transport).finish()
    }
}

impl ByteStream {
    fn dcudp(stream: DcudpStream, end: Option<ClientEnd>) -> Self {
        let (reader, writer) = split(stream);
        Self {
            reader: Box::new(reader),
            writer: ByteWriter::Dcudp(writer),
            end,
        }
    }

    /// Ends the connection: after `shutdown` of the writer, or at once.
    pub(crate) async fn close(self) {
        let Self {
            reader,
            writer,
            end,
        } = self;
        match &writer {
            ByteWriter::Dcquic(_, connection) if end.is_some() => connection.close(0, b""),
            _ => {}
        }
        drop((reader, writer));
        match end {
            Some(ClientEnd::Dcquic(endpoint)) => drop(endpoint.wait_idle(FAREWELL).await),
            Some(ClientEnd::Dcudp(client)) => drop(client.wait_idle(FAREWELL).await),
            None => {}
        }
    }
}

/// Reads a frame into `contents`. Returns its type.
pub(crate) async fn read_frame(
    reader: &mut ByteReader,
    contents: &mut Vec<u8>,
) -> Result<u8, Error> {
    let mut header = [0; FrameHeader::LENGTH];
    let read = reader.read_exact(&mut header).await;
    read.map_err(Error::Connection)?;
    let header = FrameHeader::decode(header)?;
    contents.resize(header.length, 0);
    let read = reader.read_exact(contents).await;
    read.map_err(Error::Connection)?;
    Ok(header.kind)
}

/// Connects to a server.
pub(crate) async fn connect(
    server: SocketAddr,
    security: &ClientSecurity,
    limit: Duration,
) -> Result<ByteStream, Error> {
    match security {
        ClientSecurity::Dcquic(pin) => {
            let tls = ClientTls::pinned(*pin)
                .application_protocols([PROTOCOL])
                .resumption(false)
                .build()?;
            let transport = TransportConfig {
                handshake_timeout: limit,
                ..TransportConfig::wan()
            };
            let endpoint = Endpoint::builder()
                .transport(transport)
                .client(tls)
                .bind_any()?;
            let connecting = endpoint.connect(server, SERVER_NAME);
            let connecting = connecting.map_err(|error| Error::of_connect(server, &error))?;
            let failed = |error| Error::of_dcquic(server, error);
            let connection = connecting.await.map_err(failed)?;
            let (writer, reader) = connection.open_bi().await.map_err(failed)?;
            Ok(ByteStream {
                reader: Box::new(reader),
                writer: ByteWriter::Dcquic(writer, connection),
                end: Some(ClientEnd::Dcquic(endpoint)),
            })
        }
        ClientSecurity::Dcudp(key) => {
            let mut config = sealed(key.clone());
            config.transport.handshake_timeout = limit;
            let client = DcudpClient::bind_for(server, config)?;
            let stream = client.connect(server).await;
            let stream = stream.map_err(|error| Error::of_dcudp(server, &error))?;
            Ok(ByteStream::dcudp(stream, Some(ClientEnd::Dcudp(client))))
        }
    }
}

fn sealed(key: Arc<PreSharedKey>) -> DcudpConfig {
    let mut config = DcudpConfig::shared();
    config.transport.shared_key = Some(key);
    config
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Dcquic(Endpoint, Fingerprint),
    Dcudp(DcudpListener),
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr, security: ServerSecurity) -> Result<Self, Error> {
        Ok(match security {
            ServerSecurity::Dcquic(identity) => {
                let fingerprint = identity.fingerprint();
                let tls = ServerTls::new(identity)
                    .application_protocols([PROTOCOL])
                    .build()?;
                let endpoint = Endpoint::builder()
                    .transport(TransportConfig::wan())
                    .server(tls)
                    .bind(address)?;
                Self::Dcquic(endpoint, fingerprint)
            }
            ServerSecurity::Dcudp(key) => Self::Dcudp(DcudpListener::bind(address, sealed(key))?),
        })
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        match self {
            Self::Dcquic(endpoint, _) => endpoint.local_address(),
            Self::Dcudp(listener) => listener.local_address(),
        }
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::Dcquic(_, fingerprint) => Some(*fingerprint),
            Self::Dcudp(_) => None,
        }
    }

    /// Waits for a client; `None` once the socket has shut down.
    pub(crate) async fn accept(&self) -> Option<Incoming> {
        Some(match self {
            Self::Dcquic(endpoint, _) => Incoming::Dcquic(endpoint.accept().await?),
            Self::Dcudp(listener) => Incoming::Dcudp(listener.accept().await?),
        })
    }
}

/// A client that has sent its first packet.
pub(crate) enum Incoming {
    Dcquic(Connecting),
    Dcudp(DcudpStream),
}

impl Incoming {
    pub(crate) fn client(&self) -> SocketAddr {
        match self {
            Self::Dcquic(connecting) => connecting.remote_address(),
            Self::Dcudp(stream) => stream.remote_address(),
        }
    }

    /// Completes the handshake, and waits for the client's stream.
    pub(crate) async fn establish(self) -> Result<ByteStream, Error> {
        match self {
            Self::Dcquic(connecting) => {
                let client = connecting.remote_address();
                let failed = |error| Error::of_dcquic(client, error);
                let connection = connecting.await.map_err(failed)?;
                let (writer, reader) = connection.accept_bi().await.map_err(failed)?;
                Ok(ByteStream {
                    reader: Box::new(reader),
                    writer: ByteWriter::Dcquic(writer, connection),
                    end: None,
                })
            }
            Self::Dcudp(stream) => Ok(ByteStream::dcudp(stream, None)),
        }
    }
}
