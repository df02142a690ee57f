//! The Prometheus metrics of an enforcer. Counts of flows are kept by interface, rule and algorithm, so that
//! there are few series; text is made of them when they are scraped.

use weir_metrics::{
    HistogramValue, Registration, Registry, Row, SeriesRow, SeriesTable, Table, Timestamp,
};
use weir_tcon::{Distribution, FlowClass};

use super::frame_metrics::{FrameMetrics, InterfaceFrames};
use super::status::{InlineCounts, KernelCounts, Totals};

/// The data plane of an enforcer, which determines what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneKind {
    /// Programs at interfaces.
    Kernel,
    /// Two interfaces, with packets in between.
    InLine,
}

/// The metrics of an enforcer.
#[derive(Clone, Debug)]
pub struct EnforcerMetrics {
    totals: Table<Totals>,
    classes: SeriesTable<FlowClass<String>>,
    /// Only a cable has frames.
    frames: Option<FrameMetrics>,
    step: Timestamp,
}

/// The labels of flows. A rule is named by its line in the policy file when the flow began.
const LABELS: [&str; 3] = ["interface", "rule", "algorithm"];

static CLASSES: [SeriesRow<FlowClass<String>>; 8] = [
    SeriesRow::gauge("flows", "Flows that are controlled now", |of| of.flows),
    SeriesRow::counter("begun_flows", "Flows that came under control", |of| {
        of.begun
    }),
    SeriesRow::counter(
        "delivered_bytes",
        "Bytes of controlled flows that have arrived",
        |of| of.counters.delivered.bytes(),
    ),
    SeriesRow::counter(
        "marked_bytes",
        "Bytes of controlled flows whose acknowledgments told of CE marks",
        |of| of.counters.marked.bytes(),
    ),
    SeriesRow::counter(
        "retransmitted_bytes",
        "Bytes of controlled flows that their senders retransmitted",
        |of| of.counters.sent_again.bytes(),
    ),
    SeriesRow::counter(
        "decisions",
        "How often controllers decided on newly acknowledged data",
        |of| of.decisions,
    ),
    SeriesRow::histogram(
        "rtt_seconds",
        "Smoothed round-trip times to the receivers at the decisions",
        |of| histogram(&of.rtt, 1e-9),
    ),
    SeriesRow::histogram(
        "window_bytes",
        "Windows of controllers after the decisions",
        |of| histogram(&of.window, 1.0),
    ),
];

static IN_LINE_CLASSES: [SeriesRow<FlowClass<String>>; 1] = [SeriesRow::counter(
    "repaired_bytes",
    "Lost bytes of controlled flows that were retransmitted from here",
    |of| of.counters.masked.bytes(),
)];

static COUNTERS: [Row<Totals>; 7] = [
    Row::counter(
        "passed_flows",
        "Flows left alone as the policy says",
        |totals| totals.passed,
    ),
    Row::counter(
        "opened_connections",
        "Connections that were seen to open",
        |totals| totals.opened,
    ),
    Row::counter(
        "closed_connections",
        "Connections whose end was seen",
        |totals| totals.closed,
    ),
    Row::counter(
        "idle_connections",
        "Connections forgotten after a long silence",
        |totals| totals.idle,
    ),
    Row::counter(
        "refused_connections",
        "Connections without room, which pass",
        |totals| totals.refused,
    ),
    Row::counter(
        "unknown_packets",
        "Packets of connections that are not followed",
        |totals| totals.unknown_packets,
    ),
    Row::counter("lowered_windows", "Receive windows lowered", |totals| {
        totals.lowered
    }),
];

static KERNEL_COUNTERS: [Row<Totals>; 3] = [
    Row::counter(
        "reports",
        "Reports of flows that the kernel began",
        |totals| kernel(totals).reports,
    ),
    Row::counter(
        "lost_reports",
        "Reports without room: the next ones carry their contents",
        |totals| kernel(totals).lost_reports,
    ),
    Row::counter(
        "beyond_rate_segments",
        "Segments dropped, as their sender ignored the window of its highest rate",
        |totals| kernel(totals).beyond_rate,
    ),
];

