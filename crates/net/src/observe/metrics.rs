//! An endpoint's metrics for Prometheus.
//!
//! The observer of a connection adds the increments of its engine's counters, so that nothing is
//! counted twice and closed connections stay in the sums.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use weir_metrics::Registration;
pub(crate) use weir_metrics::Registry;
use weir_metrics::prometheus::Unit;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::family::Family;
use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::prometheus::histogram::{Histogram, exponential_buckets};
use weir_quic::observe::{Interest, Metrics, Observation, Observer, Phase, Totals};
use weir_quic::{ConnectionError, PathEvent, PathId, Side};
use weir_units::{Duration, Time};

use crate::dcquic::Shared;
use crate::stats::EndpointStats;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Spans = Family<Labels, Counter<f64>>;
type Gauges = Family<Labels, Gauge>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// Buckets from 10 µs, the RTT of a rack, to 1.3 s.
fn round_trips() -> Histogram {
    Histogram::new(exponential_buckets(10e-6, 2.0, 18))
}

/// Declares the metrics: field, type, label besides `endpoint`, name, unit where there is one, and help.
macro_rules! families {
    ($($field:ident: $type:ident $(by $label:literal)?, $name:literal, $($unit:ident,)? $help:literal;)*) => {
        /// The metrics of all endpoints of a process; the label `endpoint` distinguishes them.
        #[derive(Clone)]
        struct Families {
            $($field: $type,)*
        }

        impl Families {
            fn register(registration: &mut Registration<'_>) -> Self {
                let mut registration = registration.with_prefix("weir");
                $(
                    let $field = families!(@new $type);
                    families!(@register registration, $field, $name, ["endpoint" $(, $label)?], $($unit,)? $help);
                )*
                Self { $($field,)* }
            }
        }
    };
    (@new Histograms) => { Histograms::new_with_constructor(round_trips) };
    (@new $type:ident) => { $type::default() };
    (@register $to:ident, $field:ident, $name:literal, [$($label:literal),*], $help:literal) => {
        $to.register($name, $help, &[$($label),*], $field.clone());
    };
    (@register $to:ident, $field:ident, $name:literal, [$($label:literal),*], $unit:ident, $help:literal) => {
        $to.register_with_unit($name, $help, Unit::$unit, &[$($label),*], $field.clone());
    };
}

families! {
    begun: Counters by "side", "connections", "Connections begun, by side";
    closed: Counters by "cause", "connections_closed", "Connections that are over, by cause";
    handshakes_failed: Counters by "cause", "handshakes_failed",
        "Connections that were over before their handshake was complete, by cause";
    datagrams: Counters by "direction", "datagrams", "UDP datagrams of connections, by direction";
    packets: Counters by "direction", "packets", "QUIC packets, by direction";
    dropped: Counters, "packets_dropped", "Packets received and dropped";
    lost: Counters, "packets_lost", "Packets declared lost";
    spurious: Counters, "spurious_losses", "Packets acknowledged after they had been declared lost";
    ce_marks: Counters, "ce_marks", "Packets sent that arrived with a CE mark";
    congestion_events: Counters, "congestion_events",
        "Losses and marks that congestion controllers were told of";
    probe_timeouts: Counters, "probe_timeouts", "Expirations of the probe timeout";
    black_holes: Counters, "black_holes", "Paths that stopped carrying a packet size that was in use";
    key_updates: Counters, "key_updates", "Updates of 1-RTT keys";
    moves: Counters by "cause", "path_moves", "Moves of connections to another path, by cause";
    decisions: Counters by "cause", "migration_decisions",
        "Moves that the migration monitor decided on, by cause";
    replies: Counters by "kind", "stateless_replies", "Answers without a connection, by kind";
    tls_reloads: Counters by "result", "tls_reloads",
        "Times that certificates, keys or lists were read from their files again, by result";
    client_limits: Counters, "client_limit_refusals",
        "Connections refused as their client or its network has too many";
    known_connections: Counters, "known_peer_connections",
        "Connections that clients began without a handshake";
    known_replays: Counters, "known_peer_replays",
        "First packets refused because their key was used or is too old";
    known_evictions: Counters, "known_peer_evictions",
        "Secrets of clients removed to make room";
    datagrams_dropped: Counters, "datagrams_dropped",
        "Datagrams that the sockets' receive buffers had no room for";
    unroutable: Counters, "datagrams_unroutable",
        "Datagrams that belong to no connection and begin none";
    forwarded: Counters, "datagrams_forwarded",
        "Datagrams that an engine received for another one";
    failed_calls: Counters, "calls_failed", "Calls whose handler panicked";
    without_socket: Counters, "datagrams_without_socket",
        "Datagrams lost as there was no socket to send them by";
    batches: Counters, "receive_batches", "Receive batches, each of one system call";
    qlog_lost: Counters, "qlog_events_lost", "Events that qlog files could not take";
    payload: Counters by "direction", "udp_payload", Bytes, "UDP payload of connections, by direction";
    retransmitted: Counters, "retransmitted", Bytes,
        "Stream and handshake data that had to be sent again";
    rtt: Histograms, "rtt", Seconds, "Round-trip times, one sample per receive batch at most";
    handshake: Histograms, "handshake", Seconds, "How long handshakes took";
    spinning: Spans, "spinning", Seconds, "Time spent looking for replies instead of sleeping";
    open: Gauges, "connections_open", "Connections that are not forgotten yet";
    buffers: Gauges by "direction", "socket_buffer", Bytes,
        "What the kernel granted for each socket's buffer, by direction";
}

