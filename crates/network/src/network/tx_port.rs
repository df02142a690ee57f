//! The ports by which hosts send.

use weir_fabric as fabric;
use weir_units::{Duration, Time};

use super::{Network, Sender, Uplink};
use crate::packets_in_flight::SlotIndex;

/// A port of a host.
#[derive(Debug)]
pub struct TxPort<'a, P> {
    port: u32,
    /// An index into the network's uplinks.
    uplink: u32,
    network: &'a mut Network<P>,
}

/// A port of a host that does not hold its packets.
#[derive(Debug)]
pub struct DirectPort<'a, P> {
    pub(super) port: u32,
    /// An index into the network's uplinks.
    pub(super) uplink: u32,
    pub(super) network: &'a mut Network<P>,
}

/// The length of a host's queue, in time, above which flows with small queues wait: Linux lets a flow
/// queue what it sends in 2^-10 s (`sk_pacing_shift`), so all flows together what the link sends in it.
const HOST_QUEUE: Duration = Duration::from_nanos(1_000_000_000 >> 10);

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Returns a host's port, for sending.
    #[inline]
    pub fn tx_port(&mut self, port: u32) -> Option<TxPort<'_, P>> {
        match self.locations.get(port as usize)?.sender {
            Sender::Host(uplink) => Some(TxPort {
                port,
                uplink,
                network: self,
            }),
            Sender::Switch { .. } => None,
        }
    }

    /// Returns a host's port, for sending, unless it holds its packets.
    #[inline(always)]
    pub fn direct_port(&mut self, port: u32) -> Option<DirectPort<'_, P>> {
        let location = self.locations.get(port as usize)?;
        match location.sender {
            Sender::Host(uplink) if location.is_direct => Some(DirectPort {
                port,
                uplink,
                network: self,
            }),
            _ => None,
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
}

impl<P: fabric::Packet + Clone> Uplink<P> {
    #[inline]
    fn room_at(&self) -> Time {
        match self.egress_port.drained_at() {
            // The restart of a stopped link is unknown.
            Time::MAX => Time::ZERO,
            idle => idle - HOST_QUEUE,
        }
    }

    /// Returns when a sender that found no room may pass one packet to the port.
    fn reserve_slot(&mut self) -> Time {
        let Self {
            egress_port,
            next_slot,
        } = self;
        let link = egress_port.link();
        let slot = (*next_slot).max(egress_port.drained_at() - HOST_QUEUE);
        *next_slot = slot + link.rate().time_for(link.mtu() + link.framing());
        slot
    }
}

impl<'a, P: fabric::Packet + Clone + 'static> DirectPort<'a, P> {
    /// Returns the network of the port.
    #[inline(always)]
    pub fn into_network(self) -> &'a mut Network<P> {
        self.network
    }

    /// The packet of a slot, to be sent.
    #[inline(always)]
    pub fn packet_mut(&mut self, slot: SlotIndex) -> &mut P {
        self.network.in_flight.packet_mut(slot)
    }

    /// Sends the packet of a slot, which one that the host has taken in has left. Returns whether another one
    /// would be sent soon: see [`TxPort::has_room`].
    #[inline(always)]
    pub fn send(&mut self, now: Time, slot: SlotIndex) -> bool {
        let Network {
            uplinks, in_flight, ..
        } = &mut *self.network;
        let egress_port = &mut uplinks[self.uplink as usize].egress_port;
        let packet = in_flight.packet_mut(slot);
        let arrival = match egress_port.transmit_unwatched(now, packet.length()) {
            None => egress_port.transmit_watched(now, packet),
            arrival => arrival,
        };
        let has_room = is_soon(egress_port.link().free_at(), now);
        match arrival {
            Some(arrival) => {
                if let Some(ahead) = self.network.travel(self.port, slot, arrival) {
                    self.network.ahead.push(ahead);
                }
            }
            None => in_flight.release(slot),
        }
        has_room
    }

    /// Whether a packet on the link would be sent soon: see [`TxPort::has_room`].
    #[inline(always)]
    pub fn has_room(&self, now: Time) -> bool {
        let uplink = &self.network.uplinks[self.uplink as usize];
        is_soon(uplink.egress_port.link().free_at(), now)
    }

    /// Reserves a time for a sender that found no room: see [`TxPort::reserve_slot`].
    #[inline(never)]
    pub fn reserve_slot(&mut self) -> Time {
        self.network.uplinks[self.uplink as usize].reserve_slot()
    }
}

