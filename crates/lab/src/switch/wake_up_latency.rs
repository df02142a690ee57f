//! Waiting for the next moment or the next frame: asleep, and the last microseconds awake.
//!
//! A sleeping thread wakes late, by microseconds or tens of them as the machine has it. So it wakes
//! earlier by what it has lately been late, and looks at the clock until the moment comes. It does so
//! while it is awake for a part of the time only: on a machine of two cores the hosts need what is
//! left. Beyond that part it rests as soon as there is nothing to do, whatever comes, and does more at
//! once: so each frame does not cost its sender a wake-up either, which is most of what a frame costs on
//! a virtual machine. And beyond a larger part it rests even if there is something to do: a real-time
//! thread that never sleeps is stopped by the kernel for 50 ms in each second.

use std::io;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use weir_units::{Duration, Time};

use crate::clock::Clock;

/// Longer lateness is the exception that is not prepared for.
const LONGEST_WATCH: Duration = Duration::from_micros(70);
/// What sleep would not pay for.
const SHORTEST_SLEEP: Duration = Duration::from_micros(3);
/// Of a hundred nanoseconds so many may be spent awake while there is nothing to do, and at all.
const WATCHING: u64 = 50;
const WORKING: u64 = 90;
/// How much of it may be saved up.
const LARGEST_CREDIT: Duration = Duration::from_millis(2);
/// The sleep of a thread that has been awake for too long.
const REST: Duration = Duration::from_micros(50);
/// How long after a frame the next one is waited for awake.
const SOON: Duration = Duration::from_micros(15);
/// A call that took longer has slept.
const AT_ONCE: Duration = Duration::from_micros(2);

/// Knows how late the thread wakes.
#[derive(Debug)]
pub(super) struct WakeUpLatency {
    clock: Clock,
    /// How late sleep ends: most of the time not later.
    lateness: Duration,
    /// For how long the thread may still be awake: with nothing to do, and at all.
    watching: Duration,
    working: Duration,
    /// When these were last settled, and for how long of the time since then it slept.
    settled: Time,
    slept: Duration,
    /// When the interfaces were last looked at.
    looked: Time,
    /// Until when another frame is likely.
    lively: Time,
}

impl WakeUpLatency {
    pub(super) fn new(clock: Clock) -> Self {
        let now = clock.now();
        Self {
            clock,
            lateness: Duration::from_micros(20),
            watching: LARGEST_CREDIT,
            working: LARGEST_CREDIT,
            settled: now,
            slept: Duration::ZERO,
            looked: now,
            lively: now,
        }
    }

    /// Waits until `until`, or until one of `sources` is ready. Tells since when what they have may
    /// have been there.
    pub(super) fn wait(&mut self, until: Time, sources: &mut [PollFd<'_>]) -> io::Result<Time> {
        let mut before = self.clock.now();
        loop {
            let left = until.since(before);
            self.settle(before);
            let sleep = if self.has_to_rest(sources)? {
                // Nothing wakes it from this.
                ready_within(&mut [], REST)?;
                Duration::ZERO
            } else if before < self.lively {
                Duration::ZERO
            } else {
                left - (self.lateness + SHORTEST_SLEEP)
            };
            let ready = ready_within(sources, sleep)?;
            let after = self.clock.now();
            let took = after.since(before);
            let slept = took > AT_ONCE && !sleep.is_zero();
            if slept || took >= REST {
                self.slept += took;
            }
            if slept && !ready {
                self.learn(took - sleep);
            }
            if ready {
                self.lively = after + SOON;
            }
            let since = if slept { after } else { self.looked };
            self.looked = after;
            if ready || after >= until {
                return Ok(since);
            }
            before = after;
        }
    }

    fn has_to_rest(&self, sources: &mut [PollFd<'_>]) -> io::Result<bool> {
        if self.working.is_zero() {
            return Ok(true);
        }
        Ok(self.watching.is_zero() && !ready_within(sources, Duration::ZERO)?)
    }

    /// What may be spent grows with time, and shrinks with the time awake.
    fn settle(&mut self, now: Time) {
        let passed = now.since(self.settled);
        let spent = passed - self.slept;
        for (credit, part) in [(&mut self.watching, WATCHING), (&mut self.working, WORKING)] {
            let earned = Duration::from_nanos(passed.as_nanos() * part / 100);
            *credit = (*credit + earned).min(LARGEST_CREDIT) - spent;
        }
        (self.settled, self.slept) = (now, Duration::ZERO);
    }

    /// It rises quickly and falls slowly, so that it covers most of what happens.
    fn learn(&mut self, late: Duration) {
        let (now, late) = (self.lateness.as_nanos(), late.as_nanos());
        let next = if late > now {
            now + (late - now) / 4
        } else {
            now - (now - late) / 32
        };
        self.lateness = Duration::from_nanos(next).min(LONGEST_WATCH);
    }
}

/// Whether one of `sources` is ready before this span is over.
fn ready_within(sources: &mut [PollFd<'_>], span: Duration) -> io::Result<bool> {
    const NANOS: u64 = 1_000_000_000;
    // What is endless for us the kernel may call invalid.
    let nanos = span.as_nanos().min(3600 * NANOS);
    let timeout = Timespec {
        tv_sec: (nanos / NANOS) as i64,
        tv_nsec: (nanos % NANOS) as i64,
    };
    match poll(sources, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waiter() -> WakeUpLatency {
        // Zero until far in the future: nothing here depends on the clock.
        let mut waiter = WakeUpLatency::new(Clock::since(u64::MAX));
        waiter.settled = Time::ZERO;
        waiter
    }

    proptest! {
        #[test]
        fn what_is_awake_for_too_long_has_to_rest(spans in prop::collection::vec((0_u64..1_000_000, 0_u64..1_000_000), 1..100)) {
            let mut waiter = waiter();
            let (mut now, mut awake) = (0, 0);
            for (busy, asleep) in spans {
                now += busy + asleep;
                awake += busy;
                waiter.slept = Duration::from_nanos(asleep);
                waiter.settle(Time::from_nanos(now));
                prop_assert!(waiter.watching <= LARGEST_CREDIT && waiter.working <= LARGEST_CREDIT);
                // What was saved up at the beginning is spent, or there is a right to be awake.
                let allowed = now * WORKING / 100 + LARGEST_CREDIT.as_nanos();
                prop_assert!(awake <= allowed || waiter.working.is_zero());
            }
        }

        #[test]
        fn the_lateness_that_is_prepared_for_is_one_that_was(lates in prop::collection::vec(0_u64..200_000, 1..200)) {
            let mut waiter = waiter();
            let (low, high) = (*lates.iter().min().unwrap(), *lates.iter().max().unwrap());
            let start = waiter.lateness.as_nanos();
            for late in lates {
                waiter.learn(Duration::from_nanos(late));
                let now = waiter.lateness.as_nanos();
                prop_assert!(now <= LONGEST_WATCH.as_nanos());
                prop_assert!(now >= low.min(start).min(LONGEST_WATCH.as_nanos()) && now <= high.max(start));
            }
        }
    }

    #[test]
    fn a_moment_that_is_over_is_not_waited_for() {
        let mut waiter = waiter();
        let since = waiter.wait(Time::ZERO, &mut []).unwrap();
        assert_eq!(since, Time::ZERO);
    }
}
