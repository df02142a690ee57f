//! The QUIC stacks behind one interface: echo servers and their clients.
//!
//! DCQUIC implements the interface too, so that a case is written once for both directions.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use weir_net::tls::Identity;
use weir_net::{Executed, KnownClientsCounters, KnownServersCounters};

/// The name in the server's certificate.
pub(crate) use weir_traffic::calls::identity::SERVER_NAME;

mod key_log;
mod quiche;
mod quinn;
mod s2n;
mod tls;
mod weir;

pub(crate) use key_log::KeyLines;

/// The application protocol of all stacks.
pub(crate) const ALPN: &[u8] = b"weir-interop";

/// The largest echo in bytes.
pub(crate) const LARGEST_ECHO: usize = 16 << 20;

/// The handshake timeout: under heavy loss probes are soon seconds apart, and s2n-quic's default is
/// ten seconds.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// An error whose text names the failed operation.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T> = std::result::Result<T, Error>;
/// A future that runs on the current thread.
pub(crate) type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A stack to test DCQUIC with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// quinn, with rustls.
    Quinn,
    /// Cloudflare's quiche, with BoringSSL.
    Quiche,
    /// AWS's s2n-quic, with rustls.
    S2n,
}

impl Peer {
    /// All stacks.
    pub const ALL: [Self; 3] = [Self::Quinn, Self::Quiche, Self::S2n];

    /// Returns the name of the stack's crate.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quinn => "quinn",
            Self::Quiche => "quiche",
            Self::S2n => "s2n-quic",
        }
    }

    pub(crate) fn stack(self) -> &'static dyn Stack {
        match self {
            Self::Quinn => &quinn::Quinn,
            Self::Quiche => &quiche::Quiche,
            Self::S2n => &s2n::S2n,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// DCQUIC.
pub(crate) fn ours() -> &'static dyn Stack {
    &weir::Weir
}

/// The options that a case sets on both sides.
#[derive(Clone)]
pub(crate) struct Setup {
    /// The IP address of both sides.
    pub(crate) ip: IpAddr,
    pub(crate) identity: Identity,
    /// The server validates every client's address with a Retry packet.
    pub(crate) retry: bool,
    /// Early data are sent and accepted.
    pub(crate) early_data: bool,
    /// Our side offers no other cipher.
    pub(crate) chacha20: bool,
    /// The client starts with a version that the server does not support.
    pub(crate) unknown_version: bool,
    /// Our server remembers its clients for connections without a handshake. Our client always has known
    /// peers on.
    pub(crate) known_peers: bool,
    /// The largest UDP payload in bytes.
    pub(crate) packet_size: Option<u16>,
    /// The other stack logs its keys here.
    pub(crate) key_log: Option<Arc<KeyLines>>,
}

impl Setup {
    /// Returns the address that sockets bind to, with any port.
    fn bind(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 0)
    }
}

/// A QUIC stack.
pub(crate) trait Stack {
    /// Opens a server that echoes streams and datagrams.
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>>;
    /// Opens a client.
    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>>;
}

/// An echo server. It stops when it is dropped.
pub(crate) trait Server {
    fn address(&self) -> Result<SocketAddr>;
    /// Returns the server's view of its newest connection; `None` if there is none.
    fn newest(&self) -> Option<ConnectionStatus>;
    /// Starts a key update on the newest connection.
    fn update_keys(&self) -> Local<'_, Result<()>>;
    /// Returns the counters of the clients that it remembers; `None` for other stacks.
    fn known_clients(&self) -> Option<KnownClientsCounters> {
        None
    }
}

/// A client. It keeps sessions for later connections.
pub(crate) trait Client {
    fn connect(&self, to: SocketAddr) -> Local<'_, Result<Box<dyn Connection>>>;
    /// Connects and sends `data` as early data. Returns the connection and the echo.
    fn connect_early(
        &self,
        to: SocketAddr,
        data: Bytes,
    ) -> Local<'_, Result<(Box<dyn Connection>, Bytes)>>;
    /// Returns the counters of the servers that it remembers; `None` for other stacks.
    fn known_servers(&self) -> Option<KnownServersCounters> {
        None
    }
    /// Migrates to another local port.
    fn migrate(&self) -> Local<'_, Result<()>>;
}

/// A client's connection.
pub(crate) trait Connection {
    /// Sends `data` on a new stream and returns the echo.
    fn echo(&self, data: Bytes) -> Local<'_, Result<Bytes>>;
    /// Sends a datagram and returns the next one received.
    fn datagram(&self, data: Bytes) -> Local<'_, Result<Bytes>>;
    /// Starts a key update.
    fn update_keys(&self) -> Local<'_, Result<()>>;
    fn facts(&self) -> ConnectionStatus;
    fn close(&self);
}

/// One side's view of a connection. A field is `None` if the stack does not report it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionStatus {
    /// The address of the other side.
    pub(crate) peer: Option<SocketAddr>,
    /// Whether the handshake resumed a session.
    pub(crate) resumed: Option<bool>,
    /// Whether early data were accepted.
    pub(crate) early_data: Option<bool>,
    /// The number of key updates so far.
    pub(crate) key_updates: Option<u64>,
    /// Whether ECN validation succeeded on the path to the other side.
    pub(crate) ecn_works: Option<bool>,
    /// The number of times the other side reported CE marks to the congestion controller.
    pub(crate) ecn_marks: Option<u64>,
    /// Of a connection that is over: whether the other side may have executed what it carried.
    pub(crate) executed: Option<Executed>,
}

/// Waits a few milliseconds for work that a stack does asynchronously.
pub(crate) async fn short_pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
