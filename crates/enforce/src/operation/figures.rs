//! What is shown to Prometheus.

use std::sync::atomic::AtomicU64;

use weir_metrics::Registry;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::gauge::Gauge;

use super::status::{InLine, Kernel, Totals};

/// The metrics of an enforcer.
#[derive(Clone, Debug)]
pub struct Figures {
    gauges: Vec<(Gauge, Value)>,
    counters: Vec<(Counter<u64, AtomicU64>, Value)>,
}

/// Where a metric's value is.
type Value = fn(&Totals) -> u64;

/// A metric's name, what it means, and its value.
type Row = (&'static str, &'static str, Value);

const GAUGES: [Row; 1] = [(
    "weir_enforce_flows",
    "Flows that are controlled",
    |totals| totals.controlled,
)];

const COUNTERS: [Row; 9] = [
    (
        "weir_enforce_passed",
        "Flows left alone as the policy says",
        |totals| totals.passed,
    ),
    (
        "weir_enforce_opened",
        "Connections that were seen to open",
        |totals| totals.opened,
    ),
    (
        "weir_enforce_closed",
        "Connections whose end was seen",
        |totals| totals.closed,
    ),
    (
        "weir_enforce_refused",
        "Connections without room, which pass",
        |totals| totals.refused,
    ),
    (
        "weir_enforce_unknown_packets",
        "Packets of connections that are not followed",
        |totals| totals.unknown_packets,
    ),
    (
        "weir_enforce_lowered_windows",
        "Receive windows lowered",
        |totals| totals.lowered,
    ),
    (
        "weir_enforce_delivered_bytes",
        "Bytes of controlled flows that have arrived",
        |totals| totals.delivered,
    ),
    (
        "weir_enforce_marked_bytes",
        "Bytes of controlled flows whose acknowledgments told of marks",
        |totals| totals.marked,
    ),
    (
        "weir_enforce_sent_again_bytes",
        "Bytes of controlled flows that their senders sent again",
        |totals| totals.sent_again,
    ),
];

const KERNEL_COUNTERS: [Row; 1] = [(
    "weir_enforce_lost_reports",
    "Reports without room",
    |totals| kernel(totals).lost_reports,
)];

const IN_LINE_GAUGES: [Row; 2] = [
    (
        "weir_enforce_kept_packets",
        "Packets kept until they are acknowledged",
        |totals| in_line(totals).kept_packets,
    ),
    (
        "weir_enforce_kept_bytes",
        "Bytes kept until they are acknowledged",
        |totals| in_line(totals).kept_bytes,
    ),
];

const IN_LINE_COUNTERS: [Row; 8] = [
    (
        "weir_enforce_masked_losses",
        "Lost segments sent again from here",
        |totals| in_line(totals).masked,
    ),
    (
        "weir_enforce_timeouts",
        "Time-outs of flows with data on its way",
        |totals| in_line(totals).timeouts,
    ),
    (
        "weir_enforce_unkept_segments",
        "Segments of which no copy was kept",
        |totals| in_line(totals).unkept,
    ),
    ("weir_enforce_frames", "Frames that came in", |totals| {
        in_line(totals).frames
    }),
    (
        "weir_enforce_untouched_frames",
        "Frames that are not IP, or malformed: passed as they came",
        |totals| in_line(totals).untouched,
    ),
    (
        "weir_enforce_overrun_frames",
        "Frames lost before they were read",
        |totals| in_line(totals).overrun,
    ),
    (
        "weir_enforce_full_frames",
        "Frames that the other interface had no room for",
        |totals| in_line(totals).full,
    ),
    (
        "weir_enforce_undeliverable_frames",
        "Frames for an interface that was down, or takes no frames so long",
        |totals| in_line(totals).down + in_line(totals).too_long,
    ),
];

fn kernel(totals: &Totals) -> Kernel {
    totals.kernel.unwrap_or_default()
}

fn in_line(totals: &Totals) -> InLine {
    totals.in_line.unwrap_or_default()
}

impl Figures {
    /// Registers those that an enforcer with such totals has.
    pub fn register(registry: &Registry, totals: &Totals) -> Self {
        let has = |part: bool, rows: &'static [Row]| if part { rows } else { &[] };
        let (kernel, in_line) = (totals.kernel.is_some(), totals.in_line.is_some());
        registry.shared(|registry| {
            let gauges = GAUGES.iter().chain(has(in_line, &IN_LINE_GAUGES));
            let gauges = gauges.map(|(name, help, value)| {
                let gauge = Gauge::default();
                registry.register(*name, *help, gauge.clone());
                (gauge, *value)
            });
            let gauges = gauges.collect();
            let counters = COUNTERS
                .iter()
                .chain(has(kernel, &KERNEL_COUNTERS))
                .chain(has(in_line, &IN_LINE_COUNTERS));
            let counters = counters.map(|(name, help, value)| {
                let counter = Counter::<u64, AtomicU64>::default();
                registry.register(*name, *help, counter.clone());
                (counter, *value)
            });
            Self {
                gauges,
                counters: counters.collect(),
            }
        })
    }

    /// Brings them up to date.
    pub(crate) fn set(&self, totals: &Totals) {
        for (gauge, value) in &self.gauges {
            gauge.set(i64::try_from(value(totals)).unwrap_or(i64::MAX));
        }
        for (counter, value) in &self.counters {
            counter.inc_by(value(totals).saturating_sub(counter.get()));
        }
    }
}
