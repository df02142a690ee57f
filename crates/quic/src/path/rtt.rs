//! The round-trip time of a path (RFC 9002, section 5), in nanoseconds.

use weir_units::{Duration, Time};

/// The RTT estimator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    /// The newest sample, including the peer's delay.
    pub(crate) latest: Duration,
    /// The last sample without the peer's delay.
    adjusted: Duration,
    /// The smoothed round-trip time.
    pub(crate) smoothed: Duration,
    /// The mean deviation.
    pub(crate) variation: Duration,
    /// The smallest sample.
    pub(crate) min: Duration,
    /// When the first sample was taken.
    pub(crate) first_sample_at: Option<Time>,
    /// The number of samples.
    pub(crate) samples: u64,
    /// The next sample replaces the minimum.
    reset_min: bool,
}

impl Rtt {
    /// Creates an estimator without a sample (RFC 9002, section 5.3).
    pub(crate) fn new(initial: Duration) -> Self {
        Self {
            latest: initial,
            adjusted: initial,
            smoothed: initial,
            variation: initial / 2,
            min: initial,
            first_sample_at: None,
            samples: 0,
            reset_min: false,
        }
    }

    /// Adds a sample: the largest packet of an ACK was acknowledged after `latest`, of which the
    /// peer reports `ack_delay` as its delay. Returns the sample without that delay.
    pub(crate) fn on_sample(
        &mut self,
        now: Time,
        latest: Duration,
        ack_delay: Duration,
    ) -> Duration {
        self.latest = latest;
        self.samples += 1;
        if self.first_sample_at.is_none() {
            self.first_sample_at = Some(now);
            self.min = latest;
            self.adjusted = latest;
            self.smoothed = latest;
            self.variation = latest / 2;
            return latest;
        }
        self.min = if self.reset_min {
            latest
        } else {
            self.min.min(latest)
        };
        self.reset_min = false;
        // The delay must not make the sample smaller than the minimum (RFC 9002, section 5.3). As
        // much of it as does not is subtracted: ACKs may be delayed by many round trips here, and the
        // packet may have been smaller than the one that gave the minimum.
        let adjusted = (latest - ack_delay).max(self.min);
        self.variation = (self.variation * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
        self.adjusted = adjusted;
        adjusted
    }

    /// Whether a sample shows that the path has changed: it is less than half or more than twice
    /// the smoothed RTT, and differs by more than `least`.
    pub(crate) fn is_contradicted_by(&self, sample: Duration, least: Duration) -> bool {
        let (low, high) = (self.smoothed.min(sample), self.smoothed.max(sample));
        self.has_sample() && high > low * 2 && high - low > least
    }

    /// Restarts the estimator: this sample is the first of a changed path.
    pub(crate) fn restart(&mut self, now: Time, sample: Duration) {
        *self = Self::new(sample);
        self.on_sample(now, sample, Duration::ZERO);
    }

    /// Replaces the minimum with the next sample: the path may have become longer (RFC 9002,
    /// section 5.2, requires it after persistent congestion).
    pub(crate) fn reset_min(&mut self) {
        self.reset_min = true;
    }

    /// Returns the RTT over which a window is spread: the smoothed one, or the last sample where that is
    /// less than half of it. Samples of a busy time would slow down the next transfer on an idle path, by
    /// as many round trips as it takes to forget them.
    pub(crate) fn for_pacing(&self) -> Option<Duration> {
        let is_outdated = self.adjusted * 2 < self.smoothed;
        self.has_sample().then_some(if is_outdated {
            self.adjusted
        } else {
            self.smoothed
        })
    }

    /// Whether there has been a sample.
    pub(crate) fn has_sample(&self) -> bool {
        self.first_sample_at.is_some()
    }

    /// Returns the time after which a packet is lost once a later one has been acknowledged: 9/8 of
    /// an RTT (RFC 9002, section 6.1.2).
    pub(crate) fn loss_delay(&self, granularity: Duration) -> Duration {
        let rtt = self.smoothed.max(self.latest);
        (rtt + rtt / 8).max(granularity)
    }

    /// Returns the PTO without the peer's delay (RFC 9002, section 6.2.1).
    pub(crate) fn probe_timeout(&self, granularity: Duration) -> Duration {
        self.smoothed + (self.variation * 4).max(granularity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn a_sample_far_from_the_average_contradicts_it() {
        let mut rtt = Rtt::new(us(100));
        let least = us(1_000);
        assert!(!rtt.is_contradicted_by(us(100_000), least), "nothing known");
        rtt.on_sample(Time::ZERO, us(100), Duration::ZERO);
        assert!(!rtt.is_contradicted_by(us(1_100), least));
        assert!(rtt.is_contradicted_by(us(1_101), least));
        rtt.restart(Time::ZERO, us(50_000));
        assert_eq!((rtt.smoothed, rtt.min), (us(50_000), us(50_000)));
        assert!(rtt.is_contradicted_by(us(24_999), least));
        assert!(!rtt.is_contradicted_by(us(25_000), least));
        assert!(!rtt.is_contradicted_by(us(100_000), least));
    }

    #[test]
    fn the_first_sample_initializes_all_estimates() {
        let mut rtt = Rtt::new(us(333_000));
        assert!(!rtt.has_sample());
        assert_eq!(rtt.probe_timeout(us(1_000)), us(999_000));
        rtt.on_sample(Time::from_nanos(7), us(100), us(40));
        assert_eq!(rtt.first_sample_at, Some(Time::from_nanos(7)));
        assert_eq!((rtt.min, rtt.latest), (us(100), us(100)));
        assert_eq!((rtt.smoothed, rtt.variation), (us(100), us(50)));
    }

    #[test]
    fn later_samples_are_smoothed_after_subtracting_the_ack_delay() {
        let mut rtt = Rtt::new(us(333_000));
        rtt.on_sample(Time::ZERO, us(800), us(0));
        assert_eq!(rtt.on_sample(Time::ZERO, us(1_640), us(40)), us(1_600));
        assert_eq!(rtt.variation, us(500)); // 3/4 of 400, 1/4 of |800 − 1600|
        assert_eq!(rtt.smoothed, us(900)); // 7/8 of 800, 1/8 of 1600
        assert_eq!(rtt.min, us(800));
        assert_eq!(rtt.loss_delay(us(50)), us(1_845));
        assert_eq!(rtt.probe_timeout(us(50)), us(2_900));
    }

    #[test]
    fn a_window_is_spread_over_a_round_trip_of_now() {
        let mut rtt = Rtt::new(us(333));
        assert_eq!(rtt.for_pacing(), None);
        rtt.on_sample(Time::ZERO, us(4_000), Duration::ZERO);
        rtt.on_sample(Time::ZERO, us(2_000), Duration::ZERO);
        assert_eq!(rtt.for_pacing(), Some(us(3_750)));
        rtt.on_sample(Time::ZERO, us(1_100), us(1_000));
        assert_eq!(rtt.for_pacing(), Some(us(1_100)), "not below the minimum");
        rtt.on_sample(Time::ZERO, us(100), Duration::ZERO);
        assert_eq!(rtt.for_pacing(), Some(us(100)));
    }

    #[test]
    fn an_ack_delay_never_makes_a_sample_smaller_than_the_minimum_rtt() {
        let mut rtt = Rtt::new(us(333_000));
        rtt.on_sample(Time::ZERO, us(800), us(0));
        assert_eq!(rtt.on_sample(Time::ZERO, us(1_000), us(201)), us(800));
        assert_eq!(rtt.on_sample(Time::ZERO, us(1_000), us(200)), us(800));
    }

    #[test]
    fn the_minimum_rtt_can_be_reset() {
        let mut rtt = Rtt::new(us(333_000));
        rtt.on_sample(Time::ZERO, us(800), us(0));
        rtt.reset_min();
        assert_eq!(rtt.min, us(800));
        rtt.on_sample(Time::ZERO, us(900), us(0));
        assert_eq!(rtt.min, us(900));
    }

    #[test]
    fn timers_are_never_below_the_granularity() {
        let mut rtt = Rtt::new(us(1));
        rtt.on_sample(Time::ZERO, us(8), us(0));
        assert_eq!(rtt.loss_delay(us(50)), us(50));
        assert_eq!(rtt.probe_timeout(us(50)), us(58));
    }
}
