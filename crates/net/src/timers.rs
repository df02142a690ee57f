//! The endpoint's timers: one timerfd for all of its connections.
//!
//! tokio's timers have a resolution of 1 ms; a timerfd has that of the kernel's clock. Setting it
//! costs a system call, and more where that programs the clock; its firing costs an interrupt and a
//! wake-up. The engine therefore rounds deadlines that need no precision up to the kernel's tick,
//! where the kernel wakes anyway. The timerfd is set only while the driver sleeps or is about to.
//! It is set later only where it would fire a tick or more too early: rounded deadlines never fire
//! early, and exact ones, which move with every packet, at most once per deadline. Where requests and answers follow
//! each other quickly, each would set it twice, for the answer and for silence. So once a later time was
//! taken back before the earlier one had come, the timerfd stays as it is, until it has fired in vain.

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
use weir_units::Time;

use crate::clock::Clock;

/// The deadlines of all connections. Its lock is a leaf: nothing else is locked under it.
#[derive(Debug)]
pub(crate) struct Timers {
    timer: AsyncFd<OwnedFd>,
    clock: Clock,
    state: Mutex<TimerState>,
    /// No deadline is earlier, in nanoseconds; changed under the lock only.
    earliest: AtomicU64,
}

#[derive(Debug)]
struct TimerState {
    deadlines: Deadlines,
    /// When the timerfd will fire; [`Time::MAX`] if it will not.
    armed: Time,
    /// When it would have fired, where it was set later.
    put_off: Time,
    /// Whether it was set later for nothing: it is not until it has fired.
    stays: bool,
    /// Whether the driver runs; it checks the deadlines itself before it sleeps.
    awake: bool,
}

