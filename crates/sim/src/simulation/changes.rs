//! Changes of settings at their times.

use weir_scenario::{ChangeSchedule, ChangedSettings};

use super::Simulation;

impl Simulation {
    /// Applies the changes that are due.
    pub(super) fn apply_changes(&mut self) {
        let now = self.now;
        let Some(schedule) = &mut self.changes else {
            return;
        };
        while let Some(change) = schedule.due(now) {
            let schedule: &ChangeSchedule = schedule;
            let world = &mut self.world;
            match change.set {
                ChangedSettings::Queues { ports, .. } => {
                    for port in ports {
                        world.change_queue(now, port, schedule.port(port));
                    }
                }
                ChangedSettings::SharedBuffers { switches, .. } => {
                    for switch in switches {
                        if let Some(buffer) = &schedule.switch(switch).shared_buffer {
                            world.change_shared_buffer(switch, buffer);
                        }
                    }
                }
                ChangedSettings::Groups {
                    groups,
                    congestion,
                    workload,
                } => {
                    for group in groups {
                        let settings = schedule.group(group);
                        let spec = settings.transport.congestion();
                        if let Some(spec) = spec.filter(|_| !congestion.is_empty()) {
                            world.change_congestion(now, group as u32, spec);
                        }
                        if !workload.is_empty() {
                            self.groups[group].change_load(now, settings);
                        }
                    }
                }
            }
        }
    }
}
