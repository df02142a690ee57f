//! A FIFO queue whose rules admit, mark or drop arriving packets.

#[cfg(test)]
mod tests;

use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use crate::counters::{DropReason, Drops, PacketCount, StageCounters};
use crate::occupancy::Occupancy;
use crate::random::{Generator, Probability, generator};
use crate::red::{Ramp, Red, RedDecision, RedState};
use crate::rule::{Action, Rule, Trigger};
use crate::waiting::{WaitingPacket, WaitingPackets};

/// A FIFO queue under a list of [`Rule`]s: its decisions and its counters. The packets themselves wait
/// in the [`EgressPort`](crate::EgressPort) of the queue, or with its caller.
#[derive(Clone, Debug)]
// Small: a network has thousands of queues, and few are watched.
pub struct Queue {
    arrived: PacketCount,
    seed: u64,
    /// What a watched queue has besides: there are or were rules, occupancy statistics or a shared buffer, or
    /// the port holds its packets. Then the backlog is kept up to date while packets come and go.
    watched: Option<Box<WatchedQueue>>,
}

/// What only a watched queue needs.
#[derive(Clone, Debug)]
struct WatchedQueue {
    backlog: PacketCount,
    /// For Not-ECT packets and for ECT packets.
    shortcuts: [Shortcut; 2],
    occupancy: Option<Box<Occupancy>>,
    marked: PacketCount,
    /// Packets whose transmission has not started, as of the last update, if their port keeps them here.
    waiting: WaitingPackets,
    /// The rules and their state, and the drops; `None` while there are none.
    discipline: Option<Box<Discipline>>,
}

static NONE_WAITING: WaitingPackets = WaitingPackets::new();

/// The rules of a queue with their state.
#[derive(Clone, Debug)]
struct Discipline {
    /// The steps for Not-ECT packets, and those for ECT packets.
    rules_by_class: [Vec<RuleState>; 2],
    /// The average queues of the steps, in the order of the rules.
    red_states: Vec<(Red, RedState)>,
    random: Generator,
    dropped: Drops,
}

/// Where the rules for a class need not be applied one by one, as their result is certain: with a backlog
/// of at most `above`, and if the packet ends by `limit`, it is queued, and marked above `mark_above`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shortcut {
    above: ByteSize,
    limit: ByteSize,
    mark_above: ByteSize,
}

/// A rule for packets of one class.
#[derive(Clone, Copy, Debug)]
struct RuleState {
    when: TriggerKind,
    action: Action,
}

/// A trigger, without its state.
#[derive(Clone, Copy, Debug)]
enum TriggerKind {
    Above(ByteSize),
    AbovePackets(u64),
    Overflows(ByteSize),
    OverflowsPackets(u64),
    Random(Probability),
    Between(Ramp),
    Ramp(Ramp),
    /// By the average with this index.
    Red(usize),
}

/// The decision of a queue about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is queued unchanged.
    Queued,
    /// It is queued, and this queue has marked it.
    Marked,
    /// It is dropped.
    Dropped(DropReason),
}

impl Queue {
    /// Creates an empty queue under `rules`, which apply in order; `seed` decides the random ones.
    /// Without rules it is unbounded.
    pub fn new(rules: impl Into<Vec<Rule>>, seed: u64) -> Self {
        let mut queue = Self {
            arrived: PacketCount::ZERO,
            seed,
            watched: None,
        };
        queue.set_rules(rules);
        queue
    }

    /// Keeps statistics of the queue's length over time, from the epoch on. Without this they cost
    /// nothing.
    pub fn with_occupancy(mut self) -> Self {
        self.watch().occupancy = Some(Box::default());
        self
    }

    /// Whether the backlog is kept up to date.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    /// Keeps the backlog up to date from now on.
    #[inline]
    pub(crate) fn keep_backlog(&mut self) {
        self.watch();
    }

    #[inline(always)]
    fn watch(&mut self) -> &mut WatchedQueue {
        self.watched.get_or_insert_with(WatchedQueue::empty)
    }

