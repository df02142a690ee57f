//! Deadline statistics of a simulation's transfers.

use weir_network::{DueTransfer, deadline_summary};
use weir_results::DeadlineSummary;
use weir_scenario::Scenario;
use weir_units::Time;

use crate::world::World;

/// Iterates over a group's transfers that were due by `now`.
fn due(world: &World, group: u32, now: Time) -> impl Iterator<Item = DueTransfer> {
    let over = world.flows.group_stats[group as usize].due.iter().copied();
    let flows = world
        .flows
        .open
        .iter()
        .filter(move |(_, flow)| flow.group == group);
    let open = flows.filter_map(|(_, flow)| flow.due_transfer());
    over.chain(open.filter(move |transfer| transfer.deadline <= now))
}

/// Returns how many of a group's transfers were late, if it has deadlines.
pub(crate) fn missed(world: &World, group: u32, now: Time) -> Option<u64> {
    world.deadline_of(group)?;
    let missed = due(world, group, now).filter(DueTransfer::is_missed);
    Some(missed.count() as u64)
}

/// Summarizes all transfers with deadlines, if there are any.
pub(crate) fn summary(world: &World, scenario: &Scenario, now: Time) -> Option<DeadlineSummary> {
    let groups = 0..scenario.groups.len() as u32;
    let all = groups.flat_map(|group| due(world, group, now));
    deadline_summary(scenario, Time::ZERO + scenario.warm_up, all.collect(), now)
}
