//! The network between the hosts: ports with their links, switches, and the events of both.
//!
//! It is generic over the packet and has no clock: the simulator drives it in virtual time with small
//! packet records, the live lab in real time with frames.

use weir_fabric::{
    self as fabric, EgressPort, FaultSettings, Faults, Link, PacketCount, PortChange, Queue,
    SharedBuffer, Switch,
};
use weir_scenario::{HostIndex, Node, PortIndex, SharedLimit, SwitchIndex, Topology};
use weir_units::{Duration, Time};

use crate::error::NetworkError;
use crate::event_queue::EventQueue;
use crate::queues::rules;
use crate::seeds::{RngStream, Seeds};

/// The network of a scenario. Its links are its event sources: each delivers its packets in order, to a
/// host or to a switch, which forwards them at once.
///
/// The caller passes packets from hosts to [`send`](Self::send), and calls [`deliver`](Self::deliver) for
/// the port and time that [`next_delivery`](Self::next_delivery) returns. Times must not run backwards.
/// Elements of a switch are [added](Self::add_element) before the first packet.
///
/// The [`destination`](fabric::Packet::destination) of a packet is the position of a host in the topology,
/// which may be reached by any of its links, or a [`destination_at`](Self::destination_at) one of them.
#[derive(Debug)]
pub struct Network<P> {
    /// The hosts' links.
    uplinks: Vec<Uplink<P>>,
    switches: Vec<SwitchNode<P>>,
    /// By port of the topology.
    locations: Vec<PortLocation>,
    /// The next delivery of each port's link, then the next timeout of each switch's elements.
    event_queue: EventQueue,
    /// No link or fault changes before this time.
    no_changes_before: Time,
    /// The ports that are measured.
    measured: Vec<PortIndex>,
    /// Packets that left measured ports, each with its port's position in `measured`.
    tapped: Vec<(Time, usize, P)>,
}

/// The link of a host.
#[derive(Debug)]
struct Uplink<P> {
    egress_port: EgressPort<P>,
    /// When the next sender that waits for room may send.
    next_slot: Time,
}

/// A switch and its ports in the topology.
#[derive(Debug)]
struct SwitchNode<P> {
    switch: Switch<P>,
    ports: Vec<u32>,
    /// The timeout of its elements in the event queue.
    timer: Time,
}

/// The sender and the receiver of a port's link.
#[derive(Clone, Copy, Debug)]
struct PortLocation {
    sender: Sender,
    receiver: Receiver,
    /// Whether its packets are kept for the caller.
    tapped: bool,
}

#[derive(Clone, Copy, Debug)]
enum Sender {
    /// An index into `uplinks`.
    Host(u32),
    Switch {
        switch: u32,
        port: fabric::PortIndex,
    },
}

#[derive(Clone, Copy, Debug)]
enum Receiver {
    /// The host that the packet is for.
    Host,
    Switch {
        switch: u32,
        ingress: fabric::PortIndex,
    },
}

/// A port of a host.
#[derive(Debug)]
pub struct TxPort<'a, P> {
    port: usize,
    uplink: &'a mut Uplink<P>,
    event_queue: &'a mut EventQueue,
    receiver: Receiver,
    switches: &'a mut [SwitchNode<P>],
    steady_until: Time,
}