    /// Replaces the rules for packets to come. The state of random early detection starts anew.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        let rules = rules.into();
        if rules.is_empty() && self.rules().is_none() {
            return;
        }
        let discipline = self.discipline();
        discipline.set_rules(&rules);
        // An average is sampled at the arrival of each packet, of any class.
        let shortcuts = if discipline.red_states.is_empty() {
            let [not_ect, ect] = &discipline.rules_by_class;
            [Shortcut::of(not_ect), Shortcut::of(ect)]
        } else {
            [Shortcut::NONE; 2]
        };
        self.watch().shortcuts = shortcuts;
    }

    /// Replaces the rules for packets to come, as [`Self::set_rules`] does. If they have as many averages as those
    /// before, these go on under the new thresholds.
    pub fn change_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        let averages: Vec<RedState> = self.rules().map_or_else(Vec::new, |discipline| {
            let states = discipline.red_states.iter();
            states.map(|(_, state)| *state).collect()
        });
        self.set_rules(rules);
        if averages.is_empty() {
            return;
        }
        let states = &mut self.discipline().red_states;
        if states.len() == averages.len() {
            for ((_, state), average) in states.iter_mut().zip(averages) {
                *state = average;
            }
        }
    }

    fn discipline(&mut self) -> &mut Discipline {
        let seed = self.seed;
        self.watch().discipline(seed)
    }

    /// Returns the rules, if there have been any.
    fn rules(&self) -> Option<&Discipline> {
        self.watched.as_ref()?.discipline.as_deref()
    }

    /// Returns the packets that wait: see [`EgressPort::advance`](crate::EgressPort::advance).
    #[inline]
    pub fn backlog(&self) -> PacketCount {
        let watched = self.watched.as_ref();
        watched.map_or(PacketCount::ZERO, |watched| watched.backlog)
    }

    /// Returns the waiting packets of [`Self::push`].
    #[inline]
    pub(crate) fn waiting(&self) -> &WaitingPackets {
        let watched = self.watched.as_ref();
        watched.map_or(&NONE_WAITING, |watched| &watched.waiting)
    }

    /// Lets `change` change the waiting packets of [`Self::push`], in order.
    pub(crate) fn change_waiting(&mut self, change: impl FnMut(&mut WaitingPacket)) {
        if let Some(watched) = &mut self.watched {
            watched.waiting.change(change);
        }
    }

    /// Returns the average backlog of the first [`Red`] rule, as of the last arrival.
    pub fn average(&self) -> Option<ByteSize> {
        let (_, state) = self.rules()?.red_states.first()?;
        Some(state.average())
    }

    /// Returns the statistics of the queue's length, if it keeps them. They cover the time up to the
    /// last change: see [`EgressPort::advance`](crate::EgressPort::advance).
    pub fn occupancy(&self) -> Option<&Occupancy> {
        self.watched.as_ref()?.occupancy.as_deref()
    }

    /// Returns the counters.
    pub fn counters(&self) -> StageCounters {
        StageCounters {
            arrived: self.arrived,
            departed: self.departed(),
            dropped: self.dropped(),
            ..StageCounters::default()
        }
    }

    /// Returns the packets that this queue has marked. Packets that arrived with CE are not counted.
    pub fn marked(&self) -> PacketCount {
        let watched = self.watched.as_ref();
        watched.map_or(PacketCount::ZERO, |watched| watched.marked)
    }

    /// Returns the packets that left for the link.
    pub(crate) fn departed(&self) -> PacketCount {
        self.arrived - self.dropped().total() - self.backlog()
    }

    fn dropped(&self) -> Drops {
        self.rules()
            .map_or(Drops::default(), |discipline| discipline.dropped)
    }

    /// Admits a packet to an unwatched queue.
    #[inline]
    pub(crate) fn admit_untracked(&mut self, length: ByteSize) {
        self.arrived.record(length);
    }

    /// Decides about a packet that arrives at a watched queue with a limit of `room`: queued, marked or
    /// dropped. The caller sets the mark and keeps the packet.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
        room: ByteSize,
    ) -> Admission {
        self.arrived.record(length);
        let seed = self.seed;
        self.watch().decide(now, length, ecn, room, seed)
    }

    /// Adds an admitted packet to the backlog.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, length: ByteSize) {
        self.watch().enter(now, length);
    }

    /// Brings a watched queue up to date, and decides as [`Self::arrive`] does about a packet.
    #[inline(always)]
    pub(crate) fn start_and_arrive(
        &mut self,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
        room: ByteSize,
    ) -> Admission {
        self.arrived.record(length);
        let seed = self.seed;
        let watched = self.watch();
        watched.start(now);
        watched.decide(now, length, ecn, room, seed)
    }

    /// Adds an admitted packet to the backlog and to the waiting packets, unless it starts at once.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Time, start: Time, length: ByteSize) {
        self.watch().push(now, start, length);
    }

    /// Removes the waiting packets that have started by `now`.
    #[inline]
    pub(crate) fn start(&mut self, now: Time) {
        if let Some(watched) = &mut self.watched {
            watched.start(now);
        }
    }

    /// Removes the first waiting packet.
    pub(crate) fn start_first(&mut self) {
        if let Some(watched) = &mut self.watched
            && let Some(&first) = watched.waiting.front()
        {
            watched.waiting.pop_front();
            watched.leave(first.start, first.length);
        }
    }

    /// Removes a packet from the backlog.
    #[inline]
    pub(crate) fn leave(&mut self, at: Time, length: ByteSize) {
        self.watch().leave(at, length);
    }

    /// Counts a packet that is marked outside the rules.
    pub(crate) fn record_mark(&mut self, length: ByteSize) {
        self.watch().marked.record(length);
    }

    /// Corrects the count of marks: the packet is dropped after all.
    pub(crate) fn forget_mark(&mut self, length: ByteSize) {
        self.watch().marked.remove(length);
    }

    /// Counts a packet that has arrived, does not wait, and is dropped outside the rules.
    pub(crate) fn record_drop(&mut self, reason: DropReason, length: ByteSize) {
        self.discipline().dropped.record(reason, length);
    }

    pub(crate) fn occupancy_mut(&mut self) -> Option<&mut Occupancy> {
        self.watched.as_mut()?.occupancy.as_deref_mut()
    }
}