static IN_LINE_COUNTERS: [Row<Totals>; 8] = [
    Row::gauge(
        "fail_open",
        "Whether frames pass if the enforcer dies or hangs",
        |totals| in_line(totals).bypass.is_some().into(),
    ),
    Row::counter(
        "bypasses",
        "How often frames began to pass without the enforcer",
        |totals| in_line(totals).bypass.unwrap_or_default().times,
    ),
    Row::counter(
        "bypassed_frames",
        "Frames that passed without the enforcer",
        |totals| in_line(totals).bypass.unwrap_or_default().frames,
    ),
    Row::gauge(
        "fast_path_connections",
        "Connections that the kernel forwards now, as no rule controls them",
        |totals| in_line(totals).fast_path.unwrap_or_default().connections,
    ),
    Row::gauge(
        "kept_packets",
        "Packets kept until they are acknowledged",
        |totals| in_line(totals).kept_packets,
    ),
    Row::gauge(
        "kept_bytes",
        "Bytes kept until they are acknowledged",
        |totals| in_line(totals).kept_bytes,
    ),
    Row::counter(
        "timeouts",
        "Time-outs of flows with data on its way",
        |totals| in_line(totals).timeouts,
    ),
    Row::counter(
        "unkept_segments",
        "Segments of which no copy was kept",
        |totals| in_line(totals).unkept,
    ),
];

fn kernel(totals: &Totals) -> KernelCounts {
    totals.kernel.unwrap_or_default()
}

fn in_line(totals: &Totals) -> InlineCounts {
    totals.in_line.unwrap_or_default()
}

/// Returns a distribution in the base unit, of which its values are this many.
fn histogram(of: &Distribution, unit: f64) -> HistogramValue {
    let bound = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| in_unit(bound, unit));
    HistogramValue {
        buckets: of
            .buckets()
            .map(|(upto, count)| (bound(upto), count))
            .collect(),
        sum: in_unit(of.sum(), unit),
    }
}

/// Divides by the inverse, which is exact, where a product with the unit would not be.
fn in_unit(value: u64, unit: f64) -> f64 {
    value as f64 / (1.0 / unit).round()
}

impl EnforcerMetrics {
    /// Registers the metrics that an enforcer with such a data plane has.
    pub fn register(registry: &Registry, kind: PlaneKind) -> Self {
        registry.shared(|registration| Self::registered(registration, kind))
    }

    fn registered(registration: &mut Registration<'_>, kind: PlaneKind) -> Self {
        let mut registration = registration.with_prefix("weir_enforce");
        let (totals, classes): (&[Row<Totals>], &[SeriesRow<_>]) = match kind {
            PlaneKind::Kernel => (&KERNEL_COUNTERS, &[]),
            PlaneKind::InLine => (&IN_LINE_COUNTERS, &IN_LINE_CLASSES),
        };
        let classes = CLASSES.iter().chain(classes);
        let label_values = |of: &FlowClass<String>| {
            let rule = of.rule.map_or("other".to_owned(), |line| line.to_string());
            [of.egress.clone(), rule, of.congestion.to_owned()]
        };
        let classes = SeriesTable::register(&mut registration, &LABELS, label_values, classes);
        let totals = Table::register(&mut registration, COUNTERS.iter().chain(totals));
        let frames =
            (kind == PlaneKind::InLine).then(|| FrameMetrics::with_fast_path(&mut registration));
        let help = "When the enforcer last renewed its windows";
        let step = Timestamp::register(&mut registration, "last_step", help);
        Self {
            totals,
            classes,
            frames,
            step,
        }
    }

    /// Updates the metrics.
    pub(crate) fn set(&self, totals: &Totals, classes: impl Iterator<Item = FlowClass<String>>) {
        self.totals.set(totals);
        self.classes.set(classes.collect());
        self.step.set_now();
    }

    /// Updates the metrics of a cable's frames.
    pub(crate) fn set_frames(&self, interfaces: Vec<InterfaceFrames>) {
        if let Some(frames) = &self.frames {
            frames.set(interfaces);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_seconds() {
        let registry = Registry::new();
        let metrics = EnforcerMetrics::register(&registry, PlaneKind::InLine);
        metrics.set(&Totals::default(), std::iter::empty());
        let text = registry.encode();
        assert!(
            text.contains("# TYPE weir_enforce_rtt_seconds histogram\n"),
            "{text}"
        );
        assert!(
            text.contains("# TYPE weir_enforce_repaired_bytes counter\n"),
            "{text}"
        );
        assert!(!text.contains("interface="), "{text}");
        assert_eq!(in_unit(10_000, 1e-9), 1e-5);
        assert_eq!(in_unit(1_310_720_000, 1e-9), 1.31072);
        assert_eq!(in_unit(2048, 1.0), 2048.0);
    }
}
