//! A queue: rules decide who comes in and who is marked; who is in leaves in order.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use crate::counters::{Counters, DropReason, Drops, Tally};
use crate::occupancy::Occupancy;
use crate::random::{Generator, generator};
use crate::red::{Hit, RedState};
use crate::rule::{Action, Rule, Trigger};

/// A first-in, first-out queue under a list of [`Rule`]s: what it decides, and what it counts. The
/// packets themselves wait in the [`Pipe`](crate::Pipe) that the queue belongs to.
#[derive(Clone, Debug)]
pub struct Queue {
    backlog: Tally,
    arrived: Tally,
    marked: Tally,
    steps: Vec<Step>,
    occupancy: Option<Box<Occupancy>>,
    random: Generator,
    averaging: bool,
    dropped: Drops,
}

/// A rule with what it remembers.
#[derive(Clone, Copy, Debug)]
struct Step {
    rule: Rule,
    red: RedState,
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
            steps: Vec::new(),
            occupancy: None,
            random: generator(seed, 0),
            averaging: false,
            dropped: Drops::default(),
        };
        queue.set_rules(rules);
        queue
    }

    /// Keeps account of the queue's length over time, from the epoch on. Without this it costs
    /// nothing.
    pub fn with_occupancy(self) -> Self {
        Self {
            occupancy: Some(Box::default()),
            ..self
        }
    }

    /// Replaces the rules for packets to come. What random early detection remembers begins anew.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        let step = |rule| Step {
            rule,
            red: RedState::default(),
        };
        self.steps = rules.into().into_iter().map(step).collect();
        self.averaging = self
            .steps
            .iter()
            .any(|step| matches!(step.rule.when, Trigger::Red(_)));
    }

    /// What waits.
    #[inline]
    pub fn backlog(&self) -> Tally {
        self.backlog
    }

    /// The average backlog that the first [`Red`](crate::Red) rule sees, as of the last arrival.
    pub fn average(&self) -> Option<ByteSize> {
        let mut steps = self.steps.iter();
        steps.find_map(|step| match step.rule.when {
            Trigger::Red(_) => Some(step.red.average()),
            _ => None,
        })
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
            dropped: self.dropped,
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

    /// A packet arrives at a queue that may hold `room`, and is let in, marked or not, or dropped.
    /// The caller marks it, and keeps it.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
        room: ByteSize,
    ) -> Admission {
        self.arrived.record(length);
        if self.averaging {
            self.sample(now);
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
    #[inline]
    pub(crate) fn leave(&mut self, at: Time, length: ByteSize) {
        self.backlog.remove(length);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.set(at, self.backlog.size);
        }
        if self.averaging && self.backlog.packets == 0 {
            self.steps.iter_mut().for_each(|step| step.red.emptied(at));
        }
    }

    pub(crate) fn occupancy_mut(&mut self) -> Option<&mut Occupancy> {
        self.occupancy.as_deref_mut()
    }

    fn sample(&mut self, now: Time) {
        for step in &mut self.steps {
            if let Trigger::Red(red) = &step.rule.when {
                step.red.sample(now, self.backlog.size, red);
            }
        }
    }

    #[inline]
    fn admit(&mut self, length: ByteSize, ecn: Ecn) -> Admission {
        let mut mark = false;
        for step in &mut self.steps {
            if !step.rule.class.contains(ecn) {
                continue;
            }
            let hit = step.ask(length, self.backlog, &mut self.random);
            if hit == Hit::Spared {
                continue;
            }
            match step.rule.action {
                Action::Mark => mark = ecn.is_capable(),
                Action::Drop(reason) => return Admission::Dropped(reason),
                Action::DropEarly if hit == Hit::Chosen => {
                    return Admission::Dropped(DropReason::Red);
                }
                Action::DropEarly => return Admission::Dropped(DropReason::Tail),
            }
        }
        if mark && ecn != Ecn::Ce {
            Admission::Marked
        } else {
            Admission::Queued
        }
    }
}

impl Step {
    /// Whether it is time, for a packet of `length` that finds `backlog`.
    #[inline]
    fn ask(&mut self, length: ByteSize, backlog: Tally, random: &mut Generator) -> Hit {
        let certain = match self.rule.when {
            Trigger::Above(threshold) => backlog.size > threshold,
            Trigger::AbovePackets(threshold) => backlog.packets > threshold,
            Trigger::Overflows(limit) => backlog.size + length > limit,
            Trigger::OverflowsPackets(limit) => backlog.packets >= limit,
            Trigger::Random(probability) => return chosen(probability.draw(random)),
            Trigger::Between { high, .. } if backlog.size > high => true,
            Trigger::Between {
                low, probability, ..
            } => return chosen(backlog.size > low && probability.draw(random)),
            Trigger::Ramp(ramp) => return ramp.draw(backlog.size, random),
            Trigger::Red(red) => return self.red.draw(&red, random),
        };
        if certain { Hit::Certain } else { Hit::Spared }
    }
}

fn chosen(by_chance: bool) -> Hit {
    if by_chance { Hit::Chosen } else { Hit::Spared }
}
