//! Metrics with values in a structure, declared as a table.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::registration::Registration;

/// A metric, and the accessor of its value in a `Source`.
#[derive(Clone, Copy, Debug)]
pub struct Row<Source> {
    /// Its name, without the prefix and suffix that a registry adds.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// Whether it can decrease.
    pub kind: Kind,
    /// The accessor of its value.
    pub value: fn(&Source) -> u64,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A counter: it never decreases.
    Counter,
    /// A current value.
    Gauge,
}

impl<Source> Row<Source> {
    /// Creates the row of a counter.
    pub const fn counter(
        name: &'static str,
        help: &'static str,
        value: fn(&Source) -> u64,
    ) -> Self {
        Self {
            name,
            help,
            kind: Kind::Counter,
            value,
        }
    }

    /// Creates the row of a gauge.
    pub const fn gauge(name: &'static str, help: &'static str, value: fn(&Source) -> u64) -> Self {
        Self {
            name,
            help,
            kind: Kind::Gauge,
            value,
        }
    }
}

/// The metrics of some rows. Clones are handles to the same metrics.
#[derive(Clone, Debug)]
pub struct Table<Source>(Vec<(Metric, Value<Source>)>);

/// The accessor of a metric's value.
type Value<Source> = fn(&Source) -> u64;

#[derive(Clone, Debug)]
enum Metric {
    Counter(Counter<u64, AtomicU64>),
    Gauge(Gauge),
}

impl<Source: 'static> Table<Source> {
    /// Registers the metrics in the rows' order.
    pub fn register(
        registration: &mut Registration<'_>,
        rows: impl IntoIterator<Item = &'static Row<Source>>,
    ) -> Self {
        let metrics = rows.into_iter().map(|row| {
            let metric = match row.kind {
                Kind::Counter => {
                    let counter = Counter::default();
                    registration.register(row.name, row.help, &[], counter.clone());
                    Metric::Counter(counter)
                }
                Kind::Gauge => {
                    let gauge = Gauge::default();
                    registration.register(row.name, row.help, &[], gauge.clone());
                    Metric::Gauge(gauge)
                }
            };
            (metric, row.value)
        });
        Self(metrics.collect())
    }

    /// Updates the metrics: counters get the values of `now`, unless they were higher already.
    pub fn set(&self, now: &Source) {
        for (metric, value) in &self.0 {
            match metric {
                Metric::Counter(counter) => raise(counter, value(now)),
                Metric::Gauge(gauge) => set(gauge, value(now)),
            }
        }
    }

    /// Updates metrics that several sources share: counters increase by the difference of `now` and
    /// `before`.
    pub fn add(&self, now: &Source, before: &Source) {
        for (metric, value) in &self.0 {
            match metric {
                Metric::Counter(counter) => {
                    counter.inc_by(value(now).saturating_sub(value(before)));
                }
                Metric::Gauge(gauge) => set(gauge, value(now)),
            }
        }
    }
}

/// Raises a counter to a value, unless it is higher already.
fn raise(counter: &Counter<u64, AtomicU64>, value: u64) {
    counter.inc_by(value.saturating_sub(counter.get()));
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    static ROWS: [Row<[u64; 2]>; 2] = [
        Row::counter("things", "Things that happened", |source| source[0]),
        Row::gauge("room", "What is left", |source| source[1]),
    ];

    #[test]
    fn counters_rise_and_gauges_follow() {
        let registry = crate::Registry::new();
        let table = registry.shared(|registry| Table::register(registry, &ROWS));
        let shows = |text: &str| assert!(registry.encode().contains(text), "{text}");
        table.set(&[3, 5]);
        table.set(&[2, 4]);
        shows("# HELP things Things that happened.\n# TYPE things counter\nthings_total 3\n");
        shows("# HELP room What is left.\n# TYPE room gauge\nroom 4\n");
        table.add(&[12, u64::MAX], &[10, 0]);
        shows("things_total 5\n");
        shows(&format!("room {}\n", i64::MAX));
    }
}
