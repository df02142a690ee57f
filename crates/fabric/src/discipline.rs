//! Queue disciplines that have a name and more than one rule. What the buffer cannot hold is dropped by
//! a rule of its own, which comes before these.

use weir_units::ByteSize;

use crate::counters::DropReason;
use crate::red::Ramp;
use crate::rule::{Action, Class, Rule, Trigger};

/// The shared queue in which DCTCP meets CUBIC ("Analyzing DCTCP and Cubic Buffer Sharing under Diverse
/// Router Configurations", section 5.3): one FIFO. ECT packets are CE-marked above `ecn_threshold`;
/// Not-ECT packets are dropped by `red` on the instantaneous queue, where equal thresholds make a
/// drop-tail at that level.
pub const fn shared_queue(ecn_threshold: ByteSize, red: Ramp) -> [Rule; 2] {
    [
        Rule::mark_above(ecn_threshold),
        Rule::red(red).only(Class::NotEct),
    ]
}

/// A shared queue as Junos has it on QFX switches: where ECN is on, Not-ECT packets are tail-dropped
/// at the threshold at which ECT packets are marked.
pub const fn ecn_with_tail_drop(ecn_threshold: ByteSize) -> [Rule; 2] {
    [
        Rule::mark_above(ecn_threshold),
        Rule {
            class: Class::NotEct,
            when: Trigger::Above(ecn_threshold),
            action: Action::Drop(DropReason::Tail),
        },
    ]
}
