//! By which of their interfaces two hosts reach each other.

use std::net::IpAddr;

use weir_scenario::{Group, HostIndex, Node, PortIndex, Routes, Topology};

use super::Plan;

/// The addresses of a flow's two hosts, the preferred first. Those at equal positions belong together as
/// long as both hosts have more: packets that leave by the one interface arrive at the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPair {
    /// Of the host that opens the flow.
    pub from: Vec<IpAddr>,
    /// Of the other.
    pub to: Vec<IpAddr>,
}

impl Plan {
    /// The ends of a group's flow with this number between two hosts.
    pub fn ends(
        &self,
        topology: &Topology,
        routes: &Routes,
        group: &Group,
        (from, to): (HostIndex, HostIndex),
        number: u64,
    ) -> AddressPair {
        let ways = group.ways(topology, routes, (from, to), number);
        let arrivals = ways.iter();
        let arrivals = arrivals.filter_map(|port| arrival(topology, routes, *port, to));
        let mut there: Vec<PortIndex> = Vec::new();
        for port in arrivals.chain(topology.ports_of(Node::Host(to))) {
            if !there.contains(&port) {
                there.push(port);
            }
        }
        AddressPair {
            from: self.addresses(topology, &ways),
            to: self.addresses(topology, &there),
        }
    }

    fn addresses(&self, topology: &Topology, ports: &[PortIndex]) -> Vec<IpAddr> {
        let nics = ports.iter().filter_map(|port| self.nic(topology, *port));
        nics.map(|(_, nic)| nic.address()).collect()
    }
}

/// The port of `to` at whose link packets arrive that leave by `port`.
pub(super) fn arrival(
    topology: &Topology,
    routes: &Routes,
    port: PortIndex,
    to: HostIndex,
) -> Option<PortIndex> {
    let mut port = port;
    // No way meets a switch twice.
    for _ in 0..=topology.switches.len() {
        port = match topology.port(port).to {
            Node::Host(host) => return (host == to).then_some(port.reverse()),
            Node::Switch(switch) => *routes.from_switch(switch, to).first()?,
        };
    }
    None
}
