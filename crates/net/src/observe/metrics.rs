//! An endpoint's figures for Prometheus.
//!
//! Each connection has an observer that adds what its engine counted since the last time, so that
//! nothing is counted twice and closed connections leave their counts behind.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

use weir_metrics::Registry;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::family::Family;
use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::prometheus::histogram::{Histogram, exponential_buckets};
use weir_metrics::prometheus::{self, Unit};
use weir_quic::observe::{Interest, Metrics, Observation, Observer, Phase, Totals};
use weir_quic::{ConnectionError, PathEvent, PathId, Side};
use weir_units::{Duration, Time};

use crate::shared::Shared;
use crate::stats::EndpointStats;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// From 10 µs, the round trip of a rack, to 1.3 s.
fn round_trips() -> Histogram {
    Histogram::new(exponential_buckets(10e-6, 2.0, 18))
}

/// The metrics of all endpoints of a process; the label `endpoint` tells them apart.
#[derive(Clone)]
struct Families {
    open: Gauges,
    begun: Counters,
    closed: Counters,
    handshakes_failed: Counters,
    handshake: Histograms,
    datagrams: Counters,
    payload: Counters,
    packets: Counters,
    dropped: Counters,
    lost: Counters,
    spurious: Counters,
    retransmitted: Counters,
    ce_marks: Counters,
    congestion_events: Counters,
    probe_timeouts: Counters,
    black_holes: Counters,
    key_updates: Counters,
    rtt: Histograms,
    moves: Counters,
    decisions: Counters,
    buffers: Gauges,
    replies: Counters,
    unroutable: Counters,
    batches: Counters,
    spinning: Family<Labels, Counter<f64>>,
    qlog_lost: Counters,
}

impl Families {
    fn register(registry: &mut prometheus::Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("weir");
        let mut counter = |name: &str, help: &str| {
            let family = Counters::default();
            registry.register(name, help, family.clone());
            family
        };
        let begun = counter("connections", "Connections begun, by side");
        let closed = counter("connections_closed", "Connections that are over, by cause");
        let handshakes_failed = counter(
            "handshakes_failed",
            "Connections that were over before their handshake was complete, by cause",
        );
        let datagrams = counter("datagrams", "UDP datagrams of connections, by direction");
        let packets = counter("packets", "QUIC packets, by direction");
        let dropped = counter("packets_dropped", "Packets received and dropped");
        let lost = counter("packets_lost", "Packets declared lost");
        let spurious = counter(
            "spurious_losses",
            "Packets acknowledged after they had been declared lost",
        );
        let ce_marks = counter("ce_marks", "Packets sent that arrived with a CE mark");
        let congestion_events = counter(
            "congestion_events",
            "Losses and marks that congestion controllers were told of",
        );
        let probe_timeouts = counter("probe_timeouts", "Expirations of the probe timeout");
        let black_holes = counter(
            "black_holes",
            "Paths that stopped carrying a packet size that was in use",
        );
        let key_updates = counter("key_updates", "Updates of 1-RTT keys");
        let moves = counter(
            "path_moves",
            "Moves of connections to another path, by cause",
        );
        let decisions = counter(
            "migration_decisions",
            "Moves that the migration monitor decided on, by cause",
        );
        let replies = counter("stateless_replies", "Answers without a connection, by kind");
        let unroutable = counter(
            "datagrams_unroutable",
            "Datagrams that belong to no connection and begin none",
        );
        let batches = counter(
            "receive_batches",
            "Receive batches, each of one system call",
        );
        let qlog_lost = counter("qlog_events_lost", "Events that qlog files could not take");
        let mut bytes = |name: &str, help: &str| {
            let family = Counters::default();
            registry.register_with_unit(name, help, Unit::Bytes, family.clone());
            family
        };
        let payload = bytes("udp_payload", "UDP payload of connections, by direction");
        let retransmitted = bytes(
            "retransmitted",
            "Stream and handshake data that had to be sent again",
        );
        let mut histogram = |name: &str, help: &str| {
            let family = Histograms::new_with_constructor(round_trips);
            registry.register_with_unit(name, help, Unit::Seconds, family.clone());
            family
        };
        let rtt = histogram(
            "rtt",
            "Round-trip times, one sample per receive batch at most",
        );
        let handshake = histogram("handshake", "How long handshakes took");
        let spinning = Family::default();
        let help = "Time spent looking for replies instead of sleeping";
        registry.register_with_unit("spinning", help, Unit::Seconds, spinning.clone());
        let open = Gauges::default();
        let help = "Connections that are not forgotten yet";
        registry.register("connections_open", help, open.clone());
        let buffers = Gauges::default();
        let help = "What the kernel granted for each socket's buffer, by direction";
        registry.register_with_unit("socket_buffer", help, Unit::Bytes, buffers.clone());
        Self {
            open,
            begun,
            closed,
            handshakes_failed,
            handshake,
            datagrams,
            payload,
            packets,
            dropped,
            lost,
            spurious,
            retransmitted,
            ce_marks,
            congestion_events,
            probe_timeouts,
            black_holes,
            key_updates,
            rtt,
            moves,
            decisions,
            buffers,
            replies,
            unroutable,
            batches,
            spinning,
            qlog_lost,
        }
    }
}

