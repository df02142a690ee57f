//! RTT samples of the path in use: their long-term average, and the run of slow ones.

use weir_units::{Duration, Time};

use super::baseline::{Baseline, BaselineRule};

/// RTT samples since the connection moved to the path.
#[derive(Debug, Default)]
pub(super) struct RoundTripHistory {
    baseline: Baseline,
    /// The newest sample.
    pub(super) latest: Option<Duration>,
    run: Option<SlowRun>,
}

/// Consecutive slow samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowRun {
    /// The number of samples.
    pub(super) samples: u32,
    /// When the first one was taken.
    pub(super) started: Time,
    /// The long-term average before the first.
    pub(super) long_term: Duration,
    /// The average of the slow samples, in nanoseconds.
    mean: f64,
    /// Whether a packet of these samples was sent after the first slow sample was taken.
    spans_round_trip: bool,
}

impl SlowRun {
    /// Returns the average of the slow samples.
    pub(super) fn short_term(&self) -> Duration {
        Duration::from_nanos(self.mean as u64)
    }
}

impl RoundTripHistory {
    /// Adds a sample.
    pub(super) fn on_sample(&mut self, now: Time, rtt: Duration, judgement: &BaselineRule) {
        self.latest = Some(rtt);
        let slow = self
            .baseline
            .limit(judgement)
            .is_some_and(|limit| rtt > limit);
        self.run = slow.then(|| self.longer_run(now, rtt, judgement));
        self.baseline.record(rtt, judgement);
    }

    fn longer_run(&self, now: Time, rtt: Duration, judgement: &BaselineRule) -> SlowRun {
        let mut run = self.run.unwrap_or(SlowRun {
            samples: 0,
            started: now,
            long_term: self.baseline.mean(judgement).unwrap_or_default(),
            mean: 0.0,
            spans_round_trip: false,
        });
        run.samples = run.samples.saturating_add(1);
        run.mean += (rtt.as_nanos() as f64 - run.mean) / f64::from(run.samples);
        run.spans_round_trip |= run.samples > 1 && now - rtt >= run.started;
        run
    }

    /// Returns the run of slow samples if it is long enough: `confirmations` samples over two
    /// consecutive round trips. A lost ACK or a busy host causes one slow sample, or several at the
    /// same time.
    pub(super) fn confirmed(&self, confirmations: u32) -> Option<&SlowRun> {
        self.run
            .as_ref()
            .filter(|run| run.samples >= confirmations && run.spans_round_trip)
    }

    /// Returns when the first sample of the current slow run was taken.
    pub(super) fn slow_since(&self) -> Option<Time> {
        self.run.map(|run| run.started)
    }
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

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + ms(millis)
    }

    fn baseline_history() -> RoundTripHistory {
        let mut history = RoundTripHistory::default();
        for index in 0..20 {
            history.on_sample(at(index), ms(10), &JUDGEMENT);
        }
        history
    }

    #[test]
    fn slow_samples_within_one_round_trip_are_not_confirmed() {
        let mut history = baseline_history();
        for index in 0..10 {
            history.on_sample(at(100 + index), ms(100), &JUDGEMENT);
        }
        assert!(history.confirmed(3).is_none());
        // This packet was sent when the first slow sample was taken.
        history.on_sample(at(200), ms(100), &JUDGEMENT);
        let run = history.confirmed(3).unwrap();
        assert_eq!(
            (run.samples, run.short_term(), run.long_term),
            (11, ms(100), ms(10))
        );
    }

    #[test]
    fn a_normal_sample_ends_the_slow_run() {
        let mut history = baseline_history();
        for round in 1..10 {
            history.on_sample(at(round * 300), ms(100), &JUDGEMENT);
            history.on_sample(at(round * 300 + 100), ms(100), &JUDGEMENT);
            history.on_sample(at(round * 300 + 200), ms(11), &JUDGEMENT);
            assert!(history.slow_since().is_none());
        }
    }
}
