//! A queue: rules decide who comes in and who is marked; who is in leaves in order.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use crate::counters::{Counters, DropReason, Drops, Tally};
use crate::occupancy::Occupancy;
use crate::random::{Generator, Probability, generator};
use crate::red::{Hit, Ramp, Red, RedState};
use crate::rule::{Action, Rule, Trigger};

/// A first-in, first-out queue under a list of [`Rule`]s: what it decides, and what it counts. The
/// packets themselves wait in the [`Pipe`](crate::Pipe) that the queue belongs to.
#[derive(Clone, Debug)]
// In this order: what a packet needs that nobody watches comes first.
#[repr(C)]
pub struct Queue {
    arrived: Tally,
    /// Whether anybody looks at the length while packets come and go: there are or were rules, an
    /// account, a buffer that is shared, or somebody has asked.
    pub(crate) watched: bool,
    backlog: Tally,
    occupancy: Option<Box<Occupancy>>,
    /// What Not-ECT packets meet, and what ECT packets meet.
    steps: [Vec<Step>; 2],
    /// The average queues that steps look at, in the order of the rules.
    averages: Vec<(Red, RedState)>,
    marked: Tally,
    random: Generator,
    /// Apart, as it is large and rarely used.
    dropped: Box<Drops>,
}

/// A rule as packets of one class meet it.
#[derive(Clone, Copy, Debug)]
struct Step {
    when: When,
    action: Action,
}

/// A trigger, without what it remembers.
#[derive(Clone, Copy, Debug)]
enum When {
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
            backlog: Tally::ZERO,
            arrived: Tally::ZERO,
            marked: Tally::ZERO,
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
            let step = Step {
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

    /// What waits: see [`Pipe::settle`](crate::Pipe::settle).
    #[inline]
    pub fn backlog(&self) -> Tally {
        self.backlog
    }

    /// The average backlog that the first [`Red`] rule sees, as of the last arrival.
    pub fn average(&self) -> Option<ByteSize> {
        self.averages.first().map(|(_, state)| state.average())
    }

    /// How long the queue was how long, if it keeps account of it. It is accounted for up to the
    /// last change: see [`Pipe::settle`](crate::Pipe::settle).
    pub fn occupancy(&self) -> Option<&Occupancy> {
        self.occupancy.as_deref()
    }

    /// What became of the packets that came here.
    pub fn counters(&self) -> Counters {
        Counters {
            arrived: self.arrived,
            departed: self.departed(),
            dropped: *self.dropped,
            ..Counters::default()
        }
    }

    /// Packets that this queue has marked. One that arrived with CE is not counted.
    pub fn marked(&self) -> Tally {
        self.marked
    }

    /// What left for the link.
    pub(crate) fn departed(&self) -> Tally {
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

    fn prepare(&mut self, trigger: Trigger) -> When {
        match trigger {
            Trigger::Above(threshold) => When::Above(threshold),
            Trigger::AbovePackets(threshold) => When::AbovePackets(threshold),
            Trigger::Overflows(limit) => When::Overflows(limit),
            Trigger::OverflowsPackets(limit) => When::OverflowsPackets(limit),
            Trigger::Random(probability) => When::Random(probability),
            Trigger::Between {
                low,
                high,
                probability,
            } => When::Between(Ramp {
                min: low,
                max: high,
                probability,
            }),
            Trigger::Ramp(ramp) => When::Ramp(ramp),
            Trigger::Red(red) => {
                self.averages.push((red, RedState::default()));
                When::Red(self.averages.len() - 1)
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
                When::Above(threshold) => certain(self.backlog.size > threshold),
                When::Overflows(limit) => certain(self.backlog.size + length > limit),
                When::AbovePackets(threshold) => certain(self.backlog.packets > threshold),
                When::OverflowsPackets(limit) => certain(self.backlog.packets >= limit),
                When::Random(probability) => chosen(probability.draw(&mut self.random)),
                When::Between(range) => range.draw_evenly(self.backlog.size, &mut self.random),
                When::Ramp(ramp) => ramp.draw(self.backlog.size, &mut self.random),
                When::Red(place) => match self.averages.get_mut(place) {
                    Some((red, state)) => state.draw(red, &mut self.random),
                    None => Hit::Spared,
                },
            };
            match (hit, step.action) {
                (Hit::Spared, _) => {}
                (_, Action::Mark) => mark = true,
                (_, Action::Drop(reason)) => return Admission::Dropped(reason),
                (Hit::Chosen, Action::DropEarly) => return Admission::Dropped(DropReason::Red),
                (Hit::Certain, Action::DropEarly) => return Admission::Dropped(DropReason::Tail),
            }
        }
        if mark && ecn != Ecn::Ce {
            Admission::Marked
        } else {
            Admission::Queued
        }
    }
}

fn certain(beyond: bool) -> Hit {
    if beyond { Hit::Certain } else { Hit::Spared }
}

fn chosen(by_chance: bool) -> Hit {
    if by_chance { Hit::Chosen } else { Hit::Spared }
}