/// One endpoint's metrics. Those that packets change are looked up once.
pub(super) struct EndpointMetrics {
    families: Families,
    endpoint: String,
    open: Gauge,
    datagrams: [Counter; 2],
    payload: [Counter; 2],
    packets: [Counter; 2],
    dropped: Counter,
    lost: Counter,
    spurious: Counter,
    retransmitted: Counter,
    ce_marks: Counter,
    congestion_events: Counter,
    probe_timeouts: Counter,
    black_holes: Counter,
    key_updates: Counter,
    rtt: Histogram,
    handshake: Histogram,
}

impl EndpointMetrics {
    pub(super) fn register(registry: &Registry, local: SocketAddr) -> Arc<Self> {
        let families = registry.shared(Families::register);
        let endpoint = local.to_string();
        let labels: Labels = vec![("endpoint", endpoint.clone())];
        let one = |family: &Counters| family.get_or_create_owned(&labels);
        let both = |family: &Counters| {
            ["sent", "received"].map(|direction| {
                let mut labels = labels.clone();
                labels.push(("direction", direction.to_owned()));
                family.get_or_create_owned(&labels)
            })
        };
        Arc::new(Self {
            open: families.open.get_or_create_owned(&labels),
            datagrams: both(&families.datagrams),
            payload: both(&families.payload),
            packets: both(&families.packets),
            dropped: one(&families.dropped),
            lost: one(&families.lost),
            spurious: one(&families.spurious),
            retransmitted: one(&families.retransmitted),
            ce_marks: one(&families.ce_marks),
            congestion_events: one(&families.congestion_events),
            probe_timeouts: one(&families.probe_timeouts),
            black_holes: one(&families.black_holes),
            key_updates: one(&families.key_updates),
            rtt: families.rtt.get_or_create_owned(&labels),
            handshake: families.handshake.get_or_create_owned(&labels),
            endpoint,
            families,
        })
    }

    pub(super) fn observer(metrics: &Arc<Self>) -> Box<dyn Observer> {
        Box::new(Counting {
            metrics: metrics.clone(),
            began: None,
            is_complete: false,
            is_closed: false,
            counted: Totals::default(),
            sampled: (PathId::FIRST, 0),
        })
    }

    /// Has what the endpoint counts by itself brought up to date before each scrape.
    pub(super) fn follow(self: &Arc<Self>, registry: &Registry, shared: &Arc<Shared>) {
        let buffers = shared.sockets.buffers();
        let sizes = [("receive", buffers.receive), ("send", buffers.send)];
        for (direction, size) in sizes {
            let labels = self.labels("direction", direction);
            let size = i64::try_from(size.bytes()).unwrap_or(i64::MAX);
            self.families.buffers.get_or_create_owned(&labels).set(size);
        }
        let (metrics, shared) = (self.clone(), Arc::downgrade(shared));
        let counted = Cell::new(EndpointStats::default());
        registry.before_scrape(move || {
            let Some(shared) = shared.upgrade() else {
                return false;
            };
            let stats = EndpointStats::of(&shared);
            metrics.add_stats(&stats, &counted.replace(stats));
            true
        });
    }

