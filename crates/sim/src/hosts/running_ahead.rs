//! Hosts that take packets in ahead of the network's events.

use weir_fabric::{prefetch, prefetch_line};
use weir_network::{HostArrival, Stage};
use weir_units::Time;

use super::{Endpoint, Hosts, Transport};
use crate::packet::{Address, Network, Packet};

/// With this many endpoints, their state no longer fits the processor's inner caches.
const MANY_ENDPOINTS: usize = 1_000;

impl Endpoint {
    /// Returns to when a timer has been postponed since it was set; `None` if it has not been, or not surely.
    /// One that another has replaced will do nothing.
    fn postponed_to(&self, timer: Time) -> Option<Time> {
        if self.socket.armed != timer {
            return Some(Time::MAX);
        }
        match &self.transport {
            Transport::Tcp(end) if self.socket.send_slot == Time::ZERO => {
                let due = end.connection.timeout().unwrap_or(Time::MAX);
                (due > timer).then_some(due)
            }
            _ => None,
        }
    }
}

impl Hosts {
    /// Whether there are so many endpoints that the processor may have to wait for them.
    #[inline(always)]
    fn are_many(&self) -> bool {
        self.endpoints.len() >= MANY_ENDPOINTS
    }

    /// Has the processor fetch what upcoming packets will need, after one on the link of `port`.
    #[inline(always)]
    pub(crate) fn look_ahead(&self, port: usize, network: &mut Network) {
        if self.are_many() {
            self.look_along_events(port, network);
        }
    }

    #[inline(never)]
    fn look_along_events(&self, port: usize, network: &mut Network) {
        network.look_ahead(port, |network, packet, stage| {
            self.prefetch(packet, stage, network);
        });
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
            prefetch(endpoint);
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
                    end.connection.counter_lines(prefetch_line);
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
            let (_, endpoint) = timers.first(host as u32);
            self.prefetch_receiver(endpoint);
        }
    }

    /// Takes in a packet that has run ahead of the network's events, and those before it on its link; if a
    /// timer of the host is earlier, at its time.
    #[inline(always)]
    pub(crate) fn take_ahead(&mut self, arrival: HostArrival, network: &mut Network) {
        let host = network.packet(arrival.slot).destination;
        let is_next =
            network.is_link_idle(arrival) && arrival.time <= self.next_timer(host, arrival.time);
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
        while let Some(before) = network.take_before(arrival, self.next_timer(host, arrival.time)) {
            self.look_along_link(before.port(), network);
            self.receive_ahead(before, network);
        }
        // What it takes in may set a timer.
        if arrival.time <= self.next_timer(host, arrival.time) {
            self.receive_ahead(arrival, network);
        } else {
            network.defer(arrival);
        }
    }

    /// Returns the earliest timer of a host, of which those before `until` have not been postponed.
    #[inline(always)]
    pub(super) fn next_timer(&mut self, host: u32, until: Time) -> Time {
        let next = self.shared.timers.of(host);
        if next >= until {
            return next;
        }
        self.postpone_timers(host, until)
    }

    /// Sets the timers of a host anew that are before `until` and have been postponed, which does nothing else,
    /// up to the first one that has not been. Returns that.
    #[inline(never)]
    fn postpone_timers(&mut self, host: u32, until: Time) -> Time {
        loop {
            let (next, position) = self.shared.timers.first(host);
            if next >= until {
                return next;
            }
            let endpoint = self.endpoints.get_mut(position as usize);
            let endpoint = endpoint.and_then(Option::as_mut);
            let Some(due) = endpoint.as_ref().and_then(|it| it.postponed_to(next)) else {
                return next;
            };
            self.shared.timers.pop(host as usize);
            if let Some(Endpoint { socket, .. }) = endpoint
                && socket.armed == next
            {
                socket.armed = Time::MAX;
                socket.set_timer(due, &mut self.shared);
            }
        }
    }

    #[inline(always)]
    fn receive_ahead(&mut self, arrival: HostArrival, network: &mut Network) {
        let notice = self.receive(arrival, network);
        debug_assert_eq!(notice, None, "the flows of undisturbed hosts have no end");
    }
}
