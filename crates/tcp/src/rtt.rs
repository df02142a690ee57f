//! The RTT estimator and the retransmission timeout (RFC 6298).

use weir_units::{Duration, Time};

use crate::{Config, RtoFloor};

/// The RTT estimator and the RTO.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// The smoothed round-trip time; zero before the first sample.
    pub(crate) smoothed: Duration,
    /// The mean deviation.
    pub(crate) variation: Duration,
    /// The shortest round-trip time; [`Duration::MAX`] before the first sample.
    pub(crate) min: Duration,
    /// The RTO without backoff.
    rto: Duration,
    max_rto: Duration,
    /// Number of doublings of the RTO since the last sample.
    backoff: u32,
    pub(crate) sampled: bool,
}

impl RttEstimator {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            min: Duration::MAX,
            rto: config.initial_rto.min(config.max_rto),
            max_rto: config.max_rto,
            backoff: 0,
            sampled: false,
        }
    }

    /// Records that a segment sent once was acknowledged after `rtt` (RFC 6298, section 2). This
    /// also ends the backoff (section 5).
    #[inline(always)]
    pub(crate) fn on_sample(&mut self, rtt: Duration, config: &Config) {
        if self.sampled {
            let deviation = self.smoothed.abs_diff(rtt);
            self.variation = Duration::from_nanos(
                self.variation.as_nanos() - self.variation.as_nanos() / 4
                    + deviation.as_nanos() / 4,
            );
            self.smoothed = Duration::from_nanos(
                self.smoothed.as_nanos() - self.smoothed.as_nanos() / 8 + rtt.as_nanos() / 8,
            );
        } else {
            self.smoothed = rtt;
            self.variation = rtt / 2;
            self.sampled = true;
        }
        let margin = multiple(self.variation, 4);
        let rto = match config.rto_floor {
            RtoFloor::Variation => self.smoothed + margin.max(config.min_rto),
            RtoFloor::Whole => (self.smoothed + margin).max(config.min_rto),
        };
        self.rto = rto.min(self.max_rto);
        self.backoff = 0;
    }

    /// Records a sample for the minimum RTT. It comes from the newest acknowledged segment, which
    /// the peer's delayed ACK affects least.
    #[inline]
    pub(crate) fn on_min_sample(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
    }

    /// Doubles the RTO after the retransmission timer has expired (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Processes the RTT of the handshake; `None` if it yields no sample.
    pub(crate) fn on_handshake(&mut self, rtt: Option<Duration>, config: &Config) {
        match rtt {
            Some(rtt) => {
                self.on_sample(rtt, config);
                self.on_min_sample(rtt);
            }
            None => self.on_syn_timeouts(),
        }
    }

    /// Handles a retransmitted SYN that yielded no sample: data starts with an RTO of 3 s (RFC
    /// 6298, section 5.7).
    fn on_syn_timeouts(&mut self) {
        if !self.sampled {
            self.rto = self.rto.max(Duration::from_secs(3)).min(self.max_rto);
        }
        self.backoff = 0;
    }

    /// Returns the RTO with backoff.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        if self.backoff == 0 {
            return self.rto;
        }
        self.backed_off(self.backoff)
    }

    /// Returns the RTO after `doublings`.
    pub(crate) fn backed_off(&self, doublings: u32) -> Duration {
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        (self.rto * factor).min(self.max_rto)
    }

    /// Returns the expiry of a retransmission timer started now.
    #[inline]
    pub(crate) fn deadline(&self, now: Time) -> Time {
        now + self.rto()
    }
}

/// Returns a multiple of a time that is far from the longest one, in fewer instructions than the operator.
#[inline(always)]
pub(crate) fn multiple(span: Duration, factor: u64) -> Duration {
    Duration::from_nanos(span.as_nanos().wrapping_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimator and its configuration.
    struct Sampled {
        estimator: RttEstimator,
        config: Config,
    }

    impl Sampled {
        fn new(config: Config) -> Self {
            Self {
                estimator: RttEstimator::new(&config),
                config,
            }
        }

        fn sample(&mut self, rtt: Duration) {
            self.estimator.on_sample(rtt, &self.config);
        }
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn samples_follow_rfc_6298() {
        let mut rtt = Sampled::new(Config {
            min_rto: millis(10),
            ..Config::default()
        });
        assert_eq!(rtt.estimator.rto(), Duration::from_secs(1));
        rtt.sample(millis(80));
        assert_eq!(
            (rtt.estimator.smoothed, rtt.estimator.variation),
            (millis(80), millis(40))
        );
        assert_eq!(rtt.estimator.rto(), millis(240));
        rtt.sample(millis(160));
        // 3/4 of 40 and 1/4 of 80; 7/8 of 80 and 1/8 of 160.
        assert_eq!(
            (rtt.estimator.smoothed, rtt.estimator.variation),
            (millis(90), millis(50))
        );
        assert_eq!(rtt.estimator.rto(), millis(290));
    }

    #[test]
    fn backs_off_within_its_limits() {
        let mut rtt = Sampled::new(Config {
            max_rto: Duration::from_secs(3),
            ..Config::default()
        });
        rtt.sample(Duration::from_micros(50));
        assert_eq!(rtt.estimator.rto(), Duration::from_micros(200_050));
        let times: Vec<u64> = (0..6)
            .map(|_| {
                rtt.estimator.back_off();
                rtt.estimator.rto().as_millis()
            })
            .collect();
        assert_eq!(times, [400, 800, 1600, 3000, 3000, 3000]);
        rtt.estimator.backoff = 200;
        assert_eq!(rtt.estimator.rto(), Duration::from_secs(3));
        rtt.sample(Duration::from_micros(50));
        assert_eq!(rtt.estimator.rto(), Duration::from_micros(200_050));
    }

    #[test]
    fn the_timeout_of_a_steady_rtt_keeps_a_margin_above_it() {
        let mut rtt = Sampled::new(Config::default());
        for _ in 0..100 {
            rtt.sample(millis(200));
        }
        assert!(rtt.estimator.rto() >= millis(400));
    }

    #[test]
    fn the_minimum_of_rfc_6298_applies_to_the_whole() {
        let mut rtt = Sampled::new(Config {
            rto_floor: RtoFloor::Whole,
            ..Config::default()
        });
        for _ in 0..100 {
            rtt.sample(millis(150));
        }
        assert_eq!(rtt.estimator.rto(), millis(200));
    }
}
