//! The metrics of rules that are tried, by rule and group.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use weir_metrics::prometheus::family::Family;
use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::{Registration, SeriesRow, SeriesTable};

use super::canary_status::{CanaryStatus, GroupStatus, IntervalStatus, PeriodStatus};

/// The metrics of rules that are tried. Clones are handles to the same metrics.
#[derive(Clone, Debug)]
pub(super) struct CanaryMetrics {
    rules: SeriesTable<CanaryStatus>,
    groups: SeriesTable<GroupTotals>,
    figures: Vec<FigureMetric>,
}

/// The counts of a group since its rule came into force.
#[derive(Debug)]
struct GroupTotals {
    labels: [String; 2],
    counts: GroupStatus,
}

static RULES: [SeriesRow<CanaryStatus>; 1] = [SeriesRow::gauge(
    "undone",
    "Whether a guard has taken the rule back",
    |of| of.undone.is_some().into(),
)];

static GROUPS: [SeriesRow<GroupTotals>; 4] = [
    SeriesRow::counter(
        "completed_connections",
        "Measured connections that ended",
        |of| of.counts.completed,
    ),
    SeriesRow::counter(
        "segments",
        "Segments with data that measured connections sent, retransmissions included",
        |of| of.counts.segments_sent,
    ),
    SeriesRow::counter(
        "retransmitted_segments",
        "Segments that measured connections retransmitted",
        |of| of.counts.segments_retransmitted,
    ),
    SeriesRow::counter(
        "delivered_bytes",
        "Bytes of measured connections that were acknowledged",
        |of| of.counts.delivered,
    ),
];

/// A figure: its name in the status and as a metric, its help text, and how many base units it is in.
const FIGURES: [(&str, &str, &str, f64); 5] = [
    (
        "retransmits",
        "retransmitted_ratio",
        "Part of the segments of the last 30 s that were retransmissions, with the ends of its 95 % interval",
        1.0,
    ),
    (
        "rtt",
        "rtt_seconds",
        "Median of the smoothed RTTs of the last 30 s, with the ends of its 95 % interval",
        1.0,
    ),
    (
        "delivery_rate",
        "delivery_rate_bytes_per_second",
        "Median of the delivery rates of the last 30 s, with the ends of its 95 % interval",
        0.125,
    ),
    (
        "completion",
        "completion_seconds",
        "Median of the durations of short connections of the last 30 s, with the ends of its 95 % interval",
        1.0,
    ),
    (
        "completion_p99",
        "completion_p99_seconds",
        "99th percentile of the durations of short connections of the last 30 s, with the ends of its 95 % interval",
        1.0,
    ),
];

type Labels = [(&'static str, String); 3];

/// A figure's series: one for each rule, group and end of the interval.
#[derive(Clone, Debug)]
struct FigureMetric {
    name: &'static str,
    unit: f64,
    family: Family<Labels, Gauge<f64, AtomicU64>>,
    shown: Arc<Mutex<BTreeSet<Labels>>>,
}

impl CanaryMetrics {
    pub(super) fn register(registration: &mut Registration<'_>) -> Self {
        let mut registration = registration.with_prefix("weir_enforce_canary");
        let rule = |of: &CanaryStatus| [of.line.to_string()];
        let rules = SeriesTable::register(&mut registration, &["rule"], rule, &RULES);
        let group = |of: &GroupTotals| of.labels.clone();
        let groups = SeriesTable::register(&mut registration, &["rule", "group"], group, &GROUPS);
        let figures = FIGURES.map(|(name, metric, help, unit)| {
            let family = Family::default();
            let labels = &["rule", "group", "bound"];
            registration.register(metric, help, labels, Family::clone(&family));
            FigureMetric {
                name,
                unit,
                family,
                shown: Arc::default(),
            }
        });
        Self {
            rules,
            groups,
            figures: figures.into(),
        }
    }

    /// Updates the metrics.
    pub(super) fn set(&self, canaries: &[CanaryStatus]) {
        self.rules.set(canaries.to_vec());
        let totals = canaries.iter().flat_map(|canary| {
            let of_group = |(group, counts): (&str, &GroupStatus)| GroupTotals {
                labels: [canary.line.to_string(), group.to_owned()],
                counts: counts.clone(),
            };
            groups(canary, &canary.total).map(of_group)
        });
        self.groups.set(totals.collect());
        for figure in &self.figures {
            figure.set(canaries);
        }
    }
}

/// Returns the groups of a canary in some time, with their names.
fn groups<'s>(
    canary: &CanaryStatus,
    period: &'s PeriodStatus,
) -> impl Iterator<Item = (&'static str, &'s GroupStatus)> {
    let control = canary.is_compared.then_some(("control", &period.control));
    std::iter::once(("treated", &period.treated)).chain(control)
}

impl FigureMetric {
    fn set(&self, canaries: &[CanaryStatus]) {
        let mut current = BTreeSet::new();
        for canary in canaries {
            for (group, status) in groups(canary, &canary.recent) {
                let Some(figure) = status.figures.get(self.name) else {
                    continue;
                };
                for (bound, value) in ends(figure) {
                    let labels = [
                        ("rule", canary.line.to_string()),
                        ("group", group.to_owned()),
                        ("bound", bound.to_owned()),
                    ];
                    self.family.get_or_create(&labels).set(value * self.unit);
                    current.insert(labels);
                }
            }
        }
        // Series without a value disappear one by one, so that a scrape finds the others.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in shown.difference(&current) {
            self.family.remove(gone);
        }
        *shown = current;
    }
}

/// Returns the estimate and the ends of its interval, as far as there are any.
fn ends(figure: &IntervalStatus) -> impl Iterator<Item = (&'static str, f64)> {
    let ends = [
        ("estimate", Some(figure.value)),
        ("low", figure.low),
        ("high", figure.high),
    ];
    ends.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use weir_metrics::Registry;

    use super::*;

    #[test]
    fn series_appear_and_disappear_with_their_rules() {
        let registry = Registry::new();
        let metrics = registry.shared(CanaryMetrics::register);
        let figure = IntervalStatus {
            value: 8e6,
            low: Some(4e6),
            high: None,
        };
        let mut canary = CanaryStatus {
            line: 4,
            is_compared: true,
            ..CanaryStatus::default()
        };
        let figures = [("delivery_rate".to_owned(), figure)];
        canary.recent.treated.figures = figures.into_iter().collect();
        canary.total.control.completed = 7;
        metrics.set(std::slice::from_ref(&canary));
        let text = registry.encode();
        for line in [
            "weir_enforce_canary_undone{rule=\"4\"} 0\n",
            "weir_enforce_canary_completed_connections{rule=\"4\",group=\"control\"} 7\n",
            "weir_enforce_canary_delivery_rate_bytes_per_second{rule=\"4\",group=\"treated\",bound=\"low\"} 500000.0\n",
        ] {
            let name = line.split('{').next().unwrap();
            let found = text
                .lines()
                .filter(|found| found.contains(name))
                .collect::<Vec<_>>();
            let is_there = text.contains(line) || text.contains(&line.replacen('{', "_total{", 1));
            assert!(is_there, "{line}{found:#?}");
        }
        assert!(!text.contains("bound=\"high\""), "{text}");
        metrics.set(&[]);
        let text = registry.encode();
        assert!(!text.contains("rule="), "{text}");
    }
}
