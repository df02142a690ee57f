//! What every transport offers: listen, connect, open and accept streams, and tell what was counted.
//!
//! A [`Transport`] is a value with settings. It makes [`Client`]s and [`Listener`]s; both give
//! [`Connection`]s. A connection carries one stream at a time: [`open`](Connection::open) and
//! [`accept`](Connection::accept) choose it, and what is sent and received from then on is on it. Over
//! TCP, TLS and DCUDP all messages follow one another on the connection's only stream, so that both
//! ends have to know their lengths; DCQUIC has a stream for each.
//!
//! The futures are `Send`, and nothing here allocates for each message: loops that are generic over a
//! transport cost what loops written for it would.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use weir_net::PathEvents;

use crate::error::Error;
use crate::probe::Probe;

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With a full handshake.
    Full,
    /// With a ticket of an earlier connection of the same client. What is sent before
    /// [`Connection::early_data_accepted`] is early data.
    Resumed,
}

/// Which way the data of a stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// From the side that opens it to the other.
    OneWay,
    /// Both ways.
    TwoWay,
}

/// Something that carries bytes, with its settings.
pub trait Transport: Send + Sync {
    /// Its client.
    type Client: Client;
    /// Its server.
    type Listener: Listener;

    /// Makes a client at these addresses of this host; without any, it sends from where its way leads.
    /// Called within a tokio runtime.
    ///
    /// # Errors
    /// When an address cannot be bound, or a setting cannot be honoured.
    fn client(&self, local: &[SocketAddr]) -> Result<Self::Client, Error>;

    /// Listens at these addresses; port 0 lets the system choose. Called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::AddressInUse`], or when a setting cannot be honoured.
    fn listen(&self, local: &[SocketAddr]) -> Result<Self::Listener, Error>;
}

/// The client's side of a transport.
pub trait Client: Send + Sync + 'static {
    /// What it opens.
    type Connection: Connection;

    /// Opens a connection to `peer`. It resolves as soon as the client may send application data that
    /// only the authenticated server can read. A transport that binds a socket for each connection
    /// takes `local` for it.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::NoAnswer`], [`Error::WrongCertificate`], or what else went wrong.
    fn connect(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> impl Future<Output = Result<Self::Connection, Error>> + Send;
}

/// The server's side of a transport.
pub trait Listener: Send + Sync + 'static {
    /// A client that wants to come in.
    type Incoming: Incoming;

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>>;

    /// Waits for the next client.
    ///
    /// # Errors
    /// What ends the listener.
    fn accept(&self) -> impl Future<Output = Result<Self::Incoming, Error>> + Send;
}

/// A client that a listener has heard of.
pub trait Incoming: Send + 'static {
    /// What becomes of it.
    type Connection: Connection;

    /// Shakes hands.
    ///
    /// # Errors
    /// What went wrong with this client.
    fn establish(self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;
}

/// Both addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// This end's.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

/// An open connection. Dropping it closes it as its transport does; [`Connection::abort`] cuts it off.
pub trait Connection: Send + 'static {
    /// Its addresses.
    ///
    /// # Errors
    /// What the system says.
    fn ends(&self) -> io::Result<Ends>;

    /// The name of the congestion control that it uses, where it tells.
    fn congestion(&self) -> Option<String> {
        None
    }

    /// What tells about the connection, also after it is gone.
    ///
    /// # Errors
    /// When no descriptor is left for it.
    fn probe(&self) -> io::Result<Probe> {
        Ok(Probe::new(|| None))
    }

    /// What happens to its paths, where the transport may have several.
    fn path_events(&self) -> Option<PathEvents> {
        None
    }

    /// Opens the next stream.
    ///
    /// # Errors
    /// Why the connection is over.
    fn open(&mut self, kind: StreamKind) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits for the peer's next stream; `false` where the peer has closed the connection instead. Over
    /// a transport with one stream there is always a next one, whose first read may find its end.
    ///
    /// # Errors
    /// Why the connection is over.
    fn accept(&mut self, kind: StreamKind) -> impl Future<Output = io::Result<bool>> + Send;

    /// Sends the first bytes of `data`, and says how many it took.
    ///
    /// # Errors
    /// Why the connection is over.
    fn send(&mut self, data: Bytes) -> impl Future<Output = io::Result<usize>> + Send;

    /// Hands over what [`Connection::send`] took and may still hold back.
    ///
    /// # Errors
    /// Why the connection is over.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Ok(()) }
    }

    /// Sends the last bytes of a message. It ends a stream that is the message's own.
    ///
    /// # Errors
    /// Why the connection is over.
    fn end_message(&mut self, last: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits for the next bytes, `most` of them at most, and hands them to `take`, in pieces as the
    /// transport has them, without a further copy. It says how many there were, 0 at the stream's end.
    ///
    /// # Errors
    /// Why the connection is over.
    fn receive(
        &mut self,
        most: usize,
        take: &mut (impl FnMut(&[u8]) + Send),
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// After all bytes of a message have been received: reads the end of a stream that is its own.
    ///
    /// # Errors
    /// When more follows.
    fn message_ended(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Ends what this side sends; the peer reads to the end.
    ///
    /// # Errors
    /// Why the connection is over.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// After [`Connection::finish`]: waits until the peer has everything, as far as the transport
    /// tells.
    ///
    /// # Errors
    /// Why the connection ended before.
    fn delivered(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Ok(()) }
    }

    /// After [`Connection::finish`]: waits until the peer has closed the connection in peace; `false`
    /// where it sends something instead.
    ///
    /// # Errors
    /// Why the connection ended otherwise.
    fn closed_by_peer(&mut self) -> impl Future<Output = io::Result<bool>> + Send;

    /// Whether the server took the data that were sent before the handshake's end. Waits for that.
    ///
    /// # Errors
    /// Why the handshake failed.
    fn early_data_accepted(&mut self) -> impl Future<Output = Result<bool, Error>> + Send {
        async { Ok(false) }
    }

    /// Ends the connection in peace: the peer hears that this was all. A client that keeps tickets has
    /// one when this returns.
    ///
    /// # Errors
    /// [`Error::NoTicket`], or why the connection ended before.
    fn close(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Ends the connection as its client after the last response. Over TCP the server closes first, so
    /// that the port that is not free for a while (TIME-WAIT) is not one of the client's.
    ///
    /// # Errors
    /// Why the connection ended before.
    fn depart(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { self.close().await.map_err(io::Error::other) }
    }

    /// The server's side of [`Connection::depart`], after the last response has been handed over.
    ///
    /// # Errors
    /// Why the connection ended before.
    fn release(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { self.closed_by_peer().await.map(drop) }
    }

    /// Cuts the connection off, with what has not been sent yet.
    fn abort(&self);
}

/// Sends all of `data`.
///
/// # Errors
/// Why the connection is over.
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

/// Receives exactly as many bytes as `buffer` has; `false` where the stream ends before the first.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] where it ends later, [`io::ErrorKind::InvalidData`] where a transport
/// hands over more at once than was asked for, or why the connection is over.
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
