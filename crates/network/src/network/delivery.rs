//! The events of a network: packets that arrive at switches and hosts, and elements that act.

use weir_fabric::{self as fabric, EgressPort};
use weir_units::Time;

use super::sources::EventSource;
use super::{Network, Receiver, Sender, SwitchNode};
use crate::timing_wheel::{Arrival, SlotIndex};

/// The next event of a network.
#[derive(Clone, Copy, Debug)]
pub struct NetworkEvent {
    /// When it happens.
    pub time: Time,
    kind: EventKind,
}

#[derive(Clone, Copy, Debug)]
enum EventKind {
    /// A packet reaches the far end of a link.
    Arrival(Arrival),
    Source(EventSource),
}

/// A packet for a host, which its caller takes in and then [releases](Network::release).
#[derive(Clone, Copy, Debug)]
pub struct HostArrival {
    /// When it arrives, which may be after the event that returned it.
    pub time: Time,
    /// The packet's slot.
    pub slot: SlotIndex,
    /// The port whose link delivers it.
    port: u32,
    /// Whether the port counts it when it is taken in.
    is_counted: bool,
}

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Returns the first event, if it is before `limit`.
    #[inline]
    pub fn next_before(&mut self, limit: Time) -> Option<NetworkEvent> {
        let arrival = self.wheel.first_before(limit);
        let Some((time, source)) = self.sources.first().filter(|(time, _)| *time < limit) else {
            return arrival.map(NetworkEvent::of_arrival);
        };
        let port = match source {
            EventSource::Port(port) => port,
            EventSource::Elements(_) => u32::MAX,
        };
        match arrival {
            Some(arrival) if (arrival.time, arrival.port) < (time, port) => {
                Some(NetworkEvent::of_arrival(arrival))
            }
            _ => Some(NetworkEvent {
                time,
                kind: EventKind::Source(source),
            }),
        }
    }

    /// Handles the event that [`Self::next_before`] has just returned. A switch forwards its packet at once.
    /// Returns a packet that arrives at a host, now or later: see [`Self::set_run_ahead`].
    #[inline]
    pub fn handle(&mut self, event: NetworkEvent) -> Option<HostArrival> {
        match event.kind {
            EventKind::Arrival(arrival) => {
                self.wheel.pop_first();
                self.arrive(arrival)
            }
            EventKind::Source(EventSource::Port(port)) => self.poll_port(event.time, port),
            EventKind::Source(EventSource::Elements(switch)) => {
                self.run_elements(event.time, switch);
                None
            }
        }
    }

    /// Lets [`Self::handle`] return packets for hosts when they enter the last link, if they arrive before
    /// this time. Nothing may then change before it but by packets and by the hosts themselves.
    pub fn set_run_ahead(&mut self, before: Time) {
        self.run_ahead_before = before;
    }

    /// Postpones a packet for a host that [`Self::handle`] has returned ahead of time.
    pub fn defer(&mut self, arrival: HostArrival) {
        if let Sender::Switch { switch, port } = self.locations[arrival.port as usize].sender {
            self.switches[switch as usize].ports[port.index()].deferred += 1;
        }
        self.wheel.schedule(arrival.slot, arrival.time, arrival.port);
    }

    /// The packet of a slot.
    #[inline]
    pub fn packet(&self, slot: SlotIndex) -> &P {
        self.wheel.packet(slot)
    }

    /// Frees the slot of a packet that a host has taken in.
    #[inline]
    pub fn release(&mut self, arrival: HostArrival) {
        if arrival.is_counted {
            self.count_delivery(arrival.port, arrival.slot);
        }
        self.wheel.release(arrival.slot);
    }

    #[inline]
    fn arrive(&mut self, Arrival { time, port, slot }: Arrival) -> Option<HostArrival> {
        let location = self.locations[port as usize];
        if location.is_measured && self.is_tapped {
            let packet = self.wheel.packet(slot).clone();
            self.tap(time, port, Some(packet));
        }
        match location.receiver {
            Receiver::Host => {
                if let Sender::Switch { switch, port } = location.sender {
                    self.switches[switch as usize].ports[port.index()].deferred -= 1;
                }
                Some(HostArrival {
                    time,
                    slot,
                    port,
                    is_counted: location.is_measured,
                })
            }
            Receiver::Switch { switch, ingress } => {
                if location.is_measured {
                    self.count_delivery(port, slot);
                }
                let node = &mut self.switches[switch as usize];
                if node.holds_packets {
                    let packet = self.wheel.packet(slot).clone();
                    self.wheel.release(slot);
                    self.forward_held(time, switch, ingress, packet);
                    return None;
                }
                self.forward(time, switch, slot)
            }
        }
    }

    /// Forwards a packet in a switch whose ports hold no packets.
    #[inline(always)]
    fn forward(&mut self, now: Time, switch: u32, slot: SlotIndex) -> Option<HostArrival> {
        let SwitchNode { switch, ports, .. } = &mut self.switches[switch as usize];
        let Some((port, time)) = switch.transmit(now, self.wheel.packet_mut(slot)) else {
            self.wheel.release(slot);
            return None;
        };
        let egress = &mut ports[port.index()];
        if egress.is_to_host {
            // The arrivals of a link stay in order.
            if time < self.run_ahead_before && egress.deferred == 0 {
                let port = egress.port;
                return Some(HostArrival {
                    time,
                    slot,
                    port,
                    is_counted: egress.is_measured,
                });
            }
            egress.deferred += 1;
        }
        self.wheel.schedule(slot, time, egress.port);
        None
    }

    /// Delivers the next packet that has arrived on the link of a port that holds its packets.
    #[inline(never)]
    fn poll_port(&mut self, now: Time, port: u32) -> Option<HostArrival> {
        let packet = self.poll(now, port)?;
        match self.locations[port as usize].receiver {
            Receiver::Host => Some(HostArrival {
                time: now,
                slot: self.wheel.store(packet),
                port,
                is_counted: false,
            }),
            Receiver::Switch { switch, ingress } => {
                if self.switches[switch as usize].holds_packets {
                    self.forward_held(now, switch, ingress, packet);
                    return None;
                }
                let slot = self.wheel.store(packet);
                self.forward(now, switch, slot)
            }
        }
    }

    /// Takes a packet that has arrived on the link of a port that holds its packets.
    fn poll(&mut self, now: Time, port: u32) -> Option<P> {
        let location = *self.locations.get(port as usize)?;
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
        self.sources.set_port(port, next);
        if self.is_tapped && location.is_measured {
            self.tap(now, port, packet.clone());
        }
        packet
    }

    /// Forwards a packet in a switch whose ports hold their packets.
    fn forward_held(&mut self, now: Time, switch: u32, ingress: fabric::PortIndex, packet: P) {
        let node = &mut self.switches[switch as usize];
        let SwitchNode {
            switch: fabric_switch,
            ports,
            ..
        } = node;
        let sources = &mut self.sources;
        fabric_switch.forward(now, ingress, packet, |port, next| {
            sources.set_port(ports[port.index()].port, next);
        });
        if fabric_switch.has_elements() {
            node.set_timer(switch, sources);
        }
    }

    /// Handles the timeouts of a switch's elements.
    #[cold]
    fn run_elements(&mut self, now: Time, switch: u32) {
        let Some(node) = self.switches.get_mut(switch as usize) else {
            return;
        };
        let SwitchNode {
            switch: fabric_switch,
            ports,
            ..
        } = node;
        let sources = &mut self.sources;
        fabric_switch.handle_timeout(now, |port, next| {
            sources.set_port(ports[port.index()].port, next);
        });
        node.set_timer(switch, sources);
    }

    /// Records the delivery of a packet that the port does not hold.
    #[inline(never)]
    fn count_delivery(&mut self, port: u32, slot: SlotIndex) {
        let length = self.wheel.packet(slot).length();
        match self.locations[port as usize].sender {
            Sender::Host(uplink) => {
                let egress_port = &mut self.uplinks[uplink as usize].egress_port;
                egress_port.count_delivery(length);
            }
            Sender::Switch { switch, port } => {
                let switch = &mut self.switches[switch as usize].switch;
                switch.count_delivery(port, length);
            }
        }
    }

    #[cold]
    fn tap(&mut self, now: Time, port: u32, packet: Option<P>) {
        let mut measured = self.measured.iter();
        let position = measured.position(|index| index.index() == port as usize);
        if let (Some(position), Some(packet)) = (position, packet) {
            self.tapped.push((now, position, packet));
        }
    }

    /// Returns the time and the port of the next delivery in a network whose ports all hold their packets.
    /// A number above those of the ports stands for the elements of a switch.
    #[inline]
    pub fn next_delivery(&self) -> (Time, usize) {
        match self.sources.first() {
            Some((time, EventSource::Port(port))) => (time, port as usize),
            Some((time, EventSource::Elements(switch))) => {
                (time, self.locations.len() + switch as usize)
            }
            None => (self.sources.horizon(), 0),
        }
    }

    /// Delivers the next packet that has arrived on this port's link by `now`, in a network whose ports all
    /// hold their packets. A switch forwards it; a packet for a host is returned.
    pub fn deliver(&mut self, now: Time, port: usize) -> Option<P> {
        let Some(location) = self.locations.get(port) else {
            self.run_elements(now, (port - self.locations.len()) as u32);
            return None;
        };
        let receiver = location.receiver;
        let packet = self.poll(now, port as u32);
        match receiver {
            Receiver::Host => packet,
            Receiver::Switch { switch, ingress } => {
                self.forward_held(now, switch, ingress, packet?);
                None
            }
        }
    }

    /// Iterates over all packets in the network, in no order.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let switches = self.switches.iter();
        let ports = switches.flat_map(|node| node.switch.ports());
        let uplinks = self.uplinks.iter().map(|uplink| &uplink.egress_port);
        let held = ports.chain(uplinks).flat_map(EgressPort::packets);
        held.chain(self.wheel.packets())
    }
}

impl NetworkEvent {
    fn of_arrival(arrival: Arrival) -> Self {
        Self {
            time: arrival.time,
            kind: EventKind::Arrival(arrival),
        }
    }
}
