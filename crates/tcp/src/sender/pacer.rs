//! Pacing: limits the sending rate.

use weir_congestion::Controller;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::cold::{Cold, Initial};
use crate::rtt::RttEstimator;
use crate::{Config, Pacing};

/// The pacer. It takes a pointer while there has been no rate.
#[derive(Clone, Debug)]
pub(super) struct Pacer(Cold<Pace>);

#[derive(Clone, Debug)]
struct Pace {
    rate: Option<Rate>,
    /// Whether the rate is the controller's own.
    of_controller: bool,
    /// The earliest time of the next segment.
    next: Time,
    /// The time at which a waiting segment may be sent; `Time::MAX` if none waits.
    wake_at: Time,
}

static NO_PACE: Pace = Pace {
    rate: None,
    of_controller: false,
    next: Time::ZERO,
    wake_at: Time::MAX,
};

impl Initial for Pace {
    fn initial() -> &'static Self {
        &NO_PACE
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self(Cold::new())
    }
}

impl Pacer {
    /// Updates the rate after a change of the controller's rate, its window or the RTT.
    #[inline]
    pub(super) fn follow(
        &mut self,
        controller: &dyn Controller,
        rtt: &RttEstimator,
        window: u64,
        config: &Config,
    ) {
        let rate = controller.pacing_rate();
        let of_controller = rate.is_some();
        let rate = rate.or_else(|| window_rate(controller, rtt, window, config));
        if rate.is_some() || !self.0.is_initial() {
            self.0.rate = rate;
            self.0.of_controller = of_controller;
        }
    }

    /// Sets the rate to that of the controller, which is the only source.
    #[inline(always)]
    pub(super) fn set_rate(&mut self, rate: Option<Rate>) {
        if rate.is_some() || !self.0.is_initial() {
            self.0.rate = rate;
            self.0.of_controller = rate.is_some();
        }
    }

    /// Returns whether the rate is the controller's own.
    #[inline]
    pub(super) fn follows_controller(&self) -> bool {
        self.0.of_controller
    }

    /// Returns whether there has never been a rate.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.0.is_initial()
    }

    /// Returns the time at which a waiting segment may be sent; [`Time::MAX`] if none waits.
    #[inline]
    pub(super) fn wake_at(&self) -> Time {
        self.0.wake_at
    }

    /// Returns whether a segment has to wait. If so, the pacing timer is set.
    #[inline]
    pub(super) fn holds(&mut self, now: Time) -> bool {
        let Some(pace) = self.0.changed() else {
            return false;
        };
        if pace.rate.is_none() || now >= pace.next {
            return false;
        }
        pace.wake_at = pace.next;
        true
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64) {
        if let Some(pace) = self.0.changed()
            && let Some(rate) = pace.rate
        {
            pace.next = pace.next.max(now) + rate.time_for(ByteSize::from_bytes(bytes));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.wake_at() <= now {
            self.sleep();
        }
    }

    pub(super) fn sleep(&mut self) {
        if let Some(pace) = self.0.changed() {
            pace.wake_at = Time::MAX;
        }
    }
}

/// Returns the rate that spreads a window over a round trip, if that is configured.
#[inline]
fn window_rate(
    controller: &dyn Controller,
    rtt: &RttEstimator,
    window: u64,
    config: &Config,
) -> Option<Rate> {
    let Pacing::Window {
        slow_start,
        avoidance,
    } = config.pacing
    else {
        return None;
    };
    if !rtt.sampled {
        return None;
    }
    // As in Linux: slow start as long as the window is below half of ssthresh.
    let window = ByteSize::from_bytes(window);
    let threshold = controller.snapshot().ssthresh;
    let starting = threshold.is_none_or(|threshold| window < threshold / 2);
    let factor = if starting { slow_start } else { avoidance };
    // An RTT that the pacer itself prolonged must not slow the pacer further.
    let segment = ByteSize::from_bytes(config.segment_size());
    let slowest = Rate::from_size_over(segment, Duration::from_secs(1));
    let rate = Rate::from_size_over(window, rtt.smoothed).mul_f64(factor);
    Some(rate.max(slowest))
}
