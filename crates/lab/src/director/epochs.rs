//! Epochs: one request of each client; the next epoch begins when all are answered.

use std::collections::BTreeSet;

use weir_units::{Duration, Time};

/// The progress of the epochs.
#[derive(Debug)]
pub(super) struct Epochs {
    /// The number of epochs.
    count: u64,
    /// The clients' flows.
    flows: BTreeSet<u64>,
    /// The current or next epoch.
    number: u64,
    /// The flows whose response is outstanding.
    due: BTreeSet<u64>,
    /// All finished requests.
    pub(super) requests: Vec<Request>,
}

/// A request of an epoch, answered or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) flow: u64,
    pub(super) epoch: u64,
    /// When it was sent.
    pub(super) start: Time,
    /// The time to the response; `None` if it failed.
    pub(super) took: Option<Duration>,
    /// The number of connections on which it was sent.
    pub(super) attempts: u64,
}

impl Epochs {
    /// Creates `count` epochs of the given flows.
    pub(super) fn new(count: u64, flows: impl IntoIterator<Item = u64>) -> Self {
        Self {
            count,
            flows: flows.into_iter().collect(),
            number: 0,
            due: BTreeSet::new(),
            requests: Vec::new(),
        }
    }

    /// Begins the next epoch; returns its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.due.clone_from(&self.flows);
        self.number
    }

    /// Records that a client's request was answered or failed. Returns whether the epoch is over now.
    pub(super) fn answered(&mut self, request: Request) -> bool {
        if request.epoch != self.number || !self.due.remove(&request.flow) {
            return false;
        }
        self.requests.push(request);
        let is_over = self.due.is_empty();
        self.number += u64::from(is_over);
        is_over
    }

    /// Returns whether all epochs are over.
    pub(super) fn are_over(&self) -> bool {
        self.number >= self.count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(flow: u64, epoch: u64) -> Request {
        Request {
            flow,
            epoch,
            start: Time::ZERO,
            took: Some(Duration::from_millis(1)),
            attempts: 1,
        }
    }

    #[test]
    fn an_epoch_ends_when_all_clients_have_answered() {
        let mut epochs = Epochs::new(2, [3, 5]);
        assert_eq!(epochs.begin(), 0);
        assert!(!epochs.answered(answer(3, 0)));
        assert!(!epochs.answered(answer(3, 0)), "twice is once");
        assert!(!epochs.answered(answer(4, 0)), "a stranger");
        assert!(epochs.answered(Request {
            took: None,
            ..answer(5, 0)
        }));
        assert!(!epochs.are_over());
        assert_eq!(epochs.begin(), 1);
        assert!(!epochs.answered(answer(5, 0)), "late for the last one");
        assert!(!epochs.answered(answer(5, 1)));
        assert!(epochs.answered(answer(3, 1)));
        assert!(epochs.are_over());
        assert_eq!(epochs.requests.len(), 4);
        assert_eq!(epochs.requests[1].took, None);
    }

    proptest! {
        #[test]
        fn every_client_has_one_request_in_every_epoch(
            answers in proptest::collection::vec((0_u64..4, 0_u64..6), 0..200)
        ) {
            let mut epochs = Epochs::new(5, 0..3);
            let mut number = epochs.begin();
            for (flow, epoch) in answers {
                if epochs.answered(answer(flow, epoch)) {
                    number = epochs.begin();
                }
            }
            let mut seen = BTreeSet::new();
            for request in &epochs.requests {
                prop_assert!(seen.insert((request.epoch, request.flow)));
            }
            prop_assert!(epochs.requests.len() as u64 >= 3 * number);
            prop_assert!((epochs.requests.len() as u64) < 3 * (number + 1));
        }
    }
}
