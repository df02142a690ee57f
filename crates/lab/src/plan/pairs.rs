//! The addresses and interfaces by which two hosts reach each other.

use std::net::IpAddr;

use weir_scenario::{Group, HostIndex, Node, PortIndex, Routes, Topology};

use super::Plan;

/// The addresses of a flow's two hosts, the preferred first. Addresses at equal indices are paired while
/// both hosts have more: packets that leave by one interface arrive at the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPair {
    /// The addresses of the host that opens the flow.
    pub from: Vec<IpAddr>,
    /// The addresses of the other host.
    pub to: Vec<IpAddr>,
}

impl Plan {
    /// Returns the addresses of flow number `number` of a group between two hosts.
    pub fn ends(
        &self,
        topology: &Topology,
        routes: &Routes,
        group: &Group,
        (from, to): (HostIndex, HostIndex),
        number: u64,
    ) -> AddressPair {
        let ways = group.egress_ports(topology, routes, (from, to), number);
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

/// Returns the port of `to` whose link receives packets that leave by `port`.
pub(super) fn arrival(
    topology: &Topology,
    routes: &Routes,
    port: PortIndex,
    to: HostIndex,
) -> Option<PortIndex> {
    let mut port = port;
    // No path passes a switch twice.
    for _ in 0..=topology.switches.len() {
        port = match topology.port(port).to {
            Node::Host(host) => return (host == to).then_some(port.reverse()),
            Node::Switch(switch) => *routes.from_switch(switch, to).first()?,
        };
    }
    None
}
