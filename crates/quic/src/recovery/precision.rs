//! Which deadlines are exact, and which wait for the kernel's next tick.
//!
//! A timer of its own costs an interrupt and a wake-up; one at the kernel's tick costs nothing, as
//! the kernel wakes there anyway. So the deadlines that come only where something is late (probe
//! timeouts, delayed ACKs, idle and closing periods) are rounded up to the tick. Where packets get
//! lost, the end of a transfer waits for these deadlines: for a while after a loss, while a probe is
//! unanswered, and while there are standby paths, probe timeouts and ACKs are exact. A probe alone is no
//! loss: it may follow a pause of the other host.

use weir_units::{Duration, Time};

/// How long deadlines are exact after a loss. A call a second whose last packet is lost one time in
/// a hundred keeps them exact.
pub(crate) const EXACT_AFTER_LOSS: Duration = Duration::from_secs(60);

/// The rounding of deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Precision {
    /// The kernel's tick; zero if every deadline is exact.
    tick: Duration,
    /// Probe timeouts and ACKs before this time are exact.
    exact_until: Time,
    /// Whether they are exact because a probe has been sent and nothing been acknowledged since.
    pub(crate) is_probing: bool,
    /// Whether they are exact at any time: failed paths must be detected soon.
    pub(crate) has_standby: bool,
}

impl Precision {
    /// `exact_until`: as another connection of the endpoint has learned.
    pub(crate) fn new(tick: Duration, exact_until: Time) -> Self {
        Self {
            tick,
            exact_until,
            is_probing: false,
            has_standby: false,
        }
    }

    /// Returns how late a deadline can be by rounding.
    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    /// Records a loss.
    pub(crate) fn on_loss(&mut self, now: Time) {
        self.exact_until = self.exact_until.max(now + EXACT_AFTER_LOSS);
    }

    /// Returns the time until which probe timeouts and ACKs are exact.
    pub(crate) fn exact_until(&self) -> Time {
        self.exact_until
    }

    /// Whether deadlines are exact without a loss.
    pub(crate) fn is_always_exact(&self) -> bool {
        self.tick.is_zero() || self.has_standby
    }

    /// Whether a probe timeout or an ACK that is due at `deadline` is exact.
    pub(crate) fn is_exact_at(&self, deadline: Time) -> bool {
        self.is_always_exact() || self.is_probing || deadline < self.exact_until
    }

    /// Rounds a deadline up to the tick.
    pub(crate) fn round(&self, deadline: Time) -> Time {
        let tick = self.tick.as_nanos();
        if tick == 0 {
            return deadline;
        }
        let ticks = deadline.as_nanos().div_ceil(tick);
        ticks.checked_mul(tick).map_or(Time::MAX, Time::from_nanos)
    }

    /// Rounds the deadline of a probe timeout or an ACK, unless it is exact.
    pub(crate) fn round_unless_exact(&self, deadline: Time) -> Time {
        if self.is_exact_at(deadline) {
            deadline
        } else {
            self.round(deadline)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn deadlines_are_rounded_up_to_the_tick() {
        let precision = Precision::new(Duration::from_millis(4), Time::ZERO);
        for (deadline, rounded) in [(0, 0), (1, 4), (4, 4), (5, 8)] {
            assert_eq!(precision.round(ms(deadline)), ms(rounded));
            assert_eq!(precision.round_unless_exact(ms(deadline)), ms(rounded));
        }
        assert_eq!(precision.round(Time::MAX), Time::MAX);
        assert_eq!(Precision::default().round(ms(5)), ms(5), "no tick");
    }

    #[test]
    fn after_a_loss_and_with_standby_paths_probe_timeouts_and_acks_are_exact() {
        let mut precision = Precision::new(Duration::from_millis(4), Time::ZERO);
        precision.on_loss(ms(10));
        assert_eq!(precision.round_unless_exact(ms(13)), ms(13));
        assert_eq!(precision.round(ms(13)), ms(16));
        let mut probing = Precision::new(Duration::from_millis(4), Time::ZERO);
        probing.is_probing = true;
        assert!(probing.is_exact_at(ms(13)));
        let later = ms(10) + EXACT_AFTER_LOSS + Duration::from_millis(1);
        assert!(!precision.is_exact_at(later));
        precision.has_standby = true;
        assert!(precision.is_exact_at(later));
    }
}
