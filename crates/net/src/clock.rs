//! The endpoint's clock: `CLOCK_MONOTONIC`, from a tick of the kernel shortly before the endpoint
//! was bound.

use std::time::SystemTime;

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use weir_units::{Duration, Time};

/// Reads the monotonic clock as the engine's [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What `CLOCK_MONOTONIC` shows at [`Time::ZERO`]: a multiple of the tick.
    origin: Duration,
    tick: Duration,
}

/// The clock starts at this value or up to a tick later, so that slightly earlier times are
/// representable.
const START: Duration = Duration::from_secs(1);

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
        // The coarse clock advances with the tick: by 4 ms where HZ is 250.
        let tick = duration(clock_getres(ClockId::MonotonicCoarse)).max(Duration::from_nanos(1));
        let ticks = (monotonic() - START).as_nanos() / tick.as_nanos();
        Self {
            origin: tick * ticks,
            tick,
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + (monotonic() - self.origin)
    }

    /// Returns the kernel's tick: the timer interrupts that come anyway are at its multiples.
    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    /// Returns what `CLOCK_MONOTONIC` shows at this time.
    pub(crate) fn monotonic_at(&self, time: Time) -> Timespec {
        let nanos = self.origin.as_nanos().saturating_add(time.as_nanos());
        Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        }
    }

    /// Returns the wall-clock time since 1970 at which this clock reads zero.
    pub(crate) fn epoch(&self) -> Duration {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since_1970.map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        });
        Duration::from_nanos(nanos.saturating_sub(self.now().as_nanos()))
    }

    /// Returns `time` where it is known, and otherwise a clock reading on first use.
    pub(crate) fn lazy_now(&self, time: Option<Time>) -> LazyNow<'_> {
        LazyNow { clock: self, time }
    }
}

fn monotonic() -> Duration {
    duration(clock_gettime(ClockId::Monotonic))
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Duration::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_the_tick_are_ticks_of_the_kernel() {
        let clock = Clock::start();
        let now = clock.now();
        assert!(now.as_nanos() >= START.as_nanos());
        let tick = clock.tick().as_nanos();
        let next = Time::from_nanos(now.as_nanos().div_ceil(tick) * tick);
        let at = clock.monotonic_at(next);
        assert_eq!(
            (at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64) % tick,
            0
        );
    }
}
