//! The Prometheus metrics of SED's agent between two interfaces.

use std::sync::atomic::AtomicU64;

use weir_fabric::{PacketCount, StageCounters as PipeCounters};
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::family::Family;
use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::{Registry, Row, Table, raise};
use weir_sed::AgentCounters;

use super::InlineCounters;
use crate::operation::BypassCounts;

/// The counters of the agent and its cable.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentCounts {
    pub(super) agent: AgentCounters,
    pub(super) cable: InlineCounters,
    /// Frames lost before they were read.
    pub(super) overrun: u64,
    /// The counters of the bypass, if one is armed.
    pub(super) bypass: Option<BypassCounts>,
}

static COUNTERS: [Row<AgentCounts>; 15] = [
    Row::gauge(
        "fail_open",
        "Whether frames pass if the agent dies or hangs",
        |counted| counted.bypass.is_some().into(),
    ),
    Row::counter(
        "bypasses",
        "How often frames began to pass without the agent",
        |counted| counted.bypass.unwrap_or_default().times,
    ),
    Row::counter(
        "bypassed_frames",
        "Frames that passed without the agent",
        |counted| counted.bypass.unwrap_or_default().frames,
    ),
    Row::counter(
        "late_frames",
        "Frames dropped after the agent had paused",
        |counted| counted.cable.late,
    ),
    Row::counter(
        "congested",
        "How often a queue became congested",
        |counted| counted.agent.congested,
    ),
    Row::counter(
        "lowered_windows",
        "Windows that were made smaller",
        |counted| counted.agent.clamped,
    ),
    Row::counter(
        "unknown_scales",
        "Windows that could not be made smaller, as their SYN was not seen",
        |counted| counted.agent.unknown_scale,
    ),
    Row::counter(
        "window_updates",
        "Acknowledgments made for stopped flows",
        |counted| counted.agent.updates,
    ),
    Row::counter(
        "repeats",
        "Packets for which duplicate acknowledgments were made",
        |counted| counted.agent.repeats,
    ),
    Row::counter(
        "forged",
        "FINs and resets whose flow is somewhere else",
        |counted| counted.agent.forged,
    ),
    Row::counter(
        "expired_leases",
        "How often all windows were released as no controller was heard of",
        |counted| counted.agent.expired,
    ),
    Row::counter(
        "refused_connections",
        "Connections without room, which pass",
        |counted| counted.agent.connections.refused,
    ),
    Row::counter("frames", "Frames that came in", |counted| {
        counted.cable.frames
    }),
    Row::counter(
        "undeliverable_frames",
        "Frames that the other interface had no room for, that were too long for it, or came while it was down",
        |AgentCounts { cable, .. }| cable.full + cable.too_long + cable.down,
    ),
    Row::counter(
        "overrun_frames",
        "Frames lost before they were read",
        |counted| counted.overrun,
    ),
];

/// The label with an interface's name.
type Label = Vec<(&'static str, String)>;

/// The metrics of an agent.
#[derive(Clone, Debug)]
pub(super) struct AgentMetrics {
    counters: Table<AgentCounts>,
    queued: Family<Label, Gauge>,
    dropped: Family<Label, Counter<u64, AtomicU64>>,
}

impl AgentMetrics {
    /// Registers the metrics for two interfaces.
    pub(super) fn register(registry: &Registry, interfaces: &[String; 2]) -> Self {
        let metrics = registry.shared(|registry| {
            let registry = registry.sub_registry_with_prefix("weir_sed_agent");
            let metrics = Self {
                counters: Table::register(registry, &COUNTERS),
                queued: Family::default(),
                dropped: Family::default(),
            };
            let help = "Bytes that wait for an interface";
            registry.register("queued_bytes", help, metrics.queued.clone());
            let help = "Packets that its queue had no room for";
            registry.register("dropped_packets", help, metrics.dropped.clone());
            metrics
        });
        for name in interfaces {
            drop(metrics.queued.get_or_create(&label(name)));
            drop(metrics.dropped.get_or_create(&label(name)));
        }
        metrics
    }

    /// Updates the metrics from the counters, and for each interface from its queue length and the
    /// counters of its egress port.
    pub(super) fn set<'a>(
        &self,
        counted: &AgentCounts,
        queues: impl Iterator<Item = (&'a str, PacketCount, PipeCounters)>,
    ) {
        self.counters.set(counted);
        for (name, waiting, counters) in queues {
            let bytes = i64::try_from(waiting.size.bytes()).unwrap_or(i64::MAX);
            self.queued.get_or_create(&label(name)).set(bytes);
            let dropped = counters.dropped.total().packets;
            raise(&self.dropped.get_or_create(&label(name)), dropped);
        }
    }
}

fn label(interface: &str) -> Label {
    vec![("interface", interface.to_owned())]
}
