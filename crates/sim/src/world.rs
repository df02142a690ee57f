//! The network, its hosts and the flows between them: what applications act upon.

use weir_scenario::{Group, Scenario, Transport};
use weir_units::{ByteSize, Time};

use crate::error::BuildError;
use crate::flows::{Achieved, Flow, FlowId, FlowReport, Flows, PathView};
use crate::hosts::{Address, Hosts, Notice, TcpEnd, TcpSetup, UdpEnd};
use crate::network::Network;
use crate::seeds::{Drawer, Seeds};
use crate::workloads::Pair;

/// Everything that packets and bytes pass through.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
    pub(crate) flows: Flows,
    setups: Vec<Setup>,
    routes: weir_scenario::Routes,
    seeds: Seeds,
    /// What endpoints had to tell when it was not their packet or timer that made them speak.
    notices: Vec<(FlowId, Notice)>,
    /// Flows that are over and have not been reported.
    over: Vec<FlowReport>,
}

/// How a group's endpoints are made.
#[derive(Debug)]
enum Setup {
    Tcp(Box<TcpSetup>),
    Udp(weir_wire::Ecn),
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Initiator,
    Responder,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, seeds: Seeds) -> Result<Self, BuildError> {
        let setup = |group: &Group| match &group.transport {
            Transport::Tcp {
                options,
                congestion,
            } => Ok(Setup::Tcp(Box::new(TcpSetup::new(options, congestion)?))),
            Transport::Udp { ecn } => Ok(Setup::Udp(crate::hosts::codepoint(*ecn))),
        };
        let setups: Result<Vec<_>, BuildError> = scenario.groups.iter().map(setup).collect();
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
        let (initiator, responder) = (self.hosts.allocate(), self.hosts.allocate());
        let id = self.flows.open(group, |id, index| Flow {
            id,
            group,
            index,
            pair,
            initiator,
            responder,
            start: now,
            end: None,
            size,
            before: Achieved::default(),
        });
        let addresses = [
            self.address(id, initiator, responder, pair, true),
            self.address(id, responder, initiator, pair.reversed(), false),
        ];
        match &self.setups[group as usize] {
            Setup::Udp(ecn) => {
                for address in addresses {
                    self.hosts.open_udp(address, UdpEnd::new(*ecn));
                }
            }
            Setup::Tcp(setup) => {
                let seed = |drawer| self.seeds.of(drawer, id.number as usize);
                let (congestion, sequence) = (seed(Drawer::Congestion), seed(Drawer::Sequence));
                // Whoever listens has to be there before a SYN comes.
                for address in addresses.into_iter().rev() {
                    let end = setup.end(now, address.initiator, congestion, sequence);
                    self.hosts.open_tcp(address, end);
                }
            }
        }
        self.act(now, id, Side::Initiator, |_, _| {});
        id
    }

    fn address(
        &self,
        id: FlowId,
        position: u32,
        peer: u32,
        pair: Pair,
        initiator: bool,
    ) -> Address {
        let ways = self.routes.from_host(pair.from, pair.to);
        // Flows of a host with several ways are spread over them.
        let way = ways.get(id.number as usize % ways.len().max(1));
        Address {
            flow: id,
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
        self.act(now, id, side, |end, _| end.write(size));
    }

    /// The initiator will always have data to send.
    pub(crate) fn write_endlessly(&mut self, now: Time, id: FlowId) {
        self.act(now, id, Side::Initiator, |end, _| end.write_endlessly());
    }

    /// Neither end hands over any more: the connection ends when everything has arrived.
    pub(crate) fn close(&mut self, now: Time, id: FlowId) {
        for side in [Side::Initiator, Side::Responder] {
            self.act(now, id, side, TcpEnd::close);
        }
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

    /// Everything that a flow was to carry has arrived.
    pub(crate) fn complete(&mut self, now: Time, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.end = Some(now);
        }
    }

    /// Ends a flow, whatever it has left to send.
    pub(crate) fn abort(&mut self, now: Time, id: FlowId) {
        for side in [Side::Initiator, Side::Responder] {
            self.act(now, id, side, TcpEnd::abort);
        }
        self.remove(id);
    }

    /// Ends all flows of a group.
    pub(crate) fn abort_group(&mut self, now: Time, group: u32) {
        let flows = self.flows.iter().filter(|flow| flow.group == group);
        let ids: Vec<_> = flows.map(|flow| flow.id).collect();
        ids.into_iter().for_each(|id| self.abort(now, id));
    }

    /// Removes a flow once both its ends are closed.
    pub(crate) fn remove_if_closed(&mut self, id: FlowId) {
        let is_closed = |position| self.hosts.tcp(position).is_none_or(TcpEnd::is_closed);
        let closed = self
            .flows
            .get(id)
            .is_some_and(|flow| is_closed(flow.initiator) && is_closed(flow.responder));
        if closed {
            self.remove(id);
        }
    }

    /// Removes a flow and its endpoints.
    pub(crate) fn remove(&mut self, id: FlowId) {
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

    /// Flows that have ended since this was last asked.
    pub(crate) fn take_over(&mut self) -> Vec<FlowReport> {
        std::mem::take(&mut self.over)
    }

    /// A notice that came of what an application did.
    pub(crate) fn next_notice(&mut self) -> Option<(FlowId, Notice)> {
        self.notices.pop()
    }

    /// What an open flow has achieved so far.
    pub(crate) fn achieved(&self, flow: &Flow) -> Achieved {
        self.hosts.achieved(flow.initiator) + self.hosts.achieved(flow.responder)
    }

    /// What an open flow knows of its path: what its initiator does, who sends most.
    pub(crate) fn path(&self, flow: &Flow) -> PathView {
        let end = self.hosts.tcp(flow.initiator);
        end.map(TcpEnd::path).unwrap_or_default()
    }

    fn act(
        &mut self,
        now: Time,
        id: FlowId,
        side: Side,
        act: impl FnOnce(&mut TcpEnd, Time),
    ) {
        let Some(flow) = self.flows.get(id) else {
            return;
        };
        let position = flow.endpoint(side);
        let act = |end: &mut TcpEnd| act(end, now);
        self.notices
            .extend(self.hosts.with_tcp(now, position, &mut self.network, act));
    }
}
