//! A queue: rules decide who comes in and who is marked; who is in leaves in order.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use crate::counters::{DropReason, Drops, PacketCount, StageCounters};
use crate::occupancy::Occupancy;
use crate::random::{Generator, Probability, generator};
use crate::red::{Ramp, Red, RedDecision, RedState};
use crate::rule::{Action, Rule, Trigger};

/// A first-in, first-out queue under a list of [`Rule`]s: what it decides, and what it counts. The
/// packets themselves wait in the [`EgressPort`](crate::EgressPort) that the queue belongs to.
#[derive(Clone, Debug)]
// In this order: what a packet needs that nobody watches comes first.
#[repr(C)]
pub struct Queue {
    arrived: PacketCount,
    /// Whether anybody looks at the length while packets come and go: there are or were rules, an
    /// account, a buffer that is shared, or somebody has asked.
    pub(crate) watched: bool,
    backlog: PacketCount,
    occupancy: Option<Box<Occupancy>>,
    /// What Not-ECT packets meet, and what ECT packets meet.
    steps: [Vec<RuleState>; 2],
    /// The average queues that steps look at, in the order of the rules.
    averages: Vec<(Red, RedState)>,
    marked: PacketCount,
    random: Generator,
    /// Apart, as it is large and rarely used.
    dropped: Box<Drops>,
}

/// A rule as packets of one class meet it.
#[derive(Clone, Copy, Debug)]
struct RuleState {
    when: TriggerKind,
    action: Action,
}

/// A trigger, without what it remembers.
#[derive(Clone, Copy, Debug)]
enum TriggerKind {
    Above(ByteSize),
    AbovePackets(u64),
    Overflows(ByteSize),
    OverflowsPackets(u64),
    Random(Probability),
    Between(Ramp),
    Ramp(Ramp),
    /// By the average with this place.
    Red(usize),
}

/// What a queue did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It waits, as it came.
    Queued,
    /// It waits, and this queue has marked it.
    Marked,
    /// It is gone.
    Dropped(DropReason),
}

impl Queue {
    /// An empty queue under `rules`, which are asked in order; `seed` decides what the random ones
    /// choose. Without rules it is unbounded.
    pub fn new(rules: impl Into<Vec<Rule>>, seed: u64) -> Self {
        let mut queue = Self {
            backlog: PacketCount::ZERO,
            arrived: PacketCount::ZERO,
            marked: PacketCount::ZERO,
            steps: Default::default(),
            averages: Vec::new(),
            occupancy: None,
            watched: false,
            random: generator(seed, 0),
            dropped: Box::default(),
        };
        queue.set_rules(rules);
        queue
    }

    /// Keeps account of the queue's length over time, from the epoch on. Without this it costs
    /// nothing.
    pub fn with_occupancy(self) -> Self {
        Self {
            occupancy: Some(Box::default()),
            watched: true,
            ..self
        }
    }

