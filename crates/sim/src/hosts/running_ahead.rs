//! Hosts that take packets in ahead of the network's events.

use std::mem::offset_of;

use weir_fabric::{prefetch, prefetch_line, prefetch_start};
use weir_network::{HostArrival, Stage};

use super::{Endpoint, Hosts, Transport, tcp};
use crate::packet::{Address, Network, Packet};

/// How many of its bytes an endpoint needs that only receives, or whose timer is postponed.
const RECEIVER_BYTES: usize = offset_of!(Endpoint, transport) + 8 + tcp::RECEIVER_BYTES;

/// With this many endpoints, their state no longer fits the processor's inner caches.
const MANY_ENDPOINTS: usize = 1_000;

impl Hosts {
    /// Whether there are so many endpoints that the processor may have to wait for them.
    #[inline]
    fn are_many(&self) -> bool {
        self.endpoints.len() >= MANY_ENDPOINTS
    }

    /// Has the processor fetch what upcoming packets will need, after one on the link of `port`.
    #[inline]
    pub(crate) fn look_ahead(&self, port: usize, network: &mut Network) {
        if self.are_many() {
            network.look_ahead(port, |network, packet, stage| {
                self.prefetch(packet, stage, network);
            });
        }
    }

    /// Has the processor fetch what the next packets on a link will need.
    #[inline]
    fn look_along_link(&self, port: usize, network: &Network) {
        if self.are_many() {
            network.look_along_link(port, |network, packet, stage| {
                self.prefetch(packet, stage, network);
            });
        }
    }

    /// Has the processor fetch what a packet will need, in two steps: endpoints, and then what they point to.
    #[inline]
    fn prefetch(&self, packet: &Packet, stage: Stage, network: &Network) {
        if !packet.is_long() {
            return self.prefetch_sender(packet.endpoint, stage, network);
        }
        if stage == Stage::Packet {
            self.prefetch_receiver(packet.endpoint);
        }
        if self.taken_at_once != 0 {
            // Both ends of a flow mostly lie beside each other, as one is put in place after the other.
            self.prefetch_sender(packet.endpoint ^ 1, stage, network);
        }
    }

    #[inline(always)]
    fn prefetch_receiver(&self, position: u32) {
        if let Some(endpoint) = self.endpoints.get(position as usize) {
            prefetch_start(endpoint, RECEIVER_BYTES);
        }
    }

    #[inline(always)]
    fn prefetch_sender(&self, position: u32, stage: Stage, network: &Network) {
        match self.endpoints.get(position as usize) {
            Some(endpoint) if stage == Stage::Packet => prefetch(endpoint),
            Some(Some(endpoint)) => {
                let Address { port, host, .. } = endpoint.socket.address;
                network.prefetch_host_port(port);
                self.shared.timers.prefetch(host);
                if let Transport::Tcp(end) = &endpoint.transport {
                    end.connection.heap_lines(prefetch_line);
                }
            }
            _ => {}
        }
    }

    /// Has the processor fetch what the counters of an endpoint are computed from, in the same two steps.
    pub(crate) fn prefetch_counters(&self, position: u32, stage: Stage) {
        match self.endpoints.get(position as usize) {
            Some(endpoint) if stage == Stage::Packet => prefetch(endpoint),
            Some(Some(endpoint)) => {
                if let Transport::Tcp(end) = &endpoint.transport {
                    end.connection.counter_line(prefetch_line);
                }
            }
            _ => {}
        }
    }

    /// Has the processor fetch the endpoints of the next timers: that of this host, and that of all.
    #[inline]
    pub(super) fn prefetch_timers(&self, host: usize) {
        if !self.are_many() {
            return;
        }
        let timers = &self.shared.timers;
        for host in [host, timers.next().1] {
            self.prefetch_receiver(timers.first_endpoint(host).unwrap_or(u32::MAX));
        }
    }

    /// Takes in a packet that has run ahead of the network's events, and those before it on its link; if a
    /// timer of the host is earlier, at its time.
    #[inline(always)]
    pub(crate) fn take_ahead(&mut self, arrival: HostArrival, network: &mut Network) {
        let host = network.packet(arrival.slot).destination;
        let is_next = network.is_link_idle(arrival) && arrival.time <= self.shared.timers.of(host);
        self.taken_at_once = self.taken_at_once << 1 | u8::from(is_next);
        if is_next {
            self.receive_ahead(arrival, network);
        } else {
            self.take_after_others(arrival, host, network);
        }
    }

    /// Takes in a packet after those before it on its link, as far as the host's timers allow.
    #[cold]
    fn take_after_others(&mut self, arrival: HostArrival, host: u32, network: &mut Network) {
        while let Some(before) = network.take_before(arrival, self.shared.timers.of(host)) {
            self.look_along_link(before.port(), network);
            self.receive_ahead(before, network);
        }
        // What it takes in may set a timer.
        if arrival.time <= self.shared.timers.of(host) {
            self.receive_ahead(arrival, network);
        } else {
            network.defer(arrival);
        }
    }

    #[inline]
    fn receive_ahead(&mut self, arrival: HostArrival, network: &mut Network) {
        let notice = self.receive(arrival, network);
        debug_assert_eq!(notice, None, "the flows of undisturbed hosts have no end");
    }
}
