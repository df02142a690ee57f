//! The preparation of a run: from a plan to hosts that have their orders and wait for the start.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration as StdDuration;

use rustix::time::ClockId;
use tokio::time::timeout;
use weir_scenario::{PortIndex, Scenario, Topology, Transport, Workload};
use weir_sed::{Demand, DemandRule};

use super::algorithms::KernelAlgorithms;
use super::flows::{LiveFlow, flows};
use super::hosts::{HostMessage, Hosts};
use super::processes::{PreparedHost, Processes};
use super::resources::Resources;
use super::session::Session;
use crate::LabError;
use crate::clock::{self, Clock};
use crate::control::{AgentEvent, HostCommand, LiveTransport, Role};
use crate::plan::{HostPlan, Plan};
use crate::runs::{RunDirectories, RunRecord};
use crate::switch::{self, AddressOwners, HostSocket, SwitchSetup};
use crate::tcp_options::unsupported;

/// The time limit for the hosts' answers, plus what many hosts add to it.
const PATIENCE: StdDuration = StdDuration::from_secs(20);
/// The time between the last order and the start, in which hosts read their orders.
const LEAD: StdDuration = StdDuration::from_millis(100);
/// The additional time per flow.
const LEAD_PER_FLOW: StdDuration = StdDuration::from_micros(100);

/// The created hosts, with no network between them yet. Dropping this removes them.
pub(super) struct Preparation<'s> {
    scenario: &'s Scenario,
    plan: &'s Plan,
    flows: Vec<LiveFlow>,
    sockets: Vec<HostSocket>,
    resources: Resources,
    notes: Vec<String>,
}

impl<'s> Preparation<'s> {
    /// Creates all hosts.
    pub(super) fn new(
        scenario: &'s Scenario,
        plan: &'s Plan,
        runs: &RunDirectories,
    ) -> Result<Self, LabError> {
        let algorithms = KernelAlgorithms::for_groups(scenario)?;
        let made = runs.create();
        let directory = made.map_err(LabError::system("making the directory of the run"))?;
        let mut processes = Processes::start(plan)?;
        let described = directory.describe(&RunRecord {
            director: std::process::id(),
            title: scenario.title.clone(),
            hosts: processes.records(),
        });
        described.map_err(LabError::system("describing the run"))?;
        let built = processes.built()?;
        let mut notes = algorithms.notes.to_vec();
        notes.extend(options_refused(scenario));
        notes.extend(settings_refused(&built));
        Ok(Self {
            scenario,
            plan,
            flows: flows(scenario, plan),
            sockets: sockets(&scenario.topology, plan, built),
            resources: Resources {
                processes,
                algorithms,
                directory,
            },
            notes,
        })
    }

    /// Starts everything; the run begins shortly after. Packets at measured ports are captured if
    /// `wants_packets` is set.
    pub(super) async fn begin(self, wants_packets: bool) -> Result<Session<'s>, LabError> {
        let Self {
            scenario,
            plan,
            flows,
            sockets,
            mut resources,
            notes,
        } = self;
        let names = plan.hosts.iter().map(|host| host.name.clone()).collect();
        let mut talk = HostSetup {
            hosts: Hosts::new(names, resources.processes.controls()?)?,
            resources: &mut resources,
        };
        let pins = talk.ready().await?;
        let transports = transports(scenario, &talk.resources.algorithms);
        for (number, flow) in flows.iter().enumerate() {
            let group = &scenario.groups[flow.group];
            let order = flow.server(number, group, &transports[flow.group]);
            let order = HostCommand::Start(Box::new(order));
            talk.hosts.send(flow.to.index(), &order).await?;
        }
        let listening = talk.listening(flows.len()).await?;
        for (number, flow) in flows.iter().enumerate() {
            let group = &scenario.groups[flow.group];
            let peer = listening.get(&(number as u64)).cloned().unwrap_or_default();
            let pin = pins[flow.to.index()].clone();
            let order = flow.client(number, group, &transports[flow.group], peer, pin);
            let order = HostCommand::Start(Box::new(order));
            talk.hosts
                .send(flow.host(Role::Client).index(), &order)
                .await?;
        }
        let lead = LEAD + LEAD_PER_FLOW * u32::try_from(flows.len()).unwrap_or(u32::MAX);
        let now = clock::read(ClockId::Monotonic).as_nanos();
        let epoch = now + u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX / 2);
        let snap = scenario.measurements.snap_length;
        let (copier, copies) = wants_packets.then(|| switch::capture_channel(snap)).unzip();
        let switch = switch::start(SwitchSetup {
            scenario,
            epoch,
            sockets,
            addresses: addresses(&scenario.topology, plan),
            owners: owners(scenario, plan),
            demands: demands(scenario, &flows, &listening),
            capture: copier,
        })?;
        let begin = HostCommand::Begin {
            epoch,
            interval: None,
        };
        talk.hosts.send_all(&begin).await?;
        let hosts = talk.hosts;
        Ok(Session::new(
            (scenario, plan, flows),
            (hosts, (switch, copies), resources),
            Clock::since(epoch),
            notes,
        ))
    }
}

/// The exchange with hosts before the run.
struct HostSetup<'r> {
    hosts: Hosts,
    resources: &'r mut Resources,
}

