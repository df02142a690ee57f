//! The metrics of the controller of policies.

use weir_metrics::{Registry, Row, Table};
use weir_rollout::Fleet;

/// The values.
#[derive(Clone, Copy, Debug, Default)]
struct FleetValues {
    leads: u64,
    attached: u64,
    known: u64,
    decision: u64,
    everywhere: u64,
    on_its_way: u64,
    stage: u64,
    pending: u64,
    refusing: u64,
    ahead: u64,
    log: u64,
    store_failures: u64,
}

static ROWS: [Row<FleetValues>; 12] = [
    Row::gauge("leader", "1 if this controller decides", |is| is.leads),
    Row::gauge("hosts", "Hosts that are attached", |is| is.attached),
    Row::gauge("known_hosts", "Hosts that have ever attached", |is| {
        is.known
    }),
    Row::gauge("decision", "The number of the last decision", |is| {
        is.decision
    }),
    Row::gauge(
        "version",
        "The version that all hosts have; 0 for none",
        |is| is.everywhere,
    ),
    Row::gauge(
        "rollout_version",
        "The version on its way; 0 for none",
        |is| is.on_its_way,
    ),
    Row::gauge(
        "rollout_stage",
        "Its stage, from 1 on; 0 without one",
        |is| is.stage,
    ),
    Row::gauge(
        "rollout_pending_hosts",
        "Attached hosts of the stage that do not have it yet",
        |is| is.pending,
    ),
    Row::gauge(
        "rollout_refusing_hosts",
        "Attached hosts that cannot put it in force",
        |is| is.refusing,
    ),
    Row::gauge(
        "store_is_old",
        "1 if hosts have a decision that the store does not know",
        |is| is.ahead,
    ),
    Row::gauge("log_entries", "Entries of the audit log", |is| is.log),
    Row::counter(
        "store_failures",
        "Decisions that could not be kept, and do not hold",
        |is| is.store_failures,
    ),
];

/// Registers the metrics of controllers of policies, as the first one with this registry does.
pub fn register_fleet_metrics(registry: &Registry) {
    registry.shared(register);
}

fn register(registration: &mut weir_metrics::Registration<'_>) -> Table<FleetValues> {
    Table::register(&mut registration.with_prefix("weir_policy"), &ROWS)
}

/// The metrics, and the values last exported.
#[derive(Debug)]
pub(crate) struct FleetMetrics {
    table: Table<FleetValues>,
    reported: FleetValues,
    store_failures: u64,
}

impl FleetMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            table: registry.shared(register),
            reported: FleetValues::default(),
            store_failures: 0,
        }
    }

    /// Notes that another controller leads, or none.
    pub(super) fn follows(&mut self) {
        self.export(FleetValues::default());
    }

    pub(super) fn store_failed(&mut self) {
        self.store_failures += 1;
        self.export(self.reported);
    }

    /// Updates the metrics.
    pub(super) fn show(&mut self, fleet: &Fleet) {
        let status = fleet.counts();
        let state = fleet.state();
        self.export(FleetValues {
            leads: 1,
            attached: status.attached,
            known: status.known,
            decision: state.revision,
            everywhere: state.stable,
            on_its_way: { state.rollout.as_ref() }.map_or(0, |rollout| rollout.version),
            stage: { state.rollout.as_ref() }.map_or(0, |rollout| rollout.stage as u64 + 1),
            pending: status.pending,
            refusing: status.refusing,
            ahead: status.is_behind.into(),
            log: fleet.last_entry(),
            store_failures: 0,
        });
    }

    fn export(&mut self, values: FleetValues) {
        let values = FleetValues {
            store_failures: self.store_failures,
            ..values
        };
        self.table.add(&values, &self.reported);
        self.reported = values;
    }
}
