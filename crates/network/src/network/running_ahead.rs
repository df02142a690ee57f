//! Packets that run ahead of the events: what happens to them is known before their time, as nothing else can
//! come in between.

use std::collections::VecDeque;

use weir_fabric as fabric;
use weir_units::Time;

use super::{HostArrival, Network, Receiver, SwitchNode};
use crate::packets_in_flight::SlotIndex;

/// Where a packet is after a switch that it has reached ahead of time.
#[derive(Clone, Copy, Debug)]
enum Hop {
    /// On the link of this port, whose far end it reaches at this time.
    Onward(u32, Time),
    Dropped,
    /// Other links lead to its next port too.
    Unknown,
}

/// Packets for hosts that have run ahead, in order. Mostly there is one, and often none.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The first one; its time is [`Time::MAX`] if there is none.
    first: HostArrival,
    others: VecDeque<HostArrival>,
}

/// No packet.
const NOTHING: HostArrival = HostArrival {
    time: Time::MAX,
    slot: SlotIndex::NONE,
    port: u32::MAX,
};

impl Ahead {
    pub(super) const fn new() -> Self {
        Self {
            first: NOTHING,
            others: VecDeque::new(),
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.time == Time::MAX
    }

    /// Appends a packet, which arrives at some time.
    #[inline(always)]
    pub(super) fn push(&mut self, arrival: HostArrival) {
        if self.is_empty() {
            self.first = arrival;
        } else {
            self.others.push_back(arrival);
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<HostArrival> {
        if self.is_empty() {
            return None;
        }
        let next = self.others.pop_front().unwrap_or(NOTHING);
        Some(std::mem::replace(&mut self.first, next))
    }
}

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Lets packets run ahead of the events as long as nothing but packets and hosts can change their way
    /// before this time: see [`Self::next_ahead`].
    pub fn set_run_ahead(&mut self, before: Time) {
        self.run_ahead_before = before;
    }

    /// Returns the next packet for a host that has run ahead. Packets of the same host come in order.
    #[inline(always)]
    pub fn next_ahead(&mut self) -> Option<HostArrival> {
        self.ahead.pop()
    }

    /// Postpones a packet for a host that has run ahead until its time. Packets that arrive later may be on
    /// the link already.
    pub fn defer(&mut self, HostArrival { time, slot, port }: HostArrival) {
        if self.in_flight.insert(port, slot, time) {
            self.event_queue.set(port as usize, time);
        }
    }

    /// Follows a packet that a port has sent and that arrives at this time. Where only this link leads to
    /// the next port, what happens there is known now. Elsewhere, and where a change may come before, the
    /// packet becomes an event.
    #[inline(always)]
    pub(super) fn travel(&mut self, port: u32, slot: SlotIndex, time: Time) -> Option<HostArrival> {
        let location = &self.locations[port as usize];
        if !location.leads_on || time >= self.run_ahead_before {
            self.put_on_link(port, slot, time);
            return None;
        }
        match location.receiver {
            Receiver::Host => self.come_ahead(port, slot, time),
            Receiver::Switch { .. } => self.travel_on(port, slot, time),
        }
    }

    /// Follows a packet as [`Self::travel`] does.
    #[inline(never)]
    fn travel_on(&mut self, mut port: u32, slot: SlotIndex, mut time: Time) -> Option<HostArrival> {
        loop {
            let location = self.locations[port as usize];
            if !location.leads_on || time >= self.run_ahead_before {
                self.put_on_link(port, slot, time);
                return None;
            }
            let Receiver::Switch { switch, .. } = location.receiver else {
                return self.come_ahead(port, slot, time);
            };
            if !self.in_flight.is_idle(port) && !self.run_link_ahead(port, switch) {
                self.put_on_link(port, slot, time);
                return None;
            }
            match self.hop(switch, slot, time) {
                Hop::Onward(next, arrival) => (port, time) = (next, arrival),
                Hop::Dropped => {
                    self.in_flight.release(slot);
                    return None;
                }
                Hop::Unknown => {
                    self.put_on_link(port, slot, time);
                    return None;
                }
            }
        }
    }

    /// Forwards a packet that arrives at a switch ahead of time, if no other link leads to its next port.
    #[inline(always)]
    fn hop(&mut self, switch: u32, slot: SlotIndex, time: Time) -> Hop {
        let SwitchNode { switch, ports, .. } = &mut self.switches[switch as usize];
        let packet = self.in_flight.packet_mut(slot);
        let egress = switch.egress(time, packet);
        let egress = egress.filter(|egress| ports[egress.index()].has_one_feeder);
        let Some(egress) = egress else {
            return Hop::Unknown;
        };
        match switch.transmit_by(time, egress, packet) {
            Some(arrival) => Hop::Onward(ports[egress.index()].port, arrival),
            None => Hop::Dropped,
        }
    }

    /// Returns a packet that arrives at a host ahead of time, unless others have to be taken in before.
    #[inline]
    fn come_ahead(&mut self, port: u32, slot: SlotIndex, time: Time) -> Option<HostArrival> {
        let arrival = HostArrival { time, slot, port };
        if self.ahead.is_empty() {
            return Some(arrival);
        }
        self.ahead.push(arrival);
        None
    }

    /// Runs the packets on a link to a switch ahead that became events because of a change that has passed.
    /// Returns whether none is left.
    #[cold]
    fn run_link_ahead(&mut self, port: u32, switch: u32) -> bool {
        while let Some((slot, time)) = self.in_flight.first(port) {
            if time >= self.run_ahead_before {
                break;
            }
            let hop = self.hop(switch, slot, time);
            if let Hop::Unknown = hop {
                break;
            }
            self.in_flight.pop(port);
            match hop {
                Hop::Onward(next, arrival) => {
                    if let Some(arrival) = self.travel(next, slot, arrival) {
                        self.ahead.push(arrival);
                    }
                }
                Hop::Dropped | Hop::Unknown => self.in_flight.release(slot),
            }
        }
        let next = self.in_flight.first(port).map(|(_, time)| time);
        self.event_queue
            .set(port as usize, next.unwrap_or(Time::MAX));
        next.is_none()
    }

    /// Whether no packet of the same link waits for its time.
    #[inline]
    pub fn is_link_idle(&self, arrival: HostArrival) -> bool {
        self.in_flight.is_idle(arrival.port)
    }

    /// Takes the first of the packets that are before this one on the same link and wait for their time, if
    /// it arrives by `limit`.
    pub fn take_before(&mut self, arrival: HostArrival, limit: Time) -> Option<HostArrival> {
        let port = arrival.port;
        let (slot, time) = self.in_flight.first(port)?;
        // One that came after it arrives later, or else it would have run ahead too.
        if time > limit.min(arrival.time) {
            return None;
        }
        let (_, next) = self.in_flight.pop(port)?;
        self.event_queue.set(port as usize, next);
        Some(HostArrival { time, slot, port })
    }
}
