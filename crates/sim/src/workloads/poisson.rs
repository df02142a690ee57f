//! Flows of random sizes that arrive at random times.

use weir_network::Random;
use weir_scenario::{ArrivalPairs, Distribution, Group};
use weir_units::{ByteSize, Duration, Time};

use super::{Application, HostPair, stretched, transfer};
use crate::flows::FlowId;
use crate::world::World;

/// The arrival times, sizes and hosts of flows.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The mean time between two arrivals in the whole group. Several Poisson processes of equal rates are one
    /// in which each arrival belongs to any of them with the same probability.
    pub(super) mean_interval: Duration,
    pub(super) sizes: Distribution,
    pub(super) hosts: ArrivalPairs,
}

/// Returns the mean time between two arrivals of a group.
pub(super) fn mean_interval(group: &Group) -> Duration {
    let mean = group.mean_arrival_seconds().unwrap_or_default();
    Duration::from_secs_f64(mean).max(Duration::from_nanos(1))
}

/// Draws the hosts of an arrival.
fn draw(
    hosts: &mut ArrivalPairs,
    random: &mut Random,
    mut begin: impl FnMut(HostPair, &mut Random),
) {
    let below = |count: usize, random: &mut Random| random.below(count.max(1) as u64) as usize;
    let mut begin = |(from, to), random: &mut Random| begin(HostPair { from, to }, random);
    match hosts {
        ArrivalPairs::Any(pairs) => {
            let choice = below(pairs.len(), random);
            if let Some(pair) = pairs.get(choice) {
                begin(*pair, random);
            }
        }
        ArrivalPairs::BySender(senders) => {
            let sender = below(senders.len(), random);
            let Some(pairs) = senders.get(sender) else {
                return;
            };
            let choice = below(pairs.len(), random);
            if let Some(pair) = pairs.get(choice) {
                begin(*pair, random);
            }
        }
        ArrivalPairs::ByReceiver { receivers, fan_in } => {
            let receiver = below(receivers.len(), random);
            let Some(pairs) = receivers.get_mut(receiver) else {
                return;
            };
            // The first places of a Fisher-Yates shuffle: each set of senders is equally likely.
            for place in 0..pairs.len().min(*fan_in as usize) {
                let choice = place + below(pairs.len() - place, random);
                pairs.swap(place, choice);
                begin(pairs[place], random);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Poisson {
    group: u32,
    arrivals: Arrivals,
    random: Random,
    /// When arrivals begin.
    begin: Time,
    next: Time,
}

impl Poisson {
    pub(super) fn new(number: u32, group: &Group, arrivals: Arrivals, mut random: Random) -> Self {
        let begin = group.start + random.span_up_to(group.start_within);
        let next = begin + random.exponential(arrivals.mean_interval);
        Self {
            group: number,
            arrivals,
            random,
            begin,
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
            let Arrivals { sizes, hosts, .. } = &mut self.arrivals;
            draw(hosts, &mut self.random, |pair, random| {
                let size = sizes.quantile(random.fraction());
                let size = size.max(ByteSize::from_bytes(1));
                transfer::begin(now, self.group, pair, size, world);
            });
            self.next += self.random.exponential(self.arrivals.mean_interval);
        }
    }

    fn change_load(&mut self, now: Time, group: &Group) {
        let before = std::mem::replace(&mut self.arrivals.mean_interval, mean_interval(group));
        let factor = self.arrivals.mean_interval.as_secs_f64() / before.as_secs_f64();
        self.next = stretched(self.next, now.max(self.begin), factor);
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        transfer::end(now, flow, world);
    }
}
