//! A maximum over a sliding window, in constant space.

/// A filter for the maximum of the last `length` steps of a round counter.
///
/// It uses Kathleen Nichols' method: it keeps the best value and the two best after it, each from a
/// later part of the window, so that a successor exists when the best one expires.
#[derive(Clone, Debug)]
pub(crate) struct MaxFilter {
    length: u64,
    /// Best first; values decrease, times do not.
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    value: u64,
}

impl MaxFilter {
    pub(crate) fn new(length: u64) -> Self {
        Self {
            length,
            best: [Sample::default(); 3],
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.best[0].value
    }

    pub(crate) fn set_length(&mut self, length: u64) {
        self.length = length;
    }

    pub(crate) fn update(&mut self, at: u64, value: u64) {
        let sample = Sample { at, value };
        let expired = at.saturating_sub(self.best[2].at) > self.length;
        if value >= self.best[0].value || expired {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].value {
            self.best[2] = sample;
        }
        self.retire(sample);
    }

    /// Drops a best value that is too old, and keeps the other two spread over the window.
    fn retire(&mut self, sample: Sample) {
        let age = sample.at.saturating_sub(self.best[0].at);
        if age > self.length {
            self.best = [self.best[1], self.best[2], sample];
            if sample.at.saturating_sub(self.best[0].at) > self.length {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].at == self.best[0].at && age > self.length / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].at == self.best[1].at && age > self.length / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_maximum_expires_after_the_window() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, 100);
        for at in 1..=10 {
            filter.update(at, 50 - at);
            assert_eq!(filter.get(), 100, "at {at}");
        }
        filter.update(11, 30);
        assert!(filter.get() < 100);
        assert!(filter.get() >= 30);
    }

    proptest! {
        /// Never above the true maximum of the window, never below the newest value.
        #[test]
        fn the_estimate_lies_between_the_newest_value_and_the_true_maximum(
            steps in prop::collection::vec((0_u64..4, 0_u64..1_000), 1..200),
        ) {
            let (mut filter, mut at) = (MaxFilter::new(10), 0);
            let mut seen: Vec<(u64, u64)> = Vec::new();
            for (step, value) in steps {
                at += step;
                filter.update(at, value);
                seen.push((at, value));
                let truth = seen.iter().filter(|(then, _)| at - then <= 10).map(|(_, v)| *v).max();
                prop_assert!(filter.get() >= value);
                prop_assert!(Some(filter.get()) <= truth);
            }
        }
    }
}
