//! quinn, with rustls and aws-lc-rs as everywhere here.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncUdpSocket, ClientConfig, ConnectionError, Endpoint, EndpointConfig, MtuDiscoveryConfig,
    RecvStream, Runtime, SendStream, ServerConfig, TokioRuntime, TransportConfig, UdpPoller,
    VarInt, ZeroRttAccepted,
};
use weir_traffic::calls::driver::{ClientOptions, ServerOptions};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::{ALPN, SERVER_NAME};
use weir_traffic::calls::preset::Preset;
use weir_traffic::calls::{Abilities, Error, TransportSpecification};
use weir_traffic::tls::{EarlyData, TICKET_LIMIT, Tickets, client_config, server_config};
use weir_traffic::transport::{
    Client, Connection, Ends, Incoming, Listener, Start, StreamKind, Transport,
};

use crate::settings::{
    CONNECTION_WINDOW, STREAM_WINDOW, any_port, bound_to, gso_batch, initial_window, udp_notes,
    udp_socket,
};

/// The largest size to start with: quinn panics when it pads a handshake packet to 16 KB or more.
/// Larger packets are found by its path MTU discovery.
const LARGEST_FIRST_PACKET: u16 = 16_000;

/// The preset of quinn.
pub struct Quinn;

impl Preset for Quinn {
    type Transport = QuinnTransport;

    fn name(&self) -> &'static str {
        "quinn"
    }

    fn version(&self) -> String {
        format!(
            "quinn {}, rustls {}",
            locked_version("quinn"),
            locked_version("rustls")
        )
    }

    fn server(&self, options: &ServerOptions) -> Result<QuinnTransport, Error> {
        let early_data = if options.early_data {
            EarlyData::OverQuic
        } else {
            EarlyData::Refused
        };
        let tls = server_config(&options.identity, ALPN, 1, early_data)?;
        let tls = QuicServerConfig::try_from(tls)
            .map_err(|error| Error::transport("configuring TLS", error))?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(transport(&options.specification)?));
        Ok(QuinnTransport {
            client: None,
            server: Some(config),
            packet_size: options.specification.packet_size,
            tickets: None,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<QuinnTransport, Error> {
        let tickets = options.resumption.then(Arc::<Tickets>::default);
        let tls = client_config(&options.trust, ALPN, tickets.clone())?;
        let tls = QuicClientConfig::try_from(tls)
            .map_err(|error| Error::transport("configuring TLS", error))?;
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport(&options.specification)?));
        Ok(QuinnTransport {
            client: Some(config),
            server: None,
            packet_size: options.specification.packet_size,
            tickets,
        })
    }

    fn local(&self, options: &ClientOptions) -> Vec<SocketAddr> {
        vec![any_port(options.server)]
    }

    fn notes(&self, _listener: &QuinnListener) -> Result<Vec<String>, Error> {
        udp_notes()
    }
}

fn transport(specification: &TransportSpecification) -> Result<TransportConfig, Error> {
    specification.require(
        "quinn",
        Abilities {
            packet_size: true,
            congestion: true,
            ..Abilities::default()
        },
    )?;
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(window(STREAM_WINDOW))
        .receive_window(window(CONNECTION_WINDOW))
        .send_window(CONNECTION_WINDOW);
    if let Some(size) = specification.packet_size {
        let first = size.min(LARGEST_FIRST_PACKET);
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(size);
        config
            .initial_mtu(first)
            .min_mtu(first)
            .mtu_discovery_config((size > first).then_some(discovery));
    }
    let initial = initial_window(specification.packet_size);
    let factory: Arc<dyn ControllerFactory + Send + Sync> =
        match specification.congestion.as_deref().unwrap_or("cubic") {
            "cubic" => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(initial);
                Arc::new(cubic)
            }
            "newreno" => {
                let mut newreno = NewRenoConfig::default();
                newreno.initial_window(initial);
                Arc::new(newreno)
            }
            "bbr" => Arc::new(BbrConfig::default()),
            other => {
                return Err(Error::Unsupported {
                    transport: "quinn",
                    what: format!("use {other:?}: it has cubic, newreno and bbr"),
                });
            }
        };
    config.congestion_controller_factory(factory);
    Ok(config)
}

