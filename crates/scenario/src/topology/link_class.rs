//! Classes of links: the hosts' links, and those from one tier of nodes to another.

use std::collections::HashSet;

use super::names::matches;
use super::{Node, PortIndex, SwitchIndex, Topology};

/// The tier of all hosts, and the class of their links.
const HOSTS: &str = "hosts";
/// What stands between the two tiers in a class's name.
const ARROW: &str = "->";

/// Links that are alike, each in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkClass {
    /// Its name: `hosts`, `leaf->spine`, `bottleneck`.
    pub name: String,
    /// The ports that send on them.
    pub ports: Vec<PortIndex>,
}

impl Topology {
    /// Returns the class that a name refers to: `hosts` for the links from each host, the name of a port, or
    /// `FROM->TO` for the links from the nodes that `FROM` names to those that `TO` names. `None` if there are
    /// no such links.
    ///
    /// `FROM` and `TO` are the name of a node, or a pattern such as `leaf*`, or a name without its number:
    /// `leaf` for `leaf1`, `leaf2` and so on; or `hosts` for all hosts.
    pub fn link_class(&self, name: &str) -> Option<LinkClass> {
        let class = |ports: Vec<PortIndex>| {
            let name = name.to_owned();
            (!ports.is_empty()).then_some(LinkClass { name, ports })
        };
        if let Some(port) = self.port_by_name(name) {
            return class(vec![port]);
        }
        if name == HOSTS {
            let ports = self.port_indices();
            let from_host = |port: &PortIndex| self.port(*port).from.host().is_some();
            return class(ports.filter(from_host).collect());
        }
        let (from, to) = name.split_once(ARROW)?;
        let (from, to) = (self.side(from.trim()), self.side(to.trim()));
        let between = |port: &PortIndex| {
            let port = self.port(*port);
            from.contains(&port.from) && to.contains(&port.to)
        };
        class(self.port_indices().filter(between).collect())
    }

    /// Returns the classes of all links: from each tier to each other one, the hosts as one tier, in the order
    /// of the topology's ports. A tier is the nodes whose names are equal without their numbers.
    pub fn link_classes(&self) -> Vec<LinkClass> {
        let mut classes: Vec<LinkClass> = Vec::new();
        for index in self.port_indices() {
            let port = self.port(index);
            let name = match port.from.host() {
                Some(_) => HOSTS.to_owned(),
                None => format!("{}{ARROW}{}", self.tier(port.from), self.tier(port.to)),
            };
            match classes.iter_mut().find(|class| class.name == name) {
                Some(class) => class.ports.push(index),
                None => classes.push(LinkClass {
                    name,
                    ports: vec![index],
                }),
            }
        }
        classes
    }

    /// Returns the tier of a node.
    fn tier(&self, node: Node) -> &str {
        match node {
            Node::Host(_) => HOSTS,
            Node::Switch(_) => without_number(self.name(node)),
        }
    }

    /// Returns the switches that the name of one, a pattern, or a name without its number refers to.
    pub(crate) fn switches_named(&self, name: &str) -> Vec<SwitchIndex> {
        let named = self.side(name.trim());
        let switches = self.switch_indices();
        switches
            .filter(|switch| named.contains(&Node::Switch(*switch)))
            .collect()
    }

    /// Returns the nodes that one side of a class's name refers to.
    fn side(&self, name: &str) -> HashSet<Node> {
        let hosts = || self.host_indices().map(Node::Host);
        let nodes = || hosts().chain(self.switch_indices().map(Node::Switch));
        let named = |fits: &dyn Fn(&str) -> bool| -> HashSet<Node> {
            nodes().filter(|node| fits(self.name(*node))).collect()
        };
        let exact = named(&|found| found == name);
        if !exact.is_empty() {
            return exact;
        }
        if name == HOSTS {
            return hosts().collect();
        }
        if name.contains('*') {
            return named(&|found| matches(name, found));
        }
        named(&|found| without_number(found) == name)
    }
}

/// Returns a name without the digits at its end.
fn without_number(name: &str) -> &str {
    name.trim_end_matches(|digit: char| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const LEAF_SPINE: &str = "
        title = 't'
        source = 's'
        duration = '1s'
        [hosts.red]
        count = 3
        [hosts.blue]
        [switches.leaf1]
        [switches.leaf2]
        [switches.spine1]
        [switches.spine2]
        [[links]]
        from = 'red'
        to = 'leaf1'
        rate = '10Gbps'
        delay = '1us'
        [[links]]
        from = 'blue'
        to = 'leaf2'
        rate = '10Gbps'
        delay = '1us'
        [[links]]
        from = 'leaf1'
        to = 'spine*'
        rate = '10Gbps'
        delay = '1us'
        [[links]]
        from = 'leaf2'
        to = 'spine*'
        rate = '10Gbps'
        delay = '1us'
        [groups.g]
        from = 'red'
        to = 'blue'
        workload = 'bulk'";

    #[test]
    fn a_class_has_the_links_between_two_tiers() {
        let topology = Scenario::parse("t.toml", LEAF_SPINE, &[])
            .unwrap()
            .scenario
            .topology;
        let count = |name| topology.link_class(name).map(|class| class.ports.len());
        for (name, links) in [
            ("hosts", 4),
            ("leaf->spine", 4),
            ("spine->leaf", 4),
            ("leaf1->spine", 2),
            ("leaf1->spine2", 1),
            ("leaf*->hosts", 4),
            ("red->leaf", 3),
            ("red -> leaf1", 3),
            ("blue->leaf2", 1),
        ] {
            assert_eq!(count(name), Some(links), "{name}");
        }
        for name in ["", "leaf", "spine->red", "leaf->core", "red->leaf2"] {
            assert_eq!(count(name), None, "{name}");
        }
        let classes = topology.link_classes();
        let names: Vec<_> = classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(
            names,
            ["hosts", "leaf->hosts", "leaf->spine", "spine->leaf"]
        );
        let links: usize = classes.iter().map(|class| class.ports.len()).sum();
        assert_eq!(links, topology.ports.len());
    }
}
