//! The load that all groups together offer to the links.

use weir_units::Time;

use crate::topology::LinkClass;
use crate::{Crossings, PortIndex, Routes, Scenario, Workload};

impl Scenario {
    /// Returns whether flows arrive at random, or from a trace: the load that they offer is then known, and results
    /// report it.
    pub fn has_arrivals(&self) -> bool {
        let mut workloads = self.groups.iter().map(|group| &group.workload);
        workloads
            .any(|workload| matches!(workload, Workload::Poisson { .. } | Workload::Trace { .. }))
    }

    /// Returns the classes of links whose load results report: those that a group's `load` is of, and those of
    /// all links. Each set of links occurs once.
    pub fn reported_link_classes(&self) -> Vec<LinkClass> {
        let named = self.groups.iter().filter_map(|group| group.load.as_ref());
        let named = named.map(|load| load.of.clone());
        let mut classes: Vec<LinkClass> = Vec::new();
        for class in named.chain(self.topology.link_classes()) {
            if classes.iter().all(|found| found.ports != class.ports) {
                classes.push(class);
            }
        }
        classes
    }

    /// Returns the mean utilization of a class of links by the data of all groups, if the network carried all of
    /// them; `None` if a group's workload does not say how much it sends. `crossings` has those of each group.
    pub fn expected_load(&self, class: &LinkClass, crossings: &[Crossings]) -> Option<f64> {
        let end = Time::ZERO + self.duration;
        let groups = self.groups.iter().zip(crossings);
        groups
            .map(|(group, crossings)| group.expected_load(class, &self.topology, crossings, end))
            .sum()
    }

    /// Returns the crossings of each group.
    pub fn crossings(&self, routes: &Routes) -> Vec<Crossings> {
        let groups = self.groups.iter();
        groups
            .map(|group| group.crossings(&self.topology, routes))
            .collect()
    }

    /// Returns the link that random arrivals, traces and constant rates load most at any time, and its load.
    pub(crate) fn most_loaded_link(&self) -> Option<(PortIndex, f64)> {
        let crossings = self.crossings(&self.topology.routes());
        let end = Time::ZERO + self.duration;
        // From each change of a load on, how much each group offers.
        let factors = (0..self.groups.len()).map(|group| self.load_factors(group));
        let factors: Vec<_> = factors.collect();
        let phases = 0..factors.first().map_or(0, Vec::len);
        let load = |port: PortIndex| {
            let class = LinkClass {
                name: String::new(),
                ports: vec![port],
            };
            let groups = self.groups.iter().zip(&crossings);
            let loads = groups.map(|(group, crossings)| {
                let load = group.expected_load(&class, &self.topology, crossings, end);
                load.unwrap_or(0.0)
            });
            let loads: Vec<f64> = loads.collect();
            let of_phase = |phase: usize| {
                let parts = loads.iter().zip(&factors);
                parts
                    .map(|(load, factors)| load * factors[phase].1)
                    .sum::<f64>()
            };
            (port, phases.clone().map(of_phase).fold(0.0, f64::max))
        };
        let ports = self.topology.port_indices().map(load);
        ports.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScenarioError;

    /// Two racks of four hosts with 10 Gbit/s, and two spines with as much to each rack.
    fn leaf_spine(workload: &str) -> Result<Scenario, ScenarioError> {
        let mut text = "
            title = 't'
            source = 's'
            duration = '100ms'
            [switches.leaf1]
            [switches.leaf2]
            [switches.spine1]
            [switches.spine2]
            "
        .to_owned();
        let rates = "rate = '10Gbps'\ndelay = '1us'\n";
        for rack in [1, 2] {
            text += &format!(
                "[hosts.rack{rack}-]\ncount = 4\n\
                 [[links]]\nfrom = 'rack{rack}-'\nto = 'leaf{rack}'\n{rates}\
                 [[links]]\nfrom = 'leaf{rack}'\nto = 'spine*'\n{rates}"
            );
        }
        text += &format!(
            "[groups.g]\nfrom = 'rack*'\nto = 'rack*'\nworkload = {{ kind = 'poisson', \
             distribution = [['1448B', 1.0]], {workload} }}\n"
        );
        Scenario::parse("t.toml", &text, &[]).map(|loaded| loaded.scenario)
    }

    fn interval(scenario: &Scenario) -> u64 {
        match scenario.groups[0].workload {
            Workload::Poisson { mean_interval, .. } => mean_interval.as_nanos(),
            _ => 0,
        }
    }

    #[test]
    fn a_load_gives_the_rate_of_arrivals() {
        // One packet of 1538 bytes per flow is 1230.4 ns on a link; eight hosts share the flows.
        let scenario = leaf_spine("load = 0.6, of = 'hosts'").unwrap();
        assert_eq!(interval(&scenario), (1230.4 / 8.0 / 0.6_f64).round() as u64);
        // Of the 56 pairs 32 are of two racks; each way 16 of them share two links.
        let scenario = leaf_spine("load = 0.6, of = 'leaf->spine'").unwrap();
        let expected = 1230.4 * 32.0 / 56.0 / 4.0 / 0.6_f64;
        assert_eq!(interval(&scenario), expected.round() as u64);
        let crossings = scenario.crossings(&scenario.topology.routes());
        let load = |name| {
            let class = scenario.topology.link_class(name).unwrap();
            scenario.expected_load(&class, &crossings).unwrap()
        };
        assert!((load("leaf->spine") - 0.6).abs() < 0.002);
        assert!((load("spine->leaf") - 0.6).abs() < 0.002);
        assert!((load("hosts") - 0.6 * 56.0 / 32.0 / 2.0).abs() < 0.002);
        let names = scenario.reported_link_classes().into_iter();
        let names: Vec<_> = names.map(|class| class.name).collect();
        assert_eq!(
            names,
            ["leaf->spine", "hosts", "leaf->hosts", "spine->leaf"]
        );
    }

    #[test]
    fn a_load_without_a_class_is_refused() {
        let refused = |workload: &str, words: &[&str]| {
            let error = leaf_spine(workload).unwrap_err().to_string();
            for word in words {
                assert!(error.contains(word), "{word} is missing in {error}");
            }
        };
        refused(
            "load = 0.6",
            &[
                "t.toml:",
                "groups.g.workload.load: ",
                "`of` does not say which",
                "`of = \"hosts\"`",
                "\"leaf->spine\"",
            ],
        );
        refused(
            "load = 0.6, of = 'leaf1->spine1'",
            &[
                "groups.g.workload.of: ",
                "one link, which 14.3 % of the group's flows cross",
                "mean_interval",
            ],
        );
        refused(
            "load = 0.6, of = 'leaf->core'",
            &["there is no class of links `leaf->core`", "spine->leaf"],
        );
        refused("load = 11, of = 'hosts'", &["outside"]);
        refused("of = 'hosts'", &["mean_interval"]);
    }
}
