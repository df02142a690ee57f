//! DCQUIC: one connection per lane, with one stream on it.
//!
//! The stream begins with the test's token, from the client; data follow it, or come back.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use tokio::time::timeout;
use weir_congestion::AlgorithmSpec;
use weir_net::tls::{ClientTls, ServerTls};
use weir_net::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig};
use weir_units::Duration;

use crate::client::ClientOptions;
use crate::error::Error;
use crate::lane::{Ends, Lane, Side};
use crate::parameters::Parameters;
use crate::path::{PathSample, Probe};
use crate::payload::BLOCK;
use crate::port;
use crate::protocol::Token;
use crate::server::ServerOptions;
use crate::stream::{Sink, Source};
use crate::tls::PROTOCOL;
use crate::transport::Opened;

/// The name that clients ask for; the pin decides.
const SERVER_NAME: &str = "weir-perf";

/// The transport that a test asks for.
///
/// # Errors
/// [`Error::Parameter`] for an unknown congestion control or parameter, or an impossible packet
/// size.
pub(crate) fn transport(test: &Parameters) -> Result<TransportConfig, Error> {
    let mut transport = TransportConfig::data_center();
    if let Some(text) = &test.congestion {
        let spec: AlgorithmSpec = text
            .parse()
            .map_err(|error| Error::parameter("congestion", format!("{error}")))?;
        transport.congestion = spec.into();
    }
    if let Some(size) = test.packet_size {
        transport.packet_size = size;
        transport
            .validate()
            .map_err(|error| Error::parameter("mps", error.to_string()))?;
    }
    Ok(transport)
}

/// The client opens its connections, one after the other.
pub(crate) async fn open(
    options: &ClientOptions,
    server: SocketAddr,
    token: Token,
) -> Result<Opened, Error> {
    let test = &options.parameters;
    let pin = options
        .pin
        .ok_or(Error::PinMissing(test.transport.name()))?;
    let tls = ClientTls::pinned(pin)
        .application_protocols([PROTOCOL])
        .resumption(false)
        .build()
        .map_err(|error| Error::Certificate(error.to_string()))?;
    let mut transport = transport(test)?;
    transport.handshake_timeout = options.timeout;
    let mut builder = Endpoint::builder().transport(transport).client(tls);
    if let Some(policy) = &options.policy {
        builder = builder.policy(policy.clone());
    }
    let endpoint = builder
        .bind(port::towards(server)?)
        .map_err(|error| Error::Stream {
            doing: "opening a UDP socket",
            source: io::Error::other(error),
        })?;
    let mut lanes = Vec::new();
    let mut congestion = String::new();
    for _ in 0..test.parallel {
        let connection = endpoint
            .connect(server, SERVER_NAME)
            .map_err(|error| Error::Stream {
                doing: "connecting",
                source: io::Error::other(error),
            })?
            .await
            .map_err(|error| connect_error(options, server, error))?;
        congestion = algorithm(&connection);
        let lane = introduce(test, &endpoint, connection, token).await;
        lanes.push(lane.map_err(Error::stream("opening a stream"))?);
    }
    Ok(Opened { lanes, congestion })
}

/// Opens the stream and sends the token.
async fn introduce(
    test: &Parameters,
    endpoint: &Endpoint,
    connection: Connection,
    token: Token,
) -> io::Result<Lane> {
    let (ends, probe) = watch(endpoint, &connection);
    if Side::Client.sends(test) {
        let mut stream = connection.open_uni().await.map_err(io::Error::other)?;
        stream.write_all(&token).await?;
        stream.flush();
        Ok(Lane::sending(ends, probe, StreamSink(stream)))
    } else {
        let (mut request, stream) = connection.open_bi().await.map_err(io::Error::other)?;
        request.finish_with(Bytes::copy_from_slice(&token)).await?;
        Ok(Lane::receiving(ends, probe, StreamSource(stream)))
    }
}

fn connect_error(options: &ClientOptions, address: SocketAddr, error: ConnectionError) -> Error {
    match error {
        ConnectionError::HandshakeTimeout { after, .. } => Error::NoAnswer {
            host: options.host.clone(),
            port: options.port,
            limit: after,
        },
        error if is_wrong_pin(&error) => Error::WrongPin { address },
        error => Error::Stream {
            doing: "connecting",
            source: io::Error::other(error),
        },
    }
}

/// Whether this side ended the handshake because of the server's certificate.
fn is_wrong_pin(error: &ConnectionError) -> bool {
    /// What rustls sends for a certificate that its verifier refuses (RFC 8446, section 6).
    const ACCESS_DENIED: u8 = 49;
    match error {
        ConnectionError::Lost {
            cause: weir_quic::ConnectionError::Transport(error),
            ..
        } => error.code.tls_alert() == Some(ACCESS_DENIED),
        _ => false,
    }
}

