//! The changes of a scenario's settings, as results record them.

use weir_results::ChangeRecord;
use weir_scenario::{Change, ChangedSettings, Scenario};
use weir_units::Time;

/// Returns the changes before a time, in the order of theirs.
pub fn change_records(scenario: &Scenario, end: Time) -> Vec<ChangeRecord> {
    let mut changes: Vec<&Change> = scenario.changes.iter().collect();
    changes.retain(|change| change.at < end);
    // The sort is stable: simultaneous changes keep the file's order.
    changes.sort_by_key(|change| change.at);
    changes
        .into_iter()
        .map(|change| record(change, scenario))
        .collect()
}

fn record(change: &Change, scenario: &Scenario) -> ChangeRecord {
    let topology = &scenario.topology;
    let within = |table: &str, values: Vec<(&'static str, String)>| {
        let values = values.into_iter();
        let values = values.map(|(key, value)| (format!("{table}.{key}"), value));
        values.collect::<Vec<_>>()
    };
    let (of, set): (Vec<String>, _) = match &change.set {
        ChangedSettings::Queues { ports, queue } => {
            let names = ports.iter().map(|port| topology.port(*port).name.clone());
            (names.collect(), within("queue", queue.values()))
        }
        ChangedSettings::SharedBuffers { switches, buffer } => {
            let names = switches.iter();
            let names = names.map(|switch| topology.switch(*switch).name.clone());
            (names.collect(), within("shared_buffer", buffer.values()))
        }
        ChangedSettings::Groups {
            groups,
            congestion,
            workload,
        } => {
            let names = groups
                .iter()
                .map(|group| scenario.groups[*group].name.clone());
            let parameters = congestion.iter();
            let parameters = parameters.map(|(name, value)| (*name, value.to_string()));
            let mut set = within("congestion", parameters.collect());
            set.extend(within("workload", workload.values()));
            (names.collect(), set)
        }
    };
    ChangeRecord {
        at: change.at.since(Time::ZERO),
        of,
        set: set.into_iter().collect(),
    }
}
