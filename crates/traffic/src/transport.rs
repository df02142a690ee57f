//! The common interface of transports: listen, connect, open and accept streams, and counters.
//!
//! A [`Transport`] is a value with settings. It creates [`Client`]s and [`Listener`]s, and both
//! return [`Connection`]s. A connection has one current stream, which [`open`](Connection::open)
//! and [`accept`](Connection::accept) select; data is sent and received on it. Over TCP, TLS and
//! DCUDP all messages follow one another on the connection's only stream, so both ends must know
//! their lengths. DCQUIC has a stream for each message.
//!
//! The futures are `Send`, and no operation allocates for each message: loops that are generic over
//! a transport cost as much as loops written for it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use weir_net::PathEvents;

use crate::error::Error;
use crate::probe::Probe;

/// The handshake of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With a full handshake.
    Full,
    /// With a ticket of an earlier connection of the same client. Data that is sent before
    /// [`Connection::early_data_accepted`] is early data.
    Resumed,
    /// Without a handshake, by the secret of an earlier connection of the same client.
    Known,
}

/// The directions of a stream's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// From the opening side to the other.
    OneWay,
    /// In both directions.
    TwoWay,
}

/// A transport with its settings.
pub trait Transport: Send + Sync {
    /// Its client type.
    type Client: Client;
    /// Its listener type.
    type Listener: Listener;

    /// Creates a client at these addresses of this host; if empty, the address follows from the
    /// route. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// An address cannot be bound, or a setting is not supported.
    fn client(&self, local: &[SocketAddr]) -> Result<Self::Client, Error>;

    /// Listens on these addresses; port 0 lets the system choose. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`Error::AddressInUse`], or a setting is not supported.
    fn listen(&self, local: &[SocketAddr]) -> Result<Self::Listener, Error>;
}

/// The client's side of a transport.
pub trait Client: Send + Sync + 'static {
    /// Its connection type.
    type Connection: Connection;

    /// Opens a connection to `peer`. It resolves as soon as the client may send application data
    /// that only the authenticated server can read. A transport that binds a socket for each
    /// connection binds it to `local`.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::NoAnswer`], [`Error::WrongCertificate`], or another error.
    fn connect(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> impl Future<Output = Result<Self::Connection, Error>> + Send;
}

/// The server's side of a transport.
pub trait Listener: Send + Sync + 'static {
    /// The type of an incoming connection.
    type Incoming: Incoming;

    /// Returns the listening addresses.
    ///
    /// # Errors
    /// The error of the operating system.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>>;

    /// Waits for the next client.
    ///
    /// # Errors
    /// The error that ends the listener.
    fn accept(&self) -> impl Future<Output = Result<Self::Incoming, Error>> + Send;
}

/// An incoming connection before its handshake.
pub trait Incoming: Send + 'static {
    /// Its connection type.
    type Connection: Connection;

    /// Completes the handshake.
    ///
    /// # Errors
    /// The error of this connection.
    fn establish(self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;
}

/// Both addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionAddresses {
    /// The local address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// An open connection. Dropping it closes it as its transport does; [`Connection::abort`] resets it.
