//! The faults of a scenario as changes to ports at points in time.

use std::collections::BTreeSet;
use std::mem::discriminant;

use weir_fabric::{Change, Probability, Reordering};
use weir_scenario::{Fault, FaultKind, PortIndex, Scenario};
use weir_units::{Duration, Time};

/// All changes, in the order of their times.
pub(crate) fn changes(scenario: &Scenario) -> Vec<(Time, PortIndex, Change)> {
    let mut changes = Vec::new();
    let ports: BTreeSet<_> = scenario
        .faults
        .iter()
        .flat_map(|fault| &fault.ports)
        .collect();
    for port in ports {
        let here: Vec<_> = scenario
            .faults
            .iter()
            .filter(|fault| fault.ports.contains(port))
            .collect();
        for (position, fault) in here.iter().enumerate() {
            let alike = |other: &&Fault| discriminant(&other.kind) == discriminant(&fault.kind);
            // The first of a kind speaks for all of them.
            if !here.iter().take(position).any(&alike) {
                let kind: Vec<_> = here.iter().copied().filter(alike).collect();
                changes.extend(changes_of_kind(scenario, *port, &kind));
            }
        }
    }
    changes.sort_by_key(|(time, ..)| *time);
    changes
}

/// What faults of one kind make of one port. Where several hold, the last in the file does.
fn changes_of_kind(
    scenario: &Scenario,
    port: PortIndex,
    faults: &[&Fault],
) -> Vec<(Time, PortIndex, Change)> {
    let starts = faults.iter().map(|fault| fault.at);
    let ends = faults.iter().filter_map(|fault| fault.until);
    let times: BTreeSet<Time> = starts.chain(ends).collect();
    let mut last = None;
    let mut changes = Vec::new();
    for time in times {
        let holds =
            |fault: &&&Fault| fault.at <= time && fault.until.is_none_or(|until| time < until);
        let change = match faults.iter().rev().find(holds) {
            Some(fault) => begin(&fault.kind),
            None => end(scenario, port, &faults[0].kind),
        };
        if last != Some(change) {
            changes.push((time, port, change));
            last = Some(change);
        }
    }
    changes
}

fn begin(kind: &FaultKind) -> Change {
    match *kind {
        FaultKind::Down => Change::Down(true),
        FaultKind::Loss { probability } => Change::Loss(probability),
        FaultKind::Duplicate { probability } => Change::Duplication(probability),
        FaultKind::Corrupt { probability } => Change::Corruption(probability),
        FaultKind::Reorder { probability, delay } => {
            Change::Reordering(Reordering { probability, delay })
        }
        FaultKind::Delay { delay } => Change::AddedDelay(delay),
        FaultKind::Jitter { jitter } => Change::Jitter(jitter),
        FaultKind::Rate { rate } => Change::Rate(rate),
    }
}

fn end(scenario: &Scenario, port: PortIndex, kind: &FaultKind) -> Change {
    let never = Probability::default();
    match kind {
        FaultKind::Down => Change::Down(false),
        FaultKind::Loss { .. } => Change::Loss(never),
        FaultKind::Duplicate { .. } => Change::Duplication(never),
        FaultKind::Corrupt { .. } => Change::Corruption(never),
        FaultKind::Reorder { .. } => Change::Reordering(Reordering::default()),
        FaultKind::Delay { .. } => Change::AddedDelay(Duration::ZERO),
        FaultKind::Jitter { .. } => Change::Jitter(Duration::ZERO),
        FaultKind::Rate { .. } => Change::Rate(scenario.topology.port(port).rate),
    }
}
