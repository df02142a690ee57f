//! An experiment, checked and expanded.

use weir_units::Duration;

use crate::{Fault, Group, LiveOptions, Measurements, SedOptions, Topology};

/// An experiment: everything that decides its outcome, checked. Short forms are expanded, defaults
/// filled in, names resolved.
///
/// It serializes as a scenario file in the general form, which loads as an equal scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is, in one line.
    pub title: String,
    /// Where it comes from: paper and section, or another reference.
    pub source: String,
    /// Every random choice follows from it.
    pub seed: u64,
    /// How much time is simulated; less, where the workload `epochs` is complete before.
    pub duration: Duration,
    /// How much of it, from the start, no average counts.
    pub warm_up: Duration,
    /// The network.
    pub topology: Topology,
    /// The flows, in the file's order.
    pub groups: Vec<Group>,
    /// What goes wrong, in the file's order.
    pub faults: Vec<Fault>,
    /// What is watched.
    pub measurements: Measurements,
    /// The controller that gives flows their windows, if there is one.
    pub sed: Option<SedOptions>,
    /// What only a live run needs to know.
    pub live: LiveOptions,
}

impl Scenario {
    /// The group called `name`.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}
