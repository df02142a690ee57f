//! The routing tables of a topology.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{HostIndex, Node, PortIndex, SwitchIndex, Topology};

/// The next hops at every node for every destination: all ports on a shortest path, or those of an
/// explicit [`Route`](super::Route).
#[derive(Clone, Debug)]
pub struct Routes {
    hosts: usize,
    /// For each switch and host, an index into `choices`.
    table: Vec<u32>,
    /// Lists of ports; the first is empty.
    choices: Vec<Vec<PortIndex>>,
    /// The ports of each host.
    uplinks: Vec<Vec<PortIndex>>,
    /// The receiving node of each port.
    ends: Vec<Node>,
    /// For each switch and host, the number of links of the shortest paths between them.
    distances: Vec<u32>,
    /// The ports of each switch that lead to other switches.
    between_switches: Vec<Vec<PortIndex>>,
}

const FAR: u32 = u32::MAX;

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathFault {
    /// It ends at a node that has no route to the destination.
    DeadEnd,
    /// It returns to the first of these switches from the last one.
    Loop(Vec<SwitchIndex>),
}

/// The switches of a search.
#[derive(Debug, Default)]
struct Walk {
    /// Those on the way to the current one.
    path: Vec<SwitchIndex>,
    /// All so far.
    passed: HashSet<SwitchIndex>,
}

impl Routes {
    pub(super) fn new(topology: &Topology) -> Self {
        let (hosts, switches) = (topology.hosts.len(), topology.switches.len());
        let mut routes = Self {
            hosts,
            table: vec![0; hosts * switches],
            choices: vec![Vec::new()],
            uplinks: vec![Vec::new(); hosts],
            ends: topology.ports.iter().map(|port| port.to).collect(),
            distances: vec![FAR; hosts * switches],
            between_switches: vec![Vec::new(); switches],
        };
        // A host's links are its own ports; the ports in the other direction belong to the switches.
        for index in topology.port_indices() {
            let port = topology.port(index);
            match (port.from, port.to) {
                (Node::Host(host), _) => routes.uplinks[host.index()].push(index),
                (Node::Switch(switch), Node::Switch(_)) => {
                    routes.between_switches[switch.index()].push(index);
                }
                (Node::Switch(_), Node::Host(_)) => {}
            }
        }
        routes.fill();
        routes.choose(topology);
        routes
    }

    /// Returns the egress ports of `switch` for packets to `destination`; none if there is no path.
    /// If there are several, each flow takes one of them.
    pub fn from_switch(&self, switch: SwitchIndex, destination: HostIndex) -> &[PortIndex] {
        let choice = self.table[switch.index() * self.hosts + destination.index()];
        &self.choices[choice as usize]
    }

    /// Returns the egress ports of `switch` for packets that must reach `host` by the link of its
    /// port `uplink`: those of [`Self::from_switch`] that lead to that link, or else the shortest
    /// paths to it. If no path leads to that link, returns the ports by which the host is reachable
    /// at all.
    pub fn to_uplink(
        &self,
        switch: SwitchIndex,
        host: HostIndex,
        uplink: PortIndex,
    ) -> Vec<PortIndex> {
        let Some(last) = self.ends[uplink.index()].switch() else {
            return Vec::new();
        };
        if switch == last {
            return vec![uplink.reverse()];
        }
        let ways = self.from_switch(switch, host).iter().copied();
        let ways: Vec<_> = ways
            .filter(|way| self.passes_switch(*way, host, last, self.between_switches.len()))
            .collect();
        if !ways.is_empty() {
            return ways;
        }
        let distances = self.search(&[last]);
        let links = self.between_switches[switch.index()].iter().copied();
        let ways: Vec<_> = links
            .filter(|port| self.is_nearer(&distances, switch.index(), *port))
            .collect();
        if ways.is_empty() {
            self.from_switch(switch, host).to_vec()
        } else {
            ways
        }
    }

    /// Returns whether packets to `host` that leave by `port` may pass the switch `last`, with at
    /// most `steps` switches on the path.
    fn passes_switch(
        &self,
        port: PortIndex,
        host: HostIndex,
        last: SwitchIndex,
        steps: usize,
    ) -> bool {
        let (Some(next), Some(steps)) = (self.ends[port.index()].switch(), steps.checked_sub(1))
        else {
            return false;
        };
        let mut ways = self.from_switch(next, host).iter();
        next == last || ways.any(|way| self.passes_switch(*way, host, last, steps))
    }

    /// Returns whether `port` of `switch` leads to a switch that is one link nearer.
    fn is_nearer(&self, distances: &[u32], switch: usize, port: PortIndex) -> bool {
        match self.ends[port.index()] {
            Node::Switch(next) => distances[next.index()] < distances[switch],
            Node::Host(_) => false,
        }
    }

    /// Returns all ports of the host `from` by which packets reach `destination`, at any distance.
    pub fn all_from_host(&self, from: HostIndex, destination: HostIndex) -> Vec<PortIndex> {
        let uplinks = self.uplinks[from.index()].iter();
        let reaches = |port: &&PortIndex| self.distance(**port, destination) < FAR;
        uplinks.filter(reaches).copied().collect()
    }

    /// Returns the number of links between the other end of a host's port and `destination`.
    fn distance(&self, port: PortIndex, destination: HostIndex) -> u32 {
        match self.ends[port.index()] {
            Node::Host(host) if host == destination => 0,
            Node::Host(_) => FAR,
            Node::Switch(switch) => self.distance_from_switch(switch, destination),
        }
    }

