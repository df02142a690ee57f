//! A long-term average and the limit for slow samples.

use weir_units::Duration;

/// The parameters of a baseline.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaselineRule {
    /// The window of the average, in samples.
    pub(super) long_window: u32,
    /// The samples required before it is used.
    pub(super) short_window: u32,
    /// A slow sample exceeds the average by this factor.
    pub(super) alpha: f64,
    /// A slow sample exceeds the average by at least this difference.
    pub(super) min_increase: Duration,
}

/// Mean and mean deviation. The first samples have equal weight; later ones have a gain of
/// 1/`long_window`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Baseline {
    /// In nanoseconds.
    mean: f64,
    /// In nanoseconds.
    deviation: f64,
    samples: u32,
}

impl Baseline {
    /// Returns the average, if there are enough samples.
    pub(super) fn mean(&self, judgement: &BaselineRule) -> Option<Duration> {
        (self.samples >= judgement.short_window).then(|| nanos(self.mean))
    }

    /// Returns the limit for slow samples: the largest of `alpha` times the average, the average
    /// plus four deviations, and the average plus `min_increase`. `None` if there are too few
    /// samples.
    pub(super) fn limit(&self, judgement: &BaselineRule) -> Option<Duration> {
        let mean = self.mean(judgement)?;
        let scaled = nanos(self.mean * judgement.alpha);
        let spread = nanos(self.mean + 4.0 * self.deviation);
        Some(scaled.max(spread).max(mean + judgement.min_increase))
    }

    /// Adds a sample. A slow one counts only as the limit: an outlier hardly moves the average, yet
    /// a path that has become slow permanently is the new baseline after some `long_window`
    /// samples.
    pub(super) fn record(&mut self, sample: Duration, judgement: &BaselineRule) {
        let limit = self.limit(judgement).unwrap_or(Duration::MAX);
        let sample = sample.min(limit).as_nanos() as f64;
        self.samples = self.samples.saturating_add(1);
        let gain = 1.0 / f64::from(self.samples.min(judgement.long_window));
        if self.samples > 1 {
            self.deviation += ((sample - self.mean).abs() - self.deviation) * gain;
        }
        self.mean += (sample - self.mean) * gain;
    }
}

fn nanos(value: f64) -> Duration {
    Duration::from_nanos(value as u64)
}

/// Returns `short / long`; infinite if `long` is zero.
pub(super) fn ratio(short: Duration, long: Duration) -> f64 {
    short.as_nanos() as f64 / long.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGEMENT: BaselineRule = BaselineRule {
        long_window: 50,
        short_window: 10,
        alpha: 2.0,
        min_increase: Duration::from_millis(1),
    };

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn after(samples: impl IntoIterator<Item = u64>) -> Baseline {
        let mut baseline = Baseline::default();
        for sample in samples {
            baseline.record(us(sample), &JUDGEMENT);
        }
        baseline
    }

    #[test]
    fn too_few_samples_give_no_limit() {
        assert_eq!(after([100; 9]).limit(&JUDGEMENT), None);
        assert_eq!(after([100; 10]).mean(&JUDGEMENT), Some(us(100)));
    }

    #[test]
    fn the_slow_limit_is_the_largest_of_three() {
        assert_eq!(after([100; 20]).limit(&JUDGEMENT), Some(us(1_100)));
        assert_eq!(after([5_000; 20]).limit(&JUDGEMENT), Some(us(10_000)));
        // Mean 10 ms, deviation approaching 8 ms: 42 ms.
        let wide = after([2_000, 18_000].into_iter().cycle().take(400));
        let limit = wide.limit(&JUDGEMENT).unwrap();
        assert!(us(40_000) < limit && limit < us(44_000), "{limit}");
    }

    #[test]
    fn an_outlier_barely_moves_the_baseline_and_a_lasting_change_does() {
        let mut baseline = after([10_000; 50]);
        baseline.record(us(10_000_000), &JUDGEMENT);
        assert_eq!(baseline.mean(&JUDGEMENT), Some(us(10_200)));
        for _ in 0..200 {
            baseline.record(us(50_000), &JUDGEMENT);
        }
        assert!(baseline.limit(&JUDGEMENT).unwrap() > us(50_000));
    }
}