/// Whether a packet on a link that is free from then on would be sent soon.
#[inline(always)]
pub(super) fn is_soon(free: Time, now: Time) -> bool {
    // The restart of a stopped link is unknown: its time, the last of all, counts as one before now.
    let wait = free.as_nanos().wrapping_sub(now.as_nanos()).cast_signed();
    wait <= HOST_QUEUE.as_nanos().cast_signed()
}

impl<P: fabric::Packet + Clone + 'static> TxPort<'_, P> {
    #[inline]
    fn uplink(&mut self) -> &mut Uplink<P> {
        &mut self.network.uplinks[self.uplink as usize]
    }

    /// Sends a packet of the host.
    pub fn send(&mut self, now: Time, packet: P) {
        if self.uplink().egress_port.holds_packets() {
            return self.send_held(now, packet);
        }
        let slot = self.network.in_flight.store(packet);
        self.transmit(now, slot);
    }

    /// Sends the packet that `fill` writes, unless it returns false. The packet has the values of an earlier
    /// one before. Returns whether there is one.
    #[inline(always)]
    pub fn send_with(&mut self, now: Time, fill: impl FnOnce(&mut P) -> bool) -> bool
    where
        P: Default,
    {
        let Some(slot) = self.network.in_flight.store_with(fill) else {
            return false;
        };
        self.transmit(now, slot);
        true
    }

    #[inline(always)]
    fn transmit(&mut self, now: Time, slot: SlotIndex) {
        let Network {
            uplinks, in_flight, ..
        } = &mut *self.network;
        let egress_port = &mut uplinks[self.uplink as usize].egress_port;
        if egress_port.holds_packets() {
            let packet = in_flight.packet(slot).clone();
            in_flight.release(slot);
            return self.send_held(now, packet);
        }
        let Some(arrival) = egress_port.transmit(now, in_flight.packet_mut(slot)) else {
            return in_flight.release(slot);
        };
        if let Some(ahead) = self.network.travel(self.port, slot, arrival) {
            self.network.ahead.push(ahead);
        }
    }

    #[inline(never)]
    fn send_held(&mut self, now: Time, packet: P) {
        let egress_port = &mut self.uplink().egress_port;
        let before = egress_port.timeout();
        egress_port.send(now, packet);
        let next = egress_port.timeout();
        if next != before {
            let next = next.unwrap_or(Time::MAX);
            self.network.event_queue.set(self.port as usize, next);
        }
    }

    /// Whether a packet on the link would be sent soon.
    #[inline]
    pub fn has_room(&mut self, now: Time) -> bool {
        is_soon(self.uplink().egress_port.drained_at(), now)
    }

    /// Returns when a sender that found no room may pass one packet to the port. Each caller gets its own
    /// time, one after the other, at the rate of the link.
    pub fn reserve_slot(&mut self) -> Time {
        self.uplink().reserve_slot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_sent_soon_if_its_link_is_free_within_the_length_of_a_hosts_queue() {
        let now = Time::ZERO + Duration::from_secs(7);
        let soon = |free| is_soon(free, now);
        assert!(soon(Time::ZERO) && soon(now) && soon(now + HOST_QUEUE) && soon(Time::MAX));
        assert!(!soon(now + HOST_QUEUE + Duration::from_nanos(1)));
        assert!(is_soon(Time::MAX, Time::ZERO));
    }
}
