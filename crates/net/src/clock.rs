//! The endpoint's clock: nanoseconds since it was bound.

use std::time::{Instant, SystemTime};

use weir_units::{Duration, Time};

/// Reads the monotonic clock as the engine's [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: Instant,
}

/// The clock's first value, so that slightly earlier times are representable.
const START: Duration = Duration::from_secs(1);

/// Returns the wall-clock time since 1970 at which an endpoint's clock that starts now reads zero.
pub(crate) fn epoch() -> Duration {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since_1970.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    });
    Duration::from_nanos(nanos.saturating_sub(START.as_nanos()))
}

/// The time of an event: the clock is read on first use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LazyNow<'c> {
    clock: &'c Clock,
    time: Option<Time>,
}

impl LazyNow<'_> {
    pub(crate) fn get(&mut self) -> Time {
        *self.time.get_or_insert_with(|| self.clock.now())
    }
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            base: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + START + Duration::from(self.base.elapsed())
    }

    /// Returns `time` where it is known, and otherwise a clock reading on first use.
    pub(crate) fn lazy_now(&self, time: Option<Time>) -> LazyNow<'_> {
        LazyNow { clock: self, time }
    }
}
