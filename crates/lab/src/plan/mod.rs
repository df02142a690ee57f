//! The plan of a scenario on this machine: one namespace per host with its interfaces, addresses, links
//! and kernel settings. A plan is made, and checked against the [`MachineLimits`], before anything is
//! created.

mod addresses;
mod error;
mod kernel;
mod machine;
mod pairs;
#[cfg(test)]
mod tests;

pub use error::PlanError;
pub(crate) use kernel::INITIAL_WINDOW;
pub use kernel::KernelSetting;
pub use machine::MachineLimits;
pub use pairs::AddressPair;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use weir_congestion::AlgorithmSpec;
use weir_scenario::{
    ChangedSettings, FaultKind, HostIndex, Node, PortIndex, Scenario, Topology, Workload,
};

use addresses::Addresses;

/// All hosts of a scenario, in the order of its topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The hosts.
    pub hosts: Vec<HostPlan>,
}

/// The plan of one host's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// The host's name in the scenario.
    pub name: String,
    /// Its interfaces, in the order of its ports.
    pub nics: Vec<HostInterface>,
    /// The addresses that it exchanges packets with.
    pub neighbours: Vec<Neighbour>,
    /// Its kernel settings, in the order in which they are written.
    pub kernel: Vec<KernelSetting>,
    /// The initial window of its TCP connections in packets; `None` for the kernel's 10.
    pub initial_window: Option<u32>,
    /// Whether its TCP acknowledges every segment at once.
    pub quick_acks: bool,
}

/// An interface: the end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInterface {
    /// The index of its port in the topology.
    pub port: usize,
    /// Its name in the namespace.
    pub name: String,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its addresses: the first one is used from the start, each other one from a change of address on.
    pub addresses: Vec<IpAddr>,
    /// The MTU in bytes.
    pub mtu: u32,
    /// The most segments of a super-packet that the kernel hands over at once.
    pub gso_segments: u32,
}

/// A static neighbour entry, so that address resolution is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// The index of the interface for packets to it, whatever their source address. Hosts that open
    /// connections choose interfaces by their own addresses and have no such entry. A host that accepts
    /// connections answers on the link that the opener chose.
    pub interface: Option<usize>,
}

/// Checks that all parts of a scenario can run live.
fn check_parts(scenario: &Scenario) -> Result<(), PlanError> {
    let is_plugin = |spec: &AlgorithmSpec| spec.plugin().is_some();
    for switch in &scenario.topology.switches {
        let mut controls = switch.tcon.iter().filter_map(|rule| rule.control.as_ref());
        if controls.any(|control| is_plugin(&control.congestion)) {
            let key = format!("switches.{}.tcon", switch.name);
            return Err(PlanError::OnlySimulated { key });
        }
    }
    for group in &scenario.groups {
        if group.transport.congestion().is_some_and(is_plugin) {
            let key = format!("groups.{}.congestion", group.name);
            return Err(PlanError::OnlySimulated { key });
        }
        // The controller identifies flows by their servers' ports. Random sizes cannot be identified.
        let is_random = matches!(group.workload, Workload::Poisson { .. });
        if let Workload::Trace { .. } = group.workload {
            let key = format!("groups.{}.workload", group.name);
            return Err(PlanError::OnlySimulated { key });
        }
        // Each pair of hosts draws its own arrivals: several do not draw the same ones.
        if let Workload::Poisson { fan_in: 2.., .. } = group.workload {
            let key = format!("groups.{}.workload.fan_in", group.name);
            return Err(PlanError::OnlySimulated { key });
        }
        if scenario.sed.is_some() && group.deadline.is_some() && is_random {
            let key = format!("groups.{}.deadline", group.name);
            return Err(PlanError::OnlySimulated { key });
        }
    }
    // Queues change in the switch, and loads where flows start; a running stack keeps its parameters.
    for (number, change) in scenario.changes.iter().enumerate() {
        if let ChangedSettings::Groups { congestion, .. } = &change.set
            && !congestion.is_empty()
        {
            let key = format!("changes.{number}.set.congestion");
            return Err(PlanError::OnlySimulated { key });
        }
    }
    Ok(())
}

