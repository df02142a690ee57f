//! A shard: a part of the network with its hosts, and its events between two control events.

use weir_units::Time;

use crate::flows::FlowId;
use crate::hosts::{EndpointEvent, Hosts};
use crate::packet::Network;

/// A part of the network with its hosts; the whole network on one thread.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
}

/// An event that a shard has handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardEvent {
    pub(crate) time: Time,
    /// An event of an endpoint for its flow's application.
    pub(crate) notice: Option<(FlowId, EndpointEvent)>,
}

impl Shard {
    /// Handles the next event before `end`, if there is one, and what runs ahead because of it.
    #[inline(always)]
    pub(crate) fn handle_next(&mut self, end: Time) -> Option<ShardEvent> {
        let Self { network, hosts } = self;
        let (time, port) = network.next_event();
        let (timer, host) = hosts.next_timeout();
        // Packets come before timers of the same time.
        let notice = if time <= timer && time < end {
            let arrival = network.handle(time, port);
            hosts.look_ahead(port, network);
            match arrival {
                Some(arrival) if arrival.time > time => {
                    hosts.take_ahead(arrival, network);
                    None
                }
                Some(arrival) => hosts.receive(arrival, network),
                None => None,
            }
        } else if timer < end {
            hosts.handle_timeout(timer, host, network)
        } else {
            return None;
        };
        self.settle();
        let time = time.min(timer);
        Some(ShardEvent { time, notice })
    }

    /// Handles events before `end` up to one that concerns an application. Returns that one, or the last one;
    /// `None` if there are none.
    #[inline]
    pub(crate) fn handle_until_notice(&mut self, end: Time) -> Option<ShardEvent> {
        let mut last = None;
        while let Some(event) = self.handle_next(end) {
            last = Some(event);
            if event.notice.is_some() {
                break;
            }
        }
        last
    }

    /// Handles all events before `end` of a shard in which nothing concerns an application. Returns their
    /// number.
    pub(crate) fn run_before(&mut self, end: Time) -> u64 {
        let mut events = 0;
        while let Some(ShardEvent { notice, .. }) = self.handle_next(end) {
            debug_assert_eq!(notice, None, "divided networks have endless flows only");
            events += 1;
        }
        events
    }

    /// Takes in the packets that have run ahead already, so that all else happens in events.
    #[inline(always)]
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
