//! The adapter of DCUDP, by `weir-net`: a byte stream in each direction, encrypted only with a
//! shared key.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use weir_net::EndpointError;
use weir_net::dcudp::{
    DcudpClient, DcudpConfig, DcudpConnectError, DcudpError, DcudpListener, DcudpStream, Mode,
};

use crate::byte_stream::{ByteStream, Carrier};
use crate::error::Error;
use crate::probe::{Pacing, PathSample, Probe, Reception};
use crate::transport::{Client, ConnectionAddresses, Incoming, Listener, Start, Transport};

/// Received packets that are read at once.
const CHUNKS: usize = 32;

/// DCUDP.
#[derive(Clone, Debug)]
pub struct Dcudp {
    /// Its settings.
    pub config: DcudpConfig,
}

impl Transport for Dcudp {
    type Client = DcudpClients;
    type Listener = DcudpListeners;

    fn client(&self, _local: &[SocketAddr]) -> Result<DcudpClients, Error> {
        Ok(DcudpClients {
            config: self.config.clone(),
            sockets: Mutex::default(),
        })
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<DcudpListeners, Error> {
        let listeners = local
            .iter()
            .map(|local| DcudpListener::bind(*local, self.config.clone()));
        let listeners = listeners.collect::<Result<_, _>>();
        Ok(DcudpListeners(listeners.map_err(unbound)?))
    }
}

fn unbound(error: EndpointError) -> Error {
    match error {
        EndpointError::AddressInUse { address } => Error::AddressInUse(address),
        error => Error::setting(error),
    }
}

/// Client sockets, one for each address of the host.
#[derive(Debug)]
pub struct DcudpClients {
    config: DcudpConfig,
    sockets: Mutex<BTreeMap<Option<SocketAddr>, Arc<DcudpClient>>>,
}

impl DcudpClients {
    /// Returns a socket; without a local address it is bound to the one that routes to `peer`.
    fn socket(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
    ) -> Result<Arc<DcudpClient>, Error> {
        let sockets = self.sockets.lock();
        let mut sockets = sockets.unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = sockets.get(&local) {
            return Ok(client.clone());
        }
        let config = self.config.clone();
        let client = match local {
            Some(local) => DcudpClient::bind(local, config),
            None => DcudpClient::bind_for(peer, config),
        };
        let client = Arc::new(client.map_err(unbound)?);
        sockets.insert(local, client.clone());
        Ok(client)
    }
}

impl Client for DcudpClients {
    type Connection = ByteStream<DcudpStream>;

    async fn connect(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<Self::Connection, Error> {
        if start != Start::Full {
            return Err(Error::setting("dcudp has no sessions to resume"));
        }
        let stream = self.socket(local, peer)?.connect(peer).await;
        let stream = stream.map_err(|error| match error {
            DcudpConnectError::Connection(DcudpError::HandshakeTimeout { .. }) => {
                Error::NoAnswer { peer }
            }
            DcudpConnectError::Connection(error) => Error::failed("shaking hands")(error),
            error => Error::setting(error),
        });
        Ok(ByteStream::new(stream?))
    }
}

/// Listening sockets, one for each address.
#[derive(Debug)]
pub struct DcudpListeners(Vec<DcudpListener>);

impl Listener for DcudpListeners {
    type Incoming = DcudpIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let addresses = self.0.iter().map(DcudpListener::local_address);
        Ok(addresses.collect())
    }

    async fn accept(&self) -> Result<DcudpIncoming, Error> {
        let arriving = self.0.iter().map(DcudpListener::accept);
        let mut arriving: FuturesUnordered<_> = arriving.collect();
        let stream = arriving.next().await.flatten();
        let gone = || Error::setting("the sockets have shut down");
        Ok(DcudpIncoming(stream.ok_or_else(gone)?))
    }
}

/// A client that has completed the handshake.
#[derive(Debug)]
pub struct DcudpIncoming(DcudpStream);

impl Incoming for DcudpIncoming {
    type Connection = ByteStream<DcudpStream>;

    async fn establish(self) -> Result<Self::Connection, Error> {
        Ok(ByteStream::new(self.0))
    }
}

impl Carrier for DcudpStream {
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        Ok(ConnectionAddresses {
            local: self.local_address(),
            remote: self.remote_address(),
        })
    }

    fn congestion(&self) -> Option<String> {
        Some(self.stats().algorithm.to_owned())
    }

    /// Without a copy.
    async fn send(&mut self, mut data: Bytes) -> io::Result<usize> {
        poll_fn(|cx| self.poll_write_bytes(cx, &mut data)).await
    }

    /// Without a copy.
    async fn receive(
        &mut self,
        _buffer: &mut Vec<u8>,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> io::Result<usize> {
        let mut chunks = [const { Bytes::new() }; CHUNKS];
        let count = self.read_chunks(&mut chunks, most).await?;
        let mut length = 0;
        for chunk in chunks.iter().take(count) {
            take(chunk);
            length += chunk.len();
        }
        Ok(length)
    }

    /// DCUDP sends at a rate, without a window.
    fn probe(&self) -> io::Result<Probe> {
        let watch = self.watch();
        Ok(Probe::new(move || {
            let stats = watch.stats();
            Some(PathSample {
                counters: stats.flow,
                packets_sent: Some(stats.data_packets_sent),
                reception: Some(Reception {
                    packets: stats.data_packets_received,
                    duplicates: stats.duplicates,
                    jitter: stats.jitter,
                }),
                ce_marked: Some(stats.flow.marks),
                smoothed_rtt: Some(stats.smoothed_rtt),
                rtt_variation: None,
                min_rtt: Some(stats.min_rtt),
                cwnd: None,
                mtu: stats.packet_size,
                pacing: Some(Pacing {
                    rate: stats.rate,
                    is_congested: stats.mode == Mode::Congestion,
                    switches: stats.mode_switches,
                }),
            })
        }))
    }

    fn abort(&self) {
        DcudpStream::abort(self, 0);
    }

    /// Everything has been delivered once both sides have finished.
    async fn delivered(&mut self) -> io::Result<()> {
        Ok(self.closed().await?)
    }

    fn end_after_peer(&mut self) {
        self.finish();
    }
}