pub trait Connection: Send + 'static {
    /// Returns both addresses.
    ///
    /// # Errors
    /// The error of the operating system.
    fn ends(&self) -> io::Result<ConnectionAddresses>;

    /// Returns the name of its congestion control, if the transport reports it.
    fn congestion(&self) -> Option<String> {
        None
    }

    /// Returns a probe of the connection, which remains valid after the connection is gone.
    ///
    /// # Errors
    /// No file descriptor is available for it.
    fn probe(&self) -> io::Result<Probe> {
        Ok(Probe::new(|| None))
    }

    /// Returns the events of its paths, if the transport supports several.
    fn path_events(&self) -> Option<PathEvents> {
        None
    }

    /// Opens the next stream.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn open(&mut self, kind: StreamKind) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits for the peer's next stream; `false` if the peer has closed the connection instead.
    /// Over a transport with one stream there is always a next one, and its first read may return
    /// the end.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn accept(&mut self, kind: StreamKind) -> impl Future<Output = io::Result<bool>> + Send;

    /// Sends the first bytes of `data`, and returns how many were accepted.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn send(&mut self, data: Bytes) -> impl Future<Output = io::Result<usize>> + Send;

    /// Flushes the data that [`Connection::send`] accepted and may have buffered.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Ok(()) }
    }

    /// Sends the last bytes of a message, and ends the stream if it belongs to the message alone.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn end_message(&mut self, last: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits for the next bytes, at most `most`, and passes them to `take`, in the transport's
    /// chunks, without a further copy. Returns their number, 0 at the end of the stream.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn receive(
        &mut self,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Must be called after all bytes of a message: reads the end of a stream that belongs to the
    /// message alone.
    ///
    /// # Errors
    /// More data follows.
    fn message_ended(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Ends this side's direction; the peer reads to the end.
    ///
    /// # Errors
    /// The reason why the connection ended.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// After [`Connection::finish`]: waits until everything has been delivered to the peer, if the
    /// transport can tell.
    ///
    /// # Errors
    /// The reason why the connection ended earlier.
    fn delivered(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Ok(()) }
    }

    /// After [`Connection::finish`]: waits until the peer has closed the connection gracefully;
    /// `false` if it sends data instead.
    ///
    /// # Errors
    /// The reason why the connection ended otherwise.
    fn closed_by_peer(&mut self) -> impl Future<Output = io::Result<bool>> + Send;

    /// Waits for the handshake; returns whether the server accepted the early data.
    ///
    /// # Errors
    /// The reason why the handshake failed.
    fn early_data_accepted(&mut self) -> impl Future<Output = Result<bool, Error>> + Send {
        async { Ok(false) }
    }

    /// Returns whether the connection has had no handshake.
    fn is_without_handshake(&self) -> bool {
        false
    }

    /// Closes the connection gracefully: the peer receives the end of the data. A client that keeps
    /// tickets has received one when this returns.
    ///
    /// # Errors
    /// [`Error::NoTicket`], or the reason why the connection ended earlier.
    fn close(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Ends the connection on the client after the last response. Over TCP the server closes first,
    /// so that the port in TIME-WAIT is not one of the client's.
    ///
    /// # Errors
    /// The reason why the connection ended earlier.
    fn close_as_client(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { self.close().await.map_err(io::Error::other) }
    }

    /// The server's side of [`Connection::close_as_client`], after the last response has been sent.
    ///
    /// # Errors
    /// The reason why the connection ended earlier.
    fn close_as_server(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { self.closed_by_peer().await.map(drop) }
    }

    /// Resets the connection and discards unsent data.
    fn abort(&self);
}

/// Sends all of `data`.
///
/// # Errors
/// The reason why the connection ended.
pub async fn send_all(connection: &mut impl Connection, mut data: Bytes) -> io::Result<()> {
    while !data.is_empty() {
        let sent = connection.send(data.clone()).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let _ = data.split_to(sent);
    }
    Ok(())
}

/// Receives exactly as many bytes as `buffer` has; `false` if the stream ends before the first.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if it ends later, [`io::ErrorKind::InvalidData`] if a transport
/// returns more at once than requested, or the reason why the connection ended.
pub async fn receive_exactly(
    connection: &mut impl Connection,
    buffer: &mut [u8],
) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        let mut at = 0;
        let most = rest.len();
        let received = connection
            .receive(most, &mut |piece| {
                if let Some(place) = rest.get_mut(at..at + piece.len()) {
                    place.copy_from_slice(piece);
                }
                at += piece.len();
            })
            .await?;
        match (received, filled) {
            (0, 0) => return Ok(false),
            (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (received, _) if received > most => return Err(io::ErrorKind::InvalidData.into()),
            _ => filled += received,
        }
    }
    Ok(true)
}