    fn add_stats(&self, is: &EndpointStats, was: &EndpointStats) {
        let labels: Labels = vec![("endpoint", self.endpoint.clone())];
        let families = &self.families;
        let counts = [
            (
                &families.unroutable,
                is.datagrams_unroutable - was.datagrams_unroutable,
            ),
            (&families.batches, is.receive_batches - was.receive_batches),
            (
                &families.qlog_lost,
                is.qlog_events_lost - was.qlog_events_lost,
            ),
        ];
        for (family, count) in counts {
            family.get_or_create_owned(&labels).inc_by(count);
        }
        let (now, before) = (&is.replies, &was.replies);
        let replies = [
            ("retry", now.retries - before.retries),
            (
                "version-negotiation",
                now.version_negotiations - before.version_negotiations,
            ),
            (
                "stateless-reset",
                now.stateless_resets - before.stateless_resets,
            ),
            ("refusal", now.refusals - before.refusals),
        ];
        for (kind, count) in replies {
            let labels = self.labels("kind", kind);
            families.replies.get_or_create_owned(&labels).inc_by(count);
        }
        let spinning = (is.spinning - was.spinning).as_secs_f64();
        families
            .spinning
            .get_or_create_owned(&labels)
            .inc_by(spinning);
    }

    fn labels(&self, name: &'static str, value: &str) -> Labels {
        vec![
            ("endpoint", self.endpoint.clone()),
            (name, value.to_owned()),
        ]
    }

    fn count(&self, family: &Counters, label: &'static str, value: &str) {
        family.get_or_create_owned(&self.labels(label, value)).inc();
    }

    /// Adds what was counted since.
    fn add(&self, is: &Totals, was: &Totals) {
        let [sent, received] = &self.datagrams;
        sent.inc_by(is.datagrams_sent - was.datagrams_sent);
        received.inc_by(is.datagrams_received - was.datagrams_received);
        let [sent, received] = &self.payload;
        sent.inc_by((is.bytes_sent - was.bytes_sent).bytes());
        received.inc_by((is.bytes_received - was.bytes_received).bytes());
        let [sent, received] = &self.packets;
        sent.inc_by(is.packets_sent - was.packets_sent);
        received.inc_by(is.packets_received - was.packets_received);
        self.dropped
            .inc_by(is.packets_dropped - was.packets_dropped);
        self.lost.inc_by(is.packets_lost - was.packets_lost);
        self.spurious
            .inc_by(is.spurious_losses - was.spurious_losses);
        self.retransmitted
            .inc_by((is.bytes_retransmitted - was.bytes_retransmitted).bytes());
        self.ce_marks.inc_by(is.ce_marks - was.ce_marks);
        self.congestion_events
            .inc_by(is.congestion_events - was.congestion_events);
        self.probe_timeouts
            .inc_by(is.probe_timeouts - was.probe_timeouts);
        self.black_holes.inc_by(is.black_holes - was.black_holes);
    }
}

/// Counts one connection.
struct Counting {
    metrics: Arc<EndpointMetrics>,
    /// When it began; `None` before.
    began: Option<Time>,
    is_complete: bool,
    is_closed: bool,
    /// What has been added already.
    counted: Totals,
    /// The path in use, and how many of its round-trip times were seen.
    sampled: (PathId, u64),
}

impl Counting {
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

impl Observer for Counting {
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
            Observation::Metrics(news) => self.add(news),
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

impl Drop for Counting {
    fn drop(&mut self) {
        if self.began.is_some() {
            self.metrics.open.dec();
            if !self.is_closed {
                self.end("abandoned");
            }
        }
    }
}

/// A stable name.
fn cause(error: &ConnectionError) -> &'static str {
    match error {
        ConnectionError::HandshakeTimeout(_) => "handshake-timeout",
        ConnectionError::IdleTimeout(_) => "idle-timeout",
        ConnectionError::Transport(_) => "error",
        ConnectionError::PeerTransport { .. } => "peer-error",
        ConnectionError::PeerApplication { .. } => "peer-closed",
        ConnectionError::Local => "closed",
        ConnectionError::NoCommonVersion { .. } => "no-common-version",
        ConnectionError::StatelessReset => "stateless-reset",
    }
}
