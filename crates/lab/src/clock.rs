//! The common clock of a run, and a timer that waits for times of the run.
//!
//! tokio's timers have a resolution of 1 ms, which is many round trips here. A timerfd has the
//! resolution of the kernel's clock.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_units::{Duration, Time};

const NANOS: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC` since the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// In nanoseconds of the kernel's clock.
    epoch: u64,
}

impl Clock {
    pub(crate) fn since(epoch: u64) -> Self {
        Self { epoch }
    }

    /// Returns a clock that starts now if `epoch` is still to come, for callers that cannot wait, and
    /// the time by which it is ahead.
    pub(crate) fn since_now_or(epoch: u64) -> (Self, Duration) {
        let now = read(ClockId::Monotonic).as_nanos();
        let lead = Duration::from_nanos(epoch.saturating_sub(now));
        (Self::since(epoch.min(now)), lead)
    }

    /// Returns the time of the run; zero before the epoch.
    pub(crate) fn now(self) -> Time {
        let nanos = read(ClockId::Monotonic).as_nanos();
        Time::from_nanos(nanos.saturating_sub(self.epoch))
    }

    /// Converts a time of the run to the kernel's time.
    fn absolute(self, time: Time) -> Timespec {
        let nanos = self.epoch.saturating_add(time.as_nanos());
        Timespec {
            tv_sec: (nanos / NANOS) as i64,
            tv_nsec: (nanos % NANOS) as i64,
        }
    }
}

/// Reads a clock of the kernel.
pub(crate) fn read(clock: ClockId) -> Duration {
    let time = std::time::Duration::try_from(clock_gettime(clock));
    time.unwrap_or_default().into()
}

/// Wakes a task at given times of the run.
#[derive(Debug)]
pub(crate) struct RunTimer {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
}

impl RunTimer {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(clock: Clock) -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: from here on the `AsyncFd` owns the descriptor, so it stays open and unchanged as long
        // as the `AsyncFd` lives.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        Ok(Self { clock, timer })
    }

    /// Waits until `time`; returns at once if it has passed.
    pub(crate) async fn until(&mut self, time: Time) -> io::Result<()> {
        while self.clock.now() < time {
            // Setting the timer resets its expiration count, so the count never has to be read.
            let setting = Itimerspec {
                it_interval: Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: self.clock.absolute(time),
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
            self.timer.readable().await?.clear_ready();
        }
        Ok(())
    }

    /// Returns the time of the run.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Waits for a duration from now.
    pub(crate) async fn sleep(&mut self, span: Duration) -> io::Result<()> {
        if span.is_zero() {
            Ok(())
        } else {
            self.until(self.clock.now() + span).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's time now, as an epoch.
    fn now() -> u64 {
        read(ClockId::Monotonic).as_nanos()
    }

    #[tokio::test]
    async fn a_run_timer_fires_repeatedly_and_never_early() {
        let clock = Clock::since(now());
        let mut alarm = RunTimer::new(clock).unwrap();
        for millis in [1, 2, 2, 0, 4] {
            let time = Time::ZERO + Duration::from_millis(millis);
            alarm.until(time).await.unwrap();
            assert!(clock.now() >= time);
        }
        let before = clock.now();
        alarm.sleep(Duration::from_micros(300)).await.unwrap();
        assert!(clock.now().since(before) >= Duration::from_micros(300));
    }

    #[tokio::test]
    async fn zero_has_come_before_the_epoch() {
        let far = Clock::since(now() + 100 * NANOS);
        RunTimer::new(far).unwrap().until(Time::ZERO).await.unwrap();
        assert_eq!(far.now(), Time::ZERO);
    }

    #[test]
    fn the_time_before_the_epoch_is_zero() {
        assert_eq!(Clock::since(now() + 100 * NANOS).now(), Time::ZERO);
    }
}
