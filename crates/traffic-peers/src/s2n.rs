//! s2n-quic, with its rustls provider (aws-lc-rs) instead of s2n-tls, so that TLS is the same.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::tokio::{Builder as IoBuilder, Provider as Io};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls::{Client as TlsClient, Server as TlsServer};
use s2n_quic::stream::{BidirectionalStream, ReceiveStream, SendStream};
use tokio::sync::Mutex;
use weir_traffic::calls::driver::{ClientOptions, Phase, ServerOptions};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::{ALPN, SERVER_NAME};
use weir_traffic::calls::preset::Preset;
use weir_traffic::calls::{Abilities, Error, TransportSpecification};
use weir_traffic::tls::{EarlyData, client_config, server_config};
use weir_traffic::transport::{
    Client, Connection, Ends, Incoming, Listener, Start, StreamKind, Transport,
};

use crate::settings::{
    CONNECTION_WINDOW, SOCKET_BUFFER, STREAM_WINDOW, any_port, bound_to, udp_notes,
};

/// IPv4 and UDP headers, which s2n-quic counts in its MTU.
const HEADERS: u16 = 28;

/// The preset of s2n-quic.
pub struct S2n;

impl Preset for S2n {
    type Transport = S2nTransport;

    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn version(&self) -> String {
        format!(
            "s2n-quic {} with rustls {}",
            locked_version("s2n-quic"),
            locked_version("rustls")
        )
    }

    fn supports(&self, phase: Phase) -> bool {
        phase != Phase::Resumed
    }

    fn server(&self, options: &ServerOptions) -> Result<S2nTransport, Error> {
        let tls = server_config(&options.identity, ALPN, 1, EarlyData::Refused)?;
        S2nTransport::new(&options.specification, Tls::Server(tls))
    }

    fn client(&self, options: &ClientOptions) -> Result<S2nTransport, Error> {
        let tls = client_config(&options.trust, ALPN, None)?;
        S2nTransport::new(&options.specification, Tls::Client(tls))
    }

    fn local(&self, options: &ClientOptions) -> Vec<SocketAddr> {
        vec![any_port(options.server)]
    }

    fn notes(&self, _listener: &S2nListener) -> Result<Vec<String>, Error> {
        udp_notes()
    }
}

/// s2n-quic, as a transport.
pub struct S2nTransport {
    tls: Tls,
    controller: Controller,
    /// UDP payload bytes per packet.
    packet_size: Option<u16>,
}

enum Tls {
    Client(rustls::ClientConfig),
    Server(rustls::ServerConfig),
}

/// The congestion control, which is part of an endpoint's type.
#[derive(Clone, Copy)]
enum Controller {
    Cubic,
    Bbr,
}

impl S2nTransport {
    fn new(specification: &TransportSpecification, tls: Tls) -> Result<Self, Error> {
        specification.require(
            "s2n-quic",
            Abilities {
                packet_size: true,
                congestion: true,
                ..Abilities::default()
            },
        )?;
        let controller = match specification.congestion.as_deref().unwrap_or("cubic") {
            "cubic" => Controller::Cubic,
            "bbr" => Controller::Bbr,
            other => {
                return Err(Error::Unsupported {
                    transport: "s2n-quic",
                    what: format!("use {other:?}: it has cubic and bbr"),
                });
            }
        };
        Ok(Self {
            tls,
            controller,
            packet_size: specification.packet_size,
        })
    }

    fn io(&self, bind: SocketAddr) -> io::Result<Io> {
        let mut io = IoBuilder::default()
            .with_receive_address(bind)?
            .with_send_buffer_size(SOCKET_BUFFER)?
            .with_recv_buffer_size(SOCKET_BUFFER)?;
        if let Some(size) = self.packet_size {
            let mtu = size.saturating_add(HEADERS);
            io = io
                .with_max_mtu(mtu)?
                .with_initial_mtu(mtu)?
                .with_base_mtu(mtu)?;
        }
        io.build()
    }
}

fn limits() -> Result<Limits, weir_traffic::Error> {
    Limits::new()
        .with_data_window(CONNECTION_WINDOW)
        .and_then(|limits| limits.with_bidirectional_local_data_window(STREAM_WINDOW))
        .and_then(|limits| limits.with_bidirectional_remote_data_window(STREAM_WINDOW))
        .map_err(weir_traffic::Error::setting)
}

impl Transport for S2nTransport {
    type Client = S2nClient;
    type Listener = S2nListener;

    fn client(&self, local: &[SocketAddr]) -> Result<S2nClient, weir_traffic::Error> {
        let Tls::Client(tls) = &self.tls else {
            return Err(weir_traffic::Error::setting(
                "this side of TLS is no client",
            ));
        };
        let io = self.io(bound_to(local)?);
        let client = s2n_quic::Client::builder()
            .with_tls(TlsClient::from(tls.clone()))
            .map_err(weir_traffic::Error::setting)?
            .with_io(io.map_err(weir_traffic::Error::setting)?)
            .map_err(weir_traffic::Error::setting)?
            .with_limits(limits()?)
            .map_err(weir_traffic::Error::setting)?;
        let started = match self.controller {
            Controller::Cubic => client
                .with_congestion_controller(Cubic::default())
                .map(|client| client.start()),
            Controller::Bbr => client
                .with_congestion_controller(Bbr::default())
                .map(|client| client.start()),
        };
        let client = started
            .map_err(weir_traffic::Error::setting)?
            .map_err(weir_traffic::Error::setting)?;
        Ok(S2nClient { client })
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<S2nListener, weir_traffic::Error> {
        let Tls::Server(tls) = &self.tls else {
            return Err(weir_traffic::Error::setting(
                "this side of TLS is no server",
            ));
        };
        let io = self.io(bound_to(local)?);
        let server = s2n_quic::Server::builder()
            .with_tls(TlsServer::from(tls.clone()))
            .map_err(weir_traffic::Error::setting)?
            .with_io(io.map_err(weir_traffic::Error::setting)?)
            .map_err(weir_traffic::Error::setting)?
            .with_limits(limits()?)
            .map_err(weir_traffic::Error::setting)?;
        let started = match self.controller {
            Controller::Cubic => server
                .with_congestion_controller(Cubic::default())
                .map(|server| server.start()),
            Controller::Bbr => server
                .with_congestion_controller(Bbr::default())
                .map(|server| server.start()),
        };
        let server = started
            .map_err(weir_traffic::Error::setting)?
            .map_err(weir_traffic::Error::setting)?;
        Ok(S2nListener {
            address: server.local_addr().map_err(weir_traffic::Error::setting)?,
            server: Mutex::new(server),
        })
    }
}

/// A client's endpoint.
pub struct S2nClient {
    client: s2n_quic::Client,
}

impl Client for S2nClient {
    type Connection = S2nConnection;

