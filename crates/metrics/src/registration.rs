//! Access to a registry while a part of the process registers its metrics.

use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Unit};

use crate::description::Description;

/// A registry that metrics are added to.
#[derive(Debug)]
pub struct Registration<'r> {
    metrics: &'r mut prometheus_client::registry::Registry,
    descriptions: &'r mut Vec<Description>,
    prefix: &'r str,
}

impl<'r> Registration<'r> {
    pub(crate) fn new(
        metrics: &'r mut prometheus_client::registry::Registry,
        descriptions: &'r mut Vec<Description>,
    ) -> Self {
        Self {
            metrics,
            descriptions,
            prefix: "",
        }
    }

    /// Returns the same registry, which puts this prefix and `_` before all names.
    pub fn with_prefix<'p>(&'p mut self, prefix: &'p str) -> Registration<'p> {
        Registration {
            metrics: self.metrics,
            descriptions: self.descriptions,
            prefix,
        }
    }

    /// Adds a metric with these labels. A counter's name has `_total` added, the help text a full stop.
    pub fn register<M: Metric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        labels: &'static [&'static str],
        metric: M,
    ) {
        let name = self.full(name);
        (self.descriptions).push(Description::new(&name, help, labels, M::TYPE));
        self.metrics.register(name, help, metric);
    }

    /// Adds a metric, whose unit is added to its name.
    pub fn register_with_unit<M: Metric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Unit,
        labels: &'static [&'static str],
        metric: M,
    ) {
        let name = self.full(name);
        let with_unit = format!("{name}_{}", unit.as_str());
        (self.descriptions).push(Description::new(&with_unit, help, labels, M::TYPE));
        (self.metrics).register_with_unit(name, help, unit, metric);
    }

    /// Adds a metric whose type is not that of a Rust type.
    pub(crate) fn register_as(
        &mut self,
        kind: MetricType,
        name: &str,
        help: &str,
        labels: &'static [&'static str],
        metric: impl Metric,
    ) {
        let name = self.full(name);
        (self.descriptions).push(Description::new(&name, help, labels, kind));
        self.metrics.register(name, help, metric);
    }

    fn full(&self, name: &str) -> String {
        match self.prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}_{name}"),
        }
    }
}
