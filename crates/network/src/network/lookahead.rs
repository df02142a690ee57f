//! Looking ahead: the packets of upcoming events, so that the processor can fetch what they need while it
//! handles others.
//!
//! It waits for nothing here. First it is asked for a packet; when that is there, for the ends and the ports that
//! the packet names; and when these are there, for what they point to.

use weir_fabric::{self as fabric, prefetch};

use super::{Network, Receiver, Sender, SwitchNode};
use crate::packets_in_flight::SlotIndex;

/// How far the processor is with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The packet is there.
    Packet,
    /// What it names has been asked for.
    Ends,
}

/// The ports whose next packets the processor has been asked for: the last one, and the one before.
pub(super) type Lookahead = [u32; 2];

/// No ports.
pub(super) const NOTHING_AHEAD: Lookahead = [u32::MAX; 2];

const MANY_PORTS: usize = 1_000;

impl<P: fabric::Packet + Clone + 'static> Network<P> {
    /// Calls `fetch` for the next packets on the link of a port, after one of them, if hosts take them in.
    #[inline]
    pub fn look_along_link(&self, port: usize, mut fetch: impl FnMut(&Self, &P, Stage)) {
        let Some(first) = self.head(port as u32) else {
            return;
        };
        let reaches_host = self.reaches_host(port as u32);
        if reaches_host {
            fetch(self, self.in_flight.packet(first), Stage::Ends);
        }
        let Some(second) = self.in_flight.after(first) else {
            return;
        };
        if reaches_host {
            fetch(self, self.in_flight.packet(second), Stage::Packet);
        }
        if let Some(third) = self.in_flight.after(second) {
            self.in_flight.prefetch(third);
        }
    }

    /// Calls `fetch` for packets of upcoming events that hosts take in, after an event of `port`.
    #[inline]
    pub fn look_ahead(&mut self, port: usize, mut fetch: impl FnMut(&Self, &P, Stage)) {
        self.look_along_link(port, &mut fetch);
        if !self.has_many_ports() {
            return;
        }
        let newest = self.event_queue.earliest_near(port);
        let [before, first] = self.lookahead;
        self.lookahead = [newest as u32, before];
        if let Some(slot) = self.head(first)
            && self.reaches_host(first)
        {
            fetch(self, self.in_flight.packet(slot), Stage::Ends);
        }
        if let Some(slot) = self.head(before) {
            if self.reaches_host(before) {
                fetch(self, self.in_flight.packet(slot), Stage::Packet);
            }
            if let Some(second) = self.in_flight.after(slot) {
                self.in_flight.prefetch(second);
            }
        }
        if let Some(slot) = self.head(newest as u32) {
            self.in_flight.prefetch(slot);
            self.event_queue.prefetch(newest);
            if let Some(location) = self.locations.get(newest) {
                prefetch(location);
            }
        }
    }

    /// Whether there are so many ports that most links have few packets, and the state of all does not fit the
    /// inner caches.
    #[inline]
    fn has_many_ports(&self) -> bool {
        self.locations.len() >= MANY_PORTS
    }

    /// Whether the packets on the link of a port are for a host, at its end or as they run ahead there.
    #[inline]
    fn reaches_host(&self, port: u32) -> bool {
        self.runs_ahead || matches!(self.locations[port as usize].receiver, Receiver::Host)
    }

    /// Returns the first packet on the link of a port, if it is the number of one.
    #[inline]
    fn head(&self, port: u32) -> Option<SlotIndex> {
        self.locations.get(port as usize)?;
        self.in_flight.head(port)
    }

    /// Has the processor fetch the port of a host, and that at the other end of its link.
    #[inline]
    pub fn prefetch_host_port(&self, port: u32) {
        if !self.has_many_ports() {
            return;
        }
        for port in [port, port ^ 1] {
            let Some(location) = self.locations.get(port as usize) else {
                return;
            };
            self.in_flight.prefetch_link(port);
            match location.sender {
                Sender::Host(uplink) => {
                    if let Some(uplink) = self.uplinks.get(uplink as usize) {
                        uplink.egress_port.prefetch();
                    }
                }
                Sender::Switch { switch, port } => {
                    if let Some(SwitchNode { switch, ports, .. }) =
                        self.switches.get(switch as usize)
                        && let Some(egress_port) = switch.port(port)
                    {
                        prefetch(&ports[port.index()]);
                        egress_port.prefetch();
                    }
                }
            }
        }
    }
}
