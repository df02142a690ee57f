//! The stacks behind one face: servers that echo, and clients that call them.
//!
//! Ours is one of them, so that a case is written once for both directions.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use weir_net::tls::Identity;

/// The name in the server's certificate.
pub(crate) use weir_traffic::calls::identity::SERVER_NAME;

mod key_log;
mod quiche;
mod quinn;
mod s2n;
mod tls;
mod weir;

pub(crate) use key_log::KeyLines;

/// The application protocol of all of them.
pub(crate) const ALPN: &[u8] = b"weir-interop";

/// The most that an echo may have.
pub(crate) const LARGEST_ECHO: usize = 16 << 20;

/// A handshake may take so long: among heavy losses probes are soon seconds apart, and s2n-quic by
/// itself gives up after ten.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why something did not work; what was being done is in the text.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T> = std::result::Result<T, Error>;
/// All run on one thread.
pub(crate) type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A stack that is not ours.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Quinn, Self::Quiche, Self::S2n];

    /// Its name, which is the name of its crate.
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

/// Our own stack.
pub(crate) fn ours() -> &'static dyn Stack {
    &weir::Weir
}

/// What a case asks of both sides.
#[derive(Clone)]
pub(crate) struct Setup {
    /// Where both sides are.
    pub(crate) ip: IpAddr,
    pub(crate) identity: Identity,
    /// The server asks every client to show that it receives at its address.
    pub(crate) retry: bool,
    /// Early data are sent and taken.
    pub(crate) early_data: bool,
    /// Our side speaks no other cipher.
    pub(crate) chacha20: bool,
    /// The client begins in a version that the server does not speak.
    pub(crate) unknown_version: bool,
    /// UDP payloads of this size.
    pub(crate) packet_size: Option<u16>,
    /// The side that is not ours writes its keys there.
    pub(crate) key_log: Option<Arc<KeyLines>>,
}

impl Setup {
    /// What sockets are bound to: any port.
    fn bind(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 0)
    }
}

/// A stack.
pub(crate) trait Stack {
    /// Opens a server that echoes streams and datagrams.
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>>;
    /// Opens a client.
    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>>;
}

/// A server that echoes. It ends when it is dropped.
pub(crate) trait Server {
    fn address(&self) -> Result<SocketAddr>;
    /// What it knows of its newest connection; `None` without any.
    fn newest(&self) -> Option<Facts>;
    /// Begins a key update on it.
    fn update_keys(&self) -> Local<'_, Result<()>>;
}

/// A client. It keeps sessions for later connections.
pub(crate) trait Client {
    fn connect(&self, to: SocketAddr) -> Local<'_, Result<Box<dyn Connection>>>;
    /// Connects and sends `data` as early data. Gives the echo too.
    fn connect_early(
        &self,
        to: SocketAddr,
        data: Bytes,
    ) -> Local<'_, Result<(Box<dyn Connection>, Bytes)>>;
    /// Goes on from another port.
    fn migrate(&self) -> Local<'_, Result<()>>;
}

/// A client's connection.
pub(crate) trait Connection {
    /// Sends `data` on a stream of their own, and gives the echo.
    fn echo(&self, data: Bytes) -> Local<'_, Result<Bytes>>;
    /// Sends a datagram, and gives the next one that comes.
    fn datagram(&self, data: Bytes) -> Local<'_, Result<Bytes>>;
    /// Begins a key update.
    fn update_keys(&self) -> Local<'_, Result<()>>;
    fn facts(&self) -> Facts;
    fn close(&self);
}

/// What a side can tell of a connection. `None` where its stack does not say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The address of the other side.
    pub(crate) peer: Option<SocketAddr>,
    /// Whether the handshake resumed a session.
    pub(crate) resumed: Option<bool>,
    /// Whether early data were taken.
    pub(crate) early_data: Option<bool>,
    /// Key updates so far.
    pub(crate) key_updates: Option<u64>,
    /// Whether ECN proved to work on the way to the other side.
    pub(crate) ecn_works: Option<bool>,
    /// How often the congestion controller heard of marks that the other side reported.
    pub(crate) ecn_marks: Option<u64>,
}

/// Waits until the engine is rid of something that it does not take at once.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
