//! The partition of a topology into shards, for a simulation on several threads.
//!
//! Hosts stay with their switch. The switches of the highest tier, those that are farthest from hosts, are
//! taken away: what still hangs together is a part, such as a pod of a fat tree or a leaf with its hosts.
//! Shards get whole parts, with about as many hosts each, and the switches of the highest tier in turn.

use std::collections::VecDeque;

use thiserror::Error;
use weir_scenario::{HostIndex, Node, PortIndex, SwitchIndex, Topology};
use weir_units::Duration;

/// Which shard owns each host and each switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    shards: usize,
    hosts: Vec<u32>,
    switches: Vec<u32>,
    lookahead: Duration,
}

/// Why a network is not divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Indivisible {
    /// A host has no link or several, or one to another host.
    #[error("a host has not exactly one link, to a switch")]
    Hosts,
    /// All switches have hosts.
    #[error("the network has no tier of switches above those with hosts")]
    Tiers,
    /// There is one part below the highest tier.
    #[error("all hosts are in one part of the network below its highest tier")]
    OnePart,
    /// Fewer than two shards would have enough hosts.
    #[error("the network is small: a thread needs at least {0} hosts")]
    Small(usize),
    /// A link between parts has no delay.
    #[error("a link to the highest tier of switches has no delay")]
    NoDelay,
}

/// A switch that no host reaches.
const FAR: u32 = u32::MAX;

