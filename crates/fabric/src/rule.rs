//! Rules: the actions of a queue on arriving packets.
//!
//! A queue discipline is a list of rules. Each rule has a class of packets, a trigger and an action:
//! mark or drop. A switch that marks ECT packets above a threshold, and drops packets that do not fit,
//! is `[Rule::buffer(size), Rule::mark_above(threshold)]`. One that also drops Not-ECT packets early
//! adds `Rule::red(ramp).only(Class::NotEct)`. Rules are plain descriptions; the queue keeps their
//! state.

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
    /// When it applies.
    pub trigger: Trigger,
    /// Its action.
    pub action: Action,
}

/// The packets that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// All packets.
    Every,
    /// Packets of an ECN-capable transport, marked ones included.
    Ect,
    /// All other packets.
    NotEct,
}

/// When a rule applies. The backlog is the instantaneous queue: the packets that wait as the packet
/// arrives, without the packet itself and without the one that the link is sending. A threshold is
/// crossed when the backlog is larger (DCTCP's K: Alizadeh et al. 2010, section 3.1), so that a queue
/// may exceed it by one packet. A limit counts the packet too, and is never exceeded.
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
    /// At random, for each packet anew.
    Random(Probability),
    /// With a fixed probability while the backlog is larger than `low`, and always above `high`.
    Between {
        /// The largest backlog at which the rule never applies.
        low: ByteSize,
        /// The largest backlog at which it applies at random.
        high: ByteSize,
        /// The probability between them.
        probability: Probability,
    },
    /// With a probability that rises with the backlog.
    Ramp(Ramp),
    /// With a probability that rises with the average backlog.
    Red(Red),
}

/// The action of a rule on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Marks it CE if it is queued. A Not-ECT packet passes unmarked.
    Mark,
    /// Drops it for this reason; no later rule applies.
    Drop(DropReason),
    /// Drops it as [`DropReason::Red`] if it was chosen at random, and as [`DropReason::Tail`] if the
    /// drop was certain; no later rule applies.
    DropEarly,
}

impl Rule {
    /// Drops packets of any class.
    const fn drops(when: Trigger, action: Action) -> Self {
        let class = Class::Every;
        Self {
            class,
            trigger: when,
            action,
        }
    }

    /// Marks ECT packets.
    const fn marks(when: Trigger) -> Self {
        Self {
            class: Class::Ect,
            trigger: when,
            action: Action::Mark,
        }
    }

    /// Drops packets that would make the queue longer than the buffer.
    pub const fn buffer(size: ByteSize) -> Self {
        Self::drops(Trigger::Overflows(size), Action::Drop(DropReason::Buffer))
    }

    /// Drops packets that would make the queue longer than `slots` packets, the size of the buffer.
    pub const fn buffer_packets(slots: u64) -> Self {
        Self::drops(
            Trigger::OverflowsPackets(slots),
            Action::Drop(DropReason::Buffer),
        )
    }

    /// Drops packets that would make the queue longer than `limit`.
    pub const fn tail_drop(limit: ByteSize) -> Self {
        Self::drops(Trigger::Overflows(limit), Action::Drop(DropReason::Tail))
    }

    /// Drops packets that would make the queue longer than `limit` packets.
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

    /// Marks ECT packets with `probability` above a backlog of `low`, and all of them above `high`.
    pub const fn mark_between(low: ByteSize, high: ByteSize, probability: Probability) -> Self {
        Self::marks(Trigger::Between {
            low,
            high,
            probability,
        })
    }

    /// Marks each ECT packet with this probability, at any queue length.
    pub const fn mark_randomly(probability: Probability) -> Self {
        Self::marks(Trigger::Random(probability))
    }

    /// Drops each packet with this probability, at any queue length.
    pub const fn drop_randomly(probability: Probability) -> Self {
        Self::drops(Trigger::Random(probability), Action::Drop(DropReason::Red))
    }

    /// Restricts the rule to packets of `class`.
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
