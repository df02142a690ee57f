//! The world of applications: the network, its hosts and the flows between them.

mod changes;
mod shards;

use std::collections::HashSet;
use std::sync::Arc;

use weir_counters::FlowCounters;
use weir_fabric::Packet as _;
use weir_network::{ControlPlane, IdealTimes, LinkLoads, Partition, RngStream, Seeds, Stage};
use weir_scenario::{
    ChangedSettings, Group, HostIndex, PortIndex, Routes, Scenario, Topology, Transport, Workload,
};
use weir_sed::DemandTable;
use weir_tcp::ConfigError;
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::Segment;

use crate::destinations::Destinations;
use crate::epochs::Epochs;
use crate::error::BuildError;
use crate::flows::{Flow, FlowId, FlowReport, FlowTable, HostPair, PathView};
use crate::hosts::{
    Action, DcudpSetup, EndpointEvent, HostEnvironment, Hosts, PathSecrets, QuicSetup, TcpSetup,
    UdpEnd, codepoint,
};
use crate::packet::{Address, Network, Packet};
use crate::shard::Shard;
use crate::windows::Windows;

/// The network, the hosts and the flow table.
#[derive(Debug)]
pub(crate) struct World {
    /// The network and the hosts, or the first shard of them.
    pub(crate) shard: Shard,
    /// The other shards.
    others: Vec<Shard>,
    /// How the shards run together, if there are several.
    division: Option<Division>,
    positions: Positions,
    pub(crate) flows: FlowTable,
    /// The controller of SED, if there is one.
    pub(crate) sed: Option<ControlPlane>,
    /// By group.
    setups: Vec<Setup>,
    /// Its groups and its topology count here; one of thousands of hosts is too large for a copy.
    scenario: Arc<Scenario>,
    pub(crate) routes: Routes,
    /// For each port of a host, the destination of packets to it.
    destinations: Vec<u32>,
    /// The groups and host pairs with TLS sessions that can be resumed.
    sessions: HashSet<(u32, HostPair)>,
    path_secrets: PathSecrets,
    /// The load of classes of links, if flows arrive at random.
    pub(crate) loads: Option<LinkLoads>,
    ideal_times: IdealTimes,
    pub(crate) epochs: Epochs,
    seeds: Seeds,
    /// Events of endpoints while an application acted on them.
    notices: Vec<(FlowId, EndpointEvent)>,
    /// Flows that have ended and are not reported yet.
    ended: Vec<FlowReport>,
    /// The measured ports.
    measured: Vec<PortIndex>,
}

/// The shards' parts of the network.
#[derive(Debug)]
struct Division {
    partition: Partition,
    windows: Windows,
}

/// The positions of endpoints, the same for any number of shards.
#[derive(Debug, Default)]
struct Positions {
    /// The first that has never been used.
    next: u32,
    free: Vec<u32>,
}

/// The settings of a group's endpoints.
#[derive(Debug)]
enum Setup {
    Tcp(Box<TcpSetup>),
    Quic(Box<QuicSetup>),
    Dcudp(Box<DcudpSetup>),
    Udp(Ecn),
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end that opened it.
    Initiator,
    /// The other end.
    Responder,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }
}

/// The link by which a flow continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathChoice {
    /// The link of its last connection.
    Same,
    /// The next link.
    Next,
}