impl WatchedQueue {
    /// An empty queue without rules.
    #[cold]
    fn empty() -> Box<Self> {
        Box::new(Self {
            backlog: PacketCount::ZERO,
            shortcuts: [Shortcut::WITHOUT_RULES; 2],
            occupancy: None,
            marked: PacketCount::ZERO,
            waiting: WaitingPackets::new(),
            discipline: None,
        })
    }

    fn discipline(&mut self, seed: u64) -> &mut Discipline {
        self.discipline.get_or_insert_with(|| {
            Box::new(Discipline {
                rules_by_class: Default::default(),
                red_states: Vec::new(),
                random: generator(seed, 0),
                dropped: Drops::default(),
            })
        })
    }

    /// Decides about a packet, and counts a mark or a drop.
    #[inline(always)]
    fn decide(
        &mut self,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
        room: ByteSize,
        seed: u64,
    ) -> Admission {
        let backlog = self.backlog.size;
        let end = backlog + length;
        let shortcut = &self.shortcuts[usize::from(ecn.is_capable())];
        if backlog <= shortcut.above && end <= shortcut.limit.min(room) {
            if backlog > shortcut.mark_above && ecn != Ecn::Ce {
                self.marked.record(length);
                return Admission::Marked;
            }
            return Admission::Queued;
        }
        self.apply_rules(now, length, ecn, room, seed)
    }

    /// Adds an admitted packet to the backlog and to the waiting packets, unless it starts at once.
    #[inline(always)]
    fn push(&mut self, now: Time, start: Time, length: ByteSize) {
        if start > now || !self.waiting.is_empty() {
            self.waiting.push_back(WaitingPacket { start, length });
            self.enter(now, length);
        }
    }

    /// Removes the waiting packets that have started by `now`.
    #[inline(always)]
    fn start(&mut self, now: Time) {
        while self.waiting.next_start() <= now
            && let Some(&WaitingPacket { start, length }) = self.waiting.front()
            && start != Time::MAX
        {
            self.leave(start, length);
            self.waiting.pop_front();
        }
    }

    /// Applies the rules one by one to a packet.
    #[inline(never)]
    fn apply_rules(
        &mut self,
        now: Time,
        length: ByteSize,
        ecn: Ecn,
        room: ByteSize,
        seed: u64,
    ) -> Admission {
        let backlog = self.backlog;
        let discipline = self.discipline(seed);
        for (red, state) in &mut discipline.red_states {
            state.sample(now, backlog.size, red);
        }
        let admission = if backlog.size + length > room {
            Admission::Dropped(DropReason::Buffer)
        } else {
            discipline.admit(backlog, length, ecn)
        };
        match admission {
            Admission::Dropped(reason) => discipline.dropped.record(reason, length),
            Admission::Marked => self.marked.record(length),
            Admission::Queued => {}
        }
        admission
    }

