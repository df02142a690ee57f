//! Named queue disciplines of more than one rule. The buffer limit is a rule of its own, which comes
//! before these.

use weir_units::ByteSize;

use crate::counters::DropReason;
use crate::red::Ramp;
use crate::rule::{Action, Class, Rule, Trigger};

/// The queue that DCTCP and CUBIC share ("Analyzing DCTCP and Cubic Buffer Sharing under Diverse
/// Router Configurations", section 5.3): one FIFO. ECT packets are CE-marked above `ecn_threshold`.
/// `red` drops Not-ECT packets on the instantaneous queue; with equal thresholds it is a tail drop at
/// that level.
pub const fn shared_queue(ecn_threshold: ByteSize, red: Ramp) -> [Rule; 2] {
    [
        Rule::mark_above(ecn_threshold),
        Rule::red(red).only(Class::NotEct),
    ]
}

/// The shared queue of Junos on QFX switches: with ECN on, Not-ECT packets are tail-dropped at the
/// threshold at which ECT packets are marked.
pub const fn ecn_with_tail_drop(ecn_threshold: ByteSize) -> [Rule; 2] {
    [
        Rule::mark_above(ecn_threshold),
        Rule {
            class: Class::NotEct,
            trigger: Trigger::Above(ecn_threshold),
            action: Action::Drop(DropReason::Tail),
        },
    ]
}
