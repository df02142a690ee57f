//! The endpoint's clock: nanoseconds since it was bound.

use std::time::{Instant, SystemTime};

use weir_units::{Duration, Time};

/// Reads the monotonic clock as the engine's [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: Instant,
}

/// Where the clock starts, so that "a little earlier" is always representable.
const START: Duration = Duration::from_secs(1);

/// The wall clock's time, since 1970, when an endpoint's clock that starts now is at zero.
pub(crate) fn epoch() -> Duration {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since_1970.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    });
    Duration::from_nanos(nanos.saturating_sub(START.as_nanos()))
}

/// The time at which something happens: the clock is read when it is first asked for.
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

    /// The time, which is `time` where that is known already.
    pub(crate) fn moment(&self, time: Option<Time>) -> LazyNow<'_> {
        LazyNow { clock: self, time }
    }
}