    #[inline(always)]
    fn enter(&mut self, now: Time, length: ByteSize) {
        self.backlog.record(length);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.set(now, self.backlog.size);
        }
    }

    #[inline(always)]
    fn leave(&mut self, at: Time, length: ByteSize) {
        self.backlog.remove(length);
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.set(at, self.backlog.size);
        }
        if self.backlog.packets == 0
            && let Some(discipline) = &mut self.discipline
        {
            let averages = discipline.red_states.iter_mut();
            averages.for_each(|(_, state)| state.emptied(at));
        }
    }
}

impl Shortcut {
    /// Every packet is queued.
    const WITHOUT_RULES: Self = Self {
        above: ByteSize::MAX,
        limit: ByteSize::MAX,
        mark_above: ByteSize::MAX,
    };

    /// No packet ends by zero.
    const NONE: Self = Self {
        limit: ByteSize::ZERO,
        ..Self::WITHOUT_RULES
    };

    /// Returns where these rules need not be applied one by one.
    fn of(rules: &[RuleState]) -> Self {
        let mut shortcut = Self::WITHOUT_RULES;
        for rule in rules {
            match (rule.when, rule.action) {
                (TriggerKind::Above(threshold), Action::Mark) => {
                    shortcut.mark_above = shortcut.mark_above.min(threshold);
                }
                (TriggerKind::Above(threshold), _) => {
                    shortcut.above = shortcut.above.min(threshold);
                }
                (TriggerKind::Overflows(limit), _) => shortcut.limit = shortcut.limit.min(limit),
                (TriggerKind::Between(ramp) | TriggerKind::Ramp(ramp), _) => {
                    shortcut.above = shortcut.above.min(ramp.min).min(ramp.max);
                }
                // By chance, by packets, or by the average.
                _ => return Self::NONE,
            }
        }
        shortcut
    }
}

impl Discipline {
    fn set_rules(&mut self, rules: &[Rule]) {
        self.rules_by_class = Default::default();
        self.red_states.clear();
        for rule in rules {
            let step = RuleState {
                when: self.prepare(rule.trigger),
                action: rule.action,
            };
            let [not_ect, ect] = &mut self.rules_by_class;
            if rule.class.contains(Ecn::Ect0) {
                ect.push(step);
            }
            // A mark has no effect on Not-ECT packets.
            if rule.class.contains(Ecn::NotEct) && rule.action != Action::Mark {
                not_ect.push(step);
            }
        }
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
                self.red_states.push((red, RedState::default()));
                TriggerKind::Red(self.red_states.len() - 1)
            }
        }
    }

    fn admit(&mut self, backlog: PacketCount, length: ByteSize, ecn: Ecn) -> Admission {
        let [not_ect, ect] = &self.rules_by_class;
        let steps = if ecn.is_capable() { ect } else { not_ect };
        let mut mark = false;
        for step in steps {
            let hit = match step.when {
                TriggerKind::Above(threshold) => certain(backlog.size > threshold),
                TriggerKind::Overflows(limit) => certain(backlog.size + length > limit),
                TriggerKind::AbovePackets(threshold) => certain(backlog.packets > threshold),
                TriggerKind::OverflowsPackets(limit) => certain(backlog.packets >= limit),
                TriggerKind::Random(probability) => chosen(probability.draw(&mut self.random)),
                TriggerKind::Between(range) => range.draw_evenly(backlog.size, &mut self.random),
                TriggerKind::Ramp(ramp) => ramp.draw(backlog.size, &mut self.random),
                TriggerKind::Red(slot) => match self.red_states.get_mut(slot) {
                    Some((red, state)) => state.draw(red, &mut self.random),
                    None => RedDecision::Pass,
                },
            };
            match (hit, step.action) {
                (RedDecision::Pass, _) => {}
                (_, Action::Mark) => mark = true,
                (_, Action::Drop(reason)) => return Admission::Dropped(reason),
                (RedDecision::Random, Action::DropEarly) => {
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
        RedDecision::Pass
    }
}

fn chosen(by_chance: bool) -> RedDecision {
    if by_chance {
        RedDecision::Random
    } else {
        RedDecision::Pass
    }
}
