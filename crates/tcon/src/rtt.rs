//! The RTT between here and the receiver, and the RTO (RFC 6298).

use weir_units::Duration;

/// The least that the RTO adds to the smoothed RTT. It is half of Linux's smallest margin, so that a
/// loss is repaired here before the sender's own timer expires. It is more than the 40 ms for which
/// Linux delays an acknowledgment.
const MARGIN: Duration = Duration::from_millis(100);
/// Before the first measurement (RFC 6298, section 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// As in Linux (`tcp_retries2`).
const RETRIES: u32 = 15;
const LONGEST: Duration = Duration::from_secs(120);

/// The RTT estimator.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    /// [`Duration::MAX`] before the first sample.
    pub(crate) min: Duration,
    /// How often the RTO has been doubled.
    doublings: u32,
}

impl RttEstimator {
    pub(crate) fn new() -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            min: Duration::MAX,
            doublings: 0,
        }
    }

    /// Adds the RTT of a segment that was sent once (RFC 6298, section 2).
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
        self.doublings = 0;
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.variation = rtt / 2;
            return;
        };
        let deviation = smoothed.abs_diff(rtt);
        let weighed = |old: Duration, new: Duration, share: u64| {
            Duration::from_nanos(old.as_nanos() - old.as_nanos() / share + new.as_nanos() / share)
        };
        self.variation = weighed(self.variation, deviation, 4);
        self.smoothed = Some(weighed(smoothed, rtt, 8));
    }

    /// Returns the shortest sample.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        (self.min != Duration::MAX).then_some(self.min)
    }

    /// Backs off after an RTO (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1);
    }

    /// Whether so many RTOs have passed without an acknowledgment that the connection counts as dead.
    pub(crate) fn has_given_up(&self) -> bool {
        self.doublings >= RETRIES
    }

    /// Returns the RTO for data that is sent now.
    pub(crate) fn rto(&self) -> Duration {
        let once = match self.smoothed {
            Some(smoothed) => smoothed + (self.variation * 4).max(MARGIN),
            None => INITIAL,
        };
        let factor = 1_u64.checked_shl(self.doublings).unwrap_or(u64::MAX);
        (once * factor).min(LONGEST)
    }

    /// Returns the smoothed RTT; zero before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_later_than_any_acknowledgment_and_doubles() {
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.rto(), INITIAL);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(30));
        }
        assert_eq!(rtt.smoothed(), rtt.min);
        assert_eq!(rtt.rto(), rtt.smoothed() + MARGIN);
        rtt.back_off();
        assert_eq!(rtt.rto(), (rtt.smoothed() + MARGIN) * 2);
        rtt.on_sample(Duration::from_millis(20));
        assert_eq!(rtt.min, Duration::from_millis(20));
        assert!(rtt.rto() < Duration::from_millis(140));
    }
}
