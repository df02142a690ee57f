//! Ports whose packets all come by one link: what happens to a packet there is known when it enters that
//! link.

use std::collections::{BTreeMap, BTreeSet};

use weir_fabric as fabric;
use weir_scenario::{HostIndex, Node, PortIndex, Topology};

use super::build::{destination_by, several_uplinks};
use super::{Network, Receiver, Sender};

/// With more pairs of hosts than this, hardly any port has one feeder, and the search would take long.
const MOST_PAIRS: usize = 1 << 16;

/// The links by which packets come to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeders {
    None,
    /// The link of this port.
    One(u32),
    Several,
}

impl Feeders {
    fn add(&mut self, link: u32) {
        *self = match *self {
            Self::None => Self::One(link),
            Self::One(feeder) if feeder == link => Self::One(link),
            _ => Self::Several,
        };
    }
}

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Declares that packets travel only between these pairs of hosts, in both directions, so that they
    /// may [run ahead](Self::set_run_ahead) where no others come in between, and to hosts that are
    /// `undisturbed`: between changes, only their own packets and timers act on them. After the last
    /// [element](Self::add_element).
    pub fn set_traffic(
        &mut self,
        topology: &Topology,
        pairs: impl IntoIterator<Item = (HostIndex, HostIndex)>,
        undisturbed: &[bool],
    ) {
        for port in topology.port_indices() {
            if let Node::Host(host) = topology.port(port).to {
                self.locations[port.index()].leads_on = undisturbed[host.index()];
            }
        }
        let mut sources: BTreeMap<HostIndex, BTreeSet<HostIndex>> = BTreeMap::new();
        let mut count = 0;
        for (from, to) in pairs {
            count += 1;
            if count > MOST_PAIRS {
                return;
            }
            sources.entry(to).or_default().insert(from);
            sources.entry(from).or_default().insert(to);
        }
        let mut uplinks: BTreeMap<HostIndex, Vec<PortIndex>> = BTreeMap::new();
        for port in topology.port_indices() {
            if let Some(host) = topology.port(port).from.host() {
                uplinks.entry(host).or_default().push(port);
            }
        }
        let several = several_uplinks(topology);
        let mut feeders = vec![Feeders::None; self.locations.len()];
        for (host, sources) in sources {
            let by_link = several.iter().filter(|(other, _)| *other == host);
            let by_link = by_link.map(|(_, uplink)| destination_by(topology, *uplink));
            let links = sources.iter().filter_map(|source| uplinks.get(source));
            let links: Vec<PortIndex> = links.flatten().copied().collect();
            for destination in by_link.chain([host.index() as u32]) {
                self.follow(&links, destination, &mut feeders);
            }
        }
        self.set_feeders(&feeders);
    }

    /// Adds the feeders of all ports by which packets for `destination` leave that enter by these links.
    fn follow(&self, links: &[PortIndex], destination: u32, feeders: &mut [Feeders]) {
        let mut seen = BTreeSet::new();
        let mut links: Vec<u32> = links.iter().map(|link| link.index() as u32).collect();
        while let Some(link) = links.pop() {
            let Receiver::Switch { switch, .. } = self.locations[link as usize].receiver else {
                continue;
            };
            let node = &self.switches[switch as usize];
            for port in node.switch.ports_to(destination) {
                let port = node.ports[port.index()].port;
                feeders[port as usize].add(link);
                if seen.insert(port) {
                    links.push(port);
                }
            }
        }
    }

    fn set_feeders(&mut self, feeders: &[Feeders]) {
        for (port, feeder) in feeders.iter().enumerate() {
            let Feeders::One(link) = *feeder else {
                continue;
            };
            let Sender::Switch {
                switch,
                port: local,
            } = self.locations[port].sender
            else {
                continue;
            };
            let node = &mut self.switches[switch as usize];
            // The room in a shared buffer depends on all ports, and a flowlet on all packets before.
            let depends = node.switch.has_shared_buffer() || node.switch.has_flowlets();
            if !node.holds_packets && !depends {
                node.ports[local.index()].has_one_feeder = true;
                self.locations[link as usize].leads_on = true;
            }
        }
    }
}
