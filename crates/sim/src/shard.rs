//! A shard: a part of the network with its hosts, and its events between two control events.

use weir_units::Time;

use crate::hosts::Hosts;
use crate::packet::Network;

/// A part of the network with its hosts; the whole network on one thread.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
}

impl Shard {
    /// Handles all events before `end` of a shard in which nothing concerns an application. Returns their
    /// number.
    pub(crate) fn run_before(&mut self, end: Time) -> usize {
        let Self { network, hosts } = self;
        let mut events = 0;
        loop {
            if let Some(arrival) = network.next_ahead() {
                hosts.take_ahead(arrival, network);
                continue;
            }
            let (event, port) = network.next_event();
            let (timer, host) = hosts.next_timeout();
            // Packets come before timers of the same time.
            let notice = if event <= timer && event < end {
                let arrival = network.handle(event, port);
                hosts.prefetch(network.next_on_link(port));
                match arrival {
                    None => None,
                    Some(arrival) if arrival.time > event => {
                        hosts.take_ahead(arrival, network);
                        None
                    }
                    Some(arrival) => hosts.receive(arrival, network),
                }
            } else if timer < end {
                hosts.handle_timeout(timer, host, network)
            } else {
                return events;
            };
            events += 1;
            debug_assert_eq!(notice, None, "divided networks have endless flows only");
        }
    }

    /// Takes in the packets that have run ahead already, so that all else happens in events.
    pub(crate) fn settle(&mut self) {
        while let Some(arrival) = self.network.next_ahead() {
            self.hosts.take_ahead(arrival, &mut self.network);
        }
    }

    /// Returns the time of its first event; without one, a time beyond all that can be simulated.
    pub(crate) fn first_event(&self) -> Time {
        let (event, _) = self.network.next_event();
        let (timer, _) = self.hosts.next_timeout();
        event.min(timer)
    }
}
