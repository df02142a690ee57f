//! Construction of a network from a topology.

use weir_fabric::{
    self as fabric, EgressPort, FaultSettings, Faults, Link, SharedBuffer, SharedLinkSettings,
    Switch,
};
use weir_scenario::{HostIndex, LoadBalancing, Node, PortIndex, SharedLimit, Topology};
use weir_units::{Duration, Time};

use super::lookahead::NOTHING_AHEAD;
use super::running_ahead::Ahead;
use super::{Network, PortLocation, Receiver, Sender, SwitchNode, SwitchPort, Uplink};
use crate::error::NetworkError;
use crate::event_queue::EventQueue;
use crate::packets_in_flight::PacketsInFlight;
use crate::queues::queues;
use crate::seeds::{RngStream, Seeds};

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Creates a network of idle links and empty queues, with occupancy statistics at `measured`. Hosts
    /// take a random time of up to `host_jitter` to process a packet that arrives; zero if they are real.
    /// The ports of `changing`, which may have faults and other [changes](Self::apply), hold their packets,
    /// as do those of their switches; ports whose queue [decides at dequeue](weir_scenario::Discipline) hold
    /// them too.
    ///
    /// # Errors
    /// The topology describes an invalid switch or shared buffer.
    pub fn new(
        topology: &Topology,
        measured: &[PortIndex],
        host_jitter: Duration,
        changing: impl Fn(PortIndex) -> bool,
        seeds: Seeds,
    ) -> Result<Self, NetworkError> {
        let mut shared = SharedLinkSettings::default();
        let mut egress_port = |index: PortIndex| {
            let jitter = match topology.port(index).to {
                Node::Host(_) => host_jitter,
                Node::Switch(_) => Duration::ZERO,
            };
            let is_measured = measured.contains(&index);
            let mut link = new_link(topology, index, jitter, seeds);
            shared.share(&mut link);
            new_egress_port(topology, index, is_measured, link, seeds)
        };
        let holds = |port: PortIndex| {
            changing(port) || topology.port(port).queue.discipline.decides_at_dequeue()
        };
        let (senders, own_ports) = senders(topology);
        let (routes, several) = (topology.routes(), several_uplinks(topology));
        let mut switches = Vec::with_capacity(own_ports.len());
        for (index, ports) in topology.switch_indices().zip(own_ports) {
            let egress_ports: Vec<_> = ports.iter().copied().map(&mut egress_port).collect();
            let local = |port: &PortIndex| match senders[port.index()] {
                Sender::Switch { port, .. } => Some(port),
                Sender::Host(_) => None,
            };
            let load_balancing = match topology.switch(index).load_balancing {
                LoadBalancing::Flow => fabric::LoadBalancing::Flow,
                LoadBalancing::Flowlet => fabric::LoadBalancing::Flowlet {
                    gap: topology.switch(index).flowlet_gap.unwrap_or_default(),
                },
                LoadBalancing::Packet => fabric::LoadBalancing::Packet,
            };
            let mut table = fabric::Routes::new().with_load_balancing(load_balancing);
            for host in topology.host_indices() {
                let ways = routes.from_switch(index, host).iter().filter_map(local);
                let ways: Vec<_> = ways.collect();
                table.set(host.index() as u32, &ways);
            }
            for (host, uplink) in several.iter().copied() {
                let ways = routes.to_uplink(index, host, uplink);
                let ways: Vec<_> = ways.iter().filter_map(local).collect();
                table.set(destination_by(topology, uplink), &ways);
            }
            let seed = seeds.of(RngStream::Switch, index.index());
            let mut switch = Switch::new(egress_ports, table, seed)?;
            if let Some(buffer) = &topology.switch(index).shared_buffer {
                switch = switch.with_shared_buffer(shared_buffer(buffer, ports.len())?)?;
            }
            let switch_ports = ports.iter().map(|port| SwitchPort {
                port: port.index() as u32,
                has_one_feeder: false,
            });
            switches.push(SwitchNode {
                switch,
                ports: switch_ports.collect(),
                holds_packets: ports.iter().any(|port| holds(*port)),
                timer: Time::MAX,
            });
        }
        let uplinks = topology.port_indices();
        let uplinks = uplinks.filter(|port| matches!(topology.port(*port).from, Node::Host(_)));
        let uplinks = uplinks.map(|port| {
            let mut egress_port = egress_port(port);
            if changing(port) && !egress_port.holds_packets() {
                egress_port.hold_packets(no_faults(seeds, port.index()));
            }
            Uplink {
                egress_port,
                next_slot: Time::ZERO,
            }
        });
        let location = |index: PortIndex| PortLocation {
            sender: senders[index.index()],
            receiver: match senders[index.reverse().index()] {
                Sender::Host(_) => Receiver::Host,
                Sender::Switch { switch, port } => Receiver::Switch {
                    switch,
                    ingress: port,
                },
            },
            is_measured: measured.contains(&index),
            is_direct: false,
            leads_on: false,
            leads_out: false,
        };
        let mut network = Self {
            uplinks: uplinks.collect(),
            switches,
            locations: topology.port_indices().map(location).collect(),
            in_flight: PacketsInFlight::new(topology.ports.len()),
            event_queue: EventQueue::new(topology.ports.len() + topology.switches.len()),
            lookahead: NOTHING_AHEAD,
            runs_ahead: false,
            run_ahead_before: Time::ZERO,
            ahead: Ahead::new(),
            exported: Vec::new(),
            measured: measured.to_vec(),
            is_tapped: false,
            tapped: Vec::new(),
            seeds,
        };
        for switch in 0..network.switches.len() {
            if network.switches[switch].holds_packets {
                network.hold_packets(switch);
            }
        }
        for location in &mut network.locations {
            if let Sender::Host(uplink) = location.sender {
                let egress_port = &network.uplinks[uplink as usize].egress_port;
                location.is_direct = !egress_port.holds_packets();
            }
        }
        Ok(network)
    }

    /// Makes the ports of a switch hold their packets.
    pub(super) fn hold_packets(&mut self, switch: usize) {
        let seeds = self.seeds;
        if let Some(SwitchNode {
            switch,
            ports,
            holds_packets,
            ..
        }) = self.switches.get_mut(switch)
        {
            *holds_packets = true;
            switch.hold_packets(|port| no_faults(seeds, ports[port.index()].port as usize));
        }
    }

    /// Returns the destination of packets that must come in by the link of this one of `host`'s ports;
    /// if it is the only one, this is the host's own number.
    pub fn destination_at(topology: &Topology, host: HostIndex, uplink: PortIndex) -> u32 {
        if several_uplinks(topology).contains(&(host, uplink)) {
            destination_by(topology, uplink)
        } else {
            host.index() as u32
        }
    }

    /// Returns, for each port of the topology, the destination of packets that must come in by its link
    /// if it is a host's: see [`Self::destination_at`].
    pub fn destinations(topology: &Topology) -> Vec<u32> {
        let ports = topology.ports.iter();
        let host = |port: &weir_scenario::Port| port.from.host();
        let mut destinations: Vec<u32> = ports
            .map(|port| host(port).map_or(u32::MAX, |host| host.index() as u32))
            .collect();
        for (_, uplink) in several_uplinks(topology) {
            destinations[uplink.index()] = destination_by(topology, uplink);
        }
        destinations
    }
}