/// A series: its metric, its label besides `endpoint`, and the accessor of its value in a `Source`.
type Series<'f, Source> = (
    &'f Counters,
    Option<(&'static str, &'static str)>,
    fn(&Source) -> u64,
);

/// Registers the metrics of endpoints, as the first endpoint with this registry does.
pub fn register_metrics(registry: &Registry) {
    registry.shared(Families::register);
}

impl Families {
    /// Returns the series that engines count per connection.
    fn of_connections(&self) -> [Series<'_, Totals>; 14] {
        let sent = Some(("direction", "sent"));
        let received = Some(("direction", "received"));
        [
            (&self.datagrams, sent, |is| is.datagrams_sent),
            (&self.datagrams, received, |is| is.datagrams_received),
            (&self.payload, sent, |is| is.bytes_sent.bytes()),
            (&self.payload, received, |is| is.bytes_received.bytes()),
            (&self.packets, sent, |is| is.packets_sent),
            (&self.packets, received, |is| is.packets_received),
            (&self.dropped, None, |is| is.packets_dropped),
            (&self.lost, None, |is| is.packets_lost),
            (&self.spurious, None, |is| is.spurious_losses),
            (&self.retransmitted, None, |is| {
                is.bytes_retransmitted.bytes()
            }),
            (&self.ce_marks, None, |is| is.ce_marks),
            (&self.congestion_events, None, |is| is.congestion_events),
            (&self.probe_timeouts, None, |is| is.probe_timeouts),
            (&self.black_holes, None, |is| is.black_holes),
        ]
    }

    /// Returns the series that the endpoint counts itself.
    fn of_endpoint(&self) -> [Series<'_, EndpointStats>; 18] {
        let kind = |kind| Some(("kind", kind));
        let result = |result| Some(("result", result));
        [
            (&self.datagrams_dropped, None, |is| is.datagrams_dropped),
            (&self.unroutable, None, |is| is.datagrams_unroutable),
            (&self.forwarded, None, |is| is.datagrams_forwarded),
            (&self.failed_calls, None, |is| is.calls_failed),
            (&self.without_socket, None, |is| is.datagrams_without_socket),
            (&self.batches, None, |is| is.receive_batches),
            (&self.qlog_lost, None, |is| is.qlog_events_lost),
            (&self.replies, kind("retry"), |is| is.replies.retries),
            (&self.replies, kind("version-negotiation"), |is| {
                is.replies.version_negotiations
            }),
            (&self.replies, kind("stateless-reset"), |is| {
                is.replies.stateless_resets
            }),
            (&self.replies, kind("refusal"), |is| is.replies.refusals),
            (&self.replies, kind("known-peer-refusal"), |is| {
                is.replies.known_peer_refusals
            }),
            (&self.client_limits, None, |is| {
                is.replies.client_limit_refusals
            }),
            (&self.tls_reloads, result("changed"), |is| {
                is.tls_reloads.changes
            }),
            (&self.tls_reloads, result("failed"), |is| {
                is.tls_reloads.failures
            }),
            (&self.known_connections, None, |is| {
                is.known_clients.accepted
            }),
            (&self.known_replays, None, |is| is.known_clients.replays),
            (&self.known_evictions, None, |is| is.known_clients.evicted),
        ]
    }
}

