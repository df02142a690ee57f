//! A queue: rules decide who comes in and who is marked; who is in leaves in order.

use std::collections::VecDeque;

use weir_units::ByteSize;
use weir_wire::Ecn;

use crate::counters::{Counters, DropReason, Tally};
use crate::packet::Packet;
use crate::random::{Generator, generator};
use crate::rule::{Action, Rule};

/// A first-in, first-out queue under a list of [`Rule`]s.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    rules: Vec<Rule>,
    random: Generator,
    waiting: VecDeque<P>,
    backlog: Tally,
    counters: Counters,
    marked: Tally,
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

impl<P: Packet> Queue<P> {
    /// An empty queue under `rules`, which are asked in order; `seed` decides what the random ones
    /// choose. Without rules it is unbounded.
    pub fn new(rules: impl Into<Vec<Rule>>, seed: u64) -> Self {
        Self {
            rules: rules.into(),
            random: generator(seed, 0),
            waiting: VecDeque::new(),
            backlog: Tally::ZERO,
            counters: Counters::default(),
            marked: Tally::ZERO,
        }
    }

    /// Replaces the rules for packets to come.
    pub fn set_rules(&mut self, rules: impl Into<Vec<Rule>>) {
        self.rules = rules.into();
    }

    /// A packet arrives: it is queued, marked and queued, or dropped.
    pub fn push(&mut self, mut packet: P) -> Admission {
        let length = packet.length();
        self.counters.arrived.record(length);
        let admission = self.admit(length, packet.ecn());
        match admission {
            Admission::Dropped(reason) => {
                self.counters.dropped.record(reason, length);
                return admission;
            }
            Admission::Marked => {
                packet.set_ecn(Ecn::Ce);
                self.marked.record(length);
            }
            Admission::Queued => {}
        }
        self.backlog.record(length);
        self.waiting.push_back(packet);
        admission
    }

