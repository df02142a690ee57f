//! The network, its hosts and the flows between them: what applications act upon.

use weir_scenario::{Group, Routes, Scenario, Transport};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;

use crate::error::BuildError;
use crate::flows::{Achieved, Flow, FlowId, FlowReport, Flows, PathView};
use crate::hosts::{Address, Hosts, Notice, TcpEnd, TcpSetup, UdpEnd, codepoint};
use crate::network::Network;
use crate::seeds::{Drawer, Seeds};
use crate::workloads::Pair;

/// Everything that packets and bytes pass through.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
    pub(crate) flows: Flows,
    /// For each group.
    setups: Vec<Setup>,
    routes: Routes,
    seeds: Seeds,
    /// What endpoints told while an application acted on them.
    notices: Vec<(FlowId, Notice)>,
    /// Flows that are over and have not been reported.
    over: Vec<FlowReport>,
}

/// How a group's endpoints are made.
#[derive(Debug)]
enum Setup {
    Tcp(Box<TcpSetup>),
    Udp(Ecn),
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that opened it.
    Initiator,
    /// The other one.
    Responder,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, seeds: Seeds) -> Result<Self, BuildError> {
        let setups: Result<Vec<_>, BuildError> = scenario.groups.iter().map(Setup::of).collect();
        Ok(Self {
            network: Network::new(&scenario.topology, &scenario.measurements.ports, seeds)?,
            hosts: Hosts::new(),
            flows: Flows::new(scenario.groups.len()),
            setups: setups?,
            routes: scenario.topology.routes(),
            seeds,
            notices: Vec::new(),
            over: Vec::new(),
        })
    }

    /// Opens a flow of a group, which is to carry `size`, or has no end.
    pub(crate) fn open(
        &mut self,
        now: Time,
        group: u32,
        pair: Pair,
        size: Option<ByteSize>,
    ) -> FlowId {
        let id = self.flows.open(Flow::new(group, pair, now, size));
        let (initiator, responder) = (self.hosts.allocate(), self.hosts.allocate());
        if let Some(flow) = self.flows.get_mut(id) {
            (flow.initiator, flow.responder) = (initiator, responder);
        }
        // Whoever listens has to be there before a SYN comes.
        let addresses = [
            self.address(id, [responder, initiator], pair.reversed(), false),
            self.address(id, [initiator, responder], pair, true),
        ];
        let seed = |drawer| self.seeds.of(drawer, id.number as usize);
        let (congestion, sequence) = (seed(Drawer::Congestion), seed(Drawer::Sequence));
        for address in addresses {
            match &self.setups[group as usize] {
                Setup::Udp(ecn) => self.hosts.open_udp(address, UdpEnd::new(*ecn)),
                Setup::Tcp(setup) => {
                    let end = setup.end(now, address.initiator, congestion, sequence);
                    self.hosts.open_tcp(address, end);
                }
            }
        }
        self.act(now, id, Side::Initiator, |_| {});
        id
    }

    fn address(
        &self,
        flow: FlowId,
        [position, peer]: [u32; 2],
        pair: Pair,
        initiator: bool,
    ) -> Address {
        let ways = self.routes.from_host(pair.from, pair.to);
        // Flows of a host with several ways are spread over them.
        let way = ways.get(flow.number as usize % ways.len().max(1));
        Address {
            flow,
            position,
            peer,
            source: pair.from.index() as u32,
            destination: pair.to.index() as u32,
            port: way.map_or(u32::MAX, |port| port.index() as u32),
            initiator,
        }
    }

    /// Hands an endpoint data to send.
    pub(crate) fn write(&mut self, now: Time, id: FlowId, side: Side, size: ByteSize) {
        self.act(now, id, side, |end| end.write(size));
    }

    /// The initiator will always have data to send.
    pub(crate) fn write_endlessly(&mut self, now: Time, id: FlowId) {
        self.act(now, id, Side::Initiator, TcpEnd::write_endlessly);
    }

    /// An endpoint has been handed all that it is to send.
    pub(crate) fn finish(&mut self, now: Time, id: FlowId, side: Side) {
        self.act(now, id, side, TcpEnd::close);
    }

    /// Sends a datagram.
    pub(crate) fn send_datagram(&mut self, now: Time, id: FlowId, payload: u32) {
        if let Some(flow) = self.flows.get(id) {
            self.hosts
                .send_datagram(now, flow.initiator, payload, &mut self.network);
        }
    }

    /// Asks for a notice when so many bytes have been delivered at one side.
    pub(crate) fn wait_for(&mut self, id: FlowId, side: Side, bytes: u64) {
        if let Some(flow) = self.flows.get(id) {
            self.hosts.wait_for(flow.endpoint(side), bytes);
        }
    }

    /// A transfer of the flow's is complete, which took this long.
    pub(crate) fn count_completion(&mut self, id: FlowId, took: Duration) {
        if let Some(flow) = self.flows.get(id) {
            let group = flow.group;
            self.flows.count_completion(group, took);
        }
    }

    /// The flow itself is a transfer that is complete.
    pub(crate) fn count_completion_since_start(&mut self, now: Time, id: FlowId) {
        if let Some(flow) = self.flows.get(id) {
            self.count_completion(id, now.since(flow.start));
        }
    }

    /// Everything that a flow was to carry has arrived: both ends close, and it is removed when they
    /// are closed.
    pub(crate) fn dismiss(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        flow.end = Some(now);
        let group = flow.group;
        for side in [Side::Initiator, Side::Responder] {
            self.finish(now, id, side);
        }
        // Connections without a handshake have no FINs either: nobody would notice the end.
        if self.setups[group as usize].is_connectionless() {
            self.remove(id);
        }
    }

    /// Ends all flows of a group, whatever they have left to send.
    pub(crate) fn abort_group(&mut self, group: u32) {
        let flows = self.flows.iter().filter(|(_, flow)| flow.group == group);
        let ids: Vec<_> = flows.map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id));
    }

    /// An end of a flow is closed: removes the flow if the other one is too, or never will be.
    pub(crate) fn on_closed(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get(id) else {
            return;
        };
        let ends = [flow.initiator, flow.responder].map(|end| self.hosts.tcp(end));
        let all_closed = ends.iter().flatten().all(|end| end.is_closed());
        let one_failed = ends.iter().flatten().any(|end| end.has_failed());
        if all_closed || one_failed {
            self.remove(id);
        }
    }

    /// Removes a flow and its endpoints.
    fn remove(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get(id) else {
            return;
        };
        let (achieved, path) = (self.achieved(flow), self.path(flow));
        if let Some(flow) = self.flows.close(id, achieved) {
            self.hosts.close(flow.initiator);
            self.hosts.close(flow.responder);
            self.over.push(FlowReport {
                flow,
                achieved,
                path,
            });
        }
    }

    /// A flow that has ended and was not given out yet, in any order.
    pub(crate) fn next_over(&mut self) -> Option<FlowReport> {
        self.over.pop()
    }

    /// What an endpoint told while an application acted on it.
    pub(crate) fn next_notice(&mut self) -> Option<(FlowId, Notice)> {
        self.notices.pop()
    }

    /// What an open flow has achieved so far.
    pub(crate) fn achieved(&self, flow: &Flow) -> Achieved {
        self.hosts.achieved(flow.initiator) + self.hosts.achieved(flow.responder)
    }

    /// What an open flow's initiator knows of its path.
    pub(crate) fn path(&self, flow: &Flow) -> PathView {
        let end = self.hosts.tcp(flow.initiator);
        end.map(TcpEnd::path).unwrap_or_default()
    }

    /// The congestion window of an open flow's initiator.
    pub(crate) fn window(&self, flow: &Flow) -> Option<ByteSize> {
        self.hosts.tcp(flow.initiator).and_then(TcpEnd::window)
    }

    /// The warm-up is over: notes what each flow has achieved, and forgets completed transfers.
    pub(crate) fn mark_flows(&mut self) {
        for (_, flow) in self.flows.iter_mut() {
            let ends = [flow.initiator, flow.responder];
            let [initiator, responder] = ends.map(|end| self.hosts.achieved(end));
            flow.before = initiator + responder;
        }
        self.flows.forget_completions();
    }

    fn act(&mut self, now: Time, id: FlowId, side: Side, act: impl FnOnce(&mut TcpEnd)) {
        let Some(flow) = self.flows.get(id) else {
            return;
        };
        let position = flow.endpoint(side);
        let notice = self.hosts.with_tcp(now, position, &mut self.network, act);
        self.notices.extend(notice);
    }
}

impl Setup {
    fn of(group: &Group) -> Result<Self, BuildError> {
        match &group.transport {
            Transport::Tcp {
                options,
                congestion,
            } => {
                let setup = TcpSetup::new(options, congestion);
                let setup = setup.map_err(|source| BuildError::Tcp {
                    group: group.name.clone(),
                    source,
                })?;
                Ok(Self::Tcp(Box::new(setup)))
            }
            Transport::Udp { ecn } => Ok(Self::Udp(codepoint(*ecn))),
        }
    }

    /// Whether flows begin and end without a packet that says so.
    fn is_connectionless(&self) -> bool {
        match self {
            Self::Tcp(setup) => !setup.has_handshake(),
            Self::Udp(_) => true,
        }
    }
}

impl Flow {
    /// The position of one of its endpoints.
    fn endpoint(&self, side: Side) -> u32 {
        match side {
            Side::Initiator => self.initiator,
            Side::Responder => self.responder,
        }
    }
}
