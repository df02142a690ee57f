//! Flows of random sizes that arrive at random times.

use weir_network::Random;
use weir_scenario::{Distribution, Group};
use weir_units::{ByteSize, Duration, Time};

use super::{Application, HostPair, transfer};
use crate::flows::FlowId;
use crate::world::World;

/// The arrival times and sizes of flows.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) mean_interval: Duration,
    pub(super) sizes: Distribution,
}

#[derive(Debug)]
pub(super) struct Poisson {
    group: u32,
    pairs: Vec<HostPair>,
    arrivals: Arrivals,
    random: Random,
    next: Time,
}

impl Poisson {
    pub(super) fn new(number: u32, group: &Group, arrivals: Arrivals, mut random: Random) -> Self {
        let begin = group.start + random.span_up_to(group.start_within);
        let next = begin + random.exponential(arrivals.mean_interval);
        Self {
            group: number,
            pairs: group
                .pairs()
                .map(|(from, to)| HostPair { from, to })
                .collect(),
            arrivals,
            random,
            next,
        }
    }
}

impl Application for Poisson {
    fn timeout(&self) -> Option<Time> {
        Some(self.next)
    }

    fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while self.next <= now {
            let choice = self.random.below(self.pairs.len().max(1) as u64);
            let size = self.arrivals.sizes.quantile(self.random.fraction());
            if let Some(pair) = self.pairs.get(choice as usize) {
                let size = size.max(ByteSize::from_bytes(1));
                transfer::begin(now, self.group, *pair, size, world);
            }
            self.next += self.random.exponential(self.arrivals.mean_interval);
        }
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        transfer::end(now, flow, world);
    }
}
