//! Metrics for Prometheus.

use std::sync::{Arc, Mutex, PoisonError};

use weir_metrics::{Registry, SeriesRow, SeriesTable};

use crate::counters::TunnelValues;
use crate::status::PeerStatus;

static TUNNELS: [SeriesRow<TunnelValues>; 9] = [
    SeriesRow::counter(
        "connections_dcquic",
        "Connections that a DCQUIC stream carried",
        |values| values.dcquic,
    ),
    SeriesRow::counter(
        "connections_tls",
        "Connections that TLS over TCP carried",
        |values| values.tls,
    ),
    SeriesRow::gauge("connections_open", "Connections that are open", |values| {
        values.open
    }),
    SeriesRow::counter(
        "connections_lost",
        "Connections that ended because the other end was lost",
        |values| values.lost,
    ),
    SeriesRow::counter("sent_bytes", "Bytes from TCP to the other end", |values| {
        values.sent
    }),
    SeriesRow::counter(
        "received_bytes",
        "Bytes from the other end to TCP",
        |values| values.received,
    ),
    SeriesRow::counter(
        "datagrams_sent",
        "UDP datagrams to the other end",
        |values| values.datagrams_sent,
    ),
    SeriesRow::counter(
        "datagrams_received",
        "UDP datagrams from the other end",
        |values| values.datagrams_received,
    ),
    SeriesRow::counter(
        "datagrams_dropped",
        "UDP datagrams that were too long or had no flow",
        |values| values.datagrams_dropped,
    ),
];

static REFUSALS: [SeriesRow<RefusalCount>; 1] = [SeriesRow::counter(
    "refused",
    "Connections that were refused or reset",
    |refusal| refusal.count,
)];

static PEERS: [SeriesRow<PeerStatus>; 3] = [
    SeriesRow::gauge(
        "fallback",
        "Whether new connections go by TLS over TCP",
        |peer| peer.falls_back.into(),
    ),
    SeriesRow::counter(
        "fallbacks",
        "Connections that went by TLS over TCP, as DCQUIC failed",
        |peer| peer.fallbacks,
    ),
    SeriesRow::gauge(
        "dcquic_connections",
        "DCQUIC connections that are ready",
        |peer| {
            let ready = peer.connections.iter();
            ready
                .filter(|connection| connection.state == "ready")
                .count() as u64
        },
    ),
];

#[derive(Debug)]
struct RefusalCount {
    tunnel: String,
    reason: String,
    count: u64,
}

type Source<T> = Box<dyn Fn() -> Option<Vec<T>> + Send>;

/// The metrics of the tunnels of a process.
#[derive(Clone)]
pub(crate) struct TunnelMetrics {
    tunnels: SeriesTable<TunnelValues>,
    refusals: SeriesTable<RefusalCount>,
    peers: SeriesTable<PeerStatus>,
    sources: Arc<Mutex<Vec<Source<TunnelValues>>>>,
}

/// Registers the metrics of `weir tunnel`, without values.
pub fn register_metrics(registry: &Registry) {
    TunnelMetrics::register(registry);
}

impl TunnelMetrics {
    fn register(registry: &Registry) -> Self {
        registry.shared(|registration| {
            let mut registration = registration.with_prefix("weir_tunnel");
            Self {
                tunnels: SeriesTable::register(
                    &mut registration,
                    &["tunnel"],
                    |values| [values.tunnel.clone()],
                    &TUNNELS,
                ),
                refusals: SeriesTable::register(
                    &mut registration,
                    &["tunnel", "reason"],
                    |refusal| [refusal.tunnel.clone(), refusal.reason.clone()],
                    &REFUSALS,
                ),
                peers: SeriesTable::register(
                    &mut registration,
                    &["server"],
                    |peer| [peer.server.clone()],
                    &PEERS,
                ),
                sources: Arc::default(),
            }
        })
    }

    /// Shows the values of tunnels until there are none any more.
    pub(crate) fn follow(
        registry: &Registry,
        values: impl Fn() -> Option<Vec<TunnelValues>> + Send + 'static,
    ) {
        let metrics = Self::register(registry);
        let sources = metrics.sources.clone();
        let mut followed = sources.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = followed.is_empty();
        followed.push(Box::new(values));
        drop(followed);
        // One hook for all: each would replace what the others have set.
        if is_first {
            registry.before_scrape(move || metrics.update());
        }
    }

    /// Returns whether there is something left to show.
    fn update(&self) -> bool {
        let mut tunnels = Vec::new();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| match source() {
            Some(values) => {
                tunnels.extend(values);
                true
            }
            None => false,
        });
        let is_followed = !sources.is_empty();
        drop(sources);
        let refusals = tunnels.iter().flat_map(|values| {
            values.refused.iter().map(|(reason, count)| RefusalCount {
                tunnel: values.tunnel.clone(),
                reason: reason.clone(),
                count: *count,
            })
        });
        self.refusals.set(refusals.collect());
        self.tunnels.set(tunnels);
        is_followed
    }

    /// Shows the state of servers until there is none any more.
    pub(crate) fn follow_peers(
        registry: &Registry,
        peers: impl Fn() -> Option<Vec<PeerStatus>> + Send + 'static,
    ) {
        let metrics = Self::register(registry);
        registry.before_scrape(move || match peers() {
            Some(peers) => {
                metrics.peers.set(peers);
                true
            }
            None => false,
        });
    }
}
