//! The client's side of connections: from which address to which, and over what.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};
use weir_net::tls::Fingerprint;
use weir_net::{Connection, ConnectionError, Endpoint, PathEvent, PathNews};
use weir_units::Duration;

use super::context::Context;
use super::dcudp;
use super::link::{Carrier, Link};
use super::meter::{Meter, Probe};
use super::quic::{self, QuicStreams, SERVER_NAME};
use super::tcp::socket;
use crate::clock::Clock;
use crate::control::{Event, FlowFailure, FlowOrder, KernelTcp, LiveTransport};

/// How long a TLS handshake may take where the order says nothing.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Opens a flow's connections.
pub(super) struct Dialer {
    context: Context,
    clock: Clock,
    flow: u64,
    over: Over,
    local: Vec<SocketAddr>,
    peer: Vec<SocketAddr>,
    patience: Option<Duration>,
    /// How often it has gone on to the next addresses.
    turns: usize,
}

enum Over {
    Tcp(KernelTcp),
    Tls(KernelTcp, TlsConnector),
    Quic(Endpoint),
    Dcudp(dcudp::Clients),
}

impl Dialer {
    pub(super) fn new(
        order: &FlowOrder,
        context: &Context,
        clock: Clock,
    ) -> Result<Self, FlowFailure> {
        if order.local.is_empty() || order.peer.is_empty() {
            return Err(wrong(
                "a client needs an address of its own and its server's",
            ));
        }
        let over = match &order.transport {
            LiveTransport::Tcp(settings) => Over::Tcp(settings.clone()),
            LiveTransport::Tls { tcp, tls } => {
                let connector = context.tls.connector(pin(order)?, tls).map_err(wrong)?;
                Over::Tls(tcp.clone(), connector)
            }
            LiveTransport::Quic {
                options,
                congestion,
            } => Over::Quic(quic::client(
                options,
                congestion,
                &order.local,
                pin(order)?,
            )?),
            LiveTransport::Dcudp {
                options,
                congestion,
            } => {
                let config = dcudp::config(options, congestion, order.seed)?;
                Over::Dcudp(dcudp::Clients::new(config))
            }
            LiveTransport::Udp { .. } => return Err(wrong("UDP carries `cbr` alone")),
        };
        Ok(Self {
            context: context.clone(),
            clock,
            flow: order.flow,
            over,
            local: order.local.clone(),
            peer: order.peer.clone(),
            patience: order.failover,
            turns: 0,
        })
    }

    /// Goes on to the next addresses; `false` where all have been tried and the first ones are next.
    pub(super) fn turn(&mut self) -> bool {
        self.turns = (self.turns + 1) % self.local.len().max(self.peer.len());
        self.turns != 0
    }

    /// How long a client waits for the answer to a request before it makes it again.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Whether a request that failed so may be made again on another connection.
    pub(super) fn may_repeat(&self, failure: &FlowFailure) -> bool {
        self.patience.is_some() && !matches!(failure, FlowFailure::Order { .. })
    }

    /// Opens a connection.
    pub(super) async fn dial(&self, meter: &Arc<Meter>) -> Result<Link, FlowFailure> {
        let (carrier, probe, congestion) = match &self.over {
            Over::Tcp(settings) => {
                let stream = self.connect(settings).await?;
                let (probe, congestion) = describe(&stream)?;
                (Carrier::Tcp(stream), probe, congestion)
            }
            Over::Tls(settings, connector) => {
                let stream = self.connect(settings).await?;
                let (probe, congestion) = describe(&stream)?;
                let stream = self.shake_hands(connector, stream).await?;
                (Carrier::Tls(Box::new(stream)), probe, congestion)
            }
            Over::Quic(endpoint) => {
                let connection = self.begin(endpoint, meter).await?;
                let (probe, congestion) = describe_quic(&connection);
                let streams = QuicStreams::new(connection);
                (Carrier::Quic(streams), probe, congestion)
            }
            Over::Dcudp(clients) => {
                let stream = clients.connect(self.local(), self.peer()).await?;
                let probe = dcudp::describe(&stream);
                let congestion = Some(clients.congestion().to_owned());
                (Carrier::Dcudp(stream), probe, congestion)
            }
        };
        meter.note(|outcome| outcome.congestion = congestion);
        let watch = meter.watch(probe);
        Ok(Link::new(carrier, meter.clone(), watch))
    }