impl HostSetup<'_> {
    /// Waits until all hosts are ready; returns their servers' fingerprints.
    async fn ready(&mut self) -> Result<Vec<String>, LabError> {
        let mut pins: Vec<Option<String>> = vec![None; self.hosts.count()];
        while pins.iter().any(Option::is_none) {
            if let (host, AgentEvent::Ready { fingerprint }) = self.next().await? {
                pins[host] = Some(fingerprint);
            }
        }
        Ok(pins.into_iter().flatten().collect())
    }

    /// Waits until all servers listen; returns their addresses, by flow.
    async fn listening(
        &mut self,
        flows: usize,
    ) -> Result<BTreeMap<u64, Vec<SocketAddr>>, LabError> {
        let mut listening = BTreeMap::new();
        while listening.len() < flows {
            match self.next().await? {
                (_, AgentEvent::Listening { flow, addresses }) => {
                    listening.insert(flow, addresses);
                }
                (host, AgentEvent::Finished(outcome)) => {
                    let failure = outcome.failure.map(|failure| failure.to_string());
                    return Err(LabError::Host {
                        host: self.hosts.name(host),
                        problem: failure.unwrap_or_else(|| "a server does not listen".to_owned()),
                    });
                }
                _ => {}
            }
        }
        Ok(listening)
    }

    async fn next(&mut self) -> Result<(usize, AgentEvent), LabError> {
        match timeout(PATIENCE, self.hosts.next()).await {
            Ok(Some((host, HostMessage::Event(event)))) => Ok((host, event)),
            Ok(Some((host, HostMessage::Invalid(source)))) => Err(LabError::Message {
                host: self.hosts.name(host),
                source,
            }),
            Ok(Some((host, HostMessage::Closed))) => Err(self.resources.processes.gone(host)),
            Ok(None) | Err(_) => Err(LabError::Unresponsive),
        }
    }
}

/// Returns each group's transport, by the group's index.
fn transports(scenario: &Scenario, algorithms: &KernelAlgorithms) -> Vec<LiveTransport> {
    let groups = scenario.groups.iter();
    groups
        .map(|group| {
            let mut transport = LiveTransport::of(&group.transport);
            if let LiveTransport::Tcp(tcp) | LiveTransport::Tls { tcp, .. } = &mut transport {
                tcp.congestion = algorithms.of(group).map(str::to_owned);
            }
            transport
        })
        .collect()
}

/// Returns the options of the groups that the kernel's TCP does not support.
fn options_refused(scenario: &Scenario) -> impl Iterator<Item = String> {
    scenario.groups.iter().filter_map(|group| {
        let options = match &group.transport {
            Transport::Tcp { options, .. } | Transport::Tls { options, .. } => options,
            Transport::Quic { .. } | Transport::Dcudp { .. } | Transport::Udp { .. } => {
                return None;
            }
        };
        let refused = unsupported(options);
        let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
        (!refused.is_empty()).then(|| format!("group `{}`: {}", group.name, refused.join("; ")))
    })
}

/// Returns the settings that this kernel does not have, once for all hosts.
fn settings_refused(built: &[PreparedHost]) -> Option<String> {
    let mut refused: Vec<&str> = built
        .iter()
        .flat_map(|built| &built.refused)
        .map(String::as_str)
        .collect();
    refused.sort_unstable();
    refused.dedup();
    (!refused.is_empty()).then(|| format!("this kernel has no {}", refused.join(", ")))
}

/// Returns the interfaces that the switch connects.
fn sockets(topology: &Topology, plan: &Plan, built: Vec<PreparedHost>) -> Vec<HostSocket> {
    let hosts = plan.hosts.iter().zip(built);
    let ends = hosts.flat_map(|(host, built)| host.nics.iter().zip(built.taps));
    ends.filter_map(|(nic, tap)| {
        Some(HostSocket {
            port: port(topology, nic.port)?,
            device: tap.into(),
            mac: nic.mac,
        })
    })
    .collect()
}

/// Returns the hosts by all addresses that they ever have.
fn owners(scenario: &Scenario, plan: &Plan) -> AddressOwners {
    let hosts = scenario.topology.host_indices().zip(&plan.hosts);
    hosts
        .flat_map(|(index, host)| {
            let addresses = host.nics.iter().flat_map(|nic| &nic.addresses);
            addresses.map(move |address| (*address, index))
        })
        .collect()
}

/// Returns the advance knowledge of a controller about flows: their servers' addresses, sizes and
/// deadlines.
fn demands(
    scenario: &Scenario,
    flows: &[LiveFlow],
    listening: &BTreeMap<u64, Vec<SocketAddr>>,
) -> Vec<DemandRule> {
    let mut rules = Vec::new();
    for (number, flow) in (0_u64..).zip(flows) {
        let group = &scenario.groups[flow.group];
        let (Some(within), Workload::Transfer { size, .. }) = (group.deadline, &group.workload)
        else {
            continue;
        };
        let demand = Demand {
            size: *size,
            within,
        };
        rules.extend(
            listening
                .get(&number)
                .into_iter()
                .flatten()
                .map(|server| DemandRule {
                    destinations: vec![(server.ip(), 128)],
                    destination_ports: vec![server.port()..=server.port()],
                    demand: Some(demand),
                    ..DemandRule::default()
                }),
        );
    }
    rules
}

/// Returns the address of each port at the start.
fn addresses(topology: &Topology, plan: &Plan) -> Vec<(std::net::IpAddr, PortIndex)> {
    let nics = plan.hosts.iter().flat_map(|host: &HostPlan| &host.nics);
    nics.filter_map(|nic| Some((nic.address(), port(topology, nic.port)?)))
        .collect()
}

fn port(topology: &Topology, position: usize) -> Option<PortIndex> {
    topology.port_indices().nth(position)
}
