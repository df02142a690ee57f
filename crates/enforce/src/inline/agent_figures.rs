//! What SED's agent between two interfaces shows to Prometheus.

use std::sync::atomic::AtomicU64;

use weir_metrics::Registry;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::family::Family;
use weir_metrics::prometheus::gauge::Gauge;
use weir_sed::AgentCounters;

use super::{AgentCable, Counters};

type Total = Counter<u64, AtomicU64>;

/// A counter's name, what it means, and its value.
type Row = (
    &'static str,
    &'static str,
    fn(&AgentCounters, &Counters) -> u64,
);

const COUNTERS: [Row; 10] = [
    (
        "congested",
        "How often a queue became congested",
        |agent, _| agent.congested,
    ),
    (
        "lowered_windows",
        "Windows that were made smaller",
        |agent, _| agent.clamped,
    ),
    (
        "unknown_scales",
        "Windows that could not be made smaller, as their SYN was not seen",
        |agent, _| agent.unknown_scale,
    ),
    (
        "window_updates",
        "Acknowledgments made for stopped flows",
        |agent, _| agent.updates,
    ),
    (
        "repeats",
        "Packets for which duplicate acknowledgments were made",
        |agent, _| agent.repeats,
    ),
    (
        "forged",
        "FINs and resets whose flow is somewhere else",
        |agent, _| agent.forged,
    ),
    (
        "expired_leases",
        "How often all windows were released as no controller was heard of",
        |agent, _| agent.expired,
    ),
    (
        "refused_connections",
        "Connections without room, which pass",
        |agent, _| agent.connections.refused,
    ),
    ("frames", "Frames that came in", |_, cable| cable.frames),
    (
        "undeliverable_frames",
        "Frames that the other interface had no room for, that were too long for it, or came while it was down",
        |_, cable| cable.full + cable.too_long + cable.down,
    ),
];

/// An interface's name, as Prometheus gets it.
type Label = Vec<(&'static str, String)>;

/// The metrics of an agent.
#[derive(Clone, Debug)]
pub struct AgentFigures {
    counters: Vec<(Total, Row)>,
    overrun: Total,
    queued: Family<Label, Gauge>,
    dropped: Family<Label, Total>,
}

impl AgentFigures {
    /// Registers them, for two interfaces.
    pub fn register(registry: &Registry, interfaces: &[String; 2]) -> Self {
        let figures = registry.shared(|registry| {
            let registry = registry.sub_registry_with_prefix("weir_sed_agent");
            let counters = COUNTERS.iter().map(|row| {
                let counter = Total::default();
                registry.register(row.0, row.1, counter.clone());
                (counter, *row)
            });
            let figures = Self {
                counters: counters.collect(),
                overrun: Total::default(),
                queued: Family::default(),
                dropped: Family::default(),
            };
            let help = "Frames lost before they were read";
            registry.register("overrun_frames", help, figures.overrun.clone());
            let help = "Bytes that wait for an interface";
            registry.register("queued_bytes", help, figures.queued.clone());
            let help = "Packets that its queue had no room for";
            registry.register("dropped_packets", help, figures.dropped.clone());
            figures
        });
        for name in interfaces {
            drop(figures.queued.get_or_create(&label(name)));
            drop(figures.dropped.get_or_create(&label(name)));
        }
        figures
    }

    /// Brings them up to date.
    pub(super) fn set(&self, cable: &AgentCable) {
        let (agent, passed) = (cable.agent_counters(), cable.counters());
        for (counter, (.., value)) in &self.counters {
            raise(counter, value(&agent, &passed));
        }
        raise(&self.overrun, cable.overrun());
        for (name, waiting, counters) in cable.queues() {
            let bytes = i64::try_from(waiting.size.bytes()).unwrap_or(i64::MAX);
            self.queued.get_or_create(&label(name)).set(bytes);
            let dropped = counters.dropped.total().packets;
            raise(&self.dropped.get_or_create(&label(name)), dropped);
        }
    }
}

fn raise(counter: &Total, value: u64) {
    counter.inc_by(value.saturating_sub(counter.get()));
}

fn label(interface: &str) -> Label {
    vec![("interface", interface.to_owned())]
}