impl Partition {
    /// Divides a topology into two to `most` shards, each with `least_hosts` on the average. It depends on
    /// nothing else.
    ///
    /// # Errors
    /// It cannot be divided.
    pub fn new(topology: &Topology, most: usize, least_hosts: usize) -> Result<Self, Indivisible> {
        let own_switch = own_switches(topology).ok_or(Indivisible::Hosts)?;
        let tiers = tiers(topology, &own_switch);
        let top = tiers.iter().copied().filter(|tier| *tier != FAR).max();
        let top = top.filter(|top| *top > 0).ok_or(Indivisible::Tiers)?;
        let is_above = |switch: usize| tiers[switch] >= top;
        let parts = parts(topology, is_above);

        let mut sizes = vec![0; topology.switches.len()];
        for switch in &own_switch {
            sizes[parts[*switch as usize] as usize] += 1;
        }
        let mut by_size: Vec<usize> = (0..sizes.len()).filter(|part| sizes[*part] > 0).collect();
        by_size.sort_by_key(|part| std::cmp::Reverse(sizes[*part]));
        if by_size.len() < 2 {
            return Err(Indivisible::OnePart);
        }
        let shards = most
            .min(by_size.len())
            .min(own_switch.len() / least_hosts.max(1));
        if shards < 2 {
            return Err(Indivisible::Small(least_hosts));
        }
        // The largest part goes to the shard with the fewest hosts.
        let mut loads = vec![0; shards];
        let mut shard_of_part = vec![0; sizes.len()];
        for part in by_size {
            let least = (0..shards).min_by_key(|shard| loads[*shard]).unwrap_or(0);
            loads[least] += sizes[part];
            shard_of_part[part] = least as u32;
        }
        let mut above = 0;
        let switches = (0..topology.switches.len()).map(|switch| {
            if is_above(switch) {
                above += 1;
                (above - 1) % shards as u32
            } else {
                shard_of_part[parts[switch] as usize]
            }
        });
        let switches: Vec<u32> = switches.collect();
        let hosts = own_switch.iter().map(|switch| switches[*switch as usize]);
        let mut partition = Self {
            shards,
            hosts: hosts.collect(),
            switches,
            lookahead: Duration::MAX,
        };
        let links = topology.port_indices();
        let between = links.filter(|port| {
            partition.of_sender(topology, *port) != partition.of_receiver(topology, *port)
        });
        let delays = between.map(|port| topology.port(port).delay);
        partition.lookahead = delays.min().unwrap_or(Duration::MAX);
        if partition.lookahead.is_zero() {
            return Err(Indivisible::NoDelay);
        }
        Ok(partition)
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Returns the smallest delay of the links between shards: what one does now affects no other before.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// Returns the shard of a host.
    #[inline]
    pub fn of_host(&self, host: HostIndex) -> usize {
        self.hosts[host.index()] as usize
    }

    /// Returns the shard of a switch.
    pub fn of_switch(&self, switch: SwitchIndex) -> usize {
        self.switches[switch.index()] as usize
    }

    /// Returns the shard of the node that sends by this port, which owns the port.
    pub fn of_sender(&self, topology: &Topology, port: PortIndex) -> usize {
        self.of_node(topology.port(port).from)
    }

    /// Returns the shard of the node at the other end of this port's link.
    pub fn of_receiver(&self, topology: &Topology, port: PortIndex) -> usize {
        self.of_node(topology.port(port).to)
    }

    pub(crate) fn hosts(&self) -> &[u32] {
        &self.hosts
    }

    pub(crate) fn switches(&self) -> &[u32] {
        &self.switches
    }

    fn of_node(&self, node: Node) -> usize {
        match node {
            Node::Host(host) => self.of_host(host),
            Node::Switch(switch) => self.of_switch(switch),
        }
    }
}

/// Returns the switch of each host, if each has one link.
fn own_switches(topology: &Topology) -> Option<Vec<u32>> {
    let mut own: Vec<Option<u32>> = vec![None; topology.hosts.len()];
    for port in &topology.ports {
        if let Node::Host(host) = port.from {
            let switch = port.to.switch()?.index() as u32;
            if own[host.index()].replace(switch).is_some() {
                return None;
            }
        }
    }
    own.into_iter().collect()
}

/// Returns the two switches of a link between switches.
fn ends(port: &weir_scenario::Port) -> Option<(usize, usize)> {
    Some((port.from.switch()?.index(), port.to.switch()?.index()))
}

/// Returns, for each switch, the number of links to the next switch that has hosts.
fn tiers(topology: &Topology, own_switch: &[u32]) -> Vec<u32> {
    let mut neighbors = vec![Vec::new(); topology.switches.len()];
    for (from, to) in topology.ports.iter().filter_map(ends) {
        neighbors[from].push(to);
    }
    let mut tiers = vec![FAR; topology.switches.len()];
    let mut reached = VecDeque::new();
    for switch in own_switch {
        if std::mem::replace(&mut tiers[*switch as usize], 0) != 0 {
            reached.push_back(*switch as usize);
        }
    }
    while let Some(switch) = reached.pop_front() {
        for neighbor in neighbors[switch].iter().copied() {
            if tiers[neighbor] == FAR {
                tiers[neighbor] = tiers[switch] + 1;
                reached.push_back(neighbor);
            }
        }
    }
    tiers
}

/// Returns, for each switch, a number that it shares with the switches that hang together with it when
/// those above are taken away: that of the first of them.
fn parts(topology: &Topology, is_above: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut first: Vec<u32> = (0..topology.switches.len() as u32).collect();
    let root = |first: &[u32], mut switch: usize| {
        while first[switch] as usize != switch {
            switch = first[switch] as usize;
        }
        switch
    };
    for (from, to) in topology.ports.iter().filter_map(ends) {
        if !is_above(from) && !is_above(to) {
            let (from, to) = (root(&first, from), root(&first, to));
            first[from.max(to)] = from.min(to) as u32;
        }
    }
    (0..first.len())
        .map(|switch| root(&first, switch) as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_scenario::Scenario;

    use super::*;

    /// Leaves with four hosts each, which all spines link.
    fn leaf_spine(leaves: usize, spines: usize, delay: &str) -> Topology {
        let mut text = String::from(
            "title = \"Leaves\"\nsource = \"a test\"\nduration = \"1ms\"\n\
             [groups.flows]\nfrom = \"host-1-1\"\nto = \"host-1-2\"\nworkload = \"bulk\"\n",
        );
        for leaf in 1..=leaves {
            text += &format!("[hosts.host-{leaf}-]\ncount = 4\n[switches.leaf-{leaf}]\n");
        }
        for spine in 1..=spines {
            text += &format!("[switches.spine-{spine}]\n");
        }
        let mut link = |from: &str, to: &str| {
            text += &format!(
                "[[links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Gbps\"\ndelay = \"{delay}\"\n"
            );
        };
        for leaf in 1..=leaves {
            link(&format!("host-{leaf}-"), &format!("leaf-{leaf}"));
            link(&format!("leaf-{leaf}"), "spine-*");
        }
        match Scenario::parse("test", &text, &[]) {
            Ok(loaded) => loaded.scenario.topology,
            Err(error) => panic!("{error}\n{text}"),
        }
    }

    #[test]
    fn shards_get_whole_leaves_and_spines_in_turn() {
        let topology = leaf_spine(5, 3, "2us");
        let partition = Partition::new(&topology, 2, 1).unwrap();
        assert_eq!(partition.shards(), 2);
        assert_eq!(partition.lookahead(), Duration::from_micros(2));
        assert_eq!(partition.switches(), [0, 1, 0, 1, 0, 0, 1, 0]);
        let hosts = [0, 1, 0, 1, 0].map(|shard| [shard; 4]);
        assert_eq!(partition.hosts(), hosts.as_flattened());
        // No more shards than leaves, and none with too few hosts.
        let shards = |most, least| Partition::new(&topology, most, least).map(|it| it.shards());
        assert_eq!(shards(100, 1), Ok(5));
        assert_eq!(shards(100, 6), Ok(3));
        assert_eq!(shards(100, 11), Err(Indivisible::Small(11)));
        assert_eq!(shards(1, 1), Err(Indivisible::Small(1)));
    }

    #[test]
    fn what_cannot_be_divided_is_named() {
        let new = |topology| Partition::new(&topology, 4, 1).unwrap_err();
        assert_eq!(new(leaf_spine(1, 2, "1us")), Indivisible::OnePart);
        assert_eq!(new(leaf_spine(2, 2, "0s")), Indivisible::NoDelay);
        let mut two_links = leaf_spine(2, 2, "1us");
        two_links.ports.extend_from_within(..2);
        assert_eq!(new(two_links), Indivisible::Hosts);
        let text = "title = \"Dumbbell\"\nsource = \"a test\"\nduration = \"1ms\"\n\
             [dumbbell]\nrate = \"1Gbps\"\nqueue = { kind = \"drop-tail\", buffer = \"100KB\" }\n\
             [dumbbell.senders.sender]\nrtt = \"100us\"\n\
             [groups.cubic]\nfrom = \"sender\"\nto = \"receiver\"\nworkload = \"bulk\"\n";
        let dumbbell = Scenario::parse("test", text, &[]).unwrap();
        assert_eq!(new(dumbbell.scenario.topology), Indivisible::Tiers);
    }
}
