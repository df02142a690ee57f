//! Hosts that take packets in ahead of the network's events.

use weir_network::HostArrival;

use super::{Hosts, Transport};
use crate::packet::{Network, Packet};

/// With this many endpoints, their state no longer fits the processor's inner caches.
const MANY_ENDPOINTS: usize = 1_000;

impl Hosts {
    /// Has the processor fetch what a packet will need at both ends, if there are so many endpoints that it
    /// may have to wait for them.
    #[inline]
    pub(crate) fn prefetch(&self, packet: Option<&Packet>) {
        if self.endpoints.len() < MANY_ENDPOINTS {
            return;
        }
        for position in packet
            .into_iter()
            .flat_map(|packet| [packet.endpoint, packet.sender])
        {
            if let Some(Some(endpoint)) = self.endpoints.get(position as usize)
                && let Transport::Tcp(end) = &endpoint.transport
            {
                std::hint::black_box(endpoint.socket.armed);
                end.connection.prefetch();
            }
        }
    }

    /// Takes in a packet that has run ahead of the network's events, and those before it on its link; if a
    /// timer of the host is earlier, at its time.
    #[inline(always)]
    pub(crate) fn take_ahead(&mut self, arrival: HostArrival, network: &mut Network) {
        let host = network.packet(arrival.slot).destination;
        if network.is_link_idle(arrival) && arrival.time <= self.shared.timers.of(host) {
            self.receive_ahead(arrival, network);
        } else {
            self.take_after_others(arrival, host, network);
        }
    }

    /// Takes in a packet after those before it on its link, as far as the host's timers allow.
    #[cold]
    fn take_after_others(&mut self, arrival: HostArrival, host: u32, network: &mut Network) {
        while let Some(before) = network.take_before(arrival, self.shared.timers.of(host)) {
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
