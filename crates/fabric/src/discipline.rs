//! Queue disciplines that have a name: lists of rules for a [`Queue`](crate::Queue).

use weir_units::ByteSize;

use crate::counters::DropReason;
use crate::random::Probability;
use crate::red::Ramp;
use crate::rule::{Action, Class, Rule, Trigger};

/// The shared queue in which DCTCP meets CUBIC ("An Analysis of DCTCP and CUBIC in Shared Data
/// Center Buffers", section 5.3): one FIFO. ECT packets are CE-marked above `ecn_threshold`;
/// Not-ECT packets are dropped by `red` on the instantaneous queue, where equal thresholds make a
/// drop-tail at that level; what `buffer` cannot hold is dropped.
pub const fn shared_queue(ecn_threshold: ByteSize, red: Ramp, buffer: ByteSize) -> [Rule; 3] {
    [
        Rule::buffer(buffer),
        Rule::mark_above(ecn_threshold),
        Rule::red(red).only(Class::NotEct),
    ]
}

/// A shared queue as Junos has it on QFX switches: where ECN is on, Not-ECT packets are tail-dropped
/// at the threshold at which ECT packets are marked.
pub const fn ecn_with_tail_drop(ecn_threshold: ByteSize, buffer: ByteSize) -> [Rule; 3] {
    [
        Rule::buffer(buffer),
        Rule::mark_above(ecn_threshold),
        Rule {
            class: Class::NotEct,
            when: Trigger::Above(ecn_threshold),
            action: Action::Drop(DropReason::Tail),
        },
    ]
}

/// DCTCP's switch: ECT packets are CE-marked above one threshold (Alizadeh et al. 2010, section 3.1);
/// all packets share the buffer.
pub const fn step_marking(ecn_threshold: ByteSize, buffer: ByteSize) -> [Rule; 2] {
    [Rule::buffer(buffer), Rule::mark_above(ecn_threshold)]
}

/// DCUDP's switch: ECT packets are CE-marked with `probability` between two thresholds and always
/// above the second; only what `buffer` cannot hold is dropped.
pub const fn two_threshold_marking(
    low: ByteSize,
    high: ByteSize,
    probability: Probability,
    buffer: ByteSize,
) -> [Rule; 2] {
    [
        Rule::buffer(buffer),
        Rule::mark_between(low, high, probability),
    ]
}