/// The faults of a port that has none yet.
fn no_faults<P: fabric::Packet + Clone>(seeds: Seeds, port: usize) -> Faults<P> {
    let seed = seeds.of(RngStream::Faults, port);
    Faults::new(FaultSettings::default(), seed)
}

/// Returns the ports of hosts that have several.
pub(super) fn several_uplinks(topology: &Topology) -> Vec<(HostIndex, PortIndex)> {
    let mut counts = vec![0_u32; topology.hosts.len()];
    let ports = topology.port_indices();
    let mut uplinks: Vec<_> = ports
        .filter_map(|index| Some((topology.port(index).from.host()?, index)))
        .collect();
    for (host, _) in &uplinks {
        counts[host.index()] += 1;
    }
    uplinks.retain(|(host, _)| counts[host.index()] > 1);
    uplinks
}

/// Returns the number of a host port's link as a destination: above the numbers of the hosts.
pub(super) fn destination_by(topology: &Topology, uplink: PortIndex) -> u32 {
    (topology.hosts.len() + uplink.index()) as u32
}

/// Returns the sender of each port of the topology, and the ports of each switch.
fn senders(topology: &Topology) -> (Vec<Sender>, Vec<Vec<PortIndex>>) {
    let mut uplinks = 0;
    let mut own_ports: Vec<Vec<PortIndex>> = vec![Vec::new(); topology.switches.len()];
    let senders = topology
        .port_indices()
        .map(|index| match topology.port(index).from {
            Node::Host(_) => {
                uplinks += 1;
                Sender::Host(uplinks - 1)
            }
            Node::Switch(switch) => {
                let own = &mut own_ports[switch.index()];
                own.push(index);
                Sender::Switch {
                    switch: switch.index() as u32,
                    port: fabric::PortIndex::new(own.len() as u32 - 1),
                }
            }
        });
    (senders.collect(), own_ports)
}

fn new_link(topology: &Topology, index: PortIndex, jitter: Duration, seeds: Seeds) -> Link {
    let port = topology.port(index);
    Link::new(port.rate, port.delay)
        .with_mtu(port.mtu)
        .with_framing(port.framing)
        .with_jitter(jitter, seeds.of(RngStream::HostJitter, index.index()))
}

fn new_egress_port<P: fabric::Packet + Clone>(
    topology: &Topology,
    index: PortIndex,
    measured: bool,
    link: Link,
    seeds: Seeds,
) -> EgressPort<P> {
    let port = topology.port(index);
    let (mut queue, scheduler) = queues(port, seeds.of(RngStream::Queue, index.index()));
    if measured {
        queue = queue.with_occupancy();
    }
    match scheduler {
        Some(scheduler) => {
            EgressPort::new(queue, link, no_faults(seeds, index.index())).with_scheduler(scheduler)
        }
        None => EgressPort::without_packets(queue, link),
    }
}

pub(super) fn shared_buffer(
    buffer: &weir_scenario::SharedBuffer,
    ports: usize,
) -> Result<SharedBuffer, fabric::BufferError> {
    match buffer.limit {
        SharedLimit::Static(limit) => {
            Ok(SharedBuffer::with_limits(buffer.size, vec![limit; ports]))
        }
        SharedLimit::Dynamic(alpha) => SharedBuffer::dynamic(buffer.size, alpha),
    }
}