/// Accessor of one of the engine's counters.
type Total = fn(&Totals) -> u64;

/// One endpoint's metrics. Those that packets change are looked up once.
pub(super) struct EndpointMetrics {
    families: Families,
    endpoint: String,
    open: Gauge,
    /// The engine's counters.
    totals: Vec<(Counter, Total)>,
    key_updates: Counter,
    rtt: Histogram,
    handshake: Histogram,
}

impl EndpointMetrics {
    pub(super) fn register(registry: &Registry, local: SocketAddr) -> Arc<Self> {
        let families = registry.shared(Families::register);
        let endpoint = local.to_string();
        let endpoint_alone = labels(&endpoint, None);
        let totals = families.of_connections().map(|(family, label, value)| {
            let counter = family.get_or_create_owned(&labels(&endpoint, label));
            (counter, value)
        });
        Arc::new(Self {
            open: families.open.get_or_create_owned(&endpoint_alone),
            totals: totals.into(),
            key_updates: families.key_updates.get_or_create_owned(&endpoint_alone),
            rtt: families.rtt.get_or_create_owned(&endpoint_alone),
            handshake: families.handshake.get_or_create_owned(&endpoint_alone),
            endpoint,
            families,
        })
    }

    pub(super) fn observer(metrics: &Arc<Self>) -> Box<dyn Observer> {
        Box::new(MetricsObserver {
            metrics: metrics.clone(),
            began: None,
            is_complete: false,
            is_closed: false,
            counted: Totals::default(),
            sampled: (PathId::FIRST, 0),
        })
    }

    /// Updates the endpoint's own counters before each scrape, and when the endpoint ends.
    pub(super) fn follow(self: &Arc<Self>, registry: &Registry, shared: &Arc<Shared>) {
        let buffers = shared.sockets.buffers();
        let sizes = [("receive", buffers.receive), ("send", buffers.send)];
        for (direction, size) in sizes {
            let labels = self.labels(Some(("direction", direction)));
            let size = i64::try_from(size.bytes()).unwrap_or(i64::MAX);
            self.families.buffers.get_or_create_owned(&labels).set(size);
        }
        let (metrics, counted) = (self.clone(), Mutex::new(EndpointStats::default()));
        let update = Arc::new(move |shared: &Shared| {
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            let stats = EndpointStats::of(shared);
            metrics.add_stats(&stats, &counted);
            *counted = stats;
        });
        let last = update.clone();
        // An endpoint has one set of metrics, so that this is the first call.
        let _ = (shared.settings.add_last_stats).set(Box::new(move |shared| last(shared)));
        let shared = Arc::downgrade(shared);
        registry.before_scrape(move || {
            let shared = shared.upgrade();
            shared.inspect(|shared| update(shared)).is_some()
        });
    }

    fn add_stats(&self, is: &EndpointStats, was: &EndpointStats) {
        for (family, label, value) in self.families.of_endpoint() {
            let counter = family.get_or_create_owned(&self.labels(label));
            counter.inc_by(value(is) - value(was));
        }
        let spinning = (is.spinning - was.spinning).as_secs_f64();
        let spun = self
            .families
            .spinning
            .get_or_create_owned(&self.labels(None));
        spun.inc_by(spinning);
    }

