//! The Prometheus metrics of SED's agent between two interfaces.

use weir_fabric::{PacketCount, StageCounters as PipeCounters};
use weir_metrics::{Registry, Row, SeriesRow, SeriesTable, Table, Timestamp};
use weir_sed::AgentCounters;

use crate::bypass::BypassCounts;
use crate::operation::{FrameMetrics, InterfaceFrames};

/// The counters of the agent and its bypass.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentCounts {
    pub(super) agent: AgentCounters,
    /// The counters of the bypass, if one is armed.
    pub(super) bypass: Option<BypassCounts>,
}

static COUNTERS: [Row<AgentCounts>; 12] = [
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
        "policed_packets",
        "Packets dropped as their sender exceeded its window",
        |counted| counted.agent.policed,
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
];

/// The egress queue of an interface.
#[derive(Clone, Debug)]
pub(super) struct InterfaceCounts {
    pub(super) name: String,
    /// What waits.
    pub(super) waiting: PacketCount,
    pub(super) counters: PipeCounters,
}

static INTERFACE_ROWS: [SeriesRow<InterfaceCounts>; 2] = [
    SeriesRow::gauge("queued_bytes", "Bytes that wait for an interface", |of| {
        of.waiting.size.bytes()
    }),
    SeriesRow::counter(
        "dropped_packets",
        "Packets that the queue of an interface had no room for",
        |of| of.counters.dropped.total().packets,
    ),
];

/// The metrics of an agent.
#[derive(Clone, Debug)]
pub(super) struct AgentMetrics {
    counters: Table<AgentCounts>,
    interfaces: SeriesTable<InterfaceCounts>,
    frames: FrameMetrics,
    step: Timestamp,
}

/// Registers the metrics of SED's agents between two interfaces, as the first one with this registry does.
pub fn register_agent_metrics(registry: &Registry) {
    AgentMetrics::register(registry);
}

impl AgentMetrics {
    /// Registers the metrics.
    pub(super) fn register(registry: &Registry) -> Self {
        registry.shared(|registration| {
            let mut registration = registration.with_prefix("weir_sed_agent");
            let name = |of: &InterfaceCounts| [of.name.clone()];
            Self {
                counters: Table::register(&mut registration, &COUNTERS),
                interfaces: SeriesTable::register(
                    &mut registration,
                    &["interface"],
                    name,
                    &INTERFACE_ROWS,
                ),
                frames: FrameMetrics::register(&mut registration),
                step: Timestamp::register(
                    &mut registration,
                    "last_step",
                    "When the agent last looked at its interfaces",
                ),
            }
        })
    }

    /// Updates the metrics.
    pub(super) fn set(
        &self,
        counted: &AgentCounts,
        interfaces: Vec<InterfaceCounts>,
        frames: Vec<InterfaceFrames>,
    ) {
        self.counters.set(counted);
        self.frames.set(frames);
        self.interfaces.set(interfaces);
        self.step.set_now();
    }
}
