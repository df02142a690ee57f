//! DCUDP: one connection per lane, and one stream in each direction.
//!
//! The client's stream begins with the test's token; data follow it, or come back on the other one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use weir_congestion::AlgorithmSpec;
use weir_net::dcudp::{
    DcudpClient, DcudpConfig, DcudpConnectError, DcudpError, DcudpListener, DcudpStream,
    DcudpWatch, Feedback, Mode, PreSharedKey,
};
use weir_units::Duration;

use crate::client::ClientOptions;
use crate::error::Error;
use crate::lane::{Ends, Lane, Side};
use crate::parameters::{DEFAULT_RATE, Parameters};
use crate::path::{Pacing, PathSample, Probe};
use crate::payload::BLOCK;
use crate::port;
use crate::protocol::Token;
use crate::server::ServerOptions;
use crate::stream::{Sink, Source};
use crate::transport::Opened;

/// The transport that a test asks for.
///
/// # Errors
/// [`Error::Parameter`] for an unknown congestion control or parameter, or an impossible rate or
/// packet size.
pub(crate) fn transport(test: &Parameters) -> Result<DcudpConfig, Error> {
    let mut config = DcudpConfig::new(test.rate.unwrap_or(DEFAULT_RATE));
    let transport = &mut config.transport;
    if let Some(text) = &test.congestion {
        let spec: AlgorithmSpec = text
            .parse()
            .map_err(|error| Error::parameter("congestion", format!("{error}")))?;
        // DCUDP's own control counts echoes; the others want to know how much was marked.
        transport.feedback = match spec.name() {
            "dcudp" => Feedback::Echo,
            _ => Feedback::Counts,
        };
        transport.congestion = spec;
    }
    if let Some(size) = test.packet_size {
        transport.packet_size = size;
    }
    transport.validate().map_err(|error| {
        let name = if error.setting == "packet_size" {
            "mps"
        } else {
            error.setting
        };
        Error::parameter(name, format!("it must be {}", error.accepted))
    })?;
    Ok(config)
}

fn with_key(mut config: DcudpConfig, key: Option<&Arc<PreSharedKey>>) -> DcudpConfig {
    config.transport.shared_key = key.map(|key| key.clone() as Arc<_>);
    config
}

/// The client opens its connections, one after the other.
pub(crate) async fn open(
    options: &ClientOptions,
    server: SocketAddr,
    token: Token,
) -> Result<Opened, Error> {
    let test = &options.parameters;
    let mut config = with_key(transport(test)?, options.key.as_ref());
    config.transport.handshake_timeout = options.timeout;
    let congestion = config.transport.congestion.name().to_owned();
    let client = DcudpClient::bind(port::towards(server)?, config);
    let client = client.map_err(|error| Error::Stream {
        doing: "opening a UDP socket",
        source: io::Error::other(error),
    })?;
    let mut lanes = Vec::new();
    for _ in 0..test.parallel {
        let stream = client.connect(server).await;
        let mut stream: DcudpStream = stream.map_err(|error| connect_error(options, error))?;
        stream
            .write_all(&token)
            .await
            .map_err(Error::stream("greeting the server"))?;
        stream
            .flush()
            .await
            .map_err(Error::stream("greeting the server"))?;
        lanes.push(lane(Side::Client, test, stream));
    }
    Ok(Opened { lanes, congestion })
}

fn connect_error(options: &ClientOptions, error: DcudpConnectError) -> Error {
    match error {
        DcudpConnectError::Connection(DcudpError::HandshakeTimeout { .. })
            if options.key.is_some() =>
        {
            Error::WrongKey
        }
        DcudpConnectError::Connection(DcudpError::HandshakeTimeout { after, .. }) => {
            Error::NoAnswer {
                host: options.host.clone(),
                port: options.port,
                limit: after,
            }
        }
        error => Error::Stream {
            doing: "connecting",
            source: io::Error::other(error),
        },
    }
}

fn lane(side: Side, test: &Parameters, stream: DcudpStream) -> Lane {
    let ends = Ends {
        local: stream.local_address(),
        remote: stream.remote_address(),
    };
    let probe = Box::new(ConnectionProbe(stream.watch()));
    if side.sends(test) {
        Lane::sending(ends, probe, StreamSink(stream))
    } else {
        let buffer = vec![0; BLOCK];
        Lane::receiving(ends, probe, StreamSource { stream, buffer })
    }
}

/// A server's socket for one test.
pub(crate) struct Acceptor {
    listener: DcudpListener,
    token: Token,
    congestion: String,
}

impl Acceptor {
    /// Listens on the address over UDP.
    pub(crate) async fn bind(
        test: &Parameters,
        options: &ServerOptions,
        address: SocketAddr,
        token: Token,
    ) -> Result<Self, Error> {
        match (test.keyed, options.key.is_some()) {
            (true, false) => return Err(Error::KeyUnknown),
            (false, true) => return Err(Error::KeyNeeded),
            _ => {}
        }
        let config = with_key(transport(test)?, options.key.as_ref());
        let congestion = config.transport.congestion.name().to_owned();
        let bind = || DcudpListener::bind(address, config.clone());
        let listener = port::when_free(address, bind).await?;
        Ok(Self {
            listener,
            token,
            congestion,
        })
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
        for _ in 0..test.parallel {
            let accepted = timeout(limit.into(), self.accept()).await;
            let stream = accepted.map_err(|_| Error::TimedOut {
                what: "the opening of a data connection",
                limit,
            })??;
            lanes.push(lane(Side::Server, test, stream));
        }
        Ok(Opened {
            lanes,
            congestion: self.congestion.clone(),
        })
    }

    /// The next connection that carries the test's token. Others are dropped.
    async fn accept(&self) -> Result<DcudpStream, Error> {
        loop {
            let stream = self.listener.accept().await;
            let mut stream =
                stream.ok_or_else(|| Error::Internal("the socket has shut down".to_owned()))?;
            let mut token = Token::default();
            match stream.read_exact(&mut token).await {
                Ok(_) if token == self.token => return Ok(stream),
                _ => tracing::info!("a data connection belongs to no test"),
            }
        }
    }
}

/// Asks the engine.
struct ConnectionProbe(DcudpWatch);

impl Probe for ConnectionProbe {
    fn sample(&self) -> Option<PathSample> {
        let stats = self.0.stats();
        Some(PathSample {
            retransmits: stats.flow.retransmits,
            ce_marked: Some(stats.flow.marks),
            rtt: stats.smoothed_rtt,
            rtt_variation: None,
            cwnd: None,
            path_mtu: stats.packet_size,
            pacing: Some(Pacing {
                rate: stats.rate,
                is_congested: stats.mode == Mode::Congestion,
                switches: stats.mode_switches,
            }),
        })
    }
}

struct StreamSink(DcudpStream);

impl Sink for StreamSink {
    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        self.0.write(&data).await
    }

    /// Waits until the other side has everything, and has finished too.
    async fn finish(&mut self) -> io::Result<()> {
        self.0.shutdown().await?;
        Ok(self.0.closed().await?)
    }
}

struct StreamSource {
    stream: DcudpStream,
    buffer: Vec<u8>,
}

impl Source for StreamSource {
    async fn receive(&mut self) -> io::Result<usize> {
        let count = self.stream.read(&mut self.buffer).await?;
        if count == 0 {
            // The other side waits for the end of this direction too.
            self.stream.shutdown().await?;
        }
        Ok(count)
    }
}
