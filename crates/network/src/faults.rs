//! The faults of a scenario as port changes, at fixed times or at the start of epochs.
//!
//! Faults of one kind never overlap on a port, so one kind never uses both clocks there: the two timelines
//! are independent.

use std::collections::BTreeSet;
use std::mem::discriminant;

use weir_fabric::{PortChange, Probability, Reordering};
use weir_scenario::{Fault, FaultKind, FaultPeriod, PortIndex, Scenario};
use weir_units::{Duration, Time};

/// Returns all link changes at fixed times, in order.
pub fn changes(scenario: &Scenario) -> Vec<(Time, PortIndex, PortChange)> {
    timeline(scenario, by_time)
}

/// Returns all link changes at the start of epochs, in order. Changes at the number of epochs apply
/// after the last epoch.
pub fn epoch_changes(scenario: &Scenario) -> Vec<(u32, PortIndex, PortChange)> {
    timeline(scenario, by_epoch)
}

/// Returns the host ports whose address changes at fixed times, in order.
pub fn address_changes(scenario: &Scenario) -> Vec<(Time, PortIndex)> {
    addresses(scenario, by_time)
}

/// Returns the host ports whose address changes at the start of epochs, in order.
pub fn epoch_address_changes(scenario: &Scenario) -> Vec<(u32, PortIndex)> {
    addresses(scenario, by_epoch)
}

/// Start and end by one of the clocks; `None` for a fault that uses the other.
type Clock<T> = fn(&Fault) -> Option<(T, Option<T>)>;

fn by_time(fault: &Fault) -> Option<(Time, Option<Time>)> {
    match fault.when {
        FaultPeriod::Time { at, until } => Some((at, until)),
        FaultPeriod::Epochs { .. } => None,
    }
}

fn by_epoch(fault: &Fault) -> Option<(u32, Option<u32>)> {
    match fault.when {
        FaultPeriod::Time { .. } => None,
        FaultPeriod::Epochs { at, until } => Some((at, until)),
    }
}

fn addresses<T: Ord + Copy>(scenario: &Scenario, clock: Clock<T>) -> Vec<(T, PortIndex)> {
    let faults = scenario.faults.iter();
    let of_addresses = faults.filter(|fault| fault.kind == FaultKind::Address);
    let mut changes: Vec<_> = of_addresses
        .filter_map(|fault| Some((clock(fault)?.0, &fault.ports)))
        .flat_map(|(at, ports)| ports.iter().map(move |port| (at, *port)))
        .collect();
    changes.sort_by_key(|(at, _)| *at);
    changes
}

fn timeline<T: Ord + Copy>(
    scenario: &Scenario,
    clock: Clock<T>,
) -> Vec<(T, PortIndex, PortChange)> {
    let faults = scenario.faults.iter();
    let faults: Vec<&Fault> = faults
        .filter(|fault| clock(fault).is_some() && fault.kind != FaultKind::Address)
        .collect();
    let ports: BTreeSet<_> = faults.iter().flat_map(|fault| &fault.ports).collect();
    let mut changes = Vec::new();
    for port in ports {
        let faults = faults.iter().copied();
        let here: Vec<_> = faults.filter(|fault| fault.ports.contains(port)).collect();
        for (position, fault) in here.iter().enumerate() {
            let alike = |other: &&Fault| discriminant(&other.kind) == discriminant(&fault.kind);
            // The first of a kind handles all of them.
            if !here.iter().take(position).any(&alike) {
                let kind: Vec<_> = here.iter().copied().filter(alike).collect();
                changes.extend(changes_of_kind(scenario, *port, &kind, clock));
            }
        }
    }
    changes.sort_by_key(|(time, ..)| *time);
    changes
}

/// Returns the changes of one port by faults of one kind. Of several active faults the last in the file
/// applies.
fn changes_of_kind<T: Ord + Copy>(
    scenario: &Scenario,
    port: PortIndex,
    faults: &[&Fault],
    clock: Clock<T>,
) -> Vec<(T, PortIndex, PortChange)> {
    let spans: Vec<_> = faults
        .iter()
        .filter_map(|fault| Some((clock(fault)?, fault.kind)))
        .collect();
    let starts = spans.iter().map(|((at, _), _)| *at);
    let ends = spans.iter().filter_map(|((_, until), _)| *until);
    let times: BTreeSet<T> = starts.chain(ends).collect();
    let mut last = None;
    let mut changes = Vec::new();
    for time in times {
        let mut latest_first = spans.iter().rev();
        let holds = latest_first
            .find(|((at, until), _)| *at <= time && until.is_none_or(|until| time < until));
        let change = match holds {
            Some((_, kind)) => begin(kind),
            None => spans
                .first()
                .and_then(|(_, kind)| end(scenario, port, kind)),
        };
        if last != Some(change) {
            changes.extend(change.map(|change| (time, port, change)));
            last = Some(change);
        }
    }
    changes
}

/// Returns the link change of a fault; `None` if it does not change the link.
fn begin(kind: &FaultKind) -> Option<PortChange> {
    Some(match *kind {
        FaultKind::Down => PortChange::Down(true),
        FaultKind::Loss { probability } => PortChange::Loss(probability),
        FaultKind::Duplicate { probability } => PortChange::Duplication(probability),
        FaultKind::Corrupt { probability } => PortChange::Corruption(probability),
        FaultKind::Reorder { probability, delay } => {
            PortChange::Reordering(Reordering { probability, delay })
        }
        FaultKind::Delay { delay } => PortChange::AddedDelay(delay),
        FaultKind::Jitter { jitter } => PortChange::Jitter(jitter),
        FaultKind::Rate { rate } => PortChange::Rate(rate),
        FaultKind::Address => return None,
    })
}

fn end(scenario: &Scenario, port: PortIndex, kind: &FaultKind) -> Option<PortChange> {
    let never = Probability::default();
    Some(match kind {
        FaultKind::Down => PortChange::Down(false),
        FaultKind::Loss { .. } => PortChange::Loss(never),
        FaultKind::Duplicate { .. } => PortChange::Duplication(never),
        FaultKind::Corrupt { .. } => PortChange::Corruption(never),
        FaultKind::Reorder { .. } => PortChange::Reordering(Reordering::default()),
        FaultKind::Delay { .. } => PortChange::AddedDelay(Duration::ZERO),
        FaultKind::Jitter { .. } => PortChange::Jitter(Duration::ZERO),
        FaultKind::Rate { .. } => PortChange::Rate(scenario.topology.port(port).rate),
        FaultKind::Address => return None,
    })
}