fn window(bytes: u64) -> VarInt {
    VarInt::from_u64(bytes).unwrap_or(VarInt::MAX)
}

/// An endpoint whose packets have at most this size.
///
/// # Errors
/// When the address cannot be bound.
pub fn endpoint(
    bind: SocketAddr,
    packet_size: Option<u16>,
    server: Option<ServerConfig>,
) -> Result<Endpoint, weir_traffic::Error> {
    let unusable = |error: io::Error| weir_traffic::Error::setting(error);
    let mut config = EndpointConfig::default();
    if let Some(size) = packet_size {
        config
            .max_udp_payload_size(size)
            .map_err(weir_traffic::Error::setting)?;
    }
    let socket: UdpSocket = udp_socket(bind).map_err(unusable)?.into();
    let runtime = Arc::new(TokioRuntime);
    let inner = runtime.wrap_udp_socket(socket).map_err(unusable)?;
    let socket = Arc::new(LimitedBatches {
        inner,
        limit: gso_batch(packet_size),
    });
    Endpoint::new_with_abstract_socket(config, server, socket, runtime).map_err(unusable)
}

/// Keeps GSO batches within the 64 KB of one UDP datagram; quinn sends ten packets of any size,
/// which the kernel refuses above 6.5 KB each.
#[derive(Debug)]
struct LimitedBatches {
    inner: Arc<dyn AsyncUdpSocket>,
    limit: usize,
}

impl AsyncUdpSocket for LimitedBatches {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments().min(self.limit)
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// quinn, as a transport.
pub struct QuinnTransport {
    client: Option<ClientConfig>,
    server: Option<ServerConfig>,
    /// UDP payload bytes per packet.
    packet_size: Option<u16>,
    tickets: Option<Arc<Tickets>>,
}

impl Transport for QuinnTransport {
    type Client = QuinnClient;
    type Listener = QuinnListener;

    fn client(&self, local: &[SocketAddr]) -> Result<QuinnClient, weir_traffic::Error> {
        let mut endpoint = endpoint(bound_to(local)?, self.packet_size, None)?;
        if let Some(config) = &self.client {
            endpoint.set_default_client_config(config.clone());
        }
        Ok(QuinnClient {
            endpoint,
            tickets: self.tickets.clone(),
        })
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<QuinnListener, weir_traffic::Error> {
        let server = self.server.clone();
        Ok(QuinnListener {
            endpoint: endpoint(bound_to(local)?, self.packet_size, server)?,
        })
    }
}

/// A client's endpoint.
pub struct QuinnClient {
    endpoint: Endpoint,
    tickets: Option<Arc<Tickets>>,
}

impl Client for QuinnClient {
    type Connection = QuinnConnection;

    async fn connect(
        &self,
        _local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<QuinnConnection, weir_traffic::Error> {
        let connecting = self.endpoint.connect(peer, SERVER_NAME);
        let connecting = connecting.map_err(weir_traffic::Error::setting)?;
        let (connection, early_data) = match start {
            Start::Full => {
                let shaken = connecting.await;
                let failed = weir_traffic::Error::failed("shaking hands");
                (shaken.map_err(failed)?, None)
            }
            Start::Resumed => {
                let early = connecting.into_0rtt();
                let (connection, accepted) =
                    early.map_err(|_| weir_traffic::Error::EarlyDataRefused)?;
                (connection, Some(accepted))
            }
        };
        Ok(QuinnConnection {
            early_data,
            tickets: self.tickets.clone(),
            ..QuinnConnection::new(connection)
        })
    }
}

/// A server's endpoint.
pub struct QuinnListener {
    endpoint: Endpoint,
}

impl Listener for QuinnListener {
    type Incoming = QuinnIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.endpoint.local_addr()?])
    }

    async fn accept(&self) -> Result<QuinnIncoming, weir_traffic::Error> {
        let incoming = self.endpoint.accept().await;
        let gone = || weir_traffic::Error::setting("the endpoint has shut down");
        Ok(QuinnIncoming(incoming.ok_or_else(gone)?))
    }
}

/// A client that has sent its first packet.
pub struct QuinnIncoming(quinn::Incoming);

impl Incoming for QuinnIncoming {
    type Connection = QuinnConnection;

