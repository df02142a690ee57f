//! The adapter of kernel TCP, without encryption.

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
use crate::transport::{Client, ConnectionAddresses, Incoming, Listener, Start, Transport};

pub use socket::{check_congestion, check_fast_open};

/// Socket options. `None` keeps the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpSettings {
    /// The kernel's name of the congestion control.
    pub congestion: Option<String>,
    /// The maximum segment size (`TCP_MAXSEG`).
    pub mss: Option<ByteSize>,
    /// Whether small segments wait while data is in flight (without `TCP_NODELAY`).
    pub nagle: bool,
    /// The send buffer; autotuned if `None`.
    pub send_buffer: Option<ByteSize>,
    /// The receive buffer; autotuned if `None`.
    pub receive_buffer: Option<ByteSize>,
    /// The minimum that is added to the smoothed round-trip time for a retransmission time-out
    /// (`TCP_RTO_MIN_US`, Linux 6.15).
    pub min_rto: Option<Duration>,
    /// The maximum retransmission time-out (`TCP_RTO_MAX_MS`, Linux 6.15).
    pub max_rto: Option<Duration>,
    /// The maximum delay of an ACK (`TCP_DELACK_MAX_US`, Linux 6.15).
    pub delayed_ack_timeout: Option<Duration>,
    /// Whether segments are paced by the window if the congestion control requests no rate.
    pub paced: bool,
    /// Whether a client's first data go with its SYN once it has a cookie of the server (TCP Fast
    /// Open, RFC 7413); it takes `net.ipv4.tcp_fastopen = 3`.
    pub fast_open: bool,
}

/// Kernel TCP.
#[derive(Clone, Debug, Default)]
pub struct Tcp {
    /// The options of its sockets.
    pub settings: TcpSettings,
    /// The time limit of connecting; the kernel's own limit is minutes.
    pub connect_timeout: Option<Duration>,
}

impl Tcp {
    /// Returns a connection that another listener accepted, with these settings applied.
    ///
    /// # Errors
    /// [`Error::Setting`] if the kernel does not support a setting.
    pub fn adopt(&self, stream: TcpStream) -> Result<ByteStream<TcpStream>, Error> {
        self.set(&stream)?;
        Ok(ByteStream::new(stream))
    }

    /// Sets the options that an open connection accepts.
    pub(crate) fn set(&self, stream: &TcpStream) -> Result<(), Error> {
        socket::adopt(&self.settings, stream)?;
        socket::set_congestion(&self.settings, stream)
    }

    /// Opens a connection, like [`Client::connect`].
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
            Start::Resumed | Start::Known => Err(Error::setting("tcp has no sessions to resume")),
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
    /// Returns the congestion control of their connections.
    pub fn congestion(&self) -> Option<String> {
        self.listeners.first().and_then(congestion_of)
    }
}

impl Listener for TcpListeners {
    type Incoming = TcpIncoming;

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Returns the next connection from any of the sockets.
    async fn accept(&self) -> Result<TcpIncoming, Error> {
        let accepted = poll_fn(|cx| {
            for listener in &self.listeners {
                match listener.poll_accept(cx) {
                    Poll::Ready(Ok((stream, _))) => return Poll::Ready(Ok(stream)),
                    // The client has disconnected already; the kernel reports this for its connection.
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
    /// Returns the socket, with the options set that it does not inherit from the listening socket.
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
    /// IPv4-mapped addresses of an IPv6 socket are returned as IPv4 addresses.
    fn ends(&self) -> io::Result<ConnectionAddresses> {
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Ok(ConnectionAddresses {
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
        // Without it the connection would close gracefully, which is harmless but takes longer.
        if let Err(error) = SockRef::from(self).set_linger(Some(std::time::Duration::ZERO)) {
            tracing::debug!(%error, "a connection is not cut off");
        }
    }
}

/// Returns the kernel's name of a socket's congestion control.
fn congestion_of(socket: &impl AsFd) -> Option<String> {
    let name = SockRef::from(socket).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
