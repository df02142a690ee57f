//! Link faults: loss, duplication, corruption, reordering and delay.
//!
//! [`FaultSettings`] describe random faults and may change at any time. Each kind draws from a
//! generator of its own, so that setting one leaves the others' choices as they were. A [`Script`]
//! decides packet by packet instead, for tests that need to hit a certain packet.

mod script;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rand_core::Rng;
use weir_units::{Duration, Time};

use crate::counters::{DropReason, PacketCount, StageCounters};
use crate::packet::Packet;
use crate::random::{Generator, Probability, generator, uniform_duration};

pub use script::{Script, Verdict};

/// Settings of the random faults. By default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSettings {
    /// Whether the link is down: every packet is dropped.
    pub down: bool,
    /// The probability that a packet is lost.
    pub loss: Probability,
    /// The probability that a packet is followed by a copy. The copy is jittered and reordered on its
    /// own, but neither lost nor corrupted.
    pub duplication: Probability,
    /// The probability that a packet is damaged ([`Packet::corrupt`]).
    pub corruption: Probability,
    /// The packets that fall behind later ones, and for how long.
    pub reordering: Reordering,
    /// The delay of every packet beyond the link's propagation delay. A shorter one does not reorder: a
    /// packet waits for the one before it.
    pub delay: Duration,
    /// The largest random delay beyond that, uniform from zero. Jitter alone does
    /// not reorder either.
    pub jitter: Duration,
}

/// A fraction of the packets is held back while the others pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// The probability that a packet is held back.
    pub probability: Probability,
    /// For how long.
    pub delay: Duration,
}

/// Counters of packets that the faults changed but did not drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Damaged and passed on.
    pub corrupted: PacketCount,
    /// Held back out of order.
    pub reordered: PacketCount,
    /// Given another ECN codepoint by a script.
    pub ecn_rewritten: PacketCount,
}

/// The stage that applies faults. It holds the packets that are delayed.
#[derive(Debug)]
pub struct Faults<P> {
    settings: FaultSettings,
    script: Option<Script<P>>,
    generators: FaultGenerators,
    /// Whether neither settings nor script can affect a packet.
    idle: bool,
    held: BinaryHeap<DelayedPacket<P>>,
    held_tally: PacketCount,
    next_sequence: u64,
    last_in_order: Time,
    counters: StageCounters,
    disturbances: FaultCounters,
}

/// One generator for each kind of fault.
#[derive(Debug)]
struct FaultGenerators {
    loss: Generator,
    duplication: Generator,
    corruption: Generator,
    reordering: Generator,
    jitter: Generator,
}

/// The delay of a packet.
enum FaultDelay {
    /// By this much, or until the packets before it are through.
    InOrder(Duration),
    /// By this much, while others pass.
    HeldBack(Duration),
}

impl<P: Packet + Clone> Faults<P> {
    /// Creates random faults under `settings`; `seed` decides which packets they hit.
    pub fn new(settings: FaultSettings, seed: u64) -> Self {
        let chance = FaultGenerators {
            loss: generator(seed, 1),
            duplication: generator(seed, 2),
            corruption: generator(seed, 3),
            reordering: generator(seed, 4),
            jitter: generator(seed, 5),
        };
        Self {
            settings,
            script: None,
            generators: chance,
            idle: settings == FaultSettings::default(),
            held: BinaryHeap::new(),
            held_tally: PacketCount::ZERO,
            next_sequence: 0,
            last_in_order: Time::ZERO,
            counters: StageCounters::default(),
            disturbances: FaultCounters::default(),
        }
    }

    /// Creates a stage without faults, until settings or a script are set.
    pub fn none() -> Self {
        Self::new(FaultSettings::default(), 0)
    }

    /// Returns the current settings.
    pub fn settings(&self) -> FaultSettings {
        self.settings
    }

    /// Changes the random faults for packets to come.
    pub fn set(&mut self, settings: FaultSettings) {
        self.settings = settings;
        self.update_idle();
    }

    /// Sets a script that decides about packets to come, before the random faults; `None` ends it.
    pub fn set_script(&mut self, script: Option<Script<P>>) {
        self.script = script;
        self.update_idle();
    }

    /// Takes a packet in at `now`.
    pub fn send(&mut self, now: Time, packet: P) {
        self.counters.arrived.record(packet.length());
        let verdict = self
            .script
            .as_mut()
            .and_then(|script| script.next_verdict(&packet));
        match verdict {
            None => self.apply_random(now, packet),
            Some(verdict) => self.by_script(now, packet, verdict),
        }
    }

    /// Whether a packet that arrives now would pass unchanged and at once.
    #[inline]
    pub(crate) fn pass_everything(&self) -> bool {
        self.idle && self.held.is_empty()
    }

