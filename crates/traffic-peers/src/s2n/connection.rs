//! The endpoints and connections of the s2n-quic transport.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::stream::{BidirectionalStream, ReceiveStream, SendStream};
use tokio::sync::Mutex;
use weir_traffic::Error;
use weir_traffic::calls::identity::SERVER_NAME;
use weir_traffic::transport::{
    Client, Connection, ConnectionAddresses, Incoming, Listener, Start, StreamKind,
};

use super::Problem;

/// A client endpoint.
pub struct S2nClient {
    pub(super) client: s2n_quic::Client,
}

impl Client for S2nClient {
    type Connection = S2nConnection;

    async fn connect(
        &self,
        _local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<S2nConnection, Error> {
        if start != Start::Full {
            return Err(Error::setting("s2n-quic sends no early data"));
        }
        let connect = Connect::new(peer).with_server_name(SERVER_NAME);
        let connection = self.client.connect(connect).await;
        let failed = Error::failed("shaking hands");
        Ok(S2nConnection::new(connection.map_err(failed)?))
    }
}

/// A server endpoint. One task at a time accepts connections.
pub struct S2nListener {
    address: SocketAddr,
    server: Mutex<s2n_quic::Server>,
}

impl S2nListener {
    pub(super) fn new(server: s2n_quic::Server) -> Result<Self, Problem> {
        Ok(Self {
            address: server.local_addr()?,
            server: Mutex::new(server),
        })
    }
}

impl Listener for S2nListener {
    type Incoming = S2nConnection;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.address])
    }

    async fn accept(&self) -> Result<S2nConnection, Error> {
        let accepted = self.server.lock().await.accept().await;
        let gone = || Error::setting("the endpoint has shut down");
        Ok(S2nConnection::new(accepted.ok_or_else(gone)?))
    }
}

/// s2n-quic accepts connections after their handshake.
impl Incoming for S2nConnection {
    type Connection = Self;

    async fn establish(self) -> Result<Self, Error> {
        Ok(self)
    }
}

/// A connection with its current stream.
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
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        Ok(ConnectionAddresses {
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

    async fn end_message(&mut self, last: Bytes) -> io::Result<()> {
        self.send(last).await?;
        self.finish().await
    }

    /// Returns s2n-quic's chunks as they are; `_most` is ignored.
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

    async fn closed_by_peer(&mut self) -> io::Result<bool> {
        Ok(self.connection.accept().await?.is_none())
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.abort();
        // The endpoint's task sends the close.
        tokio::task::yield_now().await;
        Ok(())
    }

    fn abort(&self) {
        self.connection.close(0_u32.into());
    }
}
