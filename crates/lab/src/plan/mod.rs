//! What a scenario becomes on this machine: one namespace per host, its interfaces, their addresses and
//! links, what its kernel is set to. A plan is made, and checked against the [`MachineLimits`], before
//! anything is created.

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
use weir_scenario::{FaultKind, HostIndex, Node, PortIndex, Scenario, Topology, Workload};

use addresses::Addresses;

/// All hosts of a scenario, in the order of its topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The hosts.
    pub hosts: Vec<HostPlan>,
}

/// What a host process has to make of its namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// The host's name in the scenario.
    pub name: String,
    /// Its interfaces, in the order of its ports.
    pub nics: Vec<HostInterface>,
    /// Who it talks to.
    pub neighbours: Vec<Neighbour>,
    /// What its kernel is set to, in the order in which it is written.
    pub kernel: Vec<KernelSetting>,
    /// With how many packets its TCP connections begin; `None` for the kernel's 10.
    pub initial_window: Option<u32>,
    /// Whether its TCP acknowledges every segment at once.
    pub quick_acks: bool,
}

/// An interface: the end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInterface {
    /// The position of its port among the topology's.
    pub port: usize,
    /// What the namespace calls it.
    pub name: String,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its addresses: the first from the start, each other one from a change of address on.
    pub addresses: Vec<IpAddr>,
    /// The longest IP packet, in bytes.
    pub mtu: u32,
    /// The most segments of a super-packet that the kernel hands over at once.
    pub gso_segments: u32,
}

/// Where packets to an address go on the link: nothing has to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// The interface by which packets go there whatever address they come from, by its position. Hosts
    /// that open connections choose interfaces by their own addresses and have none of these; a host
    /// that takes them answers on the link that the other one chose.
    pub by: Option<usize>,
}

/// Whether all parts of a scenario can be live.
fn check_parts(scenario: &Scenario) -> Result<(), PlanError> {
    for group in &scenario.groups {
        // The controller knows flows by the ports of their servers, and random sizes by nothing.
        let is_random = matches!(group.workload, Workload::Poisson { .. });
        if scenario.sed.is_some() && group.deadline.is_some() && is_random {
            let key = format!("groups.{}.deadline", group.name);
            return Err(PlanError::OnlySimulated { key });
        }
    }
    Ok(())
}

impl Plan {
    /// What this scenario becomes.
    ///
    /// # Errors
    /// The scenario asks for what a kernel cannot do for several groups on one host, or the live switch
    /// at all, or the network has too few addresses.
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
        plan.introduce(scenario);
        Ok(plan)
    }

    /// The host at `index`.
    pub fn host(&self, index: HostIndex) -> &HostPlan {
        &self.hosts[index.index()]
    }

    /// The interface at a port of the topology, with its host.
    pub fn nic(&self, topology: &Topology, port: PortIndex) -> Option<(HostIndex, &HostInterface)> {
        let host = topology.port(port).from.host()?;
        let mut nics = self.host(host).nics.iter();
        let nic = nics.find(|nic| nic.port == port.index())?;
        Some((host, nic))
    }

    /// Tells hosts where those are that they exchange packets with.
    fn introduce(&mut self, scenario: &Scenario) {
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
                    by,
                })
            });
            let neighbours = neighbours.collect();
            self.hosts[host.index()].neighbours = neighbours;
        }
    }
}

impl HostInterface {
    /// Its address at the start.
    pub fn address(&self) -> IpAddr {
        self.addresses[0]
    }
}

/// How often a port gets another address.
fn changes_of_address(scenario: &Scenario, port: PortIndex) -> usize {
    let faults = scenario.faults.iter();
    let changes = faults.filter(|fault| fault.kind == FaultKind::Address);
    changes.filter(|fault| fault.ports.contains(&port)).count()
}

/// An address that is administered locally (IEEE 802, second bit of the first byte): no maker's.
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
