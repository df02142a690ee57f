//! The events of a network: packets that arrive at switches and hosts, and elements that act.

use weir_fabric::{self as fabric, EgressPort};
use weir_units::Time;

use super::{Network, Receiver, Sender, SwitchNode};
use crate::packets_in_flight::SlotIndex;

/// A packet for a host, which its caller takes in and then [releases](Network::release).
#[derive(Clone, Copy, Debug)]
pub struct HostArrival {
    /// When it arrives, which may be later than the last event.
    pub time: Time,
    /// The packet's slot.
    pub slot: SlotIndex,
    /// The port whose link delivers it.
    pub(super) port: u32,
}

impl HostArrival {
    /// Returns the port whose link delivers it.
    #[inline]
    pub fn port(self) -> usize {
        self.port as usize
    }
}

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Returns the time and the port of the next event. A number above those of the ports stands for the
    /// elements of a switch. Without events, the time is [`Self::horizon`].
    #[inline]
    pub fn next_event(&self) -> (Time, usize) {
        self.event_queue.first()
    }

    /// Handles the event that [`Self::next_event`] has returned. A switch forwards its packet at once.
    /// Returns a packet that arrives at a host, now or [ahead of time](Self::set_run_ahead).
    #[inline(always)]
    pub fn handle(&mut self, now: Time, port: usize) -> Option<HostArrival> {
        match self.locations.get(port) {
            Some(_) => match self.in_flight.pop(port as u32) {
                Some((slot, next)) => {
                    self.event_queue.set(port, next);
                    self.arrive(now, port as u32, slot)
                }
                None => self.poll_port(now, port as u32),
            },
            None => {
                self.run_elements(now, port - self.locations.len());
                None
            }
        }
    }

    #[inline(always)]
    pub(super) fn put_on_link(&mut self, port: u32, slot: SlotIndex, arrival: Time) {
        if self.in_flight.push(port, slot, arrival) {
            self.note_first(port, arrival);
        }
    }

    /// Records the arrival of the first packet on the link of a port.
    #[inline(never)]
    fn note_first(&mut self, port: u32, arrival: Time) {
        if self.locations[port as usize].leads_out {
            return self.note_export(port);
        }
        self.event_queue.set(port as usize, arrival);
    }

    /// The packet of a slot.
    #[inline]
    pub fn packet(&self, slot: SlotIndex) -> &P {
        self.in_flight.packet(slot)
    }

    /// The packet of a slot, to be written.
    #[inline]
    pub fn packet_mut(&mut self, slot: SlotIndex) -> &mut P {
        self.in_flight.packet_mut(slot)
    }

    /// Frees the slot of a packet that a host has taken in.
    #[inline]
    pub fn release(&mut self, slot: SlotIndex) {
        self.in_flight.release(slot);
    }

    #[inline(always)]
    fn arrive(&mut self, time: Time, port: u32, slot: SlotIndex) -> Option<HostArrival> {
        let location = self.locations[port as usize];
        if location.is_measured && self.is_tapped {
            let packet = self.in_flight.packet(slot).clone();
            self.tap(time, port, Some(packet));
        }
        match location.receiver {
            Receiver::Host => Some(HostArrival { time, slot, port }),
            Receiver::Switch { switch, ingress } => {
                let node = &mut self.switches[switch as usize];
                if node.holds_packets {
                    let packet = self.in_flight.packet(slot).clone();
                    self.in_flight.release(slot);
                    self.forward_held(time, switch, ingress, packet);
                    return None;
                }
                let arrival = self.forward(time, switch, slot);
                self.runs_ahead = arrival.is_some();
                arrival
            }
        }
    }

    /// Forwards a packet in a switch whose ports hold no packets.
    #[inline(always)]
    fn forward(&mut self, now: Time, switch: u32, slot: SlotIndex) -> Option<HostArrival> {
        let SwitchNode { switch, ports, .. } = &mut self.switches[switch as usize];
        let Some((port, time)) = switch.transmit(now, self.in_flight.packet_mut(slot)) else {
            self.in_flight.release(slot);
            return None;
        };
        let port = ports[port.index()].port;
        self.travel(port, slot, time)
    }

    /// Delivers the next packet that has arrived on the link of a port that holds its packets.
    #[inline(never)]
    fn poll_port(&mut self, now: Time, port: u32) -> Option<HostArrival> {
        let packet = self.poll(now, port)?;
        match self.locations[port as usize].receiver {
            Receiver::Host => Some(HostArrival {
                time: now,
                slot: self.in_flight.store(packet),
                port,
            }),
            Receiver::Switch { switch, ingress } => {
                if self.switches[switch as usize].holds_packets {
                    self.forward_held(now, switch, ingress, packet);
                    return None;
                }
                let slot = self.in_flight.store(packet);
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
        self.event_queue
            .set(port as usize, next.unwrap_or(Time::MAX));
        if self.is_tapped && location.is_measured {
            self.tap(now, port, packet.clone());
        }
        packet
    }

    /// Forwards a packet in a switch whose ports hold their packets.
    fn forward_held(&mut self, now: Time, switch: u32, ingress: fabric::PortIndex, packet: P) {
        let source = self.locations.len() + switch as usize;
        let node = &mut self.switches[switch as usize];
        let SwitchNode { switch, ports, .. } = node;
        let event_queue = &mut self.event_queue;
        switch.forward(now, ingress, packet, |port, next| {
            let next = next.unwrap_or(Time::MAX);
            event_queue.set(ports[port.index()].port as usize, next);
        });
        if switch.has_elements() {
            node.set_timer(source, event_queue);
        }
    }

    /// Handles the timeouts of a switch's elements.
    #[cold]
    fn run_elements(&mut self, now: Time, switch: usize) {
        let source = self.locations.len() + switch;
        let Some(node) = self.switches.get_mut(switch) else {
            return;
        };
        let SwitchNode { switch, ports, .. } = node;
        let event_queue = &mut self.event_queue;
        switch.handle_timeout(now, |port, next| {
            let next = next.unwrap_or(Time::MAX);
            event_queue.set(ports[port.index()].port as usize, next);
        });
        node.set_timer(source, event_queue);
    }

    #[cold]
    fn tap(&mut self, now: Time, port: u32, packet: Option<P>) {
        let mut measured = self.measured.iter();
        let position = measured.position(|index| index.index() == port as usize);
        if let (Some(position), Some(packet)) = (position, packet) {
            self.tapped.push((now, position, packet));
        }
    }

    /// Delivers the next packet that has arrived on this port's link by `now`, in a network whose ports all
    /// hold their packets. A switch forwards it; a packet for a host is returned.
    pub fn deliver(&mut self, now: Time, port: usize) -> Option<P> {
        let Some(location) = self.locations.get(port) else {
            self.run_elements(now, port - self.locations.len());
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
        held.chain(self.in_flight.iter())
    }
}
