//! Rules: what a queue does with an arriving packet.
//!
//! A queue discipline is a list of rules. Each names the packets that it applies to, when it
//! applies, and what it does: classify, then mark or drop. A switch that marks ECT packets above a
//! threshold, and drops what does not fit, is `[Rule::buffer(size), Rule::mark_above(threshold)]`;
//! one that also drops Not-ECT packets early adds `Rule::red(ramp).only(Class::NotEct)`. Rules are
//! plain descriptions; what they remember from packet to packet lives in the queue.

use weir_units::ByteSize;
use weir_wire::Ecn;

use crate::counters::DropReason;
use crate::random::Probability;
use crate::red::{Ramp, Red};

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
/// without the packet itself and without the one that the link is sending. A threshold on the
/// backlog is passed when the backlog is larger (DCTCP's K: Alizadeh et al. 2010, section 3.1), so
/// that a queue may come to exceed it by one packet; a limit counts the packet too, and is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The backlog is larger than this.
    Above(ByteSize),
    /// The backlog is more packets than this.
    AbovePackets(u64),
    /// Backlog and packet together are larger than this.
    Overflows(ByteSize),
    /// Backlog and packet together are more packets than this.
    OverflowsPackets(u64),
    /// By chance, for each packet anew.
    Random(Probability),
    /// By the same chance while the backlog is larger than `low`, and always above `high`.
    Between {
        /// The largest backlog at which the rule never applies.
        low: ByteSize,
        /// The largest backlog at which chance decides.
        high: ByteSize,
        /// How probably it applies between them.
        probability: Probability,
    },
    /// By a chance that rises with the backlog.
    Ramp(Ramp),
    /// By a chance that rises with the average backlog.
    Red(Red),
}

/// What a rule does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Marks it CE if it is queued. A Not-ECT packet passes unmarked.
    Mark,
    /// Drops it for this reason; no later rule is asked.
    Drop(DropReason),
    /// Drops it as [`DropReason::Red`] where chance chose it, and as [`DropReason::Tail`] where it
    /// had none; no later rule is asked.
    DropEarly,
}

impl Rule {
    /// Drops packets of any class.
    const fn drops(when: Trigger, action: Action) -> Self {
        let class = Class::Every;
        Self {
            class,
            when,
            action,
        }
    }

    /// Marks those that can be marked.
    const fn marks(when: Trigger) -> Self {
        Self {
            class: Class::Ect,
            when,
            action: Action::Mark,
        }
    }

    /// Drops what would make the queue longer than the buffer.
    pub const fn buffer(size: ByteSize) -> Self {
        Self::drops(Trigger::Overflows(size), Action::Drop(DropReason::Buffer))
    }

    /// Drops what would make the queue more packets than the buffer has places.
    pub const fn buffer_packets(places: u64) -> Self {
        Self::drops(
            Trigger::OverflowsPackets(places),
            Action::Drop(DropReason::Buffer),
        )
    }

    /// Drops what would make the queue longer than `limit`.
    pub const fn tail_drop(limit: ByteSize) -> Self {
        Self::drops(Trigger::Overflows(limit), Action::Drop(DropReason::Tail))
    }

    /// Drops what would make the queue more than `limit` packets.
    pub const fn tail_drop_packets(limit: u64) -> Self {
        Self::drops(
            Trigger::OverflowsPackets(limit),
            Action::Drop(DropReason::Tail),
        )
    }

    /// Drops by random early detection on the instantaneous queue.
    pub const fn red(ramp: Ramp) -> Self {
        Self::drops(Trigger::Ramp(ramp), Action::DropEarly)
    }

    /// Drops by random early detection on the average queue.
    pub const fn red_average(red: Red) -> Self {
        Self::drops(Trigger::Red(red), Action::DropEarly)
    }

    /// Marks ECT packets that find more than `threshold` in the queue.
    pub const fn mark_above(threshold: ByteSize) -> Self {
        Self::marks(Trigger::Above(threshold))
    }

    /// Marks ECT packets that find more than `threshold` packets in the queue.
    pub const fn mark_above_packets(threshold: u64) -> Self {
        Self::marks(Trigger::AbovePackets(threshold))
    }

    /// Marks ECT packets with `probability` that find more than `low` in the queue, and all that
    /// find more than `high`.
    pub const fn mark_between(low: ByteSize, high: ByteSize, probability: Probability) -> Self {
        Self::marks(Trigger::Between {
            low,
            high,
            probability,
        })
    }

    /// Marks each ECT packet with this probability, whatever the queue.
    pub const fn mark_randomly(probability: Probability) -> Self {
        Self::marks(Trigger::Random(probability))
    }

    /// Drops each packet with this probability, whatever the queue.
    pub const fn drop_randomly(probability: Probability) -> Self {
        Self::drops(Trigger::Random(probability), Action::Drop(DropReason::Red))
    }

    /// The same rule for packets of `class` only.
    pub const fn only(self, class: Class) -> Self {
        Self { class, ..self }
    }
}

impl Class {
    /// Whether a packet with this codepoint belongs to the class.
    #[inline]
    pub const fn contains(self, ecn: Ecn) -> bool {
        match self {
            Self::Every => true,
            Self::Ect => ecn.is_capable(),
            Self::NotEct => !ecn.is_capable(),
        }
    }
}
