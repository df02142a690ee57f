//! DCQUIC, by `weir-net`.
//!
//! A call is a bidirectional stream. Servers answer from the connection's own task, one call after
//! the other, as the other drivers' do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use weir_congestion::AlgorithmSpec;
use weir_net::tls::{ClientTls, Roots, ServerTls};
use weir_net::{Connecting, Endpoint, EndpointBuilder, RecvStream, SendStream};
use weir_quic::{PacketSizePolicy, TransportConfig};
use weir_units::{ByteSize, Duration};

use crate::driver::{
    Client, ClientOptions, Connection, Driver, FirstCall, Listening, LocalFuture, Phase,
    ServerOptions, Start,
};
use crate::error::Error;
use crate::identity::{ALPN, SERVER_NAME, Tickets, Trust};
use crate::payload::{Body, Library, Request};
use crate::specification::{Abilities, TransportSpecification};

/// How long a closing client waits for its ticket.
const TICKET_LIMIT: Duration = Duration::from_secs(2);
/// The UDP socket buffers that are asked for: as those of the stacks that it is measured with.
const SOCKET_BUFFER: ByteSize = ByteSize::from_mib(4);
/// The second address of a client that holds a path ready: another one of the loopback interface.
const STANDBY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);
/// What a path with an MTU of 9000 carries by IPv4.
const JUMBO: ByteSize = ByteSize::from_bytes(8972);
/// How long the low-latency setting looks for a reply before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// The driver of DCQUIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dcquic;

