//! quinn, with rustls and aws-lc-rs as everywhere here.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncUdpSocket, ClientConfig, Endpoint, EndpointConfig, Incoming, MtuDiscoveryConfig, Runtime,
    ServerConfig, TokioRuntime, TransportConfig, UdpPoller, VarInt,
};
use weir_traffic::calls::driver::{
    Client, ClientOptions, Connection, Driver, FirstCall, Listening, LocalFuture, Phase,
    ServerOptions, Start,
};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::identity::{EarlyData, SERVER_NAME, Tickets};
use weir_traffic::calls::payload::{Body, Library, Request};
use weir_traffic::calls::{Abilities, Error, TransportSpecification};

use crate::settings::{
    CONNECTION_WINDOW, STREAM_WINDOW, TICKET_LIMIT, any_port, gso_batch, initial_window, udp_notes,
    udp_socket,
};

/// The largest size to start with: quinn panics when it pads a handshake packet to 16 KB or more.
/// Larger packets are found by its path MTU discovery.
const LARGEST_FIRST_PACKET: u16 = 16_000;

/// The driver of quinn.
pub(crate) struct Quinn;

impl Driver for Quinn {
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

    fn supports(&self, _phase: Phase) -> bool {
        true
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let early_data = if options.early_data {
            EarlyData::OverQuic
        } else {
            EarlyData::Refused
        };
        let tls = QuicServerConfig::try_from(options.identity.server_config(early_data)?)
            .map_err(|error| Error::transport("configuring TLS", error))?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(transport(&options.specification)?));
        let endpoint = endpoint(options.bind, &options.specification, Some(config))?;
        let address = endpoint.local_addr().map_err(Error::io("listening"))?;
        Ok(Listening {
            address,
            serve: Box::pin(async move {
                let library = Arc::new(Library::default());
                while let Some(incoming) = endpoint.accept().await {
                    tokio::spawn(serve(incoming, Arc::clone(&library)));
                }
                Ok(())
            }),
            notes: udp_notes()?,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn Client>, Error> {
        let tickets = options.resumption.then(Arc::<Tickets>::default);
        let tls = options.trust.client_config(tickets.clone())?;
        let tls = QuicClientConfig::try_from(tls)
            .map_err(|error| Error::transport("configuring TLS", error))?;
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport(&options.specification)?));
        let mut endpoint = endpoint(any_port(options.server), &options.specification, None)?;
        endpoint.set_default_client_config(config);
        Ok(Box::new(QuinnClient {
            endpoint,
            server: options.server,
            tickets,
        }))
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

fn endpoint(
    bind: SocketAddr,
    specification: &TransportSpecification,
    server: Option<ServerConfig>,
) -> Result<Endpoint, Error> {
    let doing = "opening the endpoint";
    let mut config = EndpointConfig::default();
    if let Some(size) = specification.packet_size {
        config
            .max_udp_payload_size(size)
            .map_err(|error| Error::transport(doing, error))?;
    }
    let socket: UdpSocket = udp_socket(bind)?.into();
    let runtime = Arc::new(TokioRuntime);
    let inner = runtime.wrap_udp_socket(socket).map_err(Error::io(doing))?;
    let socket = Arc::new(LimitedBatches {
        inner,
        limit: gso_batch(specification.packet_size),
    });
    Endpoint::new_with_abstract_socket(config, server, socket, runtime).map_err(Error::io(doing))
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

/// Serves one connection. A client that fails or goes away ends its connection, not the server.
async fn serve(incoming: Incoming, library: Arc<Library>) {
    let Ok(connecting) = incoming.accept() else {
        return;
    };
    // On a server this never fails: it may read early data and answer before the handshake's end.
    let Ok((connection, _)) = connecting.into_0rtt() else {
        return;
    };
    while let Ok((send, receive)) = connection.accept_bi().await {
        if answer(send, receive, &library).await.is_err() {
            return;
        }
    }
}

async fn answer(
    mut send: quinn::SendStream,
    mut receive: quinn::RecvStream,
    library: &Library,
) -> Result<(), Error> {
    let mut request = [0; Request::LENGTH];
    receive
        .read_exact(&mut request)
        .await
        .map_err(|error| Error::transport("reading the request", error))?;
    for chunk in library.reply(Request::decode(&request)?) {
        send.write_chunk(chunk)
            .await
            .map_err(|error| Error::transport("sending the reply", error))?;
    }
    send.finish()
        .map_err(|error| Error::transport("ending the reply", error))
}

struct QuinnClient {
    endpoint: Endpoint,
    server: SocketAddr,
    tickets: Option<Arc<Tickets>>,
}

impl Client for QuinnClient {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            let connecting = self
                .endpoint
                .connect(self.server, SERVER_NAME)
                .map_err(|error| Error::transport("connecting", error))?;
            let (connection, accepted) = match start {
                Start::Full => {
                    let connection = connecting
                        .await
                        .map_err(|error| Error::transport("handshake", error))?;
                    (connection, None)
                }
                Start::Resumed => {
                    let (connection, accepted) = connecting
                        .into_0rtt()
                        .map_err(|_| Error::EarlyDataRefused)?;
                    (connection, Some(accepted))
                }
            };
            let mut connection = Box::new(QuinnConnection {
                connection,
                tickets: self.tickets.clone(),
            });
            if let Some((request, body)) = first {
                connection.call(request, body).await?;
            }
            if let Some(accepted) = accepted
                && !accepted.await
            {
                return Err(Error::EarlyDataRefused);
            }
            Ok(connection as Box<dyn Connection>)
        })
    }
}

struct QuinnConnection {
    connection: quinn::Connection,
    tickets: Option<Arc<Tickets>>,
}

impl Connection for QuinnConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let (mut send, mut receive) = self
                .connection
                .open_bi()
                .await
                .map_err(|error| Error::transport("opening a stream", error))?;
            send.write_all(&request.encode())
                .await
                .map_err(|error| Error::transport("sending the request", error))?;
            send.finish()
                .map_err(|error| Error::transport("ending the request", error))?;
            while let Some(chunk) = receive
                .read_chunk(usize::MAX, true)
                .await
                .map_err(|error| Error::transport("reading the reply", error))?
            {
                body.take(&chunk.bytes);
            }
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            if let Some(tickets) = &self.tickets {
                tickets.wait(TICKET_LIMIT).await?;
            }
            self.connection.close(VarInt::from_u32(0), b"");
            // The connection's own task sends the close.
            self.connection.closed().await;
            tokio::task::yield_now().await;
            Ok(())
        })
    }
}