impl World {
    pub(crate) fn new(scenario: &Arc<Scenario>, seeds: Seeds) -> Result<Self, BuildError> {
        let groups = scenario.groups.iter();
        let setups: Result<Vec<_>, BuildError> = groups
            .map(|group| Setup::of(group, &scenario.topology))
            .collect();
        let mut network = Network::new(
            &scenario.topology,
            &scenario.measurements.ports,
            scenario.host_jitter,
            |port| {
                scenario
                    .faults
                    .iter()
                    .any(|fault| fault.ports.contains(&port))
            },
            seeds,
        )?;
        for change in &scenario.changes {
            if let ChangedSettings::Queues { ports, .. } = &change.set {
                ports.iter().for_each(|port| network.watch(*port));
            }
        }
        let whose = Destinations::new(&scenario.topology);
        network.add_tcon(&scenario.topology, seeds, &whose);
        // Flows are registered as they are opened.
        let demands = DemandTable::new(Vec::new(), usize::MAX);
        let sed = ControlPlane::new(scenario, seeds, demands, &mut network);
        let pairs = scenario.groups.iter().flat_map(Group::pairs);
        network.set_traffic(&scenario.topology, pairs, &undisturbed_hosts(scenario));
        let routes = scenario.topology.routes();
        Ok(Self {
            sed,
            shard: Shard {
                network,
                hosts: new_hosts(scenario),
            },
            others: Vec::new(),
            division: None,
            positions: Positions::default(),
            flows: FlowTable::new(scenario.groups.len()),
            setups: setups?,
            scenario: Arc::clone(scenario),
            loads: LinkLoads::new(scenario, &routes),
            routes,
            destinations: Network::destinations(&scenario.topology),
            sessions: HashSet::new(),
            path_secrets: PathSecrets::default(),
            ideal_times: IdealTimes::new(scenario),
            epochs: Epochs::new(scenario),
            seeds,
            notices: Vec::new(),
            ended: Vec::new(),
            measured: scenario.measurements.ports.clone(),
        })
    }

    /// Opens a flow of a group with this size, or an endless one.
    pub(crate) fn open(
        &mut self,
        now: Time,
        group: u32,
        pair: HostPair,
        size: Option<ByteSize>,
    ) -> FlowId {
        let mut flow = Flow::new(group, pair, now, size);
        if let Some(size) = size {
            let (group, hosts) = (group as usize, (pair.from, pair.to));
            flow.ideal = self
                .ideal_times
                .of(&self.scenario, &self.routes, group, hosts, size);
            if let Some(loads) = &mut self.loads {
                loads.add(&self.scenario, &self.routes, group, hosts, size);
            }
        }
        flow.deadline = (self.scenario.groups[group as usize].deadline).map(|within| now + within);
        let id = self.flows.enter(flow);
        self.connect(now, id);
        id
    }

    /// Gives a flow a new connection; both ends drop the old one at once, if it is not closed. Returns the
    /// flow's new number.
    pub(crate) fn reconnect(&mut self, now: Time, id: FlowId, link: PathChoice) -> Option<FlowId> {
        let flow = self.flows.open.get(id)?;
        let achieved = self.achieved(flow);
        let (ends, session) = ([flow.initiator, flow.responder], (flow.group, flow.pair));
        self.note_session(session, achieved);
        for end in ends {
            self.close(end);
        }
        let id = self.flows.renumber(id)?;
        let flow = self.flows.open.get_mut(id)?;
        flow.set_of_earlier_connections(achieved);
        flow.connection_closed = false;
        if link == PathChoice::Next {
            flow.moves += 1;
        }
        self.connect(now, id);
        Some(id)
    }

    /// Closes a flow's connection at both ends. The flow itself stays: [`Self::reconnect`] gives it another
    /// connection.
    pub(crate) fn close_connection(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.open.get_mut(id) else {
            return;
        };
        flow.connection_closed = true;
        for side in [Side::Initiator, Side::Responder] {
            self.act(now, id, side, Action::Close);
        }
    }

