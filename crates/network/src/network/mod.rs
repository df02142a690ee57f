//! The network between the hosts: ports with their links, switches, and the events of both.
//!
//! It is generic over the packet and has no clock: the simulator drives it in virtual time with small
//! packet records, the live lab in real time with frames.
//!
//! | file | content |
//! |---|---|
//! | `build` | a network from a topology |
//! | `tx_port` | the ports by which hosts send |
//! | `delivery` | the events: packets arrive at switches and hosts |
//! | `running_ahead` | packets whose arrival is known before other events |
//! | `passage` | those of them of which only the length matters on their way |
//! | `feeders` | the ports whose packets all come by one link |
//! | `lookahead` | the packets of upcoming events |
//! | `split` | the shards of a network, for several threads |

mod build;
mod delivery;
mod feeders;
mod lookahead;
mod passage;
mod running_ahead;
mod split;
mod tx_port;

use weir_fabric::{self as fabric, EgressPort, PacketCount, PortChange, Switch};
use weir_scenario::{Port, PortIndex, SwitchIndex};
use weir_units::Time;

use crate::error::NetworkError;
use crate::event_queue::EventQueue;
use crate::packets_in_flight::PacketsInFlight;
use crate::queues;
use crate::seeds::Seeds;
pub use delivery::HostArrival;
use lookahead::Lookahead;
pub use lookahead::Stage;
pub use passage::{Passage, Stop};
use running_ahead::Ahead;
pub use split::Export;
pub use tx_port::{DirectPort, TxPort};

/// The network of a scenario. Its links are its event sources: each delivers its packets in order, to a
/// host or to a switch, which forwards them at once. The caller passes packets from hosts to
/// [`send`](Self::send), and calls [`handle`](Self::handle) for the port and time that
/// [`next_event`](Self::next_event) returns. Times must not run backwards. Elements of a switch are
/// [added](Self::add_element) before the first packet.
///
/// Ports that may change hold their packets; those of other ports lie in slots, so that they need not be
/// moved from port to port. A network in which every port holds them, as in real time, has
/// [`deliver`](Self::deliver).
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
    /// The packets on links of ports that do not hold them.
    in_flight: PacketsInFlight<P>,
    /// The next delivery of each port's link, then the next timeout of each switch's elements.
    event_queue: EventQueue,
    lookahead: Lookahead,
    /// Whether the last packet at a switch ran ahead to a host.
    runs_ahead: bool,
    /// Packets may run ahead up to this time.
    run_ahead_before: Time,
    /// Packets for hosts that have run ahead.
    ahead: Ahead,
    /// The ports whose links have packets for another shard: see [`Self::take_exports`].
    exported: Vec<u32>,
    /// The ports that are measured.
    measured: Vec<PortIndex>,
    is_tapped: bool,
    /// Packets that left measured ports, each with its port's position in `measured`.
    tapped: Vec<(Time, usize, P)>,
    seeds: Seeds,
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
    ports: Vec<SwitchPort>,
    /// Whether its ports hold their packets.
    holds_packets: bool,
    /// The timeout of its elements in the event queue.
    timer: Time,
}

/// A port of a switch.
#[derive(Clone, Copy, Debug)]
struct SwitchPort {
    /// Its index in the topology.
    port: u32,
    /// Whether all its packets come by the same link.
    has_one_feeder: bool,
}

/// The sender and the receiver of a port's link.
#[derive(Clone, Copy, Debug)]
// A power of two, so that its address is a shift of the port.
#[repr(align(32))]
struct PortLocation {
    sender: Sender,
    receiver: Receiver,
    is_measured: bool,
    /// Whether it belongs to a host and does not hold its packets.
    is_direct: bool,
    /// Whether the link's packets may run ahead: it leads to an undisturbed host, or to a
    /// port that has no other feeder.
    leads_on: bool,
    /// Whether it leads to another [shard](Network::split).
    leads_out: bool,
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

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Sets whether packets that leave measured ports are kept for [`Self::take_tapped`].
    pub fn set_tapped(&mut self, tapped: bool) {
        self.is_tapped = tapped;
    }