/// The length of a host's queue, in time, above which flows with small queues wait: Linux lets a flow
/// queue what it sends in 2^-10 s (`sk_pacing_shift`), so all flows together what the link sends in it.
const HOST_QUEUE: Duration = Duration::from_nanos(1_000_000_000 >> 10);

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Creates a network of idle links and empty queues, with occupancy statistics at `measured`. Hosts
    /// take a random time of up to `host_jitter` to process a packet that arrives; zero if they are real.
    ///
    /// # Errors
    /// The topology describes an invalid switch or shared buffer.
    pub fn new(
        topology: &Topology,
        measured: &[PortIndex],
        host_jitter: Duration,
        seeds: Seeds,
    ) -> Result<Self, NetworkError> {
        let egress_port = |index: PortIndex| {
            let jitter = match topology.port(index).to {
                Node::Host(_) => host_jitter,
                Node::Switch(_) => Duration::ZERO,
            };
            new_egress_port(topology, index, measured.contains(&index), jitter, seeds)
        };
        let (senders, own_ports) = senders(topology);
        let hosts = topology.port_indices();
        let hosts = hosts.filter(|port| matches!(topology.port(*port).from, Node::Host(_)));
        let location = |index: PortIndex| PortLocation {
            sender: senders[index.index()],
            receiver: match senders[index.reverse().index()] {
                Sender::Host(_) => Receiver::Host,
                Sender::Switch { switch, port } => Receiver::Switch {
                    switch,
                    ingress: port,
                },
            },
            tapped: false,
        };
        let (routes, several) = (topology.routes(), several_uplinks(topology));
        let mut switches = Vec::with_capacity(own_ports.len());
        for (index, ports) in topology.switch_indices().zip(own_ports) {
            let egress_ports: Vec<_> = ports.iter().copied().map(egress_port).collect();
            let local = |port: &PortIndex| match senders[port.index()] {
                Sender::Switch { port, .. } => Some(port),
                Sender::Host(_) => None,
            };
            let mut table = fabric::Routes::new();
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
            let ports = ports.iter().map(|port| port.index() as u32).collect();
            switches.push(SwitchNode {
                switch,
                ports,
                timer: Time::MAX,
            });
        }
        Ok(Self {
            uplinks: hosts
                .map(|port| Uplink {
                    egress_port: egress_port(port),
                    next_slot: Time::ZERO,
                })
                .collect(),
            switches,
            locations: topology.port_indices().map(location).collect(),
            event_queue: EventQueue::new(topology.ports.len() + topology.switches.len()),
            no_changes_before: Time::ZERO,
            measured: measured.to_vec(),
            tapped: Vec::new(),
        })
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

    /// Declares that no [change](Self::apply) comes before this time. Until then packets may be
    /// fast-forwarded where only links decide about them.
    pub fn set_steady_until(&mut self, time: Time) {
        self.no_changes_before = time;
    }

    /// Sets whether packets that leave measured ports are kept for [`Self::take_tapped`].
    pub fn set_tapped(&mut self, tapped: bool) {
        for port in &self.measured {
            self.locations[port.index()].tapped = tapped;
        }
    }

    /// Returns the packets that have left measured ports since the last call: arrival time, index of the
    /// measured port, packet.
    pub fn take_tapped(&mut self) -> Vec<(Time, usize, P)> {
        std::mem::take(&mut self.tapped)
    }

    /// Appends an element to the path of a switch.
    pub fn add_element(&mut self, switch: SwitchIndex, element: impl fabric::Element<P>) {
        if let Some(SwitchNode { switch, .. }) = self.switches.get_mut(switch.index()) {
            switch.add_element(element);
        }
    }

    /// Returns the first element of this type in the path of a switch.
    pub fn element<E: fabric::Element<P>>(&self, switch: SwitchIndex) -> Option<&E> {
        self.switches.get(switch.index())?.switch.element()
    }

    /// Returns the time and the port of the next delivery. A number above those of the ports stands for
    /// the elements of a switch.
    #[inline]
    pub fn next_delivery(&self) -> (Time, usize) {
        self.event_queue.first()
    }

    /// Returns the first time that cannot be simulated.
    pub fn horizon(&self) -> Time {
        self.event_queue.horizon()
    }

    /// Returns a host's port, for sending.
    #[inline]
    pub fn tx_port(&mut self, port: u32) -> Option<TxPort<'_, P>> {
        let location = self.locations.get(port as usize)?;
        match location.sender {
            Sender::Host(uplink) => Some(TxPort {
                port: port as usize,
                uplink: self.uplinks.get_mut(uplink as usize)?,
                event_queue: &mut self.event_queue,
                receiver: location.receiver,
                switches: &mut self.switches,
                steady_until: self.no_changes_before,
            }),
            Sender::Switch { .. } => None,
        }
    }

    /// Sends a packet from a host by this port of its own.
    pub fn send(&mut self, now: Time, port: u32, packet: P) {
        if let Some(mut tx_port) = self.tx_port(port) {
            tx_port.send(now, packet);
        }
    }

    /// Whether a packet on a host's port would be sent soon.
    #[inline]
    pub fn has_room(&self, now: Time, port: u32) -> bool {
        self.room_at(port) <= now
    }

    /// Returns when a packet on a host's port would be sent soon, if no more packets come.
    pub fn room_at(&self, port: u32) -> Time {
        match self.locations[port as usize].sender {
            Sender::Host(uplink) => self.uplinks[uplink as usize].room_at(),
            Sender::Switch { .. } => Time::ZERO,
        }
    }

    /// Delivers the next packet that has arrived on this port's link by `now`. A switch forwards it; a
    /// packet for a host is returned.
    #[inline]
    pub fn deliver(&mut self, now: Time, port: usize) -> Option<P> {
        let Some(&location) = self.locations.get(port) else {
            self.run_elements(now, port - self.locations.len());
            return None;
        };
        let (packet, next) = match location.sender {
            Sender::Host(uplink) => {
                let egress_port = &mut self.uplinks[uplink as usize].egress_port;
                (egress_port.poll_delivered(now), egress_port.timeout())
            }
            Sender::Switch { switch, port } => {
                let switch = &mut self.switches[switch as usize].switch;
                (switch.poll_delivered(now, port), switch.timeout(port))
            }
        };
        self.event_queue.set(port, next.unwrap_or(Time::MAX));
        if location.tapped {
            self.tap(now, port, packet.clone());
        }
        match location.receiver {
            Receiver::Host => packet,
            Receiver::Switch { switch, ingress } => {
                let packet = packet?;
                let location = self.locations.len() + switch as usize;
                let switch_node = &mut self.switches[switch as usize];
                let SwitchNode { switch, ports, .. } = switch_node;
                let event_queue = &mut self.event_queue;
                switch.forward(now, ingress, packet, |port, next| {
                    event_queue.set(ports[port.index()] as usize, next.unwrap_or(Time::MAX));
                });
                if switch.has_elements() {
                    switch_node.set_timer(location, event_queue);
                }
                None
            }
        }
    }

    /// Returns the element mutably, for changes that affect no time: see [`Self::update_element`].
    #[inline]
    pub fn element_mut<E: fabric::Element<P>>(&mut self, switch: SwitchIndex) -> Option<&mut E> {
        let switch_node = self.switches.get_mut(switch.index())?;
        switch_node.switch.element_mut()
    }

    /// Changes the first element of this type in the path of a switch, and updates its timeout.
    pub fn update_element<E: fabric::Element<P>, T>(
        &mut self,
        switch: SwitchIndex,
        act: impl FnOnce(&mut E) -> T,
    ) -> Option<T> {
        let location = self.locations.len() + switch.index();
        let switch_node = self.switches.get_mut(switch.index())?;
        let result = switch_node.switch.element_mut().map(act);
        switch_node.set_timer(location, &mut self.event_queue);
        result
    }

    /// Handles the timeouts of a switch's elements.
    #[cold]
    fn run_elements(&mut self, now: Time, switch: usize) {
        let location = self.locations.len() + switch;
        let Some(switch_node) = self.switches.get_mut(switch) else {
            return;
        };
        let SwitchNode { switch, ports, .. } = switch_node;
        let event_queue = &mut self.event_queue;
        switch.handle_timeout(now, |port, next| {
            event_queue.set(ports[port.index()] as usize, next.unwrap_or(Time::MAX));
        });
        switch_node.set_timer(location, event_queue);
    }

    #[cold]
    fn tap(&mut self, now: Time, port: usize, packet: Option<P>) {
        let position = self.measured.iter().position(|index| index.index() == port);
        if let (Some(position), Some(packet)) = (position, packet) {
            self.tapped.push((now, position, packet));
        }
    }

    /// Applies a change to a port as of `now`.
    pub fn apply(&mut self, now: Time, port: PortIndex, change: PortChange) {
        match self.locations[port.index()].sender {
            Sender::Host(uplink) => {
                let egress_port = &mut self.uplinks[uplink as usize].egress_port;
                egress_port.apply(now, change);
                let next = egress_port.timeout();
                self.event_queue
                    .set(port.index(), next.unwrap_or(Time::MAX));
            }
            Sender::Switch { switch, port } => {
                let SwitchNode { switch, ports, .. } = &mut self.switches[switch as usize];
                let event_queue = &mut self.event_queue;
                switch.apply(now, port, change, |port, next| {
                    event_queue.set(ports[port.index()] as usize, next.unwrap_or(Time::MAX));
                });
            }
        }
    }

    /// Iterates over all packets in the network, in no order.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let switches = self.switches.iter();
        let ports = switches.flat_map(|switch_node| switch_node.switch.ports());
        let uplinks = self.uplinks.iter().map(|uplink| &uplink.egress_port);
        ports.chain(uplinks).flat_map(EgressPort::packets)
    }

    /// Returns how many packets have left a port, as of its last update.
    pub fn sent(&self, port: PortIndex) -> u64 {
        self.egress_port(port.index())
            .map_or(0, |egress_port| egress_port.sent().packets)
    }

    /// Returns the packets that a port's link has [delivered](Self::deliver).
    #[inline]
    pub fn delivered(&self, port: usize) -> PacketCount {
        self.egress_port(port)
            .map_or(PacketCount::ZERO, |egress_port| {
                egress_port.sent() - egress_port.in_flight()
            })
    }

    #[inline]
    fn egress_port(&self, port: usize) -> Option<&EgressPort<P>> {
        match self.locations[port].sender {
            Sender::Host(uplink) => self
                .uplinks
                .get(uplink as usize)
                .map(|uplink| &uplink.egress_port),
            Sender::Switch { switch, port } => self.switches[switch as usize].switch.port(port),
        }
    }

    /// Returns a port, up to date.
    pub fn advance(&mut self, now: Time, port: PortIndex) -> Option<&EgressPort<P>> {
        match self.locations[port.index()].sender {
            Sender::Host(uplink) => {
                let egress_port = &mut self.uplinks[uplink as usize].egress_port;
                egress_port.advance(now);
                Some(egress_port)
            }
            Sender::Switch { switch, port } => {
                self.switches[switch as usize].switch.advance(now, port)
            }
        }
    }

    /// Restarts the statistics of a queue's length.
    pub fn reset_occupancy(&mut self, now: Time, port: PortIndex) {
        match self.locations[port.index()].sender {
            Sender::Host(uplink) => self.uplinks[uplink as usize]
                .egress_port
                .reset_occupancy(now),
            Sender::Switch { switch, port } => {
                self.switches[switch as usize]
                    .switch
                    .reset_occupancy(now, port);
            }
        }
    }
}

