//! The links of the paths between two hosts.

use std::collections::{BTreeSet, HashMap};

use super::{HostIndex, Node, PortIndex, Routes, SwitchIndex, Topology};
use crate::packetization::PathLink;

/// The ways from a node to the destination, each once however many paths have such links.
type Ways = BTreeSet<Vec<PathLink>>;

impl Routes {
    /// Returns the properties of the links from a host's port `first` to the host `to`, in order, for each path that
    /// differs in them. None if no path ends there.
    pub fn paths(
        &self,
        topology: &Topology,
        first: PortIndex,
        to: HostIndex,
    ) -> Vec<Vec<PathLink>> {
        let mut search = Search {
            routes: self,
            topology,
            to,
            known: HashMap::new(),
        };
        search.by_port(first).into_iter().collect()
    }
}

struct Search<'a> {
    routes: &'a Routes,
    topology: &'a Topology,
    to: HostIndex,
    /// The ways from switches; none from one that is being searched.
    known: HashMap<SwitchIndex, Ways>,
}

impl Search<'_> {
    fn by_port(&mut self, index: PortIndex) -> Ways {
        let port = self.topology.port(index);
        let link = PathLink {
            rate: port.rate,
            delay: port.delay,
            framing: port.framing,
        };
        let beyond = match port.to {
            Node::Host(host) if host == self.to => [Vec::new()].into(),
            Node::Host(_) => Ways::new(),
            Node::Switch(switch) => self.by_switch(switch),
        };
        let longer = |way: Vec<PathLink>| [vec![link], way].concat();
        beyond.into_iter().map(longer).collect()
    }

    fn by_switch(&mut self, switch: SwitchIndex) -> Ways {
        if let Some(known) = self.known.get(&switch) {
            return known.clone();
        }
        self.known.insert(switch, Ways::new());
        let ports = self.routes.from_switch(switch, self.to).to_vec();
        let ways: Ways = (ports.into_iter())
            .flat_map(|port| self.by_port(port))
            .collect();
        self.known.insert(switch, ways.clone());
        ways
    }
}
