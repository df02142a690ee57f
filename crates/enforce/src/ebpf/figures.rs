//! What is shown to Prometheus.

use std::sync::atomic::AtomicU64;

use weir_metrics::Registry;
use weir_metrics::prometheus::counter::Counter;
use weir_metrics::prometheus::gauge::Gauge;

use super::status::Totals;

/// The metrics of an enforcer.
#[derive(Clone, Debug)]
pub struct Figures {
    controlled: Gauge,
    passed: Counter,
    opened: Counter,
    closed: Counter,
    refused: Counter,
    unknown: Counter,
    lowered: Counter,
    lost_reports: Counter,
    delivered: Counter,
    marked: Counter,
    sent_again: Counter,
}

impl Figures {
    /// Registers them.
    pub fn register(registry: &Registry) -> Self {
        registry.shared(|registry| {
            let mut counter = |name: &str, help: &str| {
                let counter = Counter::<u64, AtomicU64>::default();
                registry.register(name, help, counter.clone());
                counter
            };
            let figures = Self {
                controlled: Gauge::default(),
                passed: counter("weir_enforce_passed", "Flows left alone as the policy says"),
                opened: counter(
                    "weir_enforce_opened",
                    "Connections whose handshake was seen",
                ),
                closed: counter("weir_enforce_closed", "Connections whose end was seen"),
                refused: counter(
                    "weir_enforce_refused",
                    "Connections without room, which pass",
                ),
                unknown: counter(
                    "weir_enforce_unknown_packets",
                    "Packets of connections that are not followed",
                ),
                lowered: counter("weir_enforce_lowered_windows", "Receive windows lowered"),
                lost_reports: counter("weir_enforce_lost_reports", "Reports without room"),
                delivered: counter(
                    "weir_enforce_delivered_bytes",
                    "Bytes of controlled flows that have arrived",
                ),
                marked: counter(
                    "weir_enforce_marked_bytes",
                    "Bytes of controlled flows whose acknowledgments told of marks",
                ),
                sent_again: counter(
                    "weir_enforce_sent_again_bytes",
                    "Bytes of controlled flows that their senders sent again",
                ),
            };
            registry.register(
                "weir_enforce_flows",
                "Flows that are controlled",
                figures.controlled.clone(),
            );
            figures
        })
    }

    /// What the flows of one report have newly told, in bytes.
    pub(super) fn add(&self, delivered: u64, marked: u64, sent_again: u64) {
        self.delivered.inc_by(delivered);
        self.marked.inc_by(marked);
        self.sent_again.inc_by(sent_again);
    }

    /// Brings the others up to date.
    pub(super) fn set(&self, totals: &Totals) {
        self.controlled
            .set(i64::try_from(totals.controlled).unwrap_or(i64::MAX));
        let raise = |counter: &Counter, to: u64| {
            counter.inc_by(to.saturating_sub(counter.get()));
        };
        raise(&self.passed, totals.passed);
        raise(&self.opened, totals.kernel.opened);
        raise(&self.closed, totals.kernel.closed);
        raise(&self.refused, totals.kernel.refused);
        raise(&self.unknown, totals.kernel.unknown_packets);
        raise(&self.lowered, totals.kernel.lowered);
        raise(&self.lost_reports, totals.kernel.lost_reports);
    }
}
