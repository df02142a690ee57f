//! A long-term average, and what is slow against it.

use weir_units::Duration;

/// How a baseline judges.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaselineRule {
    /// Over how many samples the average runs.
    pub(super) long_window: u32,
    /// How many samples it needs before it is used.
    pub(super) short_window: u32,
    /// How many times the average a slow sample exceeds.
    pub(super) alpha: f64,
    /// How much more than the average it takes.
    pub(super) min_increase: Duration,
}

/// Mean and mean deviation. The first samples count alike, later ones with a gain of one part in
/// `long_window`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Baseline {
    /// In nanoseconds.
    mean: f64,
    /// In nanoseconds.
    deviation: f64,
    samples: u32,
}

impl Baseline {
    /// The average, where there are enough samples to use it.
    pub(super) fn mean(&self, judgement: &BaselineRule) -> Option<Duration> {
        (self.samples >= judgement.short_window).then(|| nanos(self.mean))
    }

    /// What a sample has to exceed to be slow: `alpha` times the average, the average and four
    /// deviations, and the average and `min_increase`. `None` where nothing can be said yet.
    pub(super) fn limit(&self, judgement: &BaselineRule) -> Option<Duration> {
        let mean = self.mean(judgement)?;
        let scaled = nanos(self.mean * judgement.alpha);
        let spread = nanos(self.mean + 4.0 * self.deviation);
        Some(scaled.max(spread).max(mean + judgement.min_increase))
    }

    /// Takes a sample in. A slow one counts as the limit only: an outlier hardly moves the average,
    /// yet a path that has become slow for good is the new normal after some `long_window` samples.
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

/// How many times `long` is in `short`; infinite where `long` is nothing.
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
    fn too_few_samples_say_nothing() {
        assert_eq!(after([100; 9]).limit(&JUDGEMENT), None);
        assert_eq!(after([100; 10]).mean(&JUDGEMENT), Some(us(100)));
    }

    #[test]
    fn slow_is_what_exceeds_all_three_limits() {
        assert_eq!(after([100; 20]).limit(&JUDGEMENT), Some(us(1_100)));
        assert_eq!(after([5_000; 20]).limit(&JUDGEMENT), Some(us(10_000)));
        // Mean 10 ms, deviation towards 8 ms: 42 ms.
        let wide = after([2_000, 18_000].into_iter().cycle().take(400));
        let limit = wide.limit(&JUDGEMENT).unwrap();
        assert!(us(40_000) < limit && limit < us(44_000), "{limit}");
    }

    #[test]
    fn an_outlier_hardly_counts_and_a_new_normal_does() {
        let mut baseline = after([10_000; 50]);
        baseline.record(us(10_000_000), &JUDGEMENT);
        assert_eq!(baseline.mean(&JUDGEMENT), Some(us(10_200)));
        for _ in 0..200 {
            baseline.record(us(50_000), &JUDGEMENT);
        }
        assert!(baseline.limit(&JUDGEMENT).unwrap() > us(50_000));
    }
}
