//! The fleet as an operator sees it.

use std::collections::BTreeMap;

use weir_canary::Summary;
use weir_units::{Duration, Time};

use crate::{Fleet, Held, Labels, State};

/// The state of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetStatus {
    /// What decides.
    pub state: State,
    /// The version on its way.
    pub rollout: Option<RolloutStatus>,
    /// How many hosts are connected, and how many are known.
    pub hosts: (u64, u64),
    /// The same by the version that they run.
    pub by_version: BTreeMap<Option<u64>, (u64, u64)>,
    /// The latest decision that hosts have and this store does not know.
    pub ahead: Option<Held>,
}

/// How many hosts there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Those that are attached.
    pub attached: u64,
    /// Those that have ever attached.
    pub known: u64,
    /// Attached ones of the stage that do not have the version on its way yet.
    pub pending: u64,
    /// Attached ones that refuse it.
    pub refusing: u64,
    /// Whether any has a decision that this store does not know.
    pub is_behind: bool,
}

/// A version on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutStatus {
    /// Connected hosts of the stage that have it.
    pub taken: u64,
    /// Connected hosts of the stage that do not have it yet.
    pub pending: u64,
    /// Connected hosts that refuse it.
    pub refusals: u64,
    /// How long all hosts of the stage have had it; `None` if they do not all have it.
    pub waited: Option<Duration>,
    /// The figures of hosts that have it.
    pub treated: Summary,
    /// The figures of hosts that do not.
    pub control: Summary,
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Whether it is connected.
    pub is_connected: bool,
    /// The version that it runs.
    pub running: Option<u64>,
    /// Since when.
    pub since: Time,
    /// The version that it is to have.
    pub assigned: u64,
    /// What is wrong with it.
    pub problem: Option<String>,
}

impl Fleet {
    /// Counts the hosts.
    pub fn counts(&self) -> HostCounts {
        let rollout = self.state.rollout.as_ref().map(|rollout| rollout.version);
        HostCounts {
            attached: self.hosts.values().filter(|host| host.is_connected).count() as u64,
            known: self.hosts.len() as u64,
            pending: rollout.map_or(0, |version| self.stage_hosts(version).pending),
            refusing: rollout.map_or(0, |version| self.refusals(version)),
            is_behind: self.ahead.is_some(),
        }
    }

    /// Returns the state of the fleet.
    pub fn status(&self, now: Time) -> FleetStatus {
        let (mut hosts, mut by_version) = ((0, 0), BTreeMap::<_, (u64, u64)>::new());
        for host in self.hosts.values() {
            let of_version = by_version.entry(host.record.running).or_default();
            for counts in [&mut hosts, of_version] {
                counts.0 += u64::from(host.is_connected);
                counts.1 += 1;
            }
        }
        let rollout = self.state.rollout.as_ref().map(|rollout| {
            let stage = self.stage_hosts(rollout.version);
            RolloutStatus {
                taken: stage.taken,
                pending: stage.pending,
                refusals: self.refusals(rollout.version),
                waited: { self.settled }.and_then(|settled| now.checked_since(settled)),
                treated: self.watch.treated.summary(),
                control: self.watch.control.summary(),
            }
        });
        FleetStatus {
            state: self.state.clone(),
            rollout,
            hosts,
            by_version,
            ahead: self.ahead.clone(),
        }
    }

    /// Returns hosts in the order of their names, those first that something is wrong with.
    pub fn host_status(&self, most: usize) -> Vec<HostStatus> {
        let (wrong, right): (Vec<_>, Vec<_>) = { self.hosts.values() }
            .map(|host| {
                let ahead = host.ahead.as_ref().filter(|_| host.is_connected);
                let ahead = ahead.map(|held| {
                    format!(
                        "has decision {}, which this store does not know",
                        held.revision
                    )
                });
                let refused = host.refused.as_ref().filter(|_| host.is_connected);
                let refused =
                    refused.map(|(version, reason)| format!("refuses version {version}: {reason}"));
                HostStatus {
                    name: host.record.name.clone(),
                    labels: host.record.labels.clone(),
                    is_connected: host.is_connected,
                    running: host.record.running,
                    since: host.record.since,
                    assigned: host.assigned,
                    problem: ahead.or(refused),
                }
            })
            .partition(|host| host.problem.is_some());
        wrong.into_iter().chain(right).take(most).collect()
    }
}
