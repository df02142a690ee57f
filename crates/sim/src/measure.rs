//! What groups did after the warm-up, and samples of them.

use weir_network::rate;
use weir_results::{CompletionTimes, GroupSample, GroupSummary, Ratio};
use weir_units::{ByteSize, Duration, Time};

use crate::flows::Achieved;
use crate::world::World;

/// A group that is measured.
#[derive(Debug)]
pub(crate) struct GroupMeter {
    pub(crate) name: String,
    before: Achieved,
    /// The last sample: when, and what had been delivered.
    sampled: (Time, u64),
}

impl GroupMeter {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            before: Achieved::default(),
            sampled: (Time::ZERO, 0),
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin(&mut self, world: &World, group: u32) {
        self.before = total(world, group).0;
    }

    pub(crate) fn sample(&mut self, now: Time, world: &World, group: u32) -> GroupSample<'_> {
        let (achieved, window) = total(world, group);
        let (last, delivered) = self.sampled;
        self.sampled = (now, achieved.delivered);
        GroupSample {
            time: now,
            group: &self.name,
            delivered: ByteSize::from_bytes(achieved.delivered),
            goodput: rate(achieved.delivered - delivered, now.since(last)),
            retransmits: achieved.retransmits,
            timeouts: achieved.timeouts,
            window,
        }
    }

    /// What the group achieved within this span after the warm-up; its share is left open.
    pub(crate) fn summary(
        &self,
        now: Time,
        world: &World,
        group: u32,
        span: Duration,
    ) -> GroupSummary {
        let achieved = total(world, group).0 - self.before;
        let account = &world.flows.accounts()[group as usize];
        let flows = world.flows.iter().filter(|(_, flow)| flow.group == group);
        let endless = flows.filter(|(_, flow)| flow.size.is_none());
        let goodputs = endless.map(|(_, flow)| {
            let delivered = world.achieved(flow).delivered - flow.before.delivered;
            rate(delivered, span)
        });
        GroupSummary {
            goodput: rate(achieved.delivered, span),
            share: Ratio::ZERO,
            link_share: None,
            flows: account.flows,
            delivered: ByteSize::from_bytes(achieved.delivered),
            retransmits: achieved.retransmits,
            timeouts: achieved.timeouts,
            marks: achieved.marks,
            completed: account.completions.len() as u64,
            completion: CompletionTimes::of(&mut account.completions.clone()),
            fairness: Ratio::fairness(goodputs),
            flows_with_timeout: account.with_timeout
                + (world.flows.iter())
                    .filter(|(_, flow)| flow.group == group && world.achieved(flow).timeouts > 0)
                    .count() as u64,
            deadlines_missed: crate::deadlines::missed(world, group, now),
            epochs: world.epochs.summary(group),
        }
    }
}

/// What a group has achieved so far, and the mean window of its open flows.
fn total(world: &World, group: u32) -> (Achieved, Option<ByteSize>) {
    let mut sum = world.flows.accounts()[group as usize].closed;
    let (mut windows, mut count) = (ByteSize::ZERO, 0);
    for (_, flow) in world.flows.iter().filter(|(_, flow)| flow.group == group) {
        sum = sum + world.achieved(flow);
        if let Some(window) = world.window(flow) {
            windows += window;
            count += 1;
        }
    }
    (sum, (count > 0).then(|| windows / count.max(1)))
}