    /// Creates both ends of a flow's connection.
    fn connect(&mut self, now: Time, id: FlowId) {
        let (initiator, responder) = (self.allocate(), self.allocate());
        let Some(flow) = self.flows.open.get_mut(id) else {
            return;
        };
        (flow.initiator, flow.responder) = (initiator, responder);
        let (group, pair) = (flow.group, flow.pair);
        let demand = flow.deadline.zip(flow.size);
        // The listener has to exist before a SYN comes.
        let addresses = self.addresses(id);
        let seed = |drawer| self.seeds.of(drawer, id.number as usize);
        match &mut self.setups[group as usize] {
            Setup::Udp(ecn) => {
                for address in addresses {
                    self.shard.hosts.open_udp(address, UdpEnd::new(*ecn));
                }
            }
            Setup::Tcp(setup) => {
                let is_resumed = setup.resumes() && self.sessions.contains(&(group, pair));
                let (congestion, sequence) =
                    (seed(RngStream::Congestion), seed(RngStream::Sequence));
                for address in addresses {
                    let initiator = address.initiator;
                    let mut end = setup.end(now, initiator, is_resumed, congestion, sequence);
                    if initiator && let Some((deadline, size)) = demand {
                        end.set_deadline(deadline);
                        if let Some(sed) = &mut self.sed {
                            let segment = Segment::default();
                            let packet = Packet::of_segment(&segment, Ecn::NotEct, &address);
                            sed.register(packet.flow(), size, deadline.since(now));
                        }
                    }
                    let host = if initiator { pair.from } else { pair.to };
                    let division = self.division.as_ref();
                    let other = division
                        .and_then(|division| division.partition.of_host(host).checked_sub(1));
                    let shard = other.and_then(|other| self.others.get_mut(other));
                    let shard = shard.unwrap_or(&mut self.shard);
                    shard.hosts.open_tcp(address, end);
                }
            }
            Setup::Quic(setup) => {
                let choices = (id.number, seed(RngStream::Quic));
                let around = HostEnvironment {
                    group: &self.scenario.groups[group as usize],
                    topology: &self.scenario.topology,
                    routes: &self.routes,
                };
                let peers = (pair, &mut self.path_secrets);
                let (client, server) = setup.ends(now, around, peers, choices);
                if client.is_without_handshake() {
                    self.flows.group_stats[group as usize].without_handshake += 1;
                }
                let [responder, initiator] = addresses;
                self.shard.hosts.open_quic(responder, server);
                self.shard.hosts.open_quic(initiator, client);
            }
            Setup::Dcudp(setup) => {
                let [responder, initiator] = addresses;
                let both = [&initiator, &responder];
                let ends = setup.ends(now, &self.scenario.topology, both, seed(RngStream::Dcudp));
                if let Ok((client, server)) = ends {
                    self.shard.hosts.open_dcudp(responder, server);
                    self.shard.hosts.open_dcudp(initiator, client);
                }
            }
        }
        self.act(now, id, Side::Initiator, Action::Begin);
    }

    /// Returns the addresses of the responder and of the initiator of a flow.
    fn addresses(&self, id: FlowId) -> [Address; 2] {
        let nowhere = Address {
            flow: id,
            position: u32::MAX,
            host: u32::MAX,
            peer: u32::MAX,
            source: u32::MAX,
            destination: u32::MAX,
            port: u32::MAX,
            initiator: false,
        };
        let Some(flow) = self.flows.open.get(id) else {
            return [nowhere; 2];
        };
        let (there, back) = self.links(flow);
        let at = |port: Option<PortIndex>, host: HostIndex| match port {
            Some(port) => self.destinations[port.index()],
            None => host.index() as u32,
        };
        let (from, to) = (at(there, flow.pair.from), at(back, flow.pair.to));
        let number = |port: Option<PortIndex>| port.map_or(u32::MAX, |port| port.index() as u32);
        let initiator = Address {
            position: flow.initiator,
            host: flow.pair.from.index() as u32,
            peer: flow.responder,
            source: from,
            destination: to,
            port: number(there),
            initiator: true,
            ..nowhere
        };
        let responder = Address {
            position: flow.responder,
            host: flow.pair.to.index() as u32,
            peer: flow.initiator,
            source: to,
            destination: from,
            port: number(back),
            ..nowhere
        };
        [responder, initiator]
    }

    /// Returns the ports of a flow on its initiator's and on its responder's host: both lead to the same
    /// switch, if possible.
    fn links(&self, flow: &Flow) -> (Option<PortIndex>, Option<PortIndex>) {
        let group = &self.scenario.groups[flow.group as usize];
        let (topology, routes) = (&self.scenario.topology, &self.routes);
        let host_paths = |pair: HostPair| {
            let mut host_paths =
                group.egress_ports(topology, routes, (pair.from, pair.to), flow.spread.into());
            let moves = flow.moves as usize % host_paths.len().max(1);
            host_paths.rotate_left(moves);
            host_paths
        };
        let there = host_paths(flow.pair).first().copied();
        let back = host_paths(flow.pair.reversed());
        let end = |port: PortIndex| topology.port(port).to;
        let beside = |port: &PortIndex| there.is_some_and(|there| end(there) == end(*port));
        let back = back.iter().copied().find(beside).or(back.first().copied());
        (there, back)
    }

