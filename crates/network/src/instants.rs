//! What happens to a scenario at known times, for people.

use weir_scenario::{Fault, FaultPeriod, Scenario};
use weir_units::Time;

use crate::changes::change_records;

/// How many ports a text names.
const SHOWN: usize = 3;

/// Returns the changes and faults of a scenario before its end, in the order of their times. Faults by epochs have no
/// times.
pub fn instants(scenario: &Scenario) -> Vec<(Time, String)> {
    let end = Time::ZERO + scenario.duration;
    let changes = change_records(scenario, end);
    let mut found: Vec<_> = (changes.iter())
        .map(|change| (Time::ZERO + change.at, change.to_string()))
        .collect();
    for fault in &scenario.faults {
        let FaultPeriod::Time { at, until } = fault.when else {
            continue;
        };
        let text = text(fault, scenario);
        found.push((at, format!("begins: {text}")));
        found.extend(until.map(|until| (until, format!("ends: {text}"))));
    }
    found.retain(|(at, _)| *at < end);
    found.sort_by_key(|(at, _)| *at);
    found
}

fn text(fault: &Fault, scenario: &Scenario) -> String {
    let ports = fault.ports.iter().take(SHOWN);
    let names: Vec<_> = ports
        .map(|port| scenario.topology.port(*port).name.as_str())
        .collect();
    let more = match fault.ports.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} of {}{more}", fault.kind.name(), names.join(", "))
}