impl Plan {
    /// Makes the plan of a scenario.
    ///
    /// # Errors
    /// The groups of a host need different values of a kernel setting, the live switch does not support the
    /// scenario, or the network has too few addresses.
    pub fn new(scenario: &Scenario) -> Result<Self, PlanError> {
        check_parts(scenario)?;
        let topology = &scenario.topology;
        let mut addresses = Addresses::new(scenario.live.network);
        let mut hosts = Vec::with_capacity(topology.hosts.len());
        for index in topology.host_indices() {
            let mut nics = Vec::new();
            for (position, port) in topology.ports_of(Node::Host(index)).enumerate() {
                nics.push(HostInterface {
                    port: port.index(),
                    name: format!("eth{position}"),
                    mac: mac(index, position),
                    addresses: addresses.take(1 + changes_of_address(scenario, port))?,
                    mtu: mtu(topology, port)?,
                    gso_segments: (scenario.live.gso_segments)
                        .unwrap_or_else(|| kernel::faithful_segments(topology.port(port).rate)),
                });
            }
            hosts.push(HostPlan {
                name: topology.host(index).name.clone(),
                nics,
                neighbours: Vec::new(),
                kernel: kernel::settings(scenario, index)?,
                initial_window: kernel::initial_window(scenario, index)?,
                quick_acks: kernel::quick_acks(scenario, index)?,
            });
        }
        let mut plan = Self { hosts };
        plan.add_neighbours(scenario);
        Ok(plan)
    }

    /// Returns the host at `index`.
    pub fn host(&self, index: HostIndex) -> &HostPlan {
        &self.hosts[index.index()]
    }

    /// Returns the interface at a port of the topology, with its host.
    pub fn nic(&self, topology: &Topology, port: PortIndex) -> Option<(HostIndex, &HostInterface)> {
        let host = topology.port(port).from.host()?;
        let mut nics = self.host(host).nics.iter();
        let nic = nics.find(|nic| nic.port == port.index())?;
        Some((host, nic))
    }

    /// Gives hosts the neighbour entries of their peers.
    fn add_neighbours(&mut self, scenario: &Scenario) {
        let topology = &scenario.topology;
        let routes = topology.routes();
        let mut known: Vec<BTreeSet<HostIndex>> = vec![BTreeSet::new(); self.hosts.len()];
        let mut opens = vec![false; self.hosts.len()];
        for (from, to) in scenario.groups.iter().flat_map(|group| group.pairs()) {
            known[from.index()].insert(to);
            known[to.index()].insert(from);
            opens[from.index()] = true;
        }
        for host in topology.host_indices() {
            let takes = !opens[host.index()];
            let own: Vec<PortIndex> = topology.ports_of(Node::Host(host)).collect();
            let leads = |peer: HostIndex, nic: &HostInterface| {
                let leads = |port: &PortIndex| {
                    let arrival = pairs::arrival(topology, &routes, *port, peer);
                    arrival.is_some_and(|port| port.index() == nic.port)
                };
                own.iter()
                    .position(leads)
                    .filter(|_| takes && own.len() > 1)
            };
            let peers = known[host.index()].iter();
            let nics =
                peers.flat_map(|peer| self.host(*peer).nics.iter().map(move |nic| (*peer, nic)));
            let neighbours = nics.flat_map(|(peer, nic)| {
                let by = leads(peer, nic);
                let addresses = nic.addresses.iter();
                addresses.map(move |address| Neighbour {
                    address: *address,
                    mac: nic.mac,
                    interface: by,
                })
            });
            let neighbours = neighbours.collect();
            self.hosts[host.index()].neighbours = neighbours;
        }
    }
}

impl HostInterface {
    /// Returns its address at the start.
    pub fn address(&self) -> IpAddr {
        self.addresses[0]
    }
}

/// Returns the number of address changes of a port.
fn changes_of_address(scenario: &Scenario, port: PortIndex) -> usize {
    let faults = scenario.faults.iter();
    let changes = faults.filter(|fault| fault.kind == FaultKind::Address);
    changes.filter(|fault| fault.ports.contains(&port)).count()
}

/// Returns a locally administered address (IEEE 802, second bit of the first byte).
fn mac(host: HostIndex, nic: usize) -> [u8; 6] {
    let [.., high, middle, low] = host.index().to_be_bytes();
    let [.., nic] = nic.to_be_bytes();
    [0x02, 0x57, high, middle, low, nic]
}

fn mtu(topology: &Topology, port: PortIndex) -> Result<u32, PlanError> {
    let mtu = topology.port(port).mtu;
    match u32::try_from(mtu.bytes()) {
        Ok(mtu @ 68..=65_521) => Ok(mtu),
        _ => Err(PlanError::Mtu {
            port: topology.port(port).name.clone(),
            mtu,
        }),
    }
}