impl<P: fabric::Packet + Clone + 'static> SwitchNode<P> {
    /// Updates the timeout of the elements in the event queue.
    #[inline]
    fn set_timer(&mut self, location: usize, event_queue: &mut EventQueue) {
        let next = self.switch.timeout_of_elements().unwrap_or(Time::MAX);
        if next != self.timer {
            self.timer = next;
            event_queue.set(location, next);
        }
    }
}

impl<P: fabric::Packet + Clone> Uplink<P> {
    #[inline]
    fn room_at(&self) -> Time {
        match self.egress_port.link().free_at() {
            // The restart of a stopped link is unknown.
            Time::MAX => Time::ZERO,
            idle => idle - HOST_QUEUE,
        }
    }
}

impl<P: fabric::Packet + Clone + 'static> TxPort<'_, P> {
    /// Sends a packet of the host.
    #[inline(always)]
    pub fn send(&mut self, now: Time, packet: P) {
        let was_idle = self.uplink.egress_port.is_idle();
        if now < self.steady_until
            && let Receiver::Switch { switch, ingress } = self.receiver
            && let Some(SwitchNode { switch, ports, .. }) = self.switches.get_mut(switch as usize)
            && let Some(port) = switch.fast_forward_port(&packet)
        {
            // Its path to the next hop is known already, except for packets that come in between.
            let egress_port = &mut self.uplink.egress_port;
            if let Some((entry, packet)) =
                egress_port.send_or_fast_forward(now, packet, self.steady_until)
            {
                if let Some(next) = switch.fast_forward(entry, ingress, port, packet) {
                    self.event_queue.set(ports[port.index()] as usize, next);
                }
                return;
            }
        } else {
            self.uplink.egress_port.send(now, packet);
        }
        if was_idle {
            let next = self.uplink.egress_port.timeout().unwrap_or(Time::MAX);
            self.event_queue.set(self.port, next);
        }
    }

