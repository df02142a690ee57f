//! Metrics with labels, declared as a table: one series for each structure of a list.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::registration::Registration;

/// A metric with labels, and the accessor of its value in a `Source`.
#[derive(Clone, Copy, Debug)]
pub struct SeriesRow<Source> {
    /// Its name, without the prefix and suffix that a registry adds.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The accessor of its value.
    pub value: SeriesValue<Source>,
}

/// The type of a metric, with the accessor of its value.
#[derive(Clone, Copy, Debug)]
pub enum SeriesValue<Source> {
    /// A counter: it never decreases.
    Counter(fn(&Source) -> u64),
    /// A current value.
    Gauge(fn(&Source) -> u64),
    /// A distribution.
    Histogram(fn(&Source) -> HistogramValue),
}

/// A distribution as it was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramValue {
    /// The upper bound of each bucket, ascending, and the number of values in it. The last bound is
    /// infinite.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all values.
    pub sum: f64,
}

impl<Source> SeriesRow<Source> {
    /// Creates the row of a counter.
    pub const fn counter(
        name: &'static str,
        help: &'static str,
        value: fn(&Source) -> u64,
    ) -> Self {
        let value = SeriesValue::Counter(value);
        Self { name, help, value }
    }

    /// Creates the row of a gauge.
    pub const fn gauge(name: &'static str, help: &'static str, value: fn(&Source) -> u64) -> Self {
        let value = SeriesValue::Gauge(value);
        Self { name, help, value }
    }

    /// Creates the row of a histogram.
    pub const fn histogram(
        name: &'static str,
        help: &'static str,
        value: fn(&Source) -> HistogramValue,
    ) -> Self {
        let value = SeriesValue::Histogram(value);
        Self { name, help, value }
    }
}

/// The metrics of some rows, with a series each for every source. Clones are handles to the same metrics.
#[derive(Debug)]
pub struct SeriesTable<Source>(Arc<Mutex<Vec<Source>>>);

impl<Source> Clone for SeriesTable<Source> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Source: fmt::Debug + Send + 'static> SeriesTable<Source> {
    /// Registers the metrics in the rows' order. `label_values` returns a source's values of the `labels`,
    /// which no two sources may share.
    pub fn register<const N: usize>(
        registration: &mut Registration<'_>,
        labels: &'static [&'static str; N],
        label_values: fn(&Source) -> [String; N],
        rows: impl IntoIterator<Item = &'static SeriesRow<Source>>,
    ) -> Self {
        let sources = Arc::default();
        for row in rows {
            let series = Series {
                sources: Arc::clone(&sources),
                labels,
                label_values,
                row,
            };
            let kind = series.metric_type();
            registration.register_as(kind, row.name, row.help, labels, series);
        }
        Self(sources)
    }

    /// Replaces the sources.
    pub fn set(&self, sources: Vec<Source>) {
        let old = {
            let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *shared, sources)
        };
        // Freed without the lock.
        drop(old);
    }
}

/// One row's series.
#[derive(Debug)]
struct Series<Source: 'static, const N: usize> {
    sources: Arc<Mutex<Vec<Source>>>,
    labels: &'static [&'static str; N],
    label_values: fn(&Source) -> [String; N],
    row: &'static SeriesRow<Source>,
}

impl<Source: fmt::Debug + Send, const N: usize> EncodeMetric for Series<Source, N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for source in sources.iter() {
            let values = (self.label_values)(source);
            let labels: Vec<_> = self.labels.iter().copied().zip(values).collect();
            let mut encoder = encoder.encode_family(&labels)?;
            match self.row.value {
                SeriesValue::Counter(value) => {
                    encoder.encode_counter::<NoLabelSet, _, u64>(&value(source), None)?;
                }
                SeriesValue::Gauge(value) => {
                    let value = i64::try_from(value(source)).unwrap_or(i64::MAX);
                    encoder.encode_gauge(&value)?;
                }
                SeriesValue::Histogram(value) => {
                    let HistogramValue { buckets, sum } = value(source);
                    let count = buckets.iter().map(|(_, count)| count).sum();
                    encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        match self.row.value {
            SeriesValue::Counter(_) => MetricType::Counter,
            SeriesValue::Gauge(_) => MetricType::Gauge,
            SeriesValue::Histogram(_) => MetricType::Histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Source = (&'static str, u64);

    static ROWS: [SeriesRow<Source>; 3] = [
        SeriesRow::counter("things", "Things that happened", |source| source.1),
        SeriesRow::gauge("room_bytes", "What is left", |source| 10 - source.1),
        SeriesRow::histogram("length_bytes", "Lengths", |source| HistogramValue {
            buckets: vec![(1.0, source.1), (f64::INFINITY, 2)],
            sum: 7.5,
        }),
    ];

    #[test]
    fn each_source_has_a_series_in_every_metric() {
        let registry = crate::Registry::new();
        let table = registry.shared(|registration| {
            let mut registration = registration.with_prefix("my");
            SeriesTable::register(
                &mut registration,
                &["who", "which"],
                |source: &Source| [source.0.to_owned(), "all".to_owned()],
                &ROWS,
            )
        });
        // A metric without series is described too.
        assert!(
            registry
                .encode()
                .contains("# TYPE my_length_bytes histogram\n")
        );
        table.set(vec![("a\"", 3), ("b", 4)]);
        let text = registry.encode();
        for line in [
            "my_things_total{who=\"a\\\"\",which=\"all\"} 3",
            "my_things_total{who=\"b\",which=\"all\"} 4",
            "my_room_bytes{who=\"b\",which=\"all\"} 6",
            "my_length_bytes_sum{who=\"b\",which=\"all\"} 7.5",
            "my_length_bytes_count{who=\"b\",which=\"all\"} 6",
            "my_length_bytes_bucket{le=\"1.0\",who=\"b\",which=\"all\"} 4",
            "my_length_bytes_bucket{le=\"+Inf\",who=\"b\",which=\"all\"} 6",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no {line} in {text}"
            );
        }
        let names = registry
            .descriptions()
            .into_iter()
            .map(|of| (of.name, of.kind, of.labels.len()));
        let expected = [
            ("my_things_total", "counter", 2),
            ("my_room_bytes", "gauge", 2),
            ("my_length_bytes", "histogram", 2),
        ];
        assert_eq!(
            names.collect::<Vec<_>>(),
            expected.map(|(name, kind, labels)| (name.to_owned(), kind.to_owned(), labels))
        );
        table.set(Vec::new());
        assert!(!registry.encode().contains("who="));
    }
}
