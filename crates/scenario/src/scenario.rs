//! A checked and expanded experiment.

use weir_congestion::AlgorithmSpec;
use weir_units::Duration;

use crate::{Change, Fault, Group, LiveOptions, Measurements, SedOptions, Topology};

/// An experiment: everything that determines its outcome, checked. Short forms are expanded,
/// defaults filled in, names resolved.
///
/// It serializes as a scenario file in the general form, which loads as an equal scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The title, in one line.
    pub title: String,
    /// The reference for the experiment: paper and section, or another source.
    pub source: String,
    /// The seed of the random number generator.
    pub seed: u64,
    /// The simulated time; less if the workload `epochs` completes earlier.
    pub duration: Duration,
    /// The time at the start that all averages exclude.
    pub warm_up: Duration,
    /// The largest random time that a simulated host takes to process a packet that arrives.
    pub host_jitter: Duration,
    /// The network.
    pub topology: Topology,
    /// The groups of flows, in file order.
    pub groups: Vec<Group>,
    /// The faults, in file order.
    pub faults: Vec<Fault>,
    /// The changes of settings, in file order.
    pub changes: Vec<Change>,
    /// The measured ports and groups.
    pub measurements: Measurements,
    /// The controller that assigns windows to flows, if there is one.
    pub sed: Option<SedOptions>,
    /// Options of live runs.
    pub live: LiveOptions,
}

impl Scenario {
    /// Returns the group called `name`.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns the congestion controls of all groups, and of the rules of all switches, each with the name of the group
    /// or of the switch.
    pub fn congestion(&self) -> impl Iterator<Item = (&str, &AlgorithmSpec)> {
        let groups = self.groups.iter().filter_map(|group| {
            let spec = group.transport.congestion()?;
            Some((&group.name[..], spec))
        });
        let switches = self.topology.switches.iter().flat_map(|switch| {
            let rules = switch.tcon.iter();
            let controls = rules.filter_map(|rule| rule.control.as_ref());
            controls.map(|control| (&switch.name[..], &control.congestion))
        });
        groups.chain(switches)
    }
}