    /// Records the session of a connection that has carried data, so that another one may resume it.
    fn note_session(&mut self, (group, pair): (u32, HostPair), achieved: FlowCounters) {
        if let Setup::Tcp(setup) = &self.setups[group as usize]
            && setup.resumes()
            && !achieved.delivered.is_zero()
        {
            self.sessions.insert((group, pair));
        }
    }

    /// Writes data to an endpoint.
    pub(crate) fn write(&mut self, now: Time, id: FlowId, side: Side, size: ByteSize) {
        self.announce_to_peer(id, side, Action::Write(size));
        self.act(now, id, side, Action::Write(size));
    }

    /// Makes the initiator send endlessly.
    pub(crate) fn write_endlessly(&mut self, now: Time, id: FlowId) {
        self.announce_to_peer(id, Side::Initiator, Action::WriteEndlessly);
        self.act(now, id, Side::Initiator, Action::WriteEndlessly);
    }

    /// Announces an action to the peer, as TLS record headers would.
    fn announce_to_peer(&mut self, id: FlowId, side: Side, action: Action) {
        let Some(flow) = self.flows.open.get(id) else {
            return;
        };
        if matches!(&self.setups[flow.group as usize], Setup::Tcp(setup) if setup.has_records()) {
            let position = flow.endpoint(side.other());
            let shard = self.shard_of(flow.pair, side.other());
            self.shard_mut(shard).hosts.expect(position, action);
        }
    }

    /// Records that an endpoint has all data that it is to send.
    pub(crate) fn finish(&mut self, now: Time, id: FlowId, side: Side) {
        self.act(now, id, side, Action::Finish);
    }

    /// Sends a datagram.
    pub(crate) fn send_datagram(&mut self, now: Time, id: FlowId, payload: u32) {
        if let Some(flow) = self.flows.open.get(id) {
            let Shard { network, hosts } = &mut self.shard;
            hosts.send_datagram(now, flow.initiator, payload, network);
        }
    }

    /// Requests an event when this many bytes have been delivered at one side.
    pub(crate) fn wait_for(&mut self, id: FlowId, side: Side, bytes: u64) {
        if let Some(flow) = self.flows.open.get(id) {
            let position = flow.endpoint(side);
            let shard = self.shard_of(flow.pair, side);
            self.shard_mut(shard).hosts.wait_for(position, bytes);
        }
    }

    /// Records a completed transfer of a flow and its duration.
    pub(crate) fn count_completion(&mut self, id: FlowId, took: Duration) {
        if let Some(flow) = self.flows.open.get(id) {
            let group = flow.group;
            self.flows.count_completion(group, took);
        }
    }

    /// Records a flow that is itself a completed transfer.
    pub(crate) fn count_completion_since_start(&mut self, now: Time, id: FlowId) {
        if let Some(flow) = self.flows.open.get(id) {
            self.count_completion(id, now.since(flow.start));
        }
    }

    /// Closes both ends of a flow whose data have all arrived. It is removed when both are closed.
    pub(crate) fn finish_flow(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.open.get_mut(id) else {
            return;
        };
        flow.end = Some(now);
        let group = flow.group;
        for side in [Side::Initiator, Side::Responder] {
            self.act(now, id, side, Action::Close);
        }
        // Connections without a handshake have no FINs either: the end would go unnoticed.
        if self.setups[group as usize].is_connectionless() {
            self.remove(now, id);
        }
    }

