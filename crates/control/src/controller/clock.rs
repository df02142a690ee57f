//! The controller's clock.

use std::time::Instant;

use weir_units::{Duration, Time};

/// Nanoseconds since one day before the start: flows may have begun before the controller did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

const START: Duration = Duration::from_secs(24 * 3600);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + START + Duration::from(self.0.elapsed())
    }

    /// Returns the uptime.
    pub(super) fn age(&self) -> Duration {
        Duration::from(self.0.elapsed())
    }

    /// Converts a time of the controller to the runtime's.
    pub(super) fn instant(&self, time: Time) -> Instant {
        let since = time.checked_since(Time::ZERO + START);
        let since = std::time::Duration::from_nanos(since.map_or(0, Duration::as_nanos));
        self.0 + since.min(std::time::Duration::from_secs(3600 * 24 * 365))
    }
}
