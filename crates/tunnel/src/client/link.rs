//! A DCQUIC connection to the server, as the channel keeps it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weir_channel::{Link, Protocol};
use weir_net::{Connection, ConnectionError};

use crate::flows::Flows;
use crate::refusal::Refusal;
use crate::transport::APPLICATION_PROTOCOL;

/// New connections go elsewhere after this many probe timeouts without a packet from the server,
const SUSPICIOUS: u64 = 2;
/// and this time.
const SILENCE: Duration = Duration::from_millis(100);

/// The connections of a tunnel.
#[derive(Debug)]
pub(super) struct TunnelProtocol;

/// A connection. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub(super) struct TunnelLink {
    pub(super) connection: Connection,
    /// The UDP flows.
    pub(super) flows: Arc<Flows>,
    heard: Arc<Mutex<Heard>>,
    doubt: Arc<Doubt>,
}

/// A doubt whether packets pass, until one comes.
#[derive(Debug, Default)]
struct Doubt {
    /// The packets that had come when it began; none for a connection that is newer.
    packets: AtomicU64,
    is_probed: AtomicBool,
}

/// When the server was last heard of, as far as somebody asked.
#[derive(Debug)]
struct Heard {
    packets: u64,
    probe_timeouts: u64,
    at: Instant,
}

impl Protocol for TunnelProtocol {
    const APPLICATION_PROTOCOL: &'static [u8] = APPLICATION_PROTOCOL;
    type Link = TunnelLink;
    type Error = Infallible;

    async fn establish(&self, connection: Connection) -> Result<TunnelLink, Infallible> {
        let link = TunnelLink {
            connection,
            flows: Arc::default(),
            heard: Arc::new(Mutex::new(Heard {
                packets: 0,
                probe_timeouts: 0,
                at: Instant::now(),
            })),
            doubt: Arc::default(),
        };
        let (receiving, flows) = (link.connection.clone(), link.flows.clone());
        // Until the connection ends, which the server sees to where it drains.
        tokio::spawn(async move { flows.receive(&receiving).await });
        Ok(link)
    }
}

impl TunnelLink {
    /// Returns whether the server has been silent for several probe timeouts since the last time that
    /// this was asked: packets may not pass any more, which the connection itself notices only later.
    pub(super) fn is_suspicious(&self) -> bool {
        let stats = self.connection.stats();
        let (packets, timeouts) = (stats.totals.packets_received, stats.probe_timeouts);
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.packets != packets {
            *heard = Heard {
                packets,
                probe_timeouts: timeouts,
                at: Instant::now(),
            };
            return false;
        }
        timeouts >= heard.probe_timeouts + SUSPICIOUS && heard.at.elapsed() >= SILENCE
    }

    /// Begins a doubt: until [`TunnelLink::has_answered`] nobody knows whether packets pass.
    pub(super) fn begin_doubt(&self) {
        let packets = self.connection.stats().totals.packets_received;
        self.doubt.packets.store(packets, Ordering::Relaxed);
        self.doubt.is_probed.store(false, Ordering::Relaxed);
    }

    /// Returns whether a packet has come since the doubt began. Asks for one at the first time, by a stream that
    /// ends at once.
    pub(super) async fn has_answered(&self) -> bool {
        let packets = self.connection.stats().totals.packets_received;
        if packets > self.doubt.packets.load(Ordering::Relaxed) {
            return true;
        }
        if !self.doubt.is_probed.swap(true, Ordering::Relaxed)
            && let Ok((mut send, mut receive)) = self.connection.open_bi().await
        {
            let code = Refusal::Reset.code().into();
            // A connection that is over answers nothing.
            let _ = send.reset(code);
            receive.stop(code);
        }
        false
    }
}

impl Link for TunnelLink {
    fn is_usable(&self) -> bool {
        self.connection.takes_calls()
    }

    fn draining(&self) -> impl Future<Output = ()> + Send {
        self.connection.draining()
    }

    fn error(&self) -> Option<ConnectionError> {
        self.connection.error()
    }
}
