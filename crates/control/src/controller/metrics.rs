//! The controller's metrics.

use std::time::Duration;

use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::histogram::{Histogram, exponential_buckets};
use weir_metrics::{Registration, Registry, Row, Table, Timestamp};
use weir_sed::{Controller as Logic, ControllerCounters};

use super::senders::Senders;
use super::switches::Switches;

/// The values of the metrics.
#[derive(Clone, Copy, Debug, Default)]
struct MetricValues {
    switches: u64,
    senders: u64,
    flows: u64,
    registrations: u64,
    governed: u64,
    logic: ControllerCounters,
    refused_registrations: u64,
    garbled: u64,
}

static ROWS: [Row<MetricValues>; 13] = [
    Row::gauge("switches", "Switches whose agents are attached", |is| {
        is.switches
    }),
    Row::gauge("senders", "Senders that are their own agents", |is| {
        is.senders
    }),
    Row::gauge("flows", "Rows of the flow tables", |is| is.flows),
    Row::gauge("registrations", "Flows and patterns registered", |is| {
        is.registrations
    }),
    Row::gauge("governed_ports", "Ports where windows are in force", |is| {
        is.governed
    }),
    Row::counter("reports", "Reports of agents", |is| is.logic.reports),
    Row::counter("orders", "Orders to agents", |is| is.logic.orders),
    Row::counter(
        "computations",
        "Computations of all windows of a port",
        |is| is.logic.computations,
    ),
    Row::counter(
        "idle_flows",
        "Flows forgotten as nothing was heard of them",
        |is| is.logic.idle,
    ),
    Row::counter(
        "unused_registrations",
        "Registrations forgotten as no flow came",
        |is| is.logic.unused,
    ),
    Row::counter("refused_flows", "Flows for which there was no room", |is| {
        is.logic.refused
    }),
    Row::counter("refused_registrations", "Registrations refused", |is| {
        is.refused_registrations
    }),
    Row::counter("garbled_messages", "Messages that made no sense", |is| {
        is.garbled
    }),
];

/// The metrics of all controllers of a process.
#[derive(Clone, Debug)]
struct MetricFamilies {
    table: Table<MetricValues>,
    refused_clients: Counter,
    decisions: Histogram,
    step: Timestamp,
}

/// Registers the metrics of controllers, as the first controller with this registry does.
pub fn register_controller_metrics(registry: &Registry) {
    registry.shared(MetricFamilies::register);
}

impl MetricFamilies {
    fn register(registration: &mut Registration<'_>) -> Self {
        let mut registration = registration.with_prefix("weir_sed");
        let table = Table::register(&mut registration, &ROWS);
        let refused_clients = Counter::default();
        let help = "Clients refused for their certificate or its role, or without a handshake";
        registration.register("refused_clients", help, &[], refused_clients.clone());
        // From 10 us to 80 ms.
        let decisions = Histogram::new(exponential_buckets(1e-5, 2.0, 14));
        let help = "From reports to the orders that follow from them, in seconds";
        registration.register("decision_seconds", help, &[], decisions.clone());
        let help = "When the controller last handled an event or a timer";
        let step = Timestamp::register(&mut registration, "last_step", help);
        Self {
            table,
            refused_clients,
            decisions,
            step,
        }
    }
}

/// The metrics, and the values last exported.
#[derive(Debug)]
pub(super) struct ControllerMetrics {
    metrics: MetricFamilies,
    reported: MetricValues,
    refused_registrations: u64,
    garbled: u64,
}

impl ControllerMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            metrics: registry.shared(MetricFamilies::register),
            reported: MetricValues::default(),
            refused_registrations: 0,
            garbled: 0,
        }
    }

    /// Returns the counter of refused clients.
    pub(super) fn refused_clients(&self) -> Counter {
        self.metrics.refused_clients.clone()
    }

    pub(super) fn decided(&self, took: Duration) {
        self.metrics.decisions.observe(took.as_secs_f64());
    }

    pub(super) fn garbled(&mut self) {
        self.garbled += 1;
    }

    pub(super) fn registered(&mut self, granted: bool) {
        self.refused_registrations += u64::from(!granted);
    }

    /// Updates the metrics.
    pub(super) fn show(&mut self, logic: &Logic, switches: &mut Switches, senders: &Senders) {
        let governed = logic.ports().filter(|(_, state)| state.governed).count();
        let now = MetricValues {
            switches: switches.sessions().count() as u64,
            senders: senders.attached.len() as u64,
            flows: logic.flow_count() as u64,
            registrations: logic.demands().registered() as u64,
            governed: governed as u64,
            logic: logic.counters(),
            refused_registrations: self.refused_registrations,
            garbled: self.garbled,
        };
        self.metrics.table.add(&now, &self.reported);
        self.metrics.step.set_now();
        self.reported = now;
    }
}