    /// Ends all flows of a group, whether or not their data are sent.
    pub(crate) fn abort_group(&mut self, now: Time, group: u32) {
        let flows = self
            .flows
            .open
            .iter()
            .filter(|(_, flow)| flow.group == group);
        let ids: Vec<_> = flows.map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.remove(now, id));
    }

    /// Whether a flow's connection ended before everything was delivered.
    pub(crate) fn has_failed(&self, id: FlowId) -> bool {
        let flow = self
            .flows
            .open
            .get(id)
            .filter(|flow| !flow.connection_closed);
        flow.is_some_and(|flow| {
            let mut ends = self.ends(flow).into_iter();
            ends.any(|(hosts, end)| hosts.has_failed(end))
        })
    }

    /// Handles a closed end of a flow: removes the flow if the other end is closed too, or has failed.
    pub(crate) fn on_closed(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.open.get(id) else {
            return;
        };
        if flow.connection_closed {
            return;
        }
        let ends = self.ends(flow);
        let all_closed = ends.iter().all(|(hosts, end)| hosts.is_closed(*end));
        let one_failed = ends.iter().any(|(hosts, end)| hosts.has_failed(*end));
        if all_closed || one_failed {
            self.remove(now, id);
        }
    }

    /// Removes a flow and its endpoints.
    fn remove(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.open.get(id) else {
            return;
        };
        let (achieved, path) = (self.achieved(flow), self.path(flow));
        self.note_session((flow.group, flow.pair), achieved);
        if let Some(flow) = self.flows.close(now, id, achieved) {
            self.close(flow.initiator);
            self.close(flow.responder);
            self.ended.push(FlowReport {
                flow,
                achieved,
                path,
            });
        }
    }

    /// Changes a host's address on the link of this port of its own.
    pub(crate) fn readdress(&mut self, now: Time, port: PortIndex) {
        let port = port.index() as u32;
        let Shard { network, hosts } = &mut self.shard;
        let notices = hosts.readdress(now, port, network);
        self.notices.extend(notices);
    }

    /// Returns a flow that has ended and was not returned yet, in any order.
    pub(crate) fn next_over(&mut self) -> Option<FlowReport> {
        self.ended.pop()
    }

    /// Returns an event of an endpoint from while an application acted on it.
    pub(crate) fn next_notice(&mut self) -> Option<(FlowId, EndpointEvent)> {
        self.notices.pop()
    }

    /// Returns an open flow's counters so far.
    pub(crate) fn achieved(&self, flow: &Flow) -> FlowCounters {
        let [initiator, responder] = self.ends(flow).map(|(hosts, end)| hosts.achieved(end));
        flow.of_earlier_connections() + initiator + responder
    }

    /// Has the processor fetch what the counters of an open flow are computed from.
    pub(crate) fn prefetch_counters(&self, flow: &Flow, stage: Stage) {
        for (hosts, end) in self.ends(flow) {
            hosts.prefetch_counters(end, stage);
        }
    }

    /// Returns the RTT estimates of an open flow.
    pub(crate) fn path(&self, flow: &Flow) -> PathView {
        let [(hosts, initiator), _] = self.ends(flow);
        hosts.path(initiator)
    }

    /// Returns the congestion window of an open flow, if it has one.
    pub(crate) fn window(&self, flow: &Flow) -> Option<ByteSize> {
        let [(hosts, initiator), _] = self.ends(flow);
        hosts.window(initiator)
    }

    /// Returns the smoothed fraction of CE-marked bytes (DCTCP's α) of an open flow, if it has one.
    pub(crate) fn ce_fraction(&self, flow: &Flow) -> Option<f64> {
        let [(hosts, initiator), _] = self.ends(flow);
        hosts.ce_fraction(initiator)
    }

    /// Returns the deadline of a group's transfers, if it has one.
    pub(crate) fn deadline_of(&self, group: u32) -> Option<Duration> {
        self.scenario.groups[group as usize].deadline
    }

    /// Returns the number of a group's connections that began without a handshake, if any may.
    pub(crate) fn without_handshake(&self, group: u32) -> Option<u64> {
        let count = self.flows.group_stats[group as usize].without_handshake;
        let may_begin = self.scenario.groups[group as usize]
            .transport
            .has_known_peers();
        may_begin.then_some(count)
    }

    /// Ends the warm-up: saves each flow's counters, and discards completed transfers.
    pub(crate) fn mark_flows(&mut self, now: Time) {
        let flows = self.flows.open.iter();
        let marks: Vec<_> = flows.map(|(id, flow)| (id, self.achieved(flow))).collect();
        for (id, achieved) in marks {
            if let Some(flow) = self.flows.open.get_mut(id) {
                flow.set_before(achieved);
            }
        }
        self.flows.forget_completions(now);
        if let Some(loads) = &mut self.loads {
            loads.begin();
        }
        self.epochs.forget();
    }

    fn act(&mut self, now: Time, id: FlowId, side: Side, action: Action) {
        let Some(flow) = self.flows.open.get(id) else {
            return;
        };
        let position = flow.endpoint(side);
        let shard = self.shard_of(flow.pair, side);
        let Shard { network, hosts } = self.shard_mut(shard);
        let notice = hosts.act(now, position, network, action);
        self.notices.extend(notice);
    }
}

