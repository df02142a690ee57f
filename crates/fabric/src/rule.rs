//! Rules: what a queue does with an arriving packet.
//!
//! A queue discipline is a list of rules. Each names the packets that it applies to, when it
//! applies, and what it does. A switch that marks ECT packets above a threshold, and drops what
//! does not fit, is `[Rule::mark_above(threshold), Rule::tail_drop(limit)]`; one that also drops
//! Not-ECT packets early adds a rule with [`Class::NotEct`].

use weir_units::ByteSize;
use weir_wire::Ecn;

use crate::counters::{DropReason, Tally};
use crate::random::{Generator, Probability};

/// One step of a queue discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The packets that the rule applies to.
    pub class: Class,
    /// When it applies to them.
    pub when: Trigger,
    /// What it does then.
    pub action: Action,
}

/// The packets that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// All.
    Every,
    /// Those of an ECN-capable transport, marked ones included.
    Ect,
    /// The others.
    NotEct,
}

/// When a rule applies. The backlog is the instantaneous queue: what waits as the packet arrives,
/// without the packet itself and without the one that the link is sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The backlog is larger than this (DCTCP's K: Alizadeh et al. 2010, section 3.1).
    Above(ByteSize),
    /// The backlog is more packets than this.
    AbovePackets(u64),
    /// Backlog and packet together are larger than this.
    Overflows(ByteSize),
    /// Backlog and packet together are more packets than this.
    OverflowsPackets(u64),
    /// By chance, for each packet anew.
    Random(Probability),
}

/// What a rule does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Marks it CE if it is queued. A Not-ECT packet passes unmarked.
    Mark,
    /// Drops it for this reason; no later rule is asked.
    Drop(DropReason),
}

impl Rule {
    /// Drops what would make the queue longer than `limit`.
    pub const fn tail_drop(limit: ByteSize) -> Self {
        Self {
            class: Class::Every,
            when: Trigger::Overflows(limit),
            action: Action::Drop(DropReason::Full),
        }
    }

    /// Drops what would make the queue more than `limit` packets.
    pub const fn tail_drop_packets(limit: u64) -> Self {
        Self {
            class: Class::Every,
            when: Trigger::OverflowsPackets(limit),
            action: Action::Drop(DropReason::Full),
        }
    }

    /// Marks ECT packets that find more than `threshold` in the queue.
    pub const fn mark_above(threshold: ByteSize) -> Self {
        Self {
            class: Class::Ect,
            when: Trigger::Above(threshold),
            action: Action::Mark,
        }
    }

    /// Marks ECT packets that find more than `threshold` packets in the queue.
    pub const fn mark_above_packets(threshold: u64) -> Self {
        Self {
            class: Class::Ect,
            when: Trigger::AbovePackets(threshold),
            action: Action::Mark,
        }
    }

    /// Marks each ECT packet with this probability, whatever the queue.
    pub const fn mark_randomly(probability: Probability) -> Self {
        Self {
            class: Class::Ect,
            when: Trigger::Random(probability),
            action: Action::Mark,
        }
    }

    /// Drops each packet with this probability, whatever the queue.
    pub const fn drop_randomly(probability: Probability) -> Self {
        Self {
            class: Class::Every,
            when: Trigger::Random(probability),
            action: Action::Drop(DropReason::Early),
        }
    }

    /// The same rule for packets of `class` only.
    pub const fn only(self, class: Class) -> Self {
        Self { class, ..self }
    }
}

impl Class {
    /// Whether a packet with this codepoint belongs to the class.
    pub const fn contains(self, ecn: Ecn) -> bool {
        match self {
            Self::Every => true,
            Self::Ect => ecn.is_capable(),
            Self::NotEct => !ecn.is_capable(),
        }
    }
}

impl Trigger {
    /// Whether it is time, for a packet of `length` that finds `backlog`.
    pub(crate) fn applies(&self, length: ByteSize, backlog: Tally, random: &mut Generator) -> bool {
        match *self {
            Self::Above(threshold) => backlog.size > threshold,
            Self::AbovePackets(threshold) => backlog.packets > threshold,
            Self::Overflows(limit) => backlog.size + length > limit,
            Self::OverflowsPackets(limit) => backlog.packets >= limit,
            Self::Random(probability) => probability.draw(random),
        }
    }
}
