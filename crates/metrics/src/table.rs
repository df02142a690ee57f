//! Metrics whose values stand in a structure, declared as a table.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// A metric, and where its value is in a `Source`.
#[derive(Clone, Copy, Debug)]
pub struct Row<Source> {
    /// As in the text; what a registry puts before or behind it is left out.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Whether it can fall.
    pub kind: Kind,
    /// Its value.
    pub value: fn(&Source) -> u64,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something that is counted: it never falls.
    Counter,
    /// Something that is as it is now.
    Gauge,
}

impl<Source> Row<Source> {
    /// A row of something that is counted.
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

    /// A row of something that is as it is now.
    pub const fn gauge(name: &'static str, help: &'static str, value: fn(&Source) -> u64) -> Self {
        Self {
            name,
            help,
            kind: Kind::Gauge,
            value,
        }
    }
}

/// The metrics of some rows. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub struct Table<Source>(Vec<(Metric, Value<Source>)>);

/// How a metric is read.
type Value<Source> = fn(&Source) -> u64;

#[derive(Clone, Debug)]
enum Metric {
    Counter(Counter<u64, AtomicU64>),
    Gauge(Gauge),
}

impl<Source: 'static> Table<Source> {
    /// Registers the metrics in the rows' order.
    pub fn register(
        registry: &mut Registry,
        rows: impl IntoIterator<Item = &'static Row<Source>>,
    ) -> Self {
        let metrics = rows.into_iter().map(|row| {
            let metric = match row.kind {
                Kind::Counter => {
                    let counter = Counter::default();
                    registry.register(row.name, row.help, counter.clone());
                    Metric::Counter(counter)
                }
                Kind::Gauge => {
                    let gauge = Gauge::default();
                    registry.register(row.name, row.help, gauge.clone());
                    Metric::Gauge(gauge)
                }
            };
            (metric, row.value)
        });
        Self(metrics.collect())
    }

    /// Brings them up to date: counters have the values of `now`, or more where they had more already.
    pub fn set(&self, now: &Source) {
        for (metric, value) in &self.0 {
            match metric {
                Metric::Counter(counter) => raise(counter, value(now)),
                Metric::Gauge(gauge) => set(gauge, value(now)),
            }
        }
    }

    /// Brings them up to date where several sources share them: counters rise by what has come to
    /// `now` since `before`.
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

/// Has a counter show a value, unless it shows more already.
pub fn raise(counter: &Counter<u64, AtomicU64>, value: u64) {
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