    /// The packet that has waited longest leaves.
    pub fn pop(&mut self) -> Option<P> {
        let packet = self.waiting.pop_front()?;
        self.backlog.remove(packet.length());
        self.counters.departed.record(packet.length());
        Some(packet)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What waits now.
    pub fn backlog(&self) -> Tally {
        self.backlog
    }

    /// What became of the packets that came here.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets that this queue has marked. One that arrived with CE is not counted.
    pub fn marked(&self) -> Tally {
        self.marked
    }

    fn admit(&mut self, length: ByteSize, ecn: Ecn) -> Admission {
        let mut mark = false;
        for rule in self.rules.iter().filter(|rule| rule.class.contains(ecn)) {
            if !rule.when.applies(length, self.backlog, &mut self.random) {
                continue;
            }
            match rule.action {
                Action::Mark => mark = ecn.is_capable(),
                Action::Drop(reason) => return Admission::Dropped(reason),
            }
        }
        if mark && ecn != Ecn::Ce {
            Admission::Marked
        } else {
            Admission::Queued
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::Numbered;
    use crate::random::Probability;
    use crate::rule::Class;

    const THOUSAND: ByteSize = ByteSize::from_bytes(1000);

    fn not_ect(number: u64) -> Numbered {
        Numbered {
            ecn: Ecn::NotEct,
            ..Numbered::new(number, 500)
        }
    }

    #[test]
    fn tail_drop_by_bytes_fills_the_queue_to_the_last_byte() {
        let mut queue = Queue::new([Rule::tail_drop(THOUSAND)], 0);
        assert_eq!(queue.push(Numbered::new(0, 400)), Admission::Queued);
        assert_eq!(
            queue.push(Numbered::new(1, 601)),
            Admission::Dropped(DropReason::Full)
        );
        assert_eq!(queue.push(Numbered::new(2, 600)), Admission::Queued);
        assert_eq!(
            queue.backlog(),
            Tally {
                packets: 2,
                size: THOUSAND
            }
        );
        assert_eq!(queue.pop().map(|packet| packet.number), Some(0));
        assert_eq!(queue.pop().map(|packet| packet.number), Some(2));
        assert_eq!(queue.pop(), None);
        assert_eq!(
            queue.counters().dropped.by(DropReason::Full).size,
            ByteSize::from_bytes(601)
        );
    }

    #[test]
    fn tail_drop_by_packets_ignores_their_length() {
        let mut queue = Queue::new([Rule::tail_drop_packets(2)], 0);
        assert_eq!(queue.push(Numbered::new(0, 1)), Admission::Queued);
        assert_eq!(queue.push(Numbered::new(1, 65_535)), Admission::Queued);
        assert_eq!(
            queue.push(Numbered::new(2, 1)),
            Admission::Dropped(DropReason::Full)
        );
    }

    #[test]
    fn step_marking_starts_above_the_threshold() {
        let mut queue = Queue::new([Rule::mark_above(THOUSAND)], 0);
        let admissions: Vec<_> = (0..4)
            .map(|number| queue.push(Numbered::new(number, 500)))
            .collect();
        // The third finds exactly the threshold, the fourth more.
        use Admission::{Marked, Queued};
        assert_eq!(admissions, [Queued, Queued, Queued, Marked]);
        assert_eq!(queue.marked().packets, 1);
        let codepoints: Vec<_> = std::iter::from_fn(|| queue.pop())
            .map(|packet| packet.ecn)
            .collect();
        assert_eq!(codepoints, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ce]);
    }

    #[test]
    fn step_marking_by_packets() {
        let mut queue = Queue::new([Rule::mark_above_packets(1)], 0);
        assert_eq!(queue.push(Numbered::new(0, 1)), Admission::Queued);
        assert_eq!(queue.push(Numbered::new(1, 1)), Admission::Queued);
        assert_eq!(queue.push(Numbered::new(2, 1)), Admission::Marked);
    }

    #[test]
    fn not_ect_packets_are_never_marked_but_may_be_dropped_by_a_rule_of_their_own() {
        let mark = Rule::mark_above(ByteSize::ZERO);
        let mut lenient = Queue::new([mark.only(Class::Every)], 0);
        assert_eq!(lenient.push(not_ect(0)), Admission::Queued);
        assert_eq!(lenient.push(not_ect(1)), Admission::Queued);

        let drop = Rule {
            class: Class::NotEct,
            when: mark.when,
            action: Action::Drop(DropReason::Early),
        };
        let mut strict = Queue::new([mark, drop], 0);
        assert_eq!(strict.push(not_ect(0)), Admission::Queued);
        assert_eq!(
            strict.push(not_ect(1)),
            Admission::Dropped(DropReason::Early)
        );
        assert_eq!(strict.push(Numbered::new(2, 500)), Admission::Marked);
    }

    #[test]
    fn a_mark_that_was_there_already_is_not_counted() {
        let mut queue = Queue::new([Rule::mark_randomly(Probability::ALWAYS)], 0);
        assert_eq!(
            queue.push(Numbered {
                ecn: Ecn::Ce,
                ..not_ect(0)
            }),
            Admission::Queued
        );
        assert_eq!(queue.marked(), Tally::ZERO);
    }

    #[test]
    fn random_marking_and_dropping_keep_their_fractions() {
        for value in [0.01, 0.1, 0.5] {
            let probability = Probability::new(value).unwrap();
            let rules = [
                Rule::mark_randomly(probability),
                Rule::drop_randomly(probability),
            ];
            let mut queue = Queue::new(rules, 7);
            let packets = 200_000;
            for number in 0..packets {
                queue.push(Numbered::new(number, 1000));
                queue.pop();
            }
            let near = |count: u64, out_of: u64| {
                let deviation = (value * (1.0 - value) * out_of as f64).sqrt();
                (count as f64 - value * out_of as f64).abs() < 4.0 * deviation
            };
            let dropped = queue.counters().dropped.by(DropReason::Early).packets;
            assert!(near(dropped, packets), "{dropped} dropped at {value}");
            let marked = queue.marked().packets;
            assert!(
                near(marked, packets - dropped),
                "{marked} marked at {value}"
            );
        }
    }

    #[test]
    fn rules_can_change_under_way() {
        let mut queue = Queue::new([], 0);
        assert_eq!(queue.push(Numbered::new(0, 5000)), Admission::Queued);
        queue.set_rules([Rule::tail_drop(THOUSAND)]);
        assert_eq!(
            queue.push(Numbered::new(1, 1)),
            Admission::Dropped(DropReason::Full)
        );
        assert_eq!(queue.pop().map(|packet| packet.number), Some(0));
    }
}
