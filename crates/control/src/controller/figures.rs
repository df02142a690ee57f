//! The controller's metrics.

use std::time::Duration;

use weir_metrics::Registry;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::gauge::Gauge;
use weir_metrics::prometheus::histogram::{Histogram, exponential_buckets};
use weir_sed::{Controller as Logic, ControllerCounters};

use super::senders::Senders;
use super::switches::Switches;

/// What is counted, for Prometheus.
#[derive(Clone, Debug)]
struct Metrics {
    switches: Gauge,
    senders: Gauge,
    flows: Gauge,
    registrations: Gauge,
    governed: Gauge,
    reports: Counter,
    orders: Counter,
    computations: Counter,
    idle: Counter,
    unused: Counter,
    refused: Counter,
    refused_registrations: Counter,
    garbled: Counter,
    decisions: Histogram,
}

/// The metrics, and what they have been told.
#[derive(Debug)]
pub(super) struct Figures {
    metrics: Metrics,
    told: ControllerCounters,
}

impl Figures {
    pub(super) fn new(registry: &Registry) -> Self {
        let metrics = registry.shared(|registry| {
            let registry = registry.sub_registry_with_prefix("weir_sed");
            // From 10 us to 80 ms.
            let metrics = Metrics {
                switches: Gauge::default(),
                senders: Gauge::default(),
                flows: Gauge::default(),
                registrations: Gauge::default(),
                governed: Gauge::default(),
                reports: Counter::default(),
                orders: Counter::default(),
                computations: Counter::default(),
                idle: Counter::default(),
                unused: Counter::default(),
                refused: Counter::default(),
                refused_registrations: Counter::default(),
                garbled: Counter::default(),
                decisions: Histogram::new(exponential_buckets(1e-5, 2.0, 14)),
            };
            let Metrics {
                switches,
                senders,
                flows,
                registrations,
                governed,
                reports,
                orders,
                computations,
                idle,
                unused,
                refused,
                refused_registrations,
                garbled,
                decisions,
            } = metrics.clone();
            registry.register("switches", "Switches whose agents are attached", switches);
            registry.register("senders", "Senders that are their own agents", senders);
            registry.register("flows", "Rows of the flow tables", flows);
            registry.register(
                "registrations",
                "Flows and patterns registered",
                registrations,
            );
            registry.register(
                "governed_ports",
                "Ports where windows are in force",
                governed,
            );
            registry.register("reports", "Reports of agents", reports);
            registry.register("orders", "Orders to agents", orders);
            registry.register(
                "computations",
                "Computations of all windows of a port",
                computations,
            );
            registry.register(
                "idle_flows",
                "Flows forgotten as nothing was heard of them",
                idle,
            );
            registry.register(
                "unused_registrations",
                "Registrations forgotten as no flow came",
                unused,
            );
            registry.register(
                "refused_flows",
                "Flows for which there was no room",
                refused,
            );
            registry.register(
                "refused_registrations",
                "Registrations refused",
                refused_registrations,
            );
            registry.register("garbled_messages", "Messages that made no sense", garbled);
            let help = "From reports to the orders that follow from them, in seconds";
            registry.register("decision_seconds", help, decisions);
            metrics
        });
        Self {
            metrics,
            told: ControllerCounters::default(),
        }
    }

    pub(super) fn decided(&self, took: Duration) {
        self.metrics.decisions.observe(took.as_secs_f64());
    }

    pub(super) fn garbled(&self) {
        self.metrics.garbled.inc();
    }

    pub(super) fn registered(&self, granted: bool) {
        if !granted {
            self.metrics.refused_registrations.inc();
        }
    }

    /// Brings the metrics up to date.
    pub(super) fn show(&mut self, logic: &Logic, switches: &mut Switches, senders: &Senders) {
        let metrics = &self.metrics;
        let now = logic.counters();
        let told = std::mem::replace(&mut self.told, now);
        for (counter, now, told) in [
            (&metrics.reports, now.reports, told.reports),
            (&metrics.orders, now.orders, told.orders),
            (&metrics.computations, now.computations, told.computations),
            (&metrics.idle, now.idle, told.idle),
            (&metrics.unused, now.unused, told.unused),
            (&metrics.refused, now.refused, told.refused),
        ] {
            counter.inc_by(now - told);
        }
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        metrics.switches.set(count(switches.sessions().count()));
        metrics.senders.set(count(senders.len()));
        metrics.flows.set(count(logic.flow_count()));
        metrics
            .registrations
            .set(count(logic.demands().registered()));
        let governed = logic.ports().filter(|port| port.is_governed).count();
        metrics.governed.set(count(governed));
    }
}
