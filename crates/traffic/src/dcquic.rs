//! The adapter of DCQUIC, by `weir-net`. Each message has its own stream.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use weir_net::tls::ClientCredentials;
use weir_net::{
    Connecting, ConnectionError, Endpoint, EndpointBuilder, EndpointError, PathEvents, RecvStream,
    SendStream, SocketBuffers, TransportConfig,
};
use weir_units::ByteSize;

use crate::error::Error;
use crate::probe::{PathSample, Probe};
use crate::tls::{TICKET_LIMIT, Tickets};
use crate::transport::{
    Client, Connection, ConnectionAddresses, Incoming, Listener, Start, StreamKind, Transport,
};

/// The error code that closes a completed connection.
const DONE: u64 = 0;

/// Settings for a data center, with packets of this size; `None` for the interface's.
#[must_use]
pub fn settings(packet_size: Option<ByteSize>) -> TransportConfig {
    TransportConfig {
        packet_size,
        ..TransportConfig::data_center()
    }
}

/// DCQUIC.
#[derive(Clone, Debug)]
pub struct Dcquic {
    /// The settings, with the TLS configuration of a client or a server.
    pub endpoint: EndpointBuilder,
    /// The server name that clients request.
    pub server_name: String,
    /// The clients' tickets; the same store as in the endpoint's TLS configuration.
    pub tickets: Option<Arc<Tickets>>,
    /// The credentials of clients that keep the secrets of known peers.
    pub secrets: Option<ClientCredentials>,
    /// Whether servers answer early data before the handshake is complete.
    pub early_data: bool,
}

impl Dcquic {
    fn bind(&self, local: &[SocketAddr]) -> Result<Endpoint, Error> {
        let (first, others) = local
            .split_first()
            .ok_or_else(|| Error::setting("dcquic needs a local address"))?;
        let builder = others
            .iter()
            .fold(self.endpoint.clone(), |builder, address| {
                builder.also_at(*address)
            });
        builder.bind(*first).map_err(|error| match error {
            EndpointError::AddressInUse { address } => Error::AddressInUse(address),
            error => Error::setting(error),
        })
    }
}

impl Transport for Dcquic {
    type Client = DcquicClient;
    type Listener = DcquicListener;

    fn client(&self, local: &[SocketAddr]) -> Result<DcquicClient, Error> {
        Ok(DcquicClient {
            endpoint: self.bind(local)?,
            server_name: self.server_name.clone(),
            tickets: self.tickets.clone(),
            secrets: self.secrets.clone(),
        })
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<DcquicListener, Error> {
        Ok(DcquicListener {
            endpoint: self.bind(local)?,
            early_data: self.early_data,
        })
    }
}

/// A client's endpoint.
#[derive(Debug)]
pub struct DcquicClient {
    endpoint: Endpoint,
    server_name: String,
    tickets: Option<Arc<Tickets>>,
    secrets: Option<ClientCredentials>,
}

impl Client for DcquicClient {
    type Connection = DcquicConnection;

    /// Ignores `local`: the endpoint chooses among its own addresses.
    async fn connect(
        &self,
        _local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<DcquicConnection, Error> {
        let connecting = self.endpoint.connect(peer, &self.server_name);
        let connecting = connecting.map_err(Error::setting)?;
        let (connection, connecting) = match start {
            Start::Full | Start::Known => {
                let connection = connecting.await;
                (connection.map_err(|error| refused(error, peer))?, None)
            }
            Start::Resumed => {
                let early = connecting.early().ok_or(Error::EarlyDataRefused)?;
                (early, Some(connecting))
            }
        };
        Ok(DcquicConnection {
            local: self.endpoint.local_address(),
            connection,
            connecting,
            tickets: self.tickets.clone(),
            secrets: self.secrets.clone(),
            outgoing: None,
            incoming: None,
        })
    }
}

fn refused(error: ConnectionError, peer: SocketAddr) -> Error {
    /// The alert that rustls sends when its verifier rejects a certificate (RFC 8446, section 6).
    const ACCESS_DENIED: u8 = 49;
    match error {
        ConnectionError::HandshakeTimeout { .. } => Error::NoAnswer { peer },
        ConnectionError::Lost {
            cause: weir_quic::ConnectionError::Transport(error),
            ..
        } if error.code.tls_alert() == Some(ACCESS_DENIED) => Error::WrongCertificate { peer },
        error => Error::failed("shaking hands")(error),
    }
}

/// A server's endpoint.
#[derive(Debug)]
pub struct DcquicListener {
    endpoint: Endpoint,
    early_data: bool,
}

impl DcquicListener {
    /// Returns the sizes of the socket buffers that the kernel granted.
    #[must_use]
    pub fn socket_buffers(&self) -> SocketBuffers {
        self.endpoint.socket_buffers()
    }
}

impl Listener for DcquicListener {
    type Incoming = DcquicIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.endpoint.local_addresses())
    }

    async fn accept(&self) -> Result<DcquicIncoming, Error> {
        let gone = || Error::setting("the endpoint has shut down");
        Ok(DcquicIncoming {
            connecting: self.endpoint.accept().await.ok_or_else(gone)?,
            local: self.endpoint.local_address(),
            early_data: self.early_data,
        })
    }
}

/// A client that has sent its first packet.
#[derive(Debug)]
pub struct DcquicIncoming {
    connecting: Connecting,
    local: SocketAddr,
    early_data: bool,
}

impl Incoming for DcquicIncoming {
    type Connection = DcquicConnection;

