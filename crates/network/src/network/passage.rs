//! The passage of a packet from a host through one switch to another host, where nothing of it matters but its
//! length and its destination.

use weir_fabric as fabric;
use weir_units::{ByteSize, Time};

use super::tx_port::is_soon;
use super::{DirectPort, HostArrival, Network, Receiver, SwitchNode, Uplink};
use crate::packets_in_flight::SlotIndex;

/// How far a packet has come ahead of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At its host, where it is the next one.
    Host,
    /// On the link of a port: it has to [travel](Network::travel_from) on.
    Link,
    /// Nowhere: the port has to [send](DirectPort::send) it.
    Sender,
}

/// The way of a packet ahead of the events.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// Where it ends.
    pub stop: Stop,
    /// The last port on it.
    port: u32,
    /// When the packet reaches the far end of that port's link.
    time: Time,
    /// Whether another packet would be sent soon: see [`TxPort::has_room`](super::TxPort::has_room).
    pub has_room: bool,
}

impl Passage {
    /// Returns the arrival of a packet in this slot.
    #[inline(always)]
    pub fn arrival(self, slot: SlotIndex) -> HostArrival {
        HostArrival {
            time: self.time,
            slot,
            port: self.port,
        }
    }
}

impl<P: fabric::Packet + Clone + 'static> DirectPort<'_, P> {
    /// Sends a packet of this length as [`Self::send`] does, and follows it while queues that nobody watches are
    /// all that it meets.
    #[inline(always)]
    pub fn pass(&mut self, now: Time, destination: u32, length: ByteSize) -> Passage {
        let network = &mut *self.network;
        let mut passage = Passage {
            stop: Stop::Sender,
            port: self.port,
            time: now,
            has_room: true,
        };
        let Some(Uplink { egress_port, .. }) = network.uplinks.get_mut(self.uplink as usize) else {
            return passage;
        };
        let Some(at_switch) = egress_port.transmit_unwatched(now, length) else {
            return passage;
        };
        passage.has_room = is_soon(egress_port.link().free_at(), now);
        (passage.stop, passage.time) = (Stop::Link, at_switch);
        if let Some((port, time)) = network.cross_switch(self.port, destination, at_switch, length)
        {
            (passage.port, passage.time) = (port, time);
            if network.is_next_at_host(port, time) {
                passage.stop = Stop::Host;
            }
        }
        passage
    }
}

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Forwards a packet that reaches the far end of a port's link at `time`, if that is a switch and its next port
    /// has no other feeder and no watched queue. Returns that port, and when the packet reaches the far end of its
    /// link.
    #[inline(always)]
    fn cross_switch(
        &mut self,
        port: u32,
        destination: u32,
        time: Time,
        length: ByteSize,
    ) -> Option<(u32, Time)> {
        let location = self.locations.get(port as usize)?;
        let Receiver::Switch { switch, .. } = location.receiver else {
            return None;
        };
        if !location.leads_on || time >= self.run_ahead_before || !self.in_flight.is_idle(port) {
            return None;
        }
        let SwitchNode { switch, ports, .. } = self.switches.get_mut(switch as usize)?;
        let egress = switch.only_port_to(destination)?;
        let next = ports.get(egress.index())?;
        if !next.has_one_feeder {
            return None;
        }
        let arrival = switch.transmit_unwatched(time, egress, length)?;
        Some((next.port, arrival))
    }

    /// Whether a packet on the link of a port comes to a host ahead of the events, before all others.
    #[inline(always)]
    fn is_next_at_host(&self, port: u32, time: Time) -> bool {
        let location = &self.locations[port as usize];
        location.leads_on
            && matches!(location.receiver, Receiver::Host)
            && time < self.run_ahead_before
            && self.in_flight.is_idle(port)
            && self.ahead.is_empty()
    }

    /// Lets the packet of a slot travel on that has come to the end of a passage, a link.
    #[inline(never)]
    pub fn travel_from(&mut self, passage: Passage, slot: SlotIndex) {
        let Passage { port, time, .. } = passage;
        if let Some(ahead) = self.travel(port, slot, time) {
            self.ahead.push(ahead);
        }
    }

    /// Lets a packet that has come to its host ahead of the events wait for its turn.
    #[cold]
    pub fn queue_ahead(&mut self, arrival: HostArrival) {
        self.ahead.push(arrival);
    }
}
