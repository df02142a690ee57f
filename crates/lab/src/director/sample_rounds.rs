//! Sample rounds: samples requested from all hosts at once. Rounds can overlap; each host answers in order.

use std::collections::VecDeque;

use weir_units::Time;

/// The incomplete rounds, the oldest first.
#[derive(Debug)]
pub(super) struct SampleRounds {
    hosts: usize,
    open: VecDeque<SampleRound>,
}

#[derive(Debug)]
struct SampleRound {
    purpose: SamplePurpose,
    answered: Vec<bool>,
    /// The latest time of the answers so far.
    at: Time,
}

/// The purpose of a round.
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
    /// Creates an empty list for this number of hosts.
    pub(super) fn new(hosts: usize) -> Self {
        Self {
            hosts,
            open: VecDeque::new(),
        }
    }

    /// Opens a round after all hosts have been asked.
    pub(super) fn begin_round(&mut self, purpose: SamplePurpose) {
        self.open.push_back(SampleRound {
            purpose,
            answered: vec![false; self.hosts],
            at: Time::ZERO,
        });
    }

    /// Returns whether a periodic round is open. Another one would only add load.
    pub(super) fn is_sampling(&self) -> bool {
        self.open
            .iter()
            .any(|round| round.purpose == SamplePurpose::Sample)
    }

    /// Records a host's answer of time `at`. Returns the round that is complete with it, and its time.
    pub(super) fn answered(&mut self, host: usize, at: Time) -> Option<(SamplePurpose, Time)> {
        let waits = |round: &&mut SampleRound| round.answered.get(host) == Some(&false);
        let round = self.open.iter_mut().find(waits)?;
        round.answered[host] = true;
        round.at = round.at.max(at);
        // A host that answers a later round has answered the earlier ones.
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
    fn sample_rounds_complete_in_order() {
        let at = Time::from_nanos;
        let mut rounds = SampleRounds::new(2);
        rounds.begin_round(SamplePurpose::Sample);
        assert!(rounds.is_sampling());
        assert_eq!(rounds.answered(0, at(5)), None);
        rounds.begin_round(SamplePurpose::EndOfWarmUp);
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