    /// Returns when the next packet comes out.
    #[inline]
    pub fn timeout(&self) -> Option<Time> {
        self.held
            .peek()
            .map(|held| held.release)
            .filter(|&release| release < Time::MAX)
    }

    /// Returns the next packet that has come out by `now`.
    pub fn poll_released(&mut self, now: Time) -> Option<P> {
        self.timeout().filter(|&release| release <= now)?;
        let packet = self.held.pop()?.packet;
        self.held_tally.remove(packet.length());
        self.counters.departed.record(packet.length());
        Some(packet)
    }

    /// Returns the packets that are being delayed.
    pub fn delayed(&self) -> PacketCount {
        self.held_tally
    }

    /// Iterates over the packets that are being delayed, in no order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &P> {
        self.held.iter().map(|held| &held.packet)
    }

    /// Returns the counters.
    pub fn counters(&self) -> &StageCounters {
        &self.counters
    }

    /// Returns the counters of packets that were changed but not dropped.
    pub fn fault_counters(&self) -> &FaultCounters {
        &self.disturbances
    }

    fn update_idle(&mut self) {
        self.idle = self.script.is_none() && self.settings == FaultSettings::default();
    }

    fn apply_random(&mut self, now: Time, mut packet: P) {
        if self.settings.down {
            return self.drop(packet, DropReason::Down);
        }
        if self.settings.loss.draw(&mut self.generators.loss) {
            return self.drop(packet, DropReason::Loss);
        }
        let copy = self
            .settings
            .duplication
            .draw(&mut self.generators.duplication)
            .then(|| packet.duplicate());
        if self
            .settings
            .corruption
            .draw(&mut self.generators.corruption)
        {
            self.corrupt(now, packet);
        } else {
            self.delay_by_chance(now, packet);
        }
        if let Some(copy) = copy {
            self.counters.duplicated.record(copy.length());
            self.delay_by_chance(now, copy);
        }
    }

    fn by_script(&mut self, now: Time, mut packet: P, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.hold(now, packet, FaultDelay::InOrder(Duration::ZERO)),
            Verdict::Drop => self.drop(packet, DropReason::Script),
            Verdict::Duplicate => {
                self.counters.duplicated.record(packet.length());
                let copy = packet.duplicate();
                self.hold(now, copy, FaultDelay::InOrder(Duration::ZERO));
                self.hold(now, packet, FaultDelay::InOrder(Duration::ZERO));
            }
            Verdict::Corrupt => self.corrupt(now, packet),
            Verdict::HoldBack(delay) => self.hold(now, packet, FaultDelay::HeldBack(delay)),
            Verdict::RewriteEcn(ecn) => {
                packet.set_ecn(ecn);
                self.disturbances.ecn_rewritten.record(packet.length());
                self.hold(now, packet, FaultDelay::InOrder(Duration::ZERO));
            }
        }
    }

    fn drop(&mut self, packet: P, reason: DropReason) {
        self.counters.dropped.record(reason, packet.length());
    }

    fn corrupt(&mut self, now: Time, mut packet: P) {
        if packet.corrupt(self.generators.corruption.next_u64()) {
            self.disturbances.corrupted.record(packet.length());
            self.delay_by_chance(now, packet);
        } else {
            self.drop(packet, DropReason::Corruption);
        }
    }

    fn delay_by_chance(&mut self, now: Time, packet: P) {
        let now = now + self.settings.delay;
        let Reordering { probability, delay } = self.settings.reordering;
        let delay = if probability.draw(&mut self.generators.reordering) {
            FaultDelay::HeldBack(delay)
        } else {
            FaultDelay::InOrder(uniform_duration(
                self.settings.jitter,
                &mut self.generators.jitter,
            ))
        };
        self.hold(now, packet, delay);
    }

    fn hold(&mut self, now: Time, packet: P, delay: FaultDelay) {
        let release = match delay {
            FaultDelay::InOrder(delay) => {
                self.last_in_order = self.last_in_order.max(now + delay);
                self.last_in_order
            }
            FaultDelay::HeldBack(delay) => {
                self.disturbances.reordered.record(packet.length());
                now + delay
            }
        };
        self.held_tally.record(packet.length());
        self.held.push(DelayedPacket {
            release,
            sequence: self.next_sequence,
            packet,
        });
        self.next_sequence += 1;
    }
}

/// A delayed packet. In the heap the earliest is the greatest; of equals, the first to arrive.
#[derive(Debug)]
struct DelayedPacket<P> {
    release: Time,
    sequence: u64,
    packet: P,
}

impl<P> Ord for DelayedPacket<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.release, other.sequence).cmp(&(self.release, self.sequence))
    }
}

impl<P> PartialOrd for DelayedPacket<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for DelayedPacket<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for DelayedPacket<P> {}
