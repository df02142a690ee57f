//! The hosts of simulated packets, for transparent congestion control.

use std::net::IpAddr;

use weir_network::AddressMap;
use weir_scenario::{HostIndex, Topology};

use crate::packet::Location;

/// The hosts of simulated packets, by destination: first those of hosts, then those of ports.
#[derive(Clone, Debug)]
pub(crate) struct Destinations(Vec<Option<HostIndex>>);

impl Destinations {
    pub(crate) fn new(topology: &Topology) -> Self {
        let hosts = topology.host_indices().map(Some);
        let ports = topology.port_indices();
        let ports = ports.map(|index| topology.port(index).from.host());
        Self(hosts.chain(ports).collect())
    }
}

impl AddressMap for Destinations {
    fn host(&self, address: IpAddr) -> Option<HostIndex> {
        let number = Location::of(address)?.number;
        self.0.get(number as usize).copied().flatten()
    }
}
