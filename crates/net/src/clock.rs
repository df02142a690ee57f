//! The endpoint's clock: nanoseconds since it was bound.

use std::time::Instant;

use weir_units::{Duration, Time};

/// Reads the monotonic clock as the engine's [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: Instant,
}

/// Where the clock starts, so that "a little earlier" is always representable.
const START: Duration = Duration::from_secs(1);

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            base: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + START + Duration::from(self.base.elapsed())
    }
}