    async fn connect(
        &self,
        _local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<S2nConnection, weir_traffic::Error> {
        if start == Start::Resumed {
            return Err(weir_traffic::Error::setting("s2n-quic sends no early data"));
        }
        let connect = Connect::new(peer).with_server_name(SERVER_NAME);
        let connection = self.client.connect(connect).await;
        let failed = weir_traffic::Error::failed("shaking hands");
        Ok(S2nConnection::new(connection.map_err(failed)?))
    }
}

/// A server's endpoint. One task at a time takes its connections.
pub struct S2nListener {
    address: SocketAddr,
    server: Mutex<s2n_quic::Server>,
}

impl Listener for S2nListener {
    type Incoming = S2nConnection;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.address])
    }

    async fn accept(&self) -> Result<S2nConnection, weir_traffic::Error> {
        let accepted = self.server.lock().await.accept().await;
        let gone = || weir_traffic::Error::setting("the endpoint has shut down");
        Ok(S2nConnection::new(accepted.ok_or_else(gone)?))
    }
}

/// s2n-quic hands out connections that have shaken hands.
impl Incoming for S2nConnection {
    type Connection = Self;

    async fn establish(self) -> Result<Self, weir_traffic::Error> {
        Ok(self)
    }
}

/// A connection with the stream that is in use.
pub struct S2nConnection {
    connection: s2n_quic::Connection,
    stream: Stream,
}

enum Stream {
    None,
    TwoWay(BidirectionalStream),
    Outgoing(SendStream),
    Incoming(ReceiveStream),
}

impl S2nConnection {
    fn new(connection: s2n_quic::Connection) -> Self {
        Self {
            connection,
            stream: Stream::None,
        }
    }

    async fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        Ok(match &mut self.stream {
            Stream::TwoWay(stream) => stream.receive().await?,
            Stream::Incoming(stream) => stream.receive().await?,
            Stream::Outgoing(_) | Stream::None => return Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl Connection for S2nConnection {
    fn ends(&self) -> io::Result<Ends> {
        Ok(Ends {
            local: self.connection.local_addr()?,
            remote: self.connection.remote_addr()?,
        })
    }

    async fn open(&mut self, kind: StreamKind) -> io::Result<()> {
        self.stream = match kind {
            StreamKind::OneWay => Stream::Outgoing(self.connection.open_send_stream().await?),
            StreamKind::TwoWay => {
                Stream::TwoWay(self.connection.open_bidirectional_stream().await?)
            }
        };
        Ok(())
    }

    async fn accept(&mut self, kind: StreamKind) -> io::Result<bool> {
        let accepted = match kind {
            StreamKind::OneWay => {
                let stream = self.connection.accept_receive_stream().await?;
                stream.map(Stream::Incoming)
            }
            StreamKind::TwoWay => {
                let stream = self.connection.accept_bidirectional_stream().await?;
                stream.map(Stream::TwoWay)
            }
        };
        let is_open = accepted.is_some();
        self.stream = accepted.unwrap_or(Stream::None);
        Ok(is_open)
    }

    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        let length = data.len();
        match &mut self.stream {
            Stream::TwoWay(stream) => stream.send(data).await?,
            Stream::Outgoing(stream) => stream.send(data).await?,
            Stream::Incoming(_) | Stream::None => return Err(io::ErrorKind::NotConnected.into()),
        }
        Ok(length)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn end_message(&mut self, last: Bytes) -> io::Result<()> {
        self.send(last).await?;
        self.finish().await
    }

    /// Pieces come as s2n-quic has them, however many bytes are asked for.
    async fn receive(
        &mut self,
        _most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> io::Result<usize> {
        Ok(self.next_piece().await?.map_or(0, |piece| {
            take(&piece);
            piece.len()
        }))
    }

    async fn message_ended(&mut self) -> io::Result<()> {
        match self.next_piece().await? {
            None => Ok(()),
            Some(_) => Err(io::Error::other("the message is longer than it should be")),
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::TwoWay(stream) => Ok(stream.finish()?),
            Stream::Outgoing(stream) => Ok(stream.finish()?),
            Stream::Incoming(_) | Stream::None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    async fn closed_by_peer(&mut self) -> io::Result<()> {
        match self.connection.accept().await? {
            None => Ok(()),
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    async fn early_data_accepted(&mut self) -> Result<bool, weir_traffic::Error> {
        Ok(false)
    }

    async fn close(&mut self) -> Result<(), weir_traffic::Error> {
        self.abort();
        // The endpoint's task sends the close.
        tokio::task::yield_now().await;
        Ok(())
    }

    fn abort(&self) {
        self.connection.close(0_u32.into());
    }
}
