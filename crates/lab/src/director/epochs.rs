//! Requests in step: an epoch is one request of each client, and the next begins when all are answered.

use std::collections::BTreeSet;

use weir_units::{Duration, Time};

/// Where the epochs are.
#[derive(Debug)]
pub(super) struct Epochs {
    /// How many there are.
    count: u64,
    /// The clients' flows.
    flows: BTreeSet<u64>,
    /// The epoch that goes on, or is the next one.
    number: u64,
    /// Whose answer is due.
    due: BTreeSet<u64>,
    /// All requests so far.
    pub(super) requests: Vec<Request>,
}

/// A request of an epoch, answered or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) flow: u64,
    pub(super) epoch: u64,
    /// When it was made.
    pub(super) start: Time,
    /// How long it took from then on; `None` where it was given up.
    pub(super) took: Option<Duration>,
    /// On how many connections it was made.
    pub(super) attempts: u64,
}

impl Epochs {
    /// So many epochs of these flows.
    pub(super) fn new(count: u64, flows: impl IntoIterator<Item = u64>) -> Self {
        Self {
            count,
            flows: flows.into_iter().collect(),
            number: 0,
            due: BTreeSet::new(),
            requests: Vec::new(),
        }
    }

    /// The next epoch begins: its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.due.clone_from(&self.flows);
        self.number
    }

    /// A client has its answer, or gives it up. Whether the epoch is over with that.
    pub(super) fn answered(&mut self, request: Request) -> bool {
        if request.epoch != self.number || !self.due.remove(&request.flow) {
            return false;
        }
        self.requests.push(request);
        let is_over = self.due.is_empty();
        self.number += u64::from(is_over);
        is_over
    }

    /// Whether all epochs are over.
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
    fn an_epoch_is_over_when_all_have_answered_once() {
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