    /// Returns the packets that have left measured ports since the last call: arrival time, index of the
    /// measured port, packet.
    pub fn take_tapped(&mut self) -> Vec<(Time, usize, P)> {
        std::mem::take(&mut self.tapped)
    }

    /// Appends an element to the path of a switch, whose ports hold their packets from now on.
    pub fn add_element(&mut self, switch: SwitchIndex, element: impl fabric::Element<P>) {
        self.hold_packets(switch.index());
        if let Some(SwitchNode { switch, .. }) = self.switches.get_mut(switch.index()) {
            switch.add_element(element);
        }
    }

    /// Returns the first element of this type in the path of a switch.
    pub fn element<E: fabric::Element<P>>(&self, switch: SwitchIndex) -> Option<&E> {
        self.switches.get(switch.index())?.switch.element()
    }

    /// Returns the first time that cannot be simulated.
    pub fn horizon(&self) -> Time {
        self.event_queue.horizon()
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
        let source = self.locations.len() + switch.index();
        let node = self.switches.get_mut(switch.index())?;
        let result = node.switch.element_mut().map(act);
        node.set_timer(source, &mut self.event_queue);
        result
    }

    /// Applies a change to a port as of `now`. Faults, and changes while packets are on their way, need a
    /// port that was created as changing.
    pub fn apply(&mut self, now: Time, port: PortIndex, change: PortChange) {
        self.update_port(port, |egress_port| egress_port.apply(now, change));
    }

    /// Keeps the backlog of a port's queue up to date from the start: the queue will change.
    pub fn watch(&mut self, port: PortIndex) {
        self.update_port(port, EgressPort::watch);
    }

    /// Changes the thresholds of a port's queue to those of `settings`, whose queue is of the same kind, for
    /// packets that arrive from `now` on.
    pub fn change_queue(&mut self, now: Time, port: PortIndex, settings: &Port) {
        self.update_port(port, |egress_port| {
            egress_port.change_rules(queues::rules(settings));
            if let Some(codel) = queues::codel(settings) {
                egress_port.change_codel(now, codel);
            }
        });
    }

    /// Changes the shared buffer of a switch that has one, for packets that arrive from now on.
    ///
    /// # Errors
    /// The buffer is invalid.
    pub fn change_shared_buffer(
        &mut self,
        switch: SwitchIndex,
        buffer: &weir_scenario::SharedBuffer,
    ) -> Result<(), NetworkError> {
        if let Some(SwitchNode { switch, ports, .. }) = self.switches.get_mut(switch.index()) {
            switch.change_shared_buffer(build::shared_buffer(buffer, ports.len())?);
        }
        Ok(())
    }

    /// Lets `act` change a port, and updates its event.
    fn update_port(&mut self, port: PortIndex, act: impl FnOnce(&mut EgressPort<P>)) {
        match self.locations[port.index()].sender {
            Sender::Host(uplink) => {
                let egress_port = &mut self.uplinks[uplink as usize].egress_port;
                act(egress_port);
                if egress_port.holds_packets() {
                    let next = egress_port.timeout().unwrap_or(Time::MAX);
                    self.event_queue.set(port.index(), next);
                }
            }
            Sender::Switch { switch, port } => {
                let SwitchNode { switch, ports, .. } = &mut self.switches[switch as usize];
                let event_queue = &mut self.event_queue;
                let changed = |port: fabric::PortIndex, next: Option<Time>| {
                    let next = next.unwrap_or(Time::MAX);
                    event_queue.set(ports[port.index()].port as usize, next);
                };
                switch.update_port(port, changed, act);
            }
        }
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
    /// Updates the timeout of the elements, which are an event source with this number.
    #[inline]
    fn set_timer(&mut self, source: usize, event_queue: &mut EventQueue) {
        let next = self.switch.timeout_of_elements().unwrap_or(Time::MAX);
        if next != self.timer {
            self.timer = next;
            event_queue.set(source, next);
        }
    }
}