    async fn connect(&self, settings: &KernelTcp) -> Result<TcpStream, FlowFailure> {
        socket::connect(settings, self.local(), self.peer(), self.patience).await
    }

    /// The address to begin from, as it is now.
    fn local(&self) -> SocketAddr {
        let mut local = self.local[self.turns % self.local.len()];
        local.set_ip(self.context.current_address(local.ip()));
        local
    }

    async fn shake_hands(
        &self,
        connector: &TlsConnector,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, FlowFailure> {
        let name = ServerName::IpAddress(self.peer().ip().into());
        let limit = StdDuration::from(self.patience.unwrap_or(HANDSHAKE));
        match tokio::time::timeout(limit, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream.into()),
            Ok(Err(error)) => Err(no_handshake(error)),
            Err(_) => Err(FlowFailure::NoAnswer { peer: self.peer() }),
        }
    }

    async fn begin(
        &self,
        endpoint: &Endpoint,
        meter: &Arc<Meter>,
    ) -> Result<Connection, FlowFailure> {
        let peer = self.peer();
        let connecting = endpoint.connect(peer, SERVER_NAME).map_err(wrong)?;
        let connection = connecting.await.map_err(|error| match error {
            ConnectionError::HandshakeTimeout { .. } => FlowFailure::NoAnswer { peer },
            error => no_handshake(error),
        })?;
        self.report_paths(&connection, meter.clone());
        Ok(connection)
    }

    /// Has the director told what happens to the connection's paths, until it is over.
    fn report_paths(&self, connection: &Connection, meter: Arc<Meter>) {
        let mut news = connection.path_events();
        let (events, clock, flow) = (self.context.events.clone(), self.clock, self.flow);
        tokio::spawn(async move {
            while let Some(news) = news.next().await {
                let moved = matches!(news, PathNews::Event(PathEvent::Moved { .. }));
                meter.note(|outcome| outcome.moves += u64::from(moved));
                events.tell(Event::Path {
                    flow,
                    at: clock.now(),
                    moved,
                    news: news.to_string(),
                });
            }
        });
    }

    fn peer(&self) -> SocketAddr {
        self.peer[self.turns % self.peer.len()]
    }
}

/// What asks the kernel about a connection, and the congestion control that is in use.
pub(super) fn describe(stream: &TcpStream) -> Result<(Probe, Option<String>), FlowFailure> {
    use std::os::fd::AsFd;
    let descriptor = stream.as_fd().try_clone_to_owned();
    let descriptor =
        descriptor.map_err(|error| wrong(format!("no descriptor is left: {error}")))?;
    Ok((Probe::Tcp(descriptor), socket::congestion(stream)))
}

/// As [`describe`].
pub(super) fn describe_quic(connection: &Connection) -> (Probe, Option<String>) {
    let paths = connection.stats().paths;
    let congestion = paths.first().map(|path| path.algorithm.to_owned());
    (Probe::Quic(connection.clone()), congestion)
}

fn pin(order: &FlowOrder) -> Result<Fingerprint, FlowFailure> {
    let pin = order
        .pin
        .as_deref()
        .ok_or_else(|| wrong("the server's fingerprint is missing"))?;
    pin.parse().map_err(wrong)
}

fn wrong(problem: impl fmt::Display) -> FlowFailure {
    FlowFailure::Order {
        problem: problem.to_string(),
    }
}

fn no_handshake(error: impl fmt::Display) -> FlowFailure {
    FlowFailure::Lost {
        doing: "shaking hands".to_owned(),
        cause: error.to_string(),
    }
}