/// The deadlines of connections, by their index.
#[derive(Debug, Default)]
struct Deadlines {
    /// The current deadlines; [`Time::MAX`] for none.
    current: Vec<Time>,
    /// The time of each connection's valid entry in the heap; [`Time::MAX`] for none. It is never
    /// later than the current deadline.
    queued: Vec<Time>,
    heap: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Deadlines {
    fn set(&mut self, index: usize, deadline: Time) {
        if index >= self.current.len() {
            self.current.resize(index + 1, Time::MAX);
            self.queued.resize(index + 1, Time::MAX);
        }
        self.current[index] = deadline;
        if deadline < self.queued[index] {
            self.enqueue(index);
        }
    }

    fn enqueue(&mut self, index: usize) {
        let deadline = self.current[index];
        self.queued[index] = deadline;
        if deadline < Time::MAX {
            self.heap.push(Reverse((deadline, index)));
        }
    }

    /// Returns the earliest deadline and its connection.
    fn earliest(&mut self) -> Option<(Time, usize)> {
        loop {
            let Reverse((time, index)) = *self.heap.peek()?;
            let is_valid = time == self.queued[index];
            if is_valid && time == self.current[index] {
                return Some((time, index));
            }
            self.heap.pop();
            if is_valid {
                self.enqueue(index);
            }
        }
    }

    /// Removes and returns a connection that is due.
    fn take_due(&mut self, now: Time) -> Option<usize> {
        let (_, index) = self.earliest().filter(|(time, _)| *time <= now)?;
        self.heap.pop();
        self.current[index] = Time::MAX;
        self.queued[index] = Time::MAX;
        Some(index)
    }
}

impl Timers {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(clock: Clock) -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the descriptor is owned by the `AsyncFd` from here on, so it stays open and the
        // same for as long as that lives.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        let state = TimerState {
            deadlines: Deadlines::default(),
            armed: Time::MAX,
            put_off: Time::ZERO,
            stays: false,
            awake: true,
        };
        Ok(Self {
            timer,
            clock,
            state: Mutex::new(state),
            earliest: AtomicU64::new(Time::MAX.as_nanos()),
        })
    }

    /// Wakes the driver at `deadline` for the connection of this index, instead of at its earlier
    /// deadline; [`Time::MAX`] for never.
    pub(crate) fn set(&self, connection: usize, deadline: Time) {
        let mut state = self.lock();
        state.deadlines.set(connection, deadline);
        if state.awake {
            self.earliest
                .fetch_min(deadline.as_nanos(), Ordering::Relaxed);
        } else {
            self.arm(&mut state);
        }
    }

    /// Marks the driver as running: until [`Self::sleep`], nothing needs to wake it.
    pub(crate) fn wake(&self) {
        self.lock().awake = true;
    }

    /// Marks the driver as about to sleep.
    pub(crate) fn sleep(&self) {
        let mut state = self.lock();
        state.awake = false;
        self.arm(&mut state);
    }

    /// Returns whether a deadline may have been reached; costs no system call and no lock.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now.as_nanos() >= self.earliest.load(Ordering::Relaxed)
    }

    /// Moves up to `most` connections that are due at `now` into `due`, the earliest first; they have no
    /// deadline then.
    pub(crate) fn expire(&self, now: Time, most: usize, due: &mut Vec<usize>) {
        let mut state = self.lock();
        due.extend(std::iter::from_fn(|| state.deadlines.take_due(now)).take(most));
        self.note_earliest(&mut state);
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
                // Perhaps it fired for a deadline that has moved since.
                let mut state = self.lock();
                state.armed = Time::MAX;
                state.stays = false;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn note_earliest(&self, state: &mut TimerState) -> Time {
        let earliest = state.deadlines.earliest();
        let earliest = earliest.map_or(Time::MAX, |(time, _)| time);
        self.earliest.store(earliest.as_nanos(), Ordering::Relaxed);
        earliest
    }

    /// Sets the timer to the earliest deadline where it would fire too late, or too early by a tick.
    fn arm(&self, state: &mut TimerState) {
        let earliest = self.note_earliest(state);
        let armed = state.armed;
        if earliest >= armed {
            let is_too_early = earliest.since(armed) >= self.clock.tick();
            if state.stays || !is_too_early {
                return;
            }
            state.put_off = armed;
        } else {
            state.stays |= self.clock.now() < state.put_off;
        }
        let never = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Itimerspec {
            it_interval: never,
            it_value: if earliest == Time::MAX {
                never
            } else {
                self.clock.monotonic_at(earliest)
            },
        };
        match timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &value) {
            Ok(_) => state.armed = earliest,
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
    use std::collections::BTreeMap;
    use std::future::poll_fn;

    use proptest::prelude::*;
    use weir_units::Duration;

    use super::*;

    const fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    fn expired(timers: &Timers, now: Time) -> Vec<usize> {
        let mut due = Vec::new();
        timers.expire(now, 2, &mut due);
        due
    }

    #[tokio::test]
    async fn deadlines_expire_in_order_and_no_earlier() {
        let timers = Timers::new(Clock::start()).unwrap();
        timers.set(3, at(300));
        timers.set(1, at(100));
        timers.set(2, at(200));
        assert!(!timers.is_due(at(99)) && timers.is_due(at(100)));
        assert_eq!(expired(&timers, at(200)), [1, 2]);
        assert!(!timers.is_due(at(299)) && timers.is_due(at(300)));
    }

    #[tokio::test]
    async fn the_timer_fires_again_after_a_reset() {
        let clock = Clock::start();
        let timers = Timers::new(clock).unwrap();
        for round in 0..3 {
            timers.wake();
            let deadline = clock.now() + Duration::from_micros(50);
            timers.set(round, deadline);
            timers.sleep();
            poll_fn(|cx| timers.poll_fired(cx)).await.unwrap();
            assert!(clock.now() >= deadline, "it fires late or in time");
            assert_eq!(expired(&timers, clock.now()), [round]);
        }
    }

    #[tokio::test]
    async fn a_deadline_set_while_the_driver_sleeps_arms_the_timer() {
        let clock = Clock::start();
        let timers = Timers::new(clock).unwrap();
        timers.sleep();
        timers.set(1, clock.now() + Duration::from_micros(50));
        poll_fn(|cx| timers.poll_fired(cx)).await.unwrap();
    }

    #[tokio::test]
    async fn a_timer_that_fired_for_a_moved_deadline_fires_again() {
        let clock = Clock::start();
        let timers = Timers::new(clock).unwrap();
        let deadline = clock.now() + Duration::from_micros(50);
        timers.set(1, deadline);
        timers.sleep();
        timers.set(1, deadline + Duration::from_micros(50));
        for _ in 0..2 {
            poll_fn(|cx| timers.poll_fired(cx)).await.unwrap();
            timers.sleep();
        }
        assert_eq!(expired(&timers, clock.now()), [1]);
    }

    #[tokio::test]
    async fn a_deadline_that_moves_a_tick_later_never_fires_early() {
        let clock = Clock::start();
        let timers = Timers::new(clock).unwrap();
        let armed = || timers.lock().armed;
        let tick = clock.tick();
        let first = clock.now() + Duration::from_secs(10);
        timers.set(1, first);
        timers.sleep();
        assert_eq!(armed(), first);
        timers.set(1, first + tick / 2);
        assert_eq!(armed(), first, "not worth a system call");
        timers.set(1, first + tick * 2);
        assert_eq!(armed(), first + tick * 2);
        timers.set(1, Time::MAX);
        assert_eq!(armed(), Time::MAX);
        timers.set(1, first);
        assert_eq!(armed(), first);
    }

    #[tokio::test]
    async fn a_timer_that_is_set_later_for_nothing_stays_until_it_fires() {
        let clock = Clock::start();
        let timers = Timers::new(clock).unwrap();
        let armed = || timers.lock().armed;
        let later = Duration::from_secs(3600);
        let answer = clock.now() + clock.tick() * 8;
        timers.set(1, answer);
        timers.sleep();
        timers.set(1, answer + later);
        assert_eq!(armed(), answer + later);
        timers.set(1, answer);
        // A slow machine may be past it.
        let is_early = timers.lock().stays;
        timers.set(1, answer + later);
        assert_eq!(armed(), if is_early { answer } else { answer + later });
        timers.set(2, answer);
        poll_fn(|cx| timers.poll_fired(cx)).await.unwrap();
        assert!(!timers.lock().stays);
        timers.wake();
        assert_eq!(expired(&timers, clock.now()), [2]);
        timers.sleep();
        assert_eq!(armed(), answer + later);
    }

    proptest! {
        /// Compares with a map from connection to deadline.
        #[test]
        fn deadlines_are_those_set_last(
            operations in prop::collection::vec((0..4_usize, prop::option::of(0..50_u64)), 1..200),
        ) {
            let mut deadlines = Deadlines::default();
            let mut expected = BTreeMap::new();
            for (step, (index, deadline)) in operations.into_iter().enumerate() {
                match deadline {
                    Some(deadline) => expected.insert(index, at(deadline)),
                    None => expected.remove(&index),
                };
                deadlines.set(index, deadline.map_or(Time::MAX, at));
                if step % 3 == 0 {
                    let first = expected.values().min().copied();
                    prop_assert_eq!(deadlines.earliest().map(|(time, _)| time), first);
                }
                if step % 7 == 0 {
                    let now = at(25);
                    let due = std::iter::from_fn(|| deadlines.take_due(now)).count();
                    let before = expected.len();
                    expected.retain(|_, time| *time > now);
                    prop_assert_eq!(due, before - expected.len());
                }
            }
        }
    }
}