    /// Returns the number of links of the shortest paths from a switch to a host.
    pub(super) fn distance_from_switch(&self, switch: SwitchIndex, to: HostIndex) -> u32 {
        self.distances[switch.index() * self.hosts + to.index()]
    }

    /// Returns the egress ports of the host `from` for packets to `destination`.
    pub fn from_host(&self, from: HostIndex, destination: HostIndex) -> Vec<PortIndex> {
        let uplinks = &self.uplinks[from.index()];
        let distance = |port: &PortIndex| self.distance(*port, destination);
        let least = uplinks.iter().map(distance).min().unwrap_or(FAR);
        let nearest = uplinks.iter().filter(|port| distance(port) == least);
        match least {
            FAR => Vec::new(),
            _ => nearest.copied().collect(),
        }
    }

    /// Checks that every path of packets from `from` to `to` ends there.
    ///
    /// # Errors
    /// What is wrong with one that does not.
    pub fn check_paths(&self, from: HostIndex, to: HostIndex) -> Result<(), PathFault> {
        let first = self.from_host(from, to);
        if first.is_empty() {
            return Err(PathFault::DeadEnd);
        }
        let mut walk = Walk::default();
        let mut ports = first.iter();
        ports.try_for_each(|port| self.check_path(*port, to, &mut walk))
    }

    /// Checks the paths of packets to `to` that leave by `port`.
    fn check_path(&self, port: PortIndex, to: HostIndex, walk: &mut Walk) -> Result<(), PathFault> {
        let switch = match self.ends[port.index()] {
            Node::Host(host) if host == to => return Ok(()),
            Node::Host(_) => return Err(PathFault::DeadEnd),
            Node::Switch(switch) => switch,
        };
        if let Some(first) = walk.path.iter().position(|passed| *passed == switch) {
            return Err(PathFault::Loop(walk.path[first..].to_vec()));
        }
        // A fault would have ended the search.
        if !walk.passed.insert(switch) {
            return Ok(());
        }
        let ports = self.from_switch(switch, to);
        if ports.is_empty() {
            return Err(PathFault::DeadEnd);
        }
        walk.path.push(switch);
        for port in ports {
            self.check_path(*port, to, walk)?;
        }
        walk.path.pop();
        Ok(())
    }

    /// Fills in the shortest paths. Hosts with the same switches share their paths up to the last link.
    fn fill(&mut self) {
        let mut classes: HashMap<Vec<SwitchIndex>, Vec<HostIndex>> = HashMap::new();
        for (host, uplinks) in self.uplinks.iter().enumerate() {
            let ends = uplinks.iter().map(|port| self.ends[port.index()]);
            let mut switches: Vec<_> = ends.filter_map(Node::switch).collect();
            switches.sort_unstable();
            let members = classes.entry(switches).or_default();
            members.push(HostIndex(host as u32));
        }
        // Positions in `choices` must not depend on the order of a hash table.
        let mut classes: Vec<_> = classes.into_iter().collect();
        classes.sort_unstable();
        for (switches, hosts) in classes {
            self.fill_class(&switches, &hosts);
        }
    }

    fn fill_class(&mut self, attached: &[SwitchIndex], hosts: &[HostIndex]) {
        let distances = self.search(attached);
        for (switch, distance) in distances.iter().copied().enumerate() {
            // At a distance of one link, each host has its own last port.
            let shared = (distance != FAR && distance > 1).then(|| {
                let ports = self.between_switches[switch].iter().copied();
                let nearer = |port: &PortIndex| self.is_nearer(&distances, switch, *port);
                let ports = ports.filter(nearer).collect();
                self.add_choice(ports)
            });
            for host in hosts {
                let slot = switch * self.hosts + host.index();
                self.distances[slot] = distance;
                if let Some(choice) = shared {
                    self.table[slot] = choice;
                } else if distance == 1 {
                    let uplinks = self.uplinks[host.index()].iter();
                    let here = Node::Switch(SwitchIndex(switch as u32));
                    let ports = uplinks
                        .filter(|port| self.ends[port.index()] == here)
                        .map(|port| port.reverse())
                        .collect();
                    self.table[slot] = self.add_choice(ports);
                }
            }
        }
    }

    fn add_choice(&mut self, ports: Vec<PortIndex>) -> u32 {
        self.choices.push(ports);
        (self.choices.len() - 1) as u32
    }

    /// Returns the number of links from each switch to a host that is attached to all of `attached`.
    fn search(&self, attached: &[SwitchIndex]) -> Vec<u32> {
        let mut distances = vec![FAR; self.between_switches.len()];
        let mut frontier: VecDeque<_> = attached.iter().map(|switch| switch.index()).collect();
        for switch in &frontier {
            distances[*switch] = 1;
        }
        while let Some(switch) = frontier.pop_front() {
            for port in &self.between_switches[switch] {
                let Some(next) = self.ends[port.index()].switch() else {
                    continue;
                };
                if distances[next.index()] == FAR {
                    distances[next.index()] = distances[switch] + 1;
                    frontier.push_back(next.index());
                }
            }
        }
        distances
    }

    /// Replaces shortest paths with explicit routes; the later of two for the same packets wins.
    fn choose(&mut self, topology: &Topology) {
        for route in &topology.explicit_routes {
            let choice = self.add_choice(route.via.clone());
            for host in &route.to {
                self.table[route.switch.index() * self.hosts + host.index()] = choice;
            }
        }
    }
}