    async fn establish(self) -> Result<DcquicConnection, Error> {
        let connection = if self.early_data {
            let early = self.connecting.early();
            early.ok_or_else(|| Error::setting("the client is gone"))?
        } else {
            let shaken = self.connecting.await;
            shaken.map_err(Error::failed("shaking hands"))?
        };
        Ok(DcquicConnection {
            connection,
            local: self.local,
            connecting: None,
            tickets: None,
            secrets: None,
            outgoing: None,
            incoming: None,
        })
    }
}

/// A connection and its current stream.
#[derive(Debug)]
pub struct DcquicConnection {
    connection: weir_net::Connection,
    local: SocketAddr,
    /// Present while early data is sent.
    connecting: Option<Connecting>,
    tickets: Option<Arc<Tickets>>,
    secrets: Option<ClientCredentials>,
    outgoing: Option<SendStream>,
    incoming: Option<RecvStream>,
}

impl DcquicConnection {
    fn outgoing(&mut self) -> io::Result<&mut SendStream> {
        let stream = self.outgoing.as_mut();
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Connection for DcquicConnection {
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        Ok(ConnectionAddresses {
            local: self.local,
            remote: self.connection.remote_address(),
        })
    }

    fn congestion(&self) -> Option<String> {
        let paths = self.connection.stats().paths;
        paths.first().map(|path| path.algorithm.to_owned())
    }

    fn probe(&self) -> io::Result<Probe> {
        let connection = self.connection.clone();
        Ok(Probe::new(move || Some(sample(&connection))))
    }

    fn path_events(&self) -> Option<PathEvents> {
        Some(self.connection.path_events())
    }

    async fn open(&mut self, kind: StreamKind) -> io::Result<()> {
        match kind {
            StreamKind::OneWay => {
                let stream = self.connection.open_uni().await;
                self.outgoing = Some(stream.map_err(io::Error::other)?);
            }
            StreamKind::TwoWay => {
                let streams = match self.connecting {
                    None => self.connection.open_bi().await,
                    Some(_) => self.connection.open_bi_early().await,
                };
                let (send, receive) = streams.map_err(io::Error::other)?;
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
            Err(end) if end.peer_code() == Some(DONE) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        let length = data.len();
        self.outgoing()?.write_bytes(data).await?;
        Ok(length)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.outgoing()?.flush();
        Ok(())
    }

    async fn end_message(&mut self, last: Bytes) -> io::Result<()> {
        let stream = self.outgoing.take();
        let mut stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        Ok(stream.finish_with(last).await?)
    }

    async fn receive(
        &mut self,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> io::Result<usize> {
        let stream = self.incoming.as_mut();
        let stream = stream.ok_or(io::ErrorKind::NotConnected)?;
        let chunk = stream.read_chunk(most).await?;
        Ok(chunk.map_or(0, |chunk| {
            take(&chunk);
            chunk.len()
        }))
    }

    /// Reads the end of the stream: a stream dropped before its end would send STOP_SENDING.
    async fn message_ended(&mut self) -> io::Result<()> {
        let Some(mut stream) = self.incoming.take() else {
            return Ok(());
        };
        match stream.read_chunk(1).await? {
            None => Ok(()),
            Some(_) => Err(io::Error::other("the message is longer than it should be")),
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        if let Some(stream) = &mut self.outgoing {
            stream.finish()?;
        }
        Ok(())
    }

    async fn delivered(&mut self) -> io::Result<()> {
        match &mut self.outgoing {
            Some(stream) => Ok(stream.acknowledged().await?),
            None => Ok(()),
        }
    }

    async fn closed_by_peer(&mut self) -> io::Result<bool> {
        let end = self.connection.closed().await;
        match end.peer_code() {
            Some(DONE) => Ok(true),
            _ => Err(io::Error::other(end)),
        }
    }

    async fn early_data_accepted(&mut self) -> Result<bool, Error> {
        let Some(connecting) = self.connecting.take() else {
            return Ok(false);
        };
        let shaken = connecting.await.map_err(Error::failed("shaking hands"))?;
        Ok(!shaken.early_data_rejected())
    }

    fn is_without_handshake(&self) -> bool {
        self.connection.is_known_peer()
    }

    async fn close(&mut self) -> Result<(), Error> {
        if let Some(tickets) = &self.tickets {
            tickets.wait(TICKET_LIMIT).await?;
        }
        if let Some(secrets) = &self.secrets {
            wait_for_secret(secrets).await?;
        }
        self.connection.close(DONE, b"");
        Ok(())
    }

    fn abort(&self) {
        self.connection.close(DONE, b"");
    }
}

/// Waits until a client has the secret of the server, which follows the handshake.
async fn wait_for_secret(credentials: &ClientCredentials) -> Result<(), Error> {
    let held = async {
        while credentials.known_servers().held == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    let limited = tokio::time::timeout(TICKET_LIMIT.into(), held).await;
    limited.map_err(|_| Error::NoTicket(TICKET_LIMIT))
}

/// The counters remain valid after a connection has lost its paths.
fn sample(connection: &weir_net::Connection) -> PathSample {
    let stats = connection.stats();
    let path = stats.paths.first();
    PathSample {
        counters: stats.flow_counters(),
        packets_sent: path.map(|path| path.packets_sent),
        reception: None,
        ce_marked: path.map(|path| path.ce_marks),
        smoothed_rtt: path.map(|path| path.smoothed_rtt),
        rtt_variation: path.map(|path| path.rtt_variation),
        min_rtt: path.map(|path| path.min_rtt),
        cwnd: path.map(|path| path.window),
        mtu: path.map_or(ByteSize::ZERO, |path| path.mtu),
        pacing: None,
    }
}
