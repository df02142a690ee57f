//! The settings in force at a time.

use weir_units::Time;

use super::{Change, ChangedSettings, Misfit};
use crate::{Group, Port, PortIndex, Scenario, Switch, SwitchIndex, Topology, Workload};

/// The changes of a run that are to come, and the settings as those before have left them.
#[derive(Clone, Debug)]
pub struct ChangeSchedule {
    topology: Topology,
    groups: Vec<Group>,
    /// The next one is last.
    to_come: Vec<Change>,
}

impl ChangeSchedule {
    /// Returns the schedule of a scenario at its start; `None` without changes.
    pub fn new(scenario: &Scenario) -> Option<Self> {
        if scenario.changes.is_empty() {
            return None;
        }
        let mut to_come = scenario.changes.clone();
        // The sort is stable: simultaneous changes keep the file's order.
        to_come.sort_by_key(|change| change.at);
        to_come.reverse();
        Some(Self {
            topology: scenario.topology.clone(),
            groups: scenario.groups.clone(),
            to_come,
        })
    }

    /// Creates a schedule of a network and its groups without changes.
    pub(super) fn of(topology: Topology, groups: Vec<Group>) -> Self {
        Self {
            topology,
            groups,
            to_come: Vec::new(),
        }
    }

    /// Returns when the next change is due.
    pub fn timeout(&self) -> Option<Time> {
        self.to_come.last().map(|change| change.at)
    }

    /// Puts the next change that is due by `now` into force, and returns it.
    pub fn due(&mut self, now: Time) -> Option<Change> {
        let change = self.to_come.pop_if(|change| change.at <= now)?;
        // The reader of the file has applied all changes in this order before.
        let fits = self.apply(&change.set);
        debug_assert_eq!(fits, Ok(()));
        Some(change)
    }

    /// Returns a port with the settings in force.
    pub fn port(&self, port: PortIndex) -> &Port {
        self.topology.port(port)
    }

    /// Returns a switch with the settings in force.
    pub fn switch(&self, switch: SwitchIndex) -> &Switch {
        self.topology.switch(switch)
    }

    /// Returns a group with the settings in force.
    pub fn group(&self, group: usize) -> &Group {
        &self.groups[group]
    }

    /// Puts a change into force. A change that does not fit may be in force in part.
    pub(super) fn apply(&mut self, set: &ChangedSettings) -> Result<(), Misfit> {
        match set {
            ChangedSettings::Queues { ports, queue } => ports
                .iter()
                .try_for_each(|port| queue.apply_to(&mut self.topology.ports[port.index()].queue)),
            ChangedSettings::SharedBuffers { switches, buffer } => {
                switches.iter().try_for_each(|switch| {
                    let switch = &mut self.topology.switches[switch.index()];
                    buffer.apply_to(&mut switch.shared_buffer)
                })
            }
            ChangedSettings::Groups {
                groups,
                congestion,
                workload,
            } => groups.iter().try_for_each(|group| {
                let group = &mut self.groups[*group];
                workload.apply_to(group)?;
                if let Some(spec) = group.transport.congestion_mut()
                    && let Ok(changed) = spec.with_changed(congestion)
                {
                    *spec = changed;
                }
                Ok(())
            }),
        }
    }
}

impl Scenario {
    /// Returns how many times its first load a group offers from each of these times on: the start, and each
    /// change of its load.
    pub fn load_factors(&self, group: usize) -> Vec<(Time, f64)> {
        let mut factors = vec![(Time::ZERO, 1.0)];
        let Some(mut schedule) = ChangeSchedule::new(self) else {
            return factors;
        };
        let rate = |group: &Group| match &group.workload {
            Workload::Cbr { rate, .. } => rate.bits_per_second() as f64,
            _ => 1.0 / group.mean_arrival_seconds().unwrap_or(1.0),
        };
        let first = rate(&self.groups[group]);
        while let Some(at) = schedule.timeout() {
            schedule.due(at);
            factors.push((at, rate(schedule.group(group)) / first));
        }
        factors
    }
}
