//! The replay filter: a token for later is valid for one connection (RFC 9000, section 8.1.4).

use std::collections::BTreeSet;

use weir_units::Time;

use super::TokenId;

/// Stores which tokens were used, in bounded memory.
///
/// When it is full, the token that was issued first is removed. From then on all tokens issued up
/// to that time count as used: the filter may refuse a fresh token, but never accepts one twice. An
/// attacker needs as many fresh tokens to fill it, and invalidates only old ones.
#[derive(Debug)]
pub(crate) struct ReplayFilter {
    capacity: usize,
    used: BTreeSet<(Time, TokenId)>,
    /// Tokens that were issued up to this time may have been used.
    forgotten: Option<Time>,
}

impl ReplayFilter {
    /// Creates a filter for this many tokens, of 20 bytes each plus the tree's overhead.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            used: BTreeSet::new(),
            forgotten: None,
        }
    }

    /// Marks a token as used; `false` if it may have been used before. `oldest` is the issue time
    /// of the oldest valid token.
    pub(crate) fn use_up(&mut self, issued: Time, id: TokenId, oldest: Time) -> bool {
        while self
            .used
            .first()
            .is_some_and(|(issued, _)| *issued < oldest)
        {
            self.used.pop_first();
        }
        if self.forgotten.is_some_and(|until| issued <= until) || !self.used.insert((issued, id)) {
            return false;
        }
        if self.used.len() > self.capacity
            && let Some((issued, _)) = self.used.pop_first()
        {
            self.forgotten = self.forgotten.max(Some(issued));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_accepted_once_and_old_tokens_are_evicted() {
        let mut filter = ReplayFilter::new(2);
        let at = Time::from_nanos;
        let mut use_up = |issued, oldest| filter.use_up(at(issued), [issued as u8; 12], at(oldest));
        assert!(use_up(10, 0) && !use_up(10, 0));
        assert!(use_up(12, 0) && use_up(11, 0));
        assert!(!use_up(9, 0) && !use_up(10, 0) && !use_up(11, 0) && !use_up(12, 0));
        assert!(use_up(30, 20));
        assert_eq!(filter.used.len(), 1);
    }

    proptest! {
        #[test]
        fn no_token_is_accepted_twice_and_memory_is_bounded(
            capacity in 1..20_usize,
            uses in prop::collection::vec((0..40_u64, 0..3_u8), 0..200),
        ) {
            let mut filter = ReplayFilter::new(capacity);
            let mut taken = BTreeMap::<_, u32>::new();
            for (issued, id) in uses {
                let issued = Time::from_nanos(issued);
                if filter.use_up(issued, [id; 12], Time::ZERO) {
                    *taken.entry((issued, id)).or_default() += 1;
                }
                prop_assert!(filter.used.len() <= capacity);
            }
            prop_assert!(taken.values().all(|times| *times == 1));
        }
    }
}