    async fn establish(self) -> Result<QuinnConnection, weir_traffic::Error> {
        let failed = weir_traffic::Error::failed("shaking hands");
        let connecting = self.0.accept().map_err(failed)?;
        // On a server this never fails: it may read early data and answer before the handshake's end.
        let early = connecting.into_0rtt();
        let (connection, _) = early.map_err(|_| weir_traffic::Error::EarlyDataRefused)?;
        Ok(QuinnConnection::new(connection))
    }
}

/// A connection with the stream that is in use.
pub struct QuinnConnection {
    connection: quinn::Connection,
    /// Tells whether the server has taken early data.
    early_data: Option<ZeroRttAccepted>,
    tickets: Option<Arc<Tickets>>,
    outgoing: Option<SendStream>,
    incoming: Option<RecvStream>,
}

impl QuinnConnection {
    fn new(connection: quinn::Connection) -> Self {
        Self {
            connection,
            early_data: None,
            tickets: None,
            outgoing: None,
            incoming: None,
        }
    }

    fn outgoing(&mut self) -> io::Result<&mut SendStream> {
        let stream = self.outgoing.as_mut();
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn incoming(&mut self) -> io::Result<&mut RecvStream> {
        let stream = self.incoming.as_mut();
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Connection for QuinnConnection {
    fn ends(&self) -> io::Result<Ends> {
        let local = self.connection.local_ip();
        let local = local.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Ends {
            local: SocketAddr::new(local, 0),
            remote: self.connection.remote_address(),
        })
    }

    async fn open(&mut self, kind: StreamKind) -> io::Result<()> {
        match kind {
            StreamKind::OneWay => self.outgoing = Some(self.connection.open_uni().await?),
            StreamKind::TwoWay => {
                let (send, receive) = self.connection.open_bi().await?;
                (self.outgoing, self.incoming) = (Some(send), Some(receive));
            }
        }
        Ok(())
    }

    async fn accept(&mut self, kind: StreamKind) -> io::Result<bool> {
        let accepted = match kind {
            StreamKind::OneWay => {
                let stream = self.connection.accept_uni().await;
                stream.map(|stream| (None, stream))
            }
            StreamKind::TwoWay => {
                let streams = self.connection.accept_bi().await;
                streams.map(|(send, receive)| (Some(send), receive))
            }
        };
        match accepted {
            Ok((send, receive)) => {
                (self.outgoing, self.incoming) = (send, Some(receive));
                Ok(true)
            }
            Err(ConnectionError::ApplicationClosed(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        let length = data.len();
        self.outgoing()?.write_chunk(data).await?;
        Ok(length)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn end_message(&mut self, last: Bytes) -> io::Result<()> {
        self.outgoing()?.write_chunk(last).await?;
        self.finish().await
    }

    async fn receive(
        &mut self,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> io::Result<usize> {
        let chunk = self.incoming()?.read_chunk(most, true).await?;
        Ok(chunk.map_or(0, |chunk| {
            take(&chunk.bytes);
            chunk.bytes.len()
        }))
    }

    async fn message_ended(&mut self) -> io::Result<()> {
        match self.incoming()?.read_chunk(1, true).await? {
            None => Ok(()),
            Some(_) => Err(io::Error::other("the message is longer than it should be")),
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.outgoing()?.finish().map_err(io::Error::other)
    }

    async fn closed_by_peer(&mut self) -> io::Result<()> {
        match self.connection.closed().await {
            ConnectionError::ApplicationClosed(_) => Ok(()),
            error => Err(error.into()),
        }
    }

    async fn early_data_accepted(&mut self) -> Result<bool, weir_traffic::Error> {
        match self.early_data.take() {
            Some(accepted) => Ok(accepted.await),
            None => Ok(false),
        }
    }

    async fn close(&mut self) -> Result<(), weir_traffic::Error> {
        if let Some(tickets) = &self.tickets {
            tickets.wait(TICKET_LIMIT).await?;
        }
        self.abort();
        // The connection's own task sends the close.
        self.connection.closed().await;
        tokio::task::yield_now().await;
        Ok(())
    }

    fn abort(&self) {
        self.connection.close(VarInt::from_u32(0), b"");
    }
}