/// A server's endpoint for one test.
pub(crate) struct Acceptor {
    endpoint: Endpoint,
    token: Token,
}

impl Acceptor {
    /// Listens on the address over UDP.
    pub(crate) async fn bind(
        test: &Parameters,
        options: &ServerOptions,
        address: SocketAddr,
        token: Token,
    ) -> Result<Self, Error> {
        let tls = ServerTls::new(options.identity.clone())
            .application_protocols([PROTOCOL])
            .build()
            .map_err(|error| Error::Certificate(error.to_string()))?;
        let mut builder = Endpoint::builder().transport(transport(test)?).server(tls);
        if let Some(registry) = &options.metrics {
            builder = builder.metrics(registry);
        }
        if let Some(policy) = &options.policy {
            builder = builder.policy(policy.clone());
        }
        let endpoint = port::when_free(address, || builder.clone().bind(address)).await?;
        Ok(Self { endpoint, token })
    }

    /// Takes all connections of the test.
    ///
    /// # Errors
    /// [`Error::TimedOut`] where one does not come within `limit` of the one before.
    pub(crate) async fn accept_all(
        &self,
        test: &Parameters,
        limit: Duration,
    ) -> Result<Opened, Error> {
        let mut lanes = Vec::new();
        let mut congestion = String::new();
        for _ in 0..test.parallel {
            let accepted = timeout(limit.into(), self.accept(test)).await;
            let (connection, lane) = accepted.map_err(|_| Error::TimedOut {
                what: "the opening of a data connection",
                limit,
            })??;
            congestion = algorithm(&connection);
            lanes.push(lane);
        }
        Ok(Opened { lanes, congestion })
    }

    /// The next connection that carries the test's token. Others are dropped.
    async fn accept(&self, test: &Parameters) -> Result<(Connection, Lane), Error> {
        loop {
            let connecting = self
                .endpoint
                .accept()
                .await
                .ok_or_else(|| Error::Internal("the endpoint has shut down".to_owned()))?;
            match self.welcome(test, connecting).await {
                Ok(welcome) => return Ok(welcome),
                Err(error) => tracing::info!(%error, "a data connection belongs to no test"),
            }
        }
    }

    async fn welcome(
        &self,
        test: &Parameters,
        connecting: weir_net::Connecting,
    ) -> io::Result<(Connection, Lane)> {
        let connection = connecting.await.map_err(io::Error::other)?;
        let (ends, probe) = watch(&self.endpoint, &connection);
        let lane = if Side::Server.sends(test) {
            let (stream, mut request) = connection.accept_bi().await.map_err(io::Error::other)?;
            self.check(&mut request).await?;
            Lane::sending(ends, probe, StreamSink(stream))
        } else {
            let mut stream = connection.accept_uni().await.map_err(io::Error::other)?;
            self.check(&mut stream).await?;
            Lane::receiving(ends, probe, StreamSource(stream))
        };
        Ok((connection, lane))
    }

    async fn check(&self, stream: &mut RecvStream) -> io::Result<()> {
        let mut token = Token::default();
        tokio::io::AsyncReadExt::read_exact(stream, &mut token).await?;
        if token == self.token {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

fn algorithm(connection: &Connection) -> String {
    let stats = connection.stats();
    let path = stats.paths.first();
    path.map_or_else(String::new, |path| path.algorithm.to_owned())
}

fn watch(endpoint: &Endpoint, connection: &Connection) -> (Ends, Box<dyn Probe>) {
    let ends = Ends {
        local: endpoint.local_address(),
        remote: connection.remote_address(),
    };
    (ends, Box::new(ConnectionProbe(connection.clone())))
}

/// Asks the engine. Keeps the connection open.
struct ConnectionProbe(Connection);

impl Probe for ConnectionProbe {
    fn sample(&self) -> Option<PathSample> {
        let stats = self.0.stats();
        let path = stats.paths.first()?;
        Some(PathSample {
            retransmits: path.packets_lost,
            ce_marked: Some(path.ce_marks),
            rtt: path.smoothed_rtt,
            rtt_variation: Some(path.rtt_variation),
            cwnd: Some(path.window),
            path_mtu: path.mtu,
            pacing: None,
        })
    }
}

struct StreamSink(SendStream);

impl Sink for StreamSink {
    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        let length = data.len();
        self.0.write_bytes(data).await?;
        Ok(length)
    }

    /// Waits until the other side has everything: the connection must not close before.
    async fn finish(&mut self) -> io::Result<()> {
        self.0.finish()?;
        Ok(self.0.acknowledged().await?)
    }
}

struct StreamSource(RecvStream);

impl Source for StreamSource {
    async fn receive(&mut self) -> io::Result<usize> {
        Ok(self
            .0
            .read_chunk(BLOCK)
            .await?
            .map_or(0, |chunk| chunk.len()))
    }
}