    fn labels(&self, label: Option<(&'static str, &str)>) -> Labels {
        labels(&self.endpoint, label)
    }

    fn count(&self, family: &Counters, label: &'static str, value: &str) {
        family
            .get_or_create_owned(&self.labels(Some((label, value))))
            .inc();
    }

    /// Adds the increments.
    fn add(&self, is: &Totals, was: &Totals) {
        for (counter, value) in &self.totals {
            counter.inc_by(value(is) - value(was));
        }
    }
}

/// Returns the label `endpoint`, and one more.
fn labels(endpoint: &str, label: Option<(&'static str, &str)>) -> Labels {
    let label = label.map(|(name, value)| (name, value.to_owned()));
    let endpoint = ("endpoint", endpoint.to_owned());
    std::iter::once(endpoint).chain(label).collect()
}

/// Counts one connection's events.
struct MetricsObserver {
    metrics: Arc<EndpointMetrics>,
    /// When the connection began; `None` before.
    began: Option<Time>,
    is_complete: bool,
    is_closed: bool,
    /// The counts that have been added already.
    counted: Totals,
    /// The path in use, and how many of its RTT samples were read.
    sampled: (PathId, u64),
}

impl MetricsObserver {
    fn begin(&mut self, now: Time, side: Side) {
        self.began = Some(now);
        self.metrics.open.inc();
        let side = match side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let metrics = &self.metrics;
        metrics.count(&metrics.families.begun, "side", side);
    }

    fn end(&mut self, cause: &str) {
        self.is_closed = true;
        let (metrics, families) = (&self.metrics, &self.metrics.families);
        metrics.count(&families.closed, "cause", cause);
        if !self.is_complete {
            metrics.count(&families.handshakes_failed, "cause", cause);
        }
    }

    fn add(&mut self, metrics: &Metrics) {
        self.metrics.add(&metrics.totals, &self.counted);
        self.counted = metrics.totals;
        let (path, seen) = self.sampled;
        let seen = if path == metrics.path { seen } else { 0 };
        if metrics.rtt_samples > seen {
            self.metrics.rtt.observe(metrics.latest_rtt.as_secs_f64());
        }
        self.sampled = (metrics.path, metrics.rtt_samples);
    }
}

impl Observer for MetricsObserver {
    fn interest(&self) -> Interest {
        Interest::Changes
    }

    fn on_event(&mut self, now: Time, event: &Observation<'_>) {
        let (metrics, families) = (&self.metrics, &self.metrics.families);
        match event {
            Observation::Started(subject) => self.begin(now, subject.side),
            Observation::Phase(Phase::HandshakeComplete) => {
                self.is_complete = true;
                let took = self.began.map_or(Duration::ZERO, |began| now.since(began));
                metrics.handshake.observe(took.as_secs_f64());
            }
            Observation::Metrics(metrics) => self.add(metrics),
            Observation::KeysUpdated { .. } => {
                metrics.key_updates.inc();
            }
            Observation::Path(PathEvent::Moved { cause, .. }, _) => {
                metrics.count(&families.moves, "cause", cause.name());
            }
            Observation::Moving(decision) => {
                metrics.count(&families.decisions, "cause", decision.cause.name());
            }
            Observation::Closed(error) => self.end(cause(error)),
            _ => {}
        }
    }
}

impl Drop for MetricsObserver {
    fn drop(&mut self) {
        if self.began.is_some() {
            self.metrics.open.dec();
            if !self.is_closed {
                self.end("abandoned");
            }
        }
    }
}

/// Returns a stable label value.
fn cause(error: &ConnectionError) -> &'static str {
    match error {
        ConnectionError::HandshakeTimeout(_) => "handshake-timeout",
        ConnectionError::IdleTimeout(_) => "idle-timeout",
        ConnectionError::PeerSilent { .. } => "peer-silent",
        ConnectionError::PeerUnreachable { .. } => "peer-unreachable",
        ConnectionError::Transport(_) => "error",
        ConnectionError::PeerTransport { .. } => "peer-error",
        ConnectionError::PeerApplication { .. } => "peer-closed",
        ConnectionError::Local => "closed",
        ConnectionError::NoCommonVersion { .. } => "no-common-version",
        ConnectionError::StatelessReset => "stateless-reset",
        ConnectionError::Refused { .. } => "refused",
        ConnectionError::KnownPeerRefused { .. } => "known-peer-refused",
    }
}