    /// Whether a packet on the link would be sent soon.
    #[inline]
    pub fn has_room(&self, now: Time) -> bool {
        let free = self.uplink.egress_port.link().free_at();
        // The restart of a stopped link is unknown.
        free <= now + HOST_QUEUE || free == Time::MAX
    }

    /// Returns when a sender that found no room may pass one packet to the port. Each caller gets its own
    /// time, one after the other, at the rate of the link.
    pub fn reserve_slot(self) -> Time {
        let Uplink {
            egress_port,
            next_slot: next_turn,
        } = self.uplink;
        let link = egress_port.link();
        let turn = (*next_turn).max(link.free_at() - HOST_QUEUE);
        *next_turn = turn + link.rate().time_for(link.mtu() + link.framing());
        turn
    }
}

/// Returns the ports of hosts that have several.
fn several_uplinks(topology: &Topology) -> Vec<(HostIndex, PortIndex)> {
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
fn destination_by(topology: &Topology, uplink: PortIndex) -> u32 {
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

fn new_egress_port<P: fabric::Packet + Clone>(
    topology: &Topology,
    index: PortIndex,
    measured: bool,
    jitter: Duration,
    seeds: Seeds,
) -> EgressPort<P> {
    let port = topology.port(index);
    let link = Link::new(port.rate, port.delay)
        .with_mtu(port.mtu)
        .with_framing(port.framing)
        .with_jitter(jitter, seeds.of(RngStream::HostJitter, index.index()));
    let queue = Queue::new(rules(port), seeds.of(RngStream::Queue, index.index()));
    let queue = if measured {
        queue.with_occupancy()
    } else {
        queue
    };
    let faults = Faults::new(
        FaultSettings::default(),
        seeds.of(RngStream::Faults, index.index()),
    );
    EgressPort::new(queue, link, faults)
}

fn shared_buffer(
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
