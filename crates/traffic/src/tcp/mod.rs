//! The kernel's TCP, without encryption.

mod info;
mod socket;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::task::Poll;

use serde::{Deserialize, Serialize};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use weir_units::{ByteSize, Duration};

use crate::byte_stream::{ByteStream, Carrier};
use crate::error::Error;
use crate::probe::Probe;
use crate::transport::{Client, Ends, Incoming, Listener, Start, Transport};

pub use socket::check_congestion;

/// What a socket is set to. What is `None` stays as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpSettings {
    /// The congestion control by the kernel's name.
    pub congestion: Option<String>,
    /// The largest segment (`TCP_MAXSEG`).
    pub mss: Option<ByteSize>,
    /// Whether small segments wait while data is under way (without `TCP_NODELAY`).
    pub nagle: bool,
    /// The send buffer; automatic otherwise.
    pub send_buffer: Option<ByteSize>,
    /// The receive buffer; automatic otherwise.
    pub receive_buffer: Option<ByteSize>,
    /// The least that a retransmission time-out adds to the smoothed round-trip time
    /// (`TCP_RTO_MIN_US`, Linux 6.15).
    pub min_rto: Option<Duration>,
    /// The largest retransmission time-out (`TCP_RTO_MAX_MS`, Linux 6.15).
    pub max_rto: Option<Duration>,
    /// How long an ACK waits at most (`TCP_DELACK_MAX_US`, Linux 6.15).
    pub delayed_ack_timeout: Option<Duration>,
    /// Whether segments are paced by the window also where the congestion control asks for no rate.
    pub paced: bool,
}

/// Kernel TCP.
#[derive(Clone, Debug, Default)]
pub struct Tcp {
    /// What its sockets are set to.
    pub settings: TcpSettings,
    /// How long the kernel is given to reach a peer; its own limit is minutes.
    pub connect_timeout: Option<Duration>,
}

impl Tcp {
    /// A connection that was accepted by another listener, with these settings.
    ///
    /// # Errors
    /// [`Error::Setting`] where the kernel cannot do what they say.
    pub fn adopt(&self, stream: TcpStream) -> Result<ByteStream<TcpStream>, Error> {
        self.set(&stream)?;
        Ok(ByteStream::new(stream))
    }

    /// Sets what a connection can still be set to.
    pub(crate) fn set(&self, stream: &TcpStream) -> Result<(), Error> {
        socket::adopt(&self.settings, stream)?;
        socket::set_congestion(&self.settings, stream)
    }

    /// Opens a connection, as [`Client::connect`] does.
    pub(crate) async fn open(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
    ) -> Result<TcpStream, Error> {
        socket::connect(&self.settings, local, peer, self.connect_timeout).await
    }
}

impl Transport for Tcp {
    type Client = Self;
    type Listener = TcpListeners;

    fn client(&self, _local: &[SocketAddr]) -> Result<Self, Error> {
        Ok(self.clone())
    }

    fn listen(&self, local: &[SocketAddr]) -> Result<TcpListeners, Error> {
        let listeners = local
            .iter()
            .map(|local| socket::listen(&self.settings, *local));
        Ok(TcpListeners {
            listeners: listeners.collect::<Result<_, _>>()?,
            settings: self.settings.clone(),
        })
    }
}

impl Client for Tcp {
    type Connection = ByteStream<TcpStream>;

    async fn connect(
        &self,
        local: Option<SocketAddr>,
        peer: SocketAddr,
        start: Start,
    ) -> Result<Self::Connection, Error> {
        match start {
            Start::Full => Ok(ByteStream::new(self.open(local, peer).await?)),
            Start::Resumed => Err(Error::setting("tcp has no sessions to resume")),
        }
    }
}

/// Listening sockets, one for each address.
#[derive(Debug)]
pub struct TcpListeners {
    listeners: Vec<TcpListener>,
    settings: TcpSettings,
}

impl TcpListeners {
    /// The congestion control of their connections.
    pub fn congestion(&self) -> Option<String> {
        self.listeners.first().and_then(congestion_of)
    }
}

impl Listener for TcpListeners {
    type Incoming = TcpIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// The next connection at any of the sockets.
    async fn accept(&self) -> Result<TcpIncoming, Error> {
        let accepted = poll_fn(|cx| {
            for listener in &self.listeners {
                match listener.poll_accept(cx) {
                    Poll::Ready(Ok((stream, _))) => return Poll::Ready(Ok(stream)),
                    // The client has gone again; the kernel says so of the one that it was.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {
                        cx.waker().wake_by_ref();
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        });
        Ok(TcpIncoming {
            stream: accepted.await.map_err(Error::failed("accepting"))?,
            settings: self.settings.clone(),
        })
    }
}

/// A connection that the kernel has accepted.
#[derive(Debug)]
pub struct TcpIncoming {
    pub(crate) stream: TcpStream,
    settings: TcpSettings,
}

impl TcpIncoming {
    /// The socket, with what a listening socket does not hand down.
    pub(crate) fn adopt(self) -> Result<TcpStream, Error> {
        socket::adopt(&self.settings, &self.stream)?;
        Ok(self.stream)
    }
}

impl Incoming for TcpIncoming {
    type Connection = ByteStream<TcpStream>;

    async fn establish(self) -> Result<Self::Connection, Error> {
        Ok(ByteStream::new(self.adopt()?))
    }
}

impl Carrier for TcpStream {
    /// IPv4 addresses of an IPv6 socket are given as such.
    fn ends(&self) -> io::Result<Ends> {
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Ok(Ends {
            local: canonical(self.local_addr()?),
            remote: canonical(self.peer_addr()?),
        })
    }

    fn congestion(&self) -> Option<String> {
        congestion_of(self)
    }

    fn probe(&self) -> io::Result<Probe> {
        let descriptor = self.as_fd().try_clone_to_owned()?;
        Ok(Probe::new(move || info::sample(&descriptor)))
    }

    fn abort(&self) {
        // Without it the connection would end in peace, which is no harm but takes its time.
        if let Err(error) = SockRef::from(self).set_linger(Some(std::time::Duration::ZERO)) {
            tracing::debug!(%error, "a connection is not cut off");
        }
    }
}

/// The congestion control of a socket, by the kernel's name.
fn congestion_of(socket: &impl AsFd) -> Option<String> {
    let name = SockRef::from(socket).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
