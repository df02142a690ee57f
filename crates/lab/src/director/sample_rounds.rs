//! Asking all hosts at once how their flows stand. Rounds may overlap: each host answers in order.

use std::collections::VecDeque;

use weir_units::Time;

/// Rounds of questions that are not answered by all hosts yet, the oldest first.
#[derive(Debug)]
pub(super) struct SampleRounds {
    hosts: usize,
    open: VecDeque<SampleRound>,
}

#[derive(Debug)]
struct SampleRound {
    purpose: SamplePurpose,
    answered: Vec<bool>,
    /// When the last of those answered that have.
    at: Time,
}

/// Why it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SamplePurpose {
    /// For the samples of groups.
    Sample,
    /// The warm-up is over.
    EndOfWarmUp,
    /// The run is over.
    End,
}

impl SampleRounds {
    /// With so many hosts.
    pub(super) fn new(hosts: usize) -> Self {
        Self {
            hosts,
            open: VecDeque::new(),
        }
    }

    /// All hosts have been asked.
    pub(super) fn ask(&mut self, purpose: SamplePurpose) {
        self.open.push_back(SampleRound {
            purpose,
            answered: vec![false; self.hosts],
            at: Time::ZERO,
        });
    }

    /// Whether an answer for samples is due: then another question would only add to the load.
    pub(super) fn is_sampling(&self) -> bool {
        self.open
            .iter()
            .any(|round| round.purpose == SamplePurpose::Sample)
    }

    /// A host has answered, of this moment. The round that is complete with that, and its moment.
    pub(super) fn answered(&mut self, host: usize, at: Time) -> Option<(SamplePurpose, Time)> {
        let waits = |round: &&mut SampleRound| round.answered.get(host) == Some(&false);
        let round = self.open.iter_mut().find(waits)?;
        round.answered[host] = true;
        round.at = round.at.max(at);
        // A host that answers a later question has answered the earlier ones.
        let first = self.open.front()?;
        if !first.answered.iter().all(|answered| *answered) {
            return None;
        }
        let round = self.open.pop_front()?;
        Some((round.purpose, round.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_complete_in_their_order() {
        let at = Time::from_nanos;
        let mut rounds = SampleRounds::new(2);
        rounds.ask(SamplePurpose::Sample);
        assert!(rounds.is_sampling());
        assert_eq!(rounds.answered(0, at(5)), None);
        rounds.ask(SamplePurpose::EndOfWarmUp);
        assert_eq!(rounds.answered(0, at(7)), None);
        assert_eq!(
            rounds.answered(1, at(4)),
            Some((SamplePurpose::Sample, at(5)))
        );
        assert!(!rounds.is_sampling());
        assert_eq!(
            rounds.answered(1, at(8)),
            Some((SamplePurpose::EndOfWarmUp, at(8)))
        );
        assert_eq!(rounds.answered(1, at(9)), None, "nobody asked");
        assert_eq!(rounds.answered(7, at(9)), None, "nobody is there");
    }
}
