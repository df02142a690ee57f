//! Group statistics: totals after the warm-up, and samples.

use weir_counters::FlowCounters;
use weir_network::Stage;
use weir_results::{CompletionTimes, GroupSample, GroupSummary, Ratio, Slowdowns};
use weir_units::{ByteSize, Duration, Time};

use crate::world::World;

/// A measured group.
#[derive(Debug)]
pub(crate) struct GroupMeter {
    pub(crate) name: String,
    before: FlowCounters,
    /// The last sample: its time, and the counters.
    sampled: (Time, FlowCounters),
}

impl GroupMeter {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            before: FlowCounters::ZERO,
            sampled: (Time::ZERO, FlowCounters::ZERO),
        }
    }

    /// Starts to measure: the warm-up is over.
    pub(crate) fn begin(&mut self, world: &World, group: u32) {
        self.before = total(world, group).0;
    }

    pub(crate) fn sample(&mut self, now: Time, world: &World, group: u32) -> GroupSample<'_> {
        let (achieved, window) = total(world, group);
        let (last, before) = self.sampled;
        self.sampled = (now, achieved);
        GroupSample {
            time: now,
            group: &self.name,
            counters: achieved,
            goodput: achieved.since(before).goodput(now.since(last)),
            window,
        }
    }

    /// Returns the group's statistics over this time after the warm-up; its share is left open.
    pub(crate) fn summary(
        &self,
        now: Time,
        world: &World,
        group: u32,
        span: Duration,
    ) -> GroupSummary {
        let achieved = total(world, group).0.since(self.before);
        let stats = &world.flows.group_stats[group as usize];
        let open = || {
            let flows = world.flows.open.iter().map(|(_, flow)| flow);
            flows.filter(move |flow| flow.group == group)
        };
        let from = world.flows.measured_from;
        let goodputs = open().filter_map(|flow| {
            let is_endless = flow.size.is_none();
            let goodput = || flow.goodput(world.achieved(flow), from, now);
            is_endless.then(goodput).flatten()
        });
        let goodputs = goodputs.chain(stats.goodputs.iter().copied());
        // Some have ended and still close their connections.
        let transfers = open().filter_map(|flow| flow.transfer_time(from));
        let transfers: Vec<_> = stats.transfers.iter().copied().chain(transfers).collect();
        let unfinished = transfers.iter().filter(|transfer| transfer.took.is_none());
        GroupSummary {
            flows: stats.flows,
            connections_without_handshake: world.without_handshake(group),
            completed: stats.completions.len() as u64,
            unfinished: unfinished.count() as u64,
            completion: CompletionTimes::of(&mut stats.completions.clone()),
            slowdown: Slowdowns::of(&transfers),
            fairness: Ratio::fairness(goodputs),
            flows_with_timeout: stats.with_timeout
                + open()
                    .filter(|flow| world.achieved(flow).timeouts > 0)
                    .count() as u64,
            deadlines_missed: crate::deadlines::missed(world, group, now),
            epochs: world.epochs.summary(group),
            ..GroupSummary::of(&achieved, span)
        }
    }
}

/// How many flows before its turn a flow is fetched into the processor's cache, and what it points to.
const PREFETCHED: [usize; 2] = [8, 4];

/// Returns a group's counters so far, and the mean window of its open flows.
fn total(world: &World, group: u32) -> (FlowCounters, Option<ByteSize>) {
    let mut sum = world.flows.group_stats[group as usize].closed;
    let (mut windows, mut count) = (ByteSize::ZERO, 0);
    let mut later = PREFETCHED.map(|flows| world.flows.open.iter().skip(flows));
    for (_, flow) in world.flows.open.iter() {
        for (later, stage) in later.iter_mut().zip([Stage::Packet, Stage::Ends]) {
            if let Some((_, later)) = later.next() {
                world.prefetch_counters(later, stage);
            }
        }
        if flow.group != group {
            continue;
        }
        sum += world.achieved(flow);
        if let Some(window) = world.window(flow) {
            windows += window;
            count += 1;
        }
    }
    (sum, (count > 0).then(|| windows / count.max(1)))
}
