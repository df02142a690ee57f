//! What a metric is, for those who read about it before there are values.

use prometheus_client::metrics::MetricType;

/// A metric without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name in queries, with the unit, and `_total` for a counter. A histogram's samples have
    /// `_bucket`, `_sum` and `_count` added.
    pub name: String,
    /// Prometheus' type: `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: String,
}

impl Description {
    pub(crate) fn new(
        name: &str,
        help: &str,
        labels: &'static [&'static str],
        kind: MetricType,
    ) -> Self {
        let suffix = match kind {
            MetricType::Counter => "_total",
            _ => "",
        };
        Self {
            name: format!("{name}{suffix}"),
            kind: kind.as_str().to_owned(),
            labels,
            help: help.to_owned(),
        }
    }
}
