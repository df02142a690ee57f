//! Pacing: limits the sending rate.

use weir_congestion::Controller;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::Pacing;
use crate::rtt::RttEstimator;

/// The pacer.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    pub(super) pacing: Pacing,
    mss: ByteSize,
    rate: Option<Rate>,
    /// Whether the rate is the controller's own.
    pub(super) of_controller: bool,
    /// The earliest time of the next segment.
    next: Time,
    /// The time at which a waiting segment may be sent; `Time::MAX` if none waits.
    pub(super) wake_at: Time,
}

impl Pacer {
    pub(super) fn new(pacing: Pacing, mss: u64) -> Self {
        Self {
            pacing,
            mss: ByteSize::from_bytes(mss),
            rate: None,
            of_controller: false,
            next: Time::ZERO,
            wake_at: Time::MAX,
        }
    }

    /// Sets the rate to that of the controller, which is the only source.
    #[inline]
    pub(super) fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
        self.of_controller = rate.is_some();
    }

    /// Updates the rate after a change of the controller's rate, its window or the RTT.
    #[inline]
    pub(super) fn follow(&mut self, controller: &dyn Controller, rtt: &RttEstimator, window: u64) {
        self.rate = controller.pacing_rate();
        self.of_controller = self.rate.is_some();
        if self.rate.is_none()
            && let Pacing::Window {
                slow_start,
                avoidance,
            } = self.pacing
            && rtt.sampled
        {
            // As in Linux: slow start as long as the window is below half of ssthresh.
            let window = ByteSize::from_bytes(window);
            let threshold = controller.snapshot().ssthresh;
            let starting = threshold.is_none_or(|threshold| window < threshold / 2);
            let factor = if starting { slow_start } else { avoidance };
            // An RTT that the pacer itself prolonged must not slow the pacer further.
            let slowest = Rate::from_size_over(self.mss, Duration::from_secs(1));
            let rate = Rate::from_size_over(window, rtt.smoothed).mul_f64(factor);
            self.rate = Some(rate.max(slowest));
        }
    }

    /// Returns whether a segment has to wait. If so, the pacing timer is set.
    #[inline]
    pub(super) fn holds(&mut self, now: Time) -> bool {
        if self.rate.is_none() || now >= self.next {
            return false;
        }
        self.wake_at = self.next;
        true
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64) {
        if let Some(rate) = self.rate {
            self.next = self.next.max(now) + rate.time_for(ByteSize::from_bytes(bytes));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.wake_at <= now {
            self.wake_at = Time::MAX;
        }
    }

    pub(super) fn sleep(&mut self) {
        self.wake_at = Time::MAX;
    }
}
