//! A timer with the resolution of the kernel's clock, for tasks. tokio's timers have a resolution of
//! 1 ms, which is many round trips of a data center.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_units::Duration;

const NANOS: u64 = 1_000_000_000;

/// Returns the time of `CLOCK_MONOTONIC`, since its zero.
#[must_use]
pub fn monotonic() -> Duration {
    let time = std::time::Duration::try_from(clock_gettime(ClockId::Monotonic));
    time.unwrap_or_default().into()
}

/// Wakes a task at times of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct Timer {
    descriptor: AsyncFd<OwnedFd>,
}

impl Timer {
    /// Creates a timer. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: from here on the `AsyncFd` owns the descriptor, so it stays open and unchanged as long
        // as the `AsyncFd` lives.
        let descriptor = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        Ok(Self { descriptor })
    }

    /// Waits until `time`, as [`monotonic`] counts it; returns at once if it has passed.
    ///
    /// # Errors
    /// The kernel's error.
    pub async fn until(&mut self, time: Duration) -> io::Result<()> {
        let nanos = time.as_nanos();
        // Setting the timer resets its expiration count, so the count never has to be read.
        let setting = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (nanos / NANOS) as i64,
                tv_nsec: (nanos % NANOS) as i64,
            },
        };
        while monotonic() < time {
            timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &setting)?;
            self.descriptor.readable().await?.clear_ready();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timer_fires_repeatedly_and_never_early() {
        let mut timer = Timer::new().unwrap();
        let begin = monotonic();
        for micros in [300, 1000, 1000, 0, 2000] {
            let time = begin + Duration::from_micros(micros);
            timer.until(time).await.unwrap();
            assert!(monotonic() >= time);
        }
    }
}
