//! The Prometheus metrics of an enforcer.

use weir_metrics::{Registry, Row, Table};

use super::status::{InlineCounts, KernelCounts, Totals};

/// The metrics of an enforcer.
#[derive(Clone, Debug)]
pub struct EnforcerMetrics(Table<Totals>);

static GAUGES: [Row<Totals>; 1] = [Row::gauge(
    "weir_enforce_flows",
    "Flows that are controlled",
    |totals| totals.controlled,
)];

static COUNTERS: [Row<Totals>; 9] = [
    Row::counter(
        "weir_enforce_passed",
        "Flows left alone as the policy says",
        |totals| totals.passed,
    ),
    Row::counter(
        "weir_enforce_opened",
        "Connections that were seen to open",
        |totals| totals.opened,
    ),
    Row::counter(
        "weir_enforce_closed",
        "Connections whose end was seen",
        |totals| totals.closed,
    ),
    Row::counter(
        "weir_enforce_refused",
        "Connections without room, which pass",
        |totals| totals.refused,
    ),
    Row::counter(
        "weir_enforce_unknown_packets",
        "Packets of connections that are not followed",
        |totals| totals.unknown_packets,
    ),
    Row::counter(
        "weir_enforce_lowered_windows",
        "Receive windows lowered",
        |totals| totals.lowered,
    ),
    Row::counter(
        "weir_enforce_delivered_bytes",
        "Bytes of controlled flows that have arrived",
        |totals| totals.delivered,
    ),
    Row::counter(
        "weir_enforce_marked_bytes",
        "Bytes of controlled flows whose acknowledgments told of marks",
        |totals| totals.marked,
    ),
    Row::counter(
        "weir_enforce_sent_again_bytes",
        "Bytes of controlled flows that their senders sent again",
        |totals| totals.sent_again,
    ),
];

static KERNEL_COUNTERS: [Row<Totals>; 1] = [Row::counter(
    "weir_enforce_lost_reports",
    "Reports without room",
    |totals| kernel(totals).lost_reports,
)];

static IN_LINE_GAUGES: [Row<Totals>; 3] = [
    Row::gauge(
        "weir_enforce_fail_open",
        "Whether frames pass if the enforcer dies or hangs",
        |totals| in_line(totals).bypass.is_some().into(),
    ),
    Row::gauge(
        "weir_enforce_kept_packets",
        "Packets kept until they are acknowledged",
        |totals| in_line(totals).kept_packets,
    ),
    Row::gauge(
        "weir_enforce_kept_bytes",
        "Bytes kept until they are acknowledged",
        |totals| in_line(totals).kept_bytes,
    ),
];

static IN_LINE_COUNTERS: [Row<Totals>; 11] = [
    Row::counter(
        "weir_enforce_bypasses",
        "How often frames began to pass without the enforcer",
        |totals| in_line(totals).bypass.unwrap_or_default().times,
    ),
    Row::counter(
        "weir_enforce_bypassed_frames",
        "Frames that passed without the enforcer",
        |totals| in_line(totals).bypass.unwrap_or_default().frames,
    ),
    Row::counter(
        "weir_enforce_late_frames",
        "Frames dropped after the enforcer had paused",
        |totals| in_line(totals).late,
    ),
    Row::counter(
        "weir_enforce_masked_losses",
        "Lost segments sent again from here",
        |totals| in_line(totals).masked,
    ),
    Row::counter(
        "weir_enforce_timeouts",
        "Time-outs of flows with data on its way",
        |totals| in_line(totals).timeouts,
    ),
    Row::counter(
        "weir_enforce_unkept_segments",
        "Segments of which no copy was kept",
        |totals| in_line(totals).unkept,
    ),
    Row::counter("weir_enforce_frames", "Frames that came in", |totals| {
        in_line(totals).frames
    }),
    Row::counter(
        "weir_enforce_untouched_frames",
        "Frames that are not IP, or malformed: passed as they came",
        |totals| in_line(totals).untouched,
    ),
    Row::counter(
        "weir_enforce_overrun_frames",
        "Frames lost before they were read",
        |totals| in_line(totals).overrun,
    ),
    Row::counter(
        "weir_enforce_full_frames",
        "Frames that the other interface had no room for",
        |totals| in_line(totals).full,
    ),
    Row::counter(
        "weir_enforce_undeliverable_frames",
        "Frames for an interface that was down, or takes no frames so long",
        |totals| in_line(totals).down + in_line(totals).too_long,
    ),
];

fn kernel(totals: &Totals) -> KernelCounts {
    totals.kernel.unwrap_or_default()
}

fn in_line(totals: &Totals) -> InlineCounts {
    totals.in_line.unwrap_or_default()
}

impl EnforcerMetrics {
    /// Registers the metrics that an enforcer with such totals has.
    pub fn register(registry: &Registry, totals: &Totals) -> Self {
        fn rows(part: bool, rows: &'static [Row<Totals>]) -> &'static [Row<Totals>] {
            if part { rows } else { &[] }
        }
        let (kernel, in_line) = (totals.kernel.is_some(), totals.in_line.is_some());
        let rows = (GAUGES.iter())
            .chain(rows(in_line, &IN_LINE_GAUGES))
            .chain(&COUNTERS)
            .chain(rows(kernel, &KERNEL_COUNTERS))
            .chain(rows(in_line, &IN_LINE_COUNTERS));
        registry.shared(|registry| Self(Table::register(registry, rows)))
    }

    /// Updates the metrics.
    pub(crate) fn set(&self, totals: &Totals) {
        self.0.set(totals);
    }
}