impl Driver for Dcquic {
    fn name(&self) -> &'static str {
        "dcquic"
    }

    fn version(&self) -> String {
        format!("weir {}", env!("CARGO_PKG_VERSION"))
    }

    fn supports(&self, _phase: Phase) -> bool {
        true
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let certificate = CertificateDer::from(options.identity.certificate().to_vec());
        let key = PrivatePkcs8KeyDer::from(options.identity.key().to_vec());
        let identity = weir_net::tls::Identity::from_der(vec![certificate], key.into());
        let tls = ServerTls::new(identity)
            .application_protocols([ALPN])
            .early_data(options.early_data)
            .tickets(1)
            .build()
            .map_err(|error| Error::transport("configuring TLS", error))?;
        let endpoint = builder(&options.specification)?
            .server(tls)
            .bind(options.bind)
            .map_err(|error| Error::transport("opening the endpoint", error))?;
        let buffers = endpoint.socket_buffers();
        let notes = vec![format!(
            "UDP socket buffers: {} to receive, {} to send",
            buffers.receive, buffers.send
        )];
        Ok(Listening {
            address: endpoint.local_address(),
            serve: Box::pin(async move {
                let library = Arc::new(Library::default());
                while let Some(connecting) = endpoint.accept().await {
                    tokio::spawn(serve(connecting, Arc::clone(&library)));
                }
                Ok(())
            }),
            notes,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn Client>, Error> {
        let tickets = options.resumption.then(Arc::<Tickets>::default);
        let unusable = |error| Error::transport("configuring TLS", error);
        let tls = match &options.trust {
            Trust::Certificate(certificate) => {
                let certificate = CertificateDer::from(certificate.clone());
                let roots = Roots::from_certificates(&[certificate]).map_err(unusable)?;
                ClientTls::with_roots(roots).map_err(unusable)?
            }
            Trust::Fingerprint(fingerprint) => ClientTls::pinned(fingerprint.pin()?),
        };
        let tls = tls.application_protocols([ALPN]);
        let tls = match &tickets {
            Some(tickets) => tls.early_data(true).session_store(tickets.clone()),
            None => tls.resumption(false),
        };
        let any_port = match options.server {
            SocketAddr::V4(server) if server.ip().is_loopback() => "127.0.0.1:0",
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let any_port = any_port
            .parse()
            .map_err(|error| Error::transport("choosing a local address", error))?;
        let mut builder = builder(&options.specification)?;
        if options.specification.armed {
            builder = builder.also_at(STANDBY);
        }
        let endpoint = builder
            .client(tls.build().map_err(unusable)?)
            .bind(any_port)
            .map_err(|error| Error::transport("opening the endpoint", error))?;
        Ok(Box::new(DcquicClient {
            endpoint,
            server: options.server,
            tickets,
        }))
    }
}

fn builder(specification: &TransportSpecification) -> Result<EndpointBuilder, Error> {
    specification.require(
        "dcquic",
        Abilities {
            packet_size: true,
            congestion: true,
            spin: true,
            paths_and_sizes: true,
        },
    )?;
    let mut transport = TransportConfig::data_center();
    if let Some(size) = specification.packet_size {
        transport.packet_size = ByteSize::from_bytes(size.into());
    }
    if specification.by_task {
        transport.packet_size = JUMBO;
        transport.packet_size_policy = PacketSizePolicy::ByTask;
    }
    if let Some(text) = &specification.congestion {
        let algorithm: AlgorithmSpec = text
            .parse()
            .map_err(|error| Error::transport("choosing the congestion control", error))?;
        transport.congestion = algorithm.into();
    }
    Ok(Endpoint::builder()
        .transport(transport)
        .receive_buffer(specification.socket_buffer.unwrap_or(SOCKET_BUFFER))
        .send_buffer(specification.socket_buffer.unwrap_or(SOCKET_BUFFER))
        .low_latency(specification.spin.then_some(SPIN)))
}

/// Serves one connection. A client that fails or goes away ends its connection, not the server.
async fn serve(connecting: Connecting, library: Arc<Library>) {
    // Early data are answered before the handshake has ended.
    let Some(connection) = connecting.early() else {
        return;
    };
    while let Ok((send, receive)) = connection.accept_bi().await {
        if answer(send, receive, &library).await.is_err() {
            return;
        }
    }
}

async fn answer(
    mut send: SendStream,
    mut receive: RecvStream,
    library: &Library,
) -> Result<(), Error> {
    let request = receive
        .read_to_end(Request::LENGTH)
        .await
        .map_err(|error| Error::transport("reading the request", error))?;
    let mut reply = library.reply(Request::decode(&request)?).peekable();
    let failed = |error| Error::transport("sending the reply", error);
    while let Some(chunk) = reply.next() {
        if reply.peek().is_none() {
            return send.finish_with(chunk).await.map_err(failed);
        }
        send.write_bytes(chunk).await.map_err(failed)?;
    }
    send.finish().map_err(failed)
}

struct DcquicClient {
    endpoint: Endpoint,
    server: SocketAddr,
    tickets: Option<Arc<Tickets>>,
}

impl Client for DcquicClient {
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
            let first = match (start, first) {
                (Start::Full, first) => first,
                (Start::Resumed, first) => {
                    let early = connecting.early().ok_or(Error::EarlyDataRefused)?;
                    if let Some((request, body)) = first {
                        let (send, receive) = early
                            .open_bi_early()
                            .await
                            .map_err(|error| Error::transport("opening a stream", error))?;
                        exchange(send, receive, request, body).await?;
                    }
                    let connection = established(connecting).await?;
                    if connection.early_data_rejected() {
                        return Err(Error::EarlyDataRefused);
                    }
                    return Ok(self.connection(connection));
                }
            };
            let connection = established(connecting).await?;
            let mut connection = self.connection(connection);
            if let Some((request, body)) = first {
                connection.call(request, body).await?;
            }
            Ok(connection)
        })
    }
}

impl DcquicClient {
    fn connection(&self, connection: weir_net::Connection) -> Box<dyn Connection> {
        Box::new(DcquicConnection {
            connection,
            tickets: self.tickets.clone(),
        })
    }
}

async fn established(connecting: Connecting) -> Result<weir_net::Connection, Error> {
    connecting
        .await
        .map_err(|error| Error::transport("handshake", error))
}

async fn exchange(
    mut send: SendStream,
    mut receive: RecvStream,
    request: Request,
    body: &mut Body,
) -> Result<(), Error> {
    send.finish_with(Bytes::copy_from_slice(&request.encode()))
        .await
        .map_err(|error| Error::transport("sending the request", error))?;
    while let Some(chunk) = receive
        .read_chunk(usize::MAX)
        .await
        .map_err(|error| Error::transport("reading the reply", error))?
    {
        body.take(&chunk);
    }
    Ok(())
}

struct DcquicConnection {
    connection: weir_net::Connection,
    tickets: Option<Arc<Tickets>>,
}

impl Connection for DcquicConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let (send, receive) = self
                .connection
                .open_bi()
                .await
                .map_err(|error| Error::transport("opening a stream", error))?;
            exchange(send, receive, request, body).await
        })
    }

    fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            if let Some(tickets) = &self.tickets {
                tickets.wait(TICKET_LIMIT).await?;
            }
            self.connection.close(0, b"");
            Ok(())
        })
    }
}
