//! The endpoint's timers: one timerfd for all of its connections.
//!
//! tokio's timers have a resolution of 1 ms; a timerfd has that of the kernel's clock. Setting it
//! costs a system call. So it is set only where the driver is about to sleep or sleeps, and only
//! for earlier deadlines: a deadline that moves later costs nothing, as the timer fires at the
//! earlier time and is set anew. Almost all of a connection's deadlines only ever move later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_units::{Duration, Time};

/// The deadlines of all connections. Its lock is a leaf: nothing else is locked under it.
#[derive(Debug)]
pub(crate) struct Timers {
    timer: AsyncFd<OwnedFd>,
    state: Mutex<TimerState>,
    /// The earliest deadline, in nanoseconds; changed under the lock only.
    earliest: AtomicU64,
}

#[derive(Debug)]
struct TimerState {
    deadlines: BinaryHeap<Reverse<(Time, usize)>>,
    /// When the timer will fire.
    armed: Time,
    /// Whether the driver runs; it checks the deadlines itself before it sleeps.
    awake: bool,
}

impl Timers {
    /// Must be called within a tokio runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the descriptor is owned by the `AsyncFd` from here on, so it stays open and the
        // same for as long as that lives.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        let state = TimerState {
            deadlines: BinaryHeap::new(),
            armed: Time::MAX,
            awake: true,
        };
        Ok(Self {
            timer,
            state: Mutex::new(state),
            earliest: AtomicU64::new(Time::MAX.as_nanos()),
        })
    }

    /// Wakes the driver at `deadline` for the connection of this index. The caller tracks at most
    /// one entry per connection; a superseded entry fires without effect.
    pub(crate) fn register(&self, now: Time, deadline: Time, connection: usize) {
        let mut state = self.lock();
        state.deadlines.push(Reverse((deadline, connection)));
        self.earliest
            .fetch_min(deadline.as_nanos(), Ordering::Relaxed);
        if !state.awake {
            self.arm(&mut state, now);
        }
    }

    /// Marks the driver as running: until [`Self::sleep`], nothing needs to wake it.
    pub(crate) fn wake(&self) {
        self.lock().awake = true;
    }

    /// Marks the driver as about to sleep. `now` is called only where the timer has to be set.
    pub(crate) fn sleep(&self, now: impl FnOnce() -> Time) {
        let mut state = self.lock();
        state.awake = false;
        if self.earliest() < state.armed {
            self.arm(&mut state, now());
        }
    }

    /// Returns whether a deadline has been reached; costs no system call and no lock.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.earliest()
    }

    /// Moves entries due at `now` into `due`, with their deadlines.
    pub(crate) fn expire(&self, now: Time, due: &mut Vec<(Time, usize)>) {
        let mut state = self.lock();
        let mut earliest = Time::MAX;
        while let Some(&Reverse((deadline, connection))) = state.deadlines.peek() {
            if deadline > now {
                earliest = deadline;
                break;
            }
            state.deadlines.pop();
            due.push((deadline, connection));
        }
        if state.armed <= now {
            state.armed = Time::MAX;
        }
        self.earliest.store(earliest.as_nanos(), Ordering::Relaxed);
    }

    /// Consumes timer events until none is pending, so that the next one wakes this task.
    pub(crate) fn drain_events(&self, cx: &mut Context<'_>) {
        while let Poll::Ready(result) = self.poll_fired(cx) {
            if let Err(error) = result {
                tracing::error!(%error, "a socket's timer failed");
                break;
            }
        }
    }

    /// Ready when the timer has fired since the last call; wakes the task when it fires.
    fn poll_fired(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.timer.poll_read_ready(cx) {
            Poll::Ready(Ok(mut guard)) => {
                // Arming sets the timer's count to zero, so it need not be read.
                guard.clear_ready();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn earliest(&self) -> Time {
        Time::from_nanos(self.earliest.load(Ordering::Relaxed))
    }

    /// Sets the timer for the earliest deadline where it would fire too late.
    fn arm(&self, state: &mut TimerState, now: Time) {
        let deadline = self.earliest();
        if deadline >= state.armed {
            return;
        }
        // Zero would disarm it.
        let span = deadline.since(now).max(Duration::from_nanos(1));
        let value = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
                tv_nsec: (span.as_nanos() % 1_000_000_000) as _,
            },
        };
        match timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &value) {
            Ok(_) => state.armed = deadline,
            // Cannot happen with a descriptor and a value of our own.
            Err(error) => tracing::error!(%error, "cannot set the endpoint's timer"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[tokio::test]
    async fn deadlines_expire_in_order_and_no_earlier() {
        let timers = Timers::new().unwrap();
        timers.register(at(0), at(300), 3);
        timers.register(at(0), at(100), 1);
        timers.register(at(0), at(200), 2);
        assert!(!timers.is_due(at(99)) && timers.is_due(at(100)));
        let mut due = Vec::new();
        timers.expire(at(200), &mut due);
        let connections: Vec<_> = due.iter().map(|(_, connection)| *connection).collect();
        assert_eq!(connections, [1, 2]);
        assert!(!timers.is_due(at(299)) && timers.is_due(at(300)));
    }

    #[tokio::test]
    async fn the_timer_fires_again_after_a_reset() {
        let timers = Timers::new().unwrap();
        let mut due = Vec::new();
        for round in 1..=3 {
            timers.wake();
            timers.register(at(0), at(50), round);
            timers.sleep(|| at(0));
            poll_fn(|cx| timers.poll_fired(cx)).await.unwrap();
            timers.expire(at(50), &mut due);
            assert_eq!(due.len(), round);
        }
    }

    #[tokio::test]
    async fn a_deadline_that_comes_while_the_driver_sleeps_sets_the_timer() {
        let timers = Timers::new().unwrap();
        timers.sleep(|| at(0));
        timers.register(at(0), at(50), 1);
        poll_fn(|cx| timers.poll_fired(cx)).await.unwrap();
    }
}
