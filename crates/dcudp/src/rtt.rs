//! The RTT of a connection (section IV-A.2).

use weir_units::Duration;

/// Upper bound of samples: a longer RTT is caused by the peer rather than the network.
const LONGEST: Duration = Duration::from_secs(10);

/// The timeout until an RTT is measured (RFC 6298, section 2.1).
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The RTT estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    pub(crate) smoothed: Duration,
    deviation: Duration,
    min: Option<Duration>,
}

impl Rtt {
    /// Creates an estimate without samples; `initial` is assumed.
    pub(crate) fn new(initial: Duration) -> Self {
        Self {
            smoothed: initial,
            deviation: initial / 2,
            min: None,
        }
    }

    /// Updates RTT = (1 − α) RTT + α RTT_current with α = 0.125; the deviation as in RFC 6298.
    pub(crate) fn on_sample(&mut self, sample: Duration) {
        let sample = sample.clamp(Duration::from_nanos(1), LONGEST);
        if self.min.is_none() {
            self.smoothed = sample;
            self.deviation = sample / 2;
        } else {
            self.deviation = (self.deviation * 3 + self.smoothed.abs_diff(sample)) / 4;
            self.smoothed = (self.smoothed * 7 + sample) / 8;
        }
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
    }

    /// Adopts the smoothed RTT that the peer has measured and reported.
    pub(crate) fn adopt(&mut self, smoothed: Duration) {
        let smoothed = smoothed.clamp(Duration::from_nanos(1), LONGEST);
        self.deviation = (self.deviation * 3 + self.smoothed.abs_diff(smoothed)) / 4;
        self.smoothed = smoothed;
        self.min = Some(self.min.map_or(smoothed, |min| min.min(smoothed)));
    }

    /// Returns the minimum RTT, `RTT_idle`; the initial RTT without samples.
    pub(crate) fn idle(&self) -> Duration {
        self.min.unwrap_or(self.smoothed)
    }

    /// Returns the time after which an answer counts as missing.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.smoothed + self.deviation * 4
    }

    /// Returns the time without an answer after which everything under way counts as lost.
    pub(crate) fn loss_timeout(&self) -> Duration {
        match self.min {
            Some(_) => self.answer_timeout() * 2,
            None => INITIAL_TIMEOUT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_rtt_sample_is_weighted_one_eighth() {
        let mut rtt = Rtt::new(Duration::from_micros(500));
        assert_eq!(rtt.idle(), Duration::from_micros(500));
        assert_eq!(rtt.loss_timeout(), INITIAL_TIMEOUT);
        rtt.on_sample(Duration::from_micros(80));
        assert_eq!(rtt.loss_timeout(), Duration::from_micros(480));
        rtt.on_sample(Duration::from_micros(160));
        assert_eq!(rtt.smoothed, Duration::from_micros(90));
        assert_eq!(rtt.idle(), Duration::from_micros(80));
        rtt.on_sample(Duration::MAX);
        assert!(rtt.smoothed < LONGEST);
    }
}