/// Creates the hosts of a scenario, without endpoints, for the number of its flows.
fn new_hosts(scenario: &Scenario) -> Hosts {
    let flows: u64 = scenario.groups.iter().map(Group::flow_count).sum();
    Hosts::new(scenario.topology.hosts.len(), 2 * flows as usize)
}

/// Returns, for each host, whether its endpoints are disturbed by nothing but their packets and timers
/// between control events. Applications whose flows end or answer act on the hosts of other flows.
fn undisturbed_hosts(scenario: &Scenario) -> Vec<bool> {
    let topology = &scenario.topology;
    let mut uplinks = vec![0; topology.hosts.len()];
    let ports = topology.ports.iter();
    for host in ports.filter_map(|port| port.from.host()) {
        uplinks[host.index()] += 1;
    }
    let mut undisturbed: Vec<bool> = uplinks.iter().map(|count| *count == 1).collect();
    let is_endless = |group: &Group| {
        matches!(group.workload, Workload::Bulk)
            && matches!(group.transport, Transport::Tcp { .. })
            && group.deadline.is_none()
    };
    for group in scenario.groups.iter().filter(|group| !is_endless(group)) {
        for host in group.from.iter().chain(&group.to) {
            undisturbed[host.index()] = false;
        }
    }
    undisturbed
}

impl Setup {
    fn of(group: &Group, topology: &Topology) -> Result<Self, BuildError> {
        match &group.transport {
            Transport::Tcp {
                options,
                congestion,
            } => Self::tcp(group, TcpSetup::new(options, congestion, None)),
            Transport::Tls {
                options,
                congestion,
                tls,
            } => Self::tcp(group, TcpSetup::new(options, congestion, Some(*tls))),
            Transport::Quic {
                options,
                congestion,
            } => {
                let setup = QuicSetup::new(options, congestion, &group.workload);
                let setup = setup.map_err(|source| BuildError::Quic {
                    group: group.name.clone(),
                    source,
                })?;
                Ok(Self::Quic(Box::new(setup)))
            }
            Transport::Dcudp {
                options,
                congestion,
            } => {
                let setup = DcudpSetup::new(options, congestion, topology);
                let setup = setup.map_err(|source| BuildError::Dcudp {
                    group: group.name.clone(),
                    source,
                })?;
                Ok(Self::Dcudp(Box::new(setup)))
            }
            Transport::Udp { options } => Ok(Self::Udp(codepoint(options.ecn))),
        }
    }

    fn tcp(group: &Group, setup: Result<TcpSetup, ConfigError>) -> Result<Self, BuildError> {
        match setup {
            Ok(setup) => Ok(Self::Tcp(Box::new(setup))),
            Err(source) => Err(BuildError::Tcp {
                group: group.name.clone(),
                source,
            }),
        }
    }

    /// Whether flows begin and end without a handshake.
    fn is_connectionless(&self) -> bool {
        match self {
            Self::Tcp(setup) => !setup.handshake,
            Self::Quic(_) | Self::Dcudp(_) => false,
            Self::Udp(_) => true,
        }
    }
}

impl Flow {
    /// Returns the position of one of its endpoints.
    fn endpoint(&self, side: Side) -> u32 {
        match side {
            Side::Initiator => self.initiator,
            Side::Responder => self.responder,
        }
    }
}
