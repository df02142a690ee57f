//! The endpoints and connections of the quinn transport.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use quinn::{ConnectionError, Endpoint, RecvStream, SendStream, VarInt, ZeroRttAccepted};
use weir_traffic::Error;
use weir_traffic::calls::identity::SERVER_NAME;
use weir_traffic::tls::{TICKET_LIMIT, Tickets};
use weir_traffic::transport::{
    Client, Connection, ConnectionAddresses, Incoming, Listener, Start, StreamKind,
};

/// A client endpoint.
pub struct QuinnClient {
    pub(super) endpoint: Endpoint,
    pub(super) local: SocketAddr,
    pub(super) tickets: Option<Arc<Tickets>>,
}

impl Client for QuinnClient {
    type Connection = QuinnConnection;

    async fn connect(
        &self,
        _local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<QuinnConnection, Error> {
        let connecting = self.endpoint.connect(peer, SERVER_NAME);
        let connecting = connecting.map_err(Error::setting)?;
        let (connection, early_data) = match start {
            Start::Full | Start::Known => {
                let shaken = connecting.await;
                let failed = Error::failed("shaking hands");
                (shaken.map_err(failed)?, None)
            }
            Start::Resumed => {
                let early = connecting.into_0rtt();
                let (connection, accepted) = early.map_err(|_| Error::EarlyDataRefused)?;
                (connection, Some(accepted))
            }
        };
        Ok(QuinnConnection {
            early_data,
            tickets: self.tickets.clone(),
            ..QuinnConnection::new(connection, self.local)
        })
    }
}

/// A server endpoint.
pub struct QuinnListener {
    pub(super) endpoint: Endpoint,
    pub(super) local: SocketAddr,
}

impl Listener for QuinnListener {
    type Incoming = QuinnIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.local])
    }

    async fn accept(&self) -> Result<QuinnIncoming, Error> {
        let incoming = self.endpoint.accept().await;
        let gone = || Error::setting("the endpoint has shut down");
        Ok(QuinnIncoming(incoming.ok_or_else(gone)?, self.local))
    }
}

/// A client that has sent its first packet.
pub struct QuinnIncoming(quinn::Incoming, SocketAddr);

impl Incoming for QuinnIncoming {
    type Connection = QuinnConnection;

    async fn establish(self) -> Result<QuinnConnection, Error> {
        let failed = Error::failed("shaking hands");
        let connecting = self.0.accept().map_err(failed)?;
        // Never fails on a server, which may read and answer early data before the handshake ends.
        let early = connecting.into_0rtt();
        let (connection, _) = early.map_err(|_| Error::EarlyDataRefused)?;
        Ok(QuinnConnection::new(connection, self.1))
    }
}

/// A connection with its current stream.
pub struct QuinnConnection {
    connection: quinn::Connection,
    /// The local address of the endpoint.
    local: SocketAddr,
    /// Resolves to whether the server has accepted early data.
    early_data: Option<ZeroRttAccepted>,
    tickets: Option<Arc<Tickets>>,
    outgoing: Option<SendStream>,
    incoming: Option<RecvStream>,
}

impl QuinnConnection {
    fn new(connection: quinn::Connection, local: SocketAddr) -> Self {
        Self {
            connection,
            local,
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
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        let local = self.connection.local_ip();
        Ok(ConnectionAddresses {
            local: SocketAddr::new(local.unwrap_or(self.local.ip()), self.local.port()),
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

    async fn closed_by_peer(&mut self) -> io::Result<bool> {
        match self.connection.closed().await {
            ConnectionError::ApplicationClosed(_) => Ok(true),
            error => Err(error.into()),
        }
    }

    async fn early_data_accepted(&mut self) -> Result<bool, Error> {
        match self.early_data.take() {
            Some(accepted) => Ok(accepted.await),
            None => Ok(false),
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
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