    /// Replaces the rules for packets to come. What random early detection remembers begins anew.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        self.steps = Default::default();
        self.averages.clear();
        let rules = rules.into();
        self.watched |= !rules.is_empty();
        for rule in rules {
            let step = RuleState {
                when: self.prepare(rule.when),
                action: rule.action,
            };
            let [not_ect, ect] = &mut self.steps;
            if rule.class.contains(Ecn::Ect0) {
                ect.push(step);
            }
            // A mark would pass by Not-ECT packets.
            if rule.class.contains(Ecn::NotEct) && rule.action != Action::Mark {
                not_ect.push(step);
            }
        }
    }

    /// What waits: see [`EgressPort::settle`](crate::EgressPort::settle).
    #[inline]
    pub fn backlog(&self) -> PacketCount {
        self.backlog
    }

    /// The average backlog that the first [`Red`] rule sees, as of the last arrival.
    pub fn average(&self) -> Option<ByteSize> {
        self.averages.first().map(|(_, state)| state.average())
    }

    /// How long the queue was how long, if it keeps account of it. It is accounted for up to the
    /// last change: see [`EgressPort::settle`](crate::EgressPort::settle).
    pub fn occupancy(&self) -> Option<&Occupancy> {
        self.occupancy.as_deref()
    }

    /// What became of the packets that came here.
    pub fn counters(&self) -> StageCounters {
        StageCounters {
            arrived: self.arrived,
            departed: self.departed(),
            dropped: *self.dropped,
            ..StageCounters::default()
        }
    }

    /// Packets that this queue has marked. One that arrived with CE is not counted.
    pub fn marked(&self) -> PacketCount {
        self.marked
    }

    /// What left for the link.
    pub(crate) fn departed(&self) -> PacketCount {
        self.arrived - self.dropped.total() - self.backlog
    }

    /// Somebody looks at the queue's length from now on, in which packets of these lengths wait.
    pub(crate) fn watch(&mut self, waiting: impl Iterator<Item = ByteSize>) {
        self.watched = true;
        waiting.for_each(|length| self.backlog.record(length));
    }

    /// A packet arrives at a queue that nobody watches: it is let in.
    #[inline]
    pub(crate) fn pass(&mut self, length: ByteSize) {
        self.arrived.record(length);
    }

    /// A packet arrives at a watched queue that may hold `room`, and is let in, marked or not, or
    /// dropped. The caller marks it, and keeps it.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
        room: ByteSize,
    ) -> Admission {
        self.arrived.record(length);
        for (red, state) in &mut self.averages {
            state.sample(now, self.backlog.size, red);
        }
        let admission = if self.backlog.size + length > room {
            Admission::Dropped(DropReason::Buffer)
        } else {
            self.admit(length, ecn)
        };
        match admission {
            Admission::Dropped(reason) => self.dropped.record(reason, length),
            Admission::Marked => self.marked.record(length),
            Admission::Queued => {}
        }
        admission
    }

    /// A packet that was let in has to wait.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, length: ByteSize) {
        self.backlog.record(length);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.set(now, self.backlog.size);
        }
    }

    /// A packet that waited leaves.
    pub(crate) fn leave(&mut self, at: Time, length: ByteSize) {
        self.backlog.remove(length);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.set(at, self.backlog.size);
        }
        if self.backlog.packets == 0 {
            let averages = self.averages.iter_mut();
            averages.for_each(|(_, state)| state.emptied(at));
        }
    }

    pub(crate) fn occupancy_mut(&mut self) -> Option<&mut Occupancy> {
        self.occupancy.as_deref_mut()
    }

    fn prepare(&mut self, trigger: Trigger) -> TriggerKind {
        match trigger {
            Trigger::Above(threshold) => TriggerKind::Above(threshold),
            Trigger::AbovePackets(threshold) => TriggerKind::AbovePackets(threshold),
            Trigger::Overflows(limit) => TriggerKind::Overflows(limit),
            Trigger::OverflowsPackets(limit) => TriggerKind::OverflowsPackets(limit),
            Trigger::Random(probability) => TriggerKind::Random(probability),
            Trigger::Between {
                low,
                high,
                probability,
            } => TriggerKind::Between(Ramp {
                min: low,
                max: high,
                probability,
            }),
            Trigger::Ramp(ramp) => TriggerKind::Ramp(ramp),
            Trigger::Red(red) => {
                self.averages.push((red, RedState::default()));
                TriggerKind::Red(self.averages.len() - 1)
            }
        }
    }

    #[inline]
    fn admit(&mut self, length: ByteSize, ecn: Ecn) -> Admission {
        let [not_ect, ect] = &self.steps;
        let steps = if ecn.is_capable() { ect } else { not_ect };
        let mut mark = false;
        for step in steps {
            let hit = match step.when {
                TriggerKind::Above(threshold) => certain(self.backlog.size > threshold),
                TriggerKind::Overflows(limit) => certain(self.backlog.size + length > limit),
                TriggerKind::AbovePackets(threshold) => certain(self.backlog.packets > threshold),
                TriggerKind::OverflowsPackets(limit) => certain(self.backlog.packets >= limit),
                TriggerKind::Random(probability) => chosen(probability.draw(&mut self.random)),
                TriggerKind::Between(range) => {
                    range.draw_evenly(self.backlog.size, &mut self.random)
                }
                TriggerKind::Ramp(ramp) => ramp.draw(self.backlog.size, &mut self.random),
                TriggerKind::Red(place) => match self.averages.get_mut(place) {
                    Some((red, state)) => state.draw(red, &mut self.random),
                    None => RedDecision::Spared,
                },
            };
            match (hit, step.action) {
                (RedDecision::Spared, _) => {}
                (_, Action::Mark) => mark = true,
                (_, Action::Drop(reason)) => return Admission::Dropped(reason),
                (RedDecision::Chosen, Action::DropEarly) => {
                    return Admission::Dropped(DropReason::Red);
                }
                (RedDecision::Certain, Action::DropEarly) => {
                    return Admission::Dropped(DropReason::Tail);
                }
            }
        }
        if mark && ecn != Ecn::Ce {
            Admission::Marked
        } else {
            Admission::Queued
        }
    }
}

fn certain(beyond: bool) -> RedDecision {
    if beyond {
        RedDecision::Certain
    } else {
        RedDecision::Spared
    }
}

fn chosen(by_chance: bool) -> RedDecision {
    if by_chance {
        RedDecision::Chosen
    } else {
        RedDecision::Spared
    }
}
